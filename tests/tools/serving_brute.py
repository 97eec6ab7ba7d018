"""sim serve against a simulator that is written in another way, on random pipelines.

usage: serving_brute.py SEED PIPELINES

There is no event queue here. A stage never depends on one that it gets nothing from, so
stages are gone through one after the other, each for all of its time: what comes to it is
what those before it sent, in the order that include/rampipe/serve.h promises. All times are
multiples of 1/64 s, sums are exact, and there is hardly an instant at which only one thing
happens: batches done, replicas that take one after a batching delay, queries that arrive,
changes of replicas and batches. Every visit, every reply and what each stage did must be the same, to
the last bit.

Pipelines have forks, joins, stages without a model, edges with a probability (where it is
seen from the visits whether a query took one), several sources and ends. Queries that are
given up have an effect on other branches, so those are in rows of stages only.
"""
import random
import subprocess
import sys
from collections import defaultdict


class Pipeline:
    def __init__(self, draw, row):
        n = draw.randint(1, 7)
        self.stages = [f"s{i}" for i in range(n)]
        self.model = {s: None if draw.random() < 0.25 and not row else f"m{draw.randint(0, 2)}"
                      for s in self.stages}
        if not any(self.model.values()):
            self.model["s0"] = "m0"
        self.points = {f"m{i}": [(b, 2.0 ** draw.randint(0, 4))
                                 for b in (1, 2, 4, 8)[:draw.randint(1, 4)]] for i in range(3)}
        # A stage may have edges to those behind it only; records are in another order.
        pairs = [(a, b) for i, a in enumerate(self.stages) for b in self.stages[i + 1:]
                 if (b == f"s{i + 1}" if row else draw.random() < 0.4)]
        pairs += [("source", s) for s in self.stages if draw.random() < 0.2 and not row]
        draw.shuffle(pairs)
        parents = defaultdict(int)
        for _, b in pairs:
            parents[b] += 1
        self.p = {pair: draw.choice([1, 1, 0, 0.5]) if parents[pair[1]] == 1
                  and self.model[pair[1]] and not row else draw.choice([1, 1, 1, row or 0])
                  for pair in pairs}
        self.config = {s: {"batch": draw.randint(1, self.points[m][-1][0]),
                           "replicas": draw.randint(1, 3),
                           "delay": draw.choice([0, 0, 0.25, 1.0])}
                       for s, m in self.model.items() if m}
        self.records = self.stages[:]
        draw.shuffle(self.records)
        time, self.events = 0.0, []  # (time, query) or (time, (stage, replicas, batch))
        for i in range(draw.randint(1, 40)):
            time += draw.choice([0, 0, 0.25, 0.5, 3.0])
            stage = draw.choice(list(self.config))
            change = (stage, draw.randint(1, 4),
                      draw.choice([self.config[stage]["batch"],
                                   draw.randint(1, self.points[self.model[stage]][-1][0])]))
            self.events.append((time, change if draw.random() < 0.1 and i else f"q{i}"))
        self.edges = pairs + [("source", s) for s in self.records if not parents[s]]

    def text(self):
        out = ["#rampipe\t1"]
        out += [f"profile\t{m}\th\t{b}\t1\t{rate!r}" for m, points in self.points.items()
                for b, rate in points]
        out += [f"stage\t{s}\t{self.model[s] or '-'}" for s in self.records]
        out += [f"edge\t{a}\t{b}" + (f"\tp={p}" if p < 1 else "") for (a, b), p in self.p.items()]
        out += [f"config\t{s}\th\t{c['batch']}\t{c['replicas']}\tdelay={c['delay']!r}"
                for s, c in self.config.items()]
        for time, what in self.events:
            if isinstance(what, str):
                out.append(f"query\t{what}\t{time!r}")
            else:
                out.append(f"config\t{what[0]}\th\t{what[2]}\t{what[1]}\ttime={time!r}")
        return "\n".join(out) + "\n#end\n"

    def seconds(self, stage, n, service):
        points = self.points[self.model[stage]]
        for (b1, r1), (b2, r2) in zip(points[:1] + points, points):
            if n <= b2:
                each = 1 / r2 if n == b2 else 1 / r1 + (1 / r2 - 1 / r1) * (n - b1) / (b2 - b1)
                return n * each if service == "batch" else each

    def order(self):
        """Of the stages that could come next, the one whose record came first."""
        order = []
        while len(order) < len(self.records):
            order.append(next(s for s in self.records if s not in order and all(
                a in order for a, b in self.edges if b == s and a != "source")))
        return order


# What sends queries: (time, 0, rank of the stage, number of its batch) where a batch is done,
# (time, 2, number of the query's record) at the source; (time, 1) is where replicas take.
# Behind that, which edge of how many: a stage without a model sends on at once.


def run_stage(arrivals, changes, config, seconds, rank, drop_after, sources):
    """arrivals: (when it was sent, queries). Visits, batches as sent, drops, what it did."""
    queue, waiting, busy = [], [], []  # of the last two: when, and their number
    idle, surplus, number, most = config["replicas"], 0, 0, config["batch"]
    visits, sent, drops = [], [], []
    longest = 0

    def take(time, batches):
        """A replica takes: its batch, or it is idle."""
        nonlocal idle, surplus
        batch = []
        while queue and len(batch) < most:
            query, enqueued = queue.pop(0)
            if time - sources[query] > drop_after:
                drops.append((query, time))
            else:
                batch.append((query, enqueued))
        if batch:
            busy.append((time + seconds(len(batch)), batches, time, batch))
        elif surplus:
            surplus -= 1
        else:
            idle += 1

    def wake(needed, time):
        nonlocal idle, number
        for _ in range(min(needed, idle)):
            idle -= 1
            number += 1
            if config["delay"]:
                waiting.append((time + config["delay"], number))
            else:
                take(time, number)

    happens = sorted([(key, 0, queries) for key, queries in arrivals]
                     + [(key, 1, change) for key, change in changes], key=lambda x: x[0])
    while happens or waiting or busy:
        first = [(happens[0][0], 0, 0)] if happens else []
        first += [((b[0], 0, rank, b[1]), 1, b) for b in busy]
        first += [((w[0], 1, rank, w[1]), 2, w) for w in waiting]
        key, what, which = min(first, key=lambda x: x[0])
        time = key[0]
        if what == 2:
            waiting.remove(which)
            number += 1
            take(time, number)
        elif what == 1:
            busy.remove(which)
            _, _, started, batch = which
            visits += [(q, enqueued, started, time, len(batch)) for q, enqueued in batch]
            sent.append((key, [q for q, _ in batch]))
            if surplus:
                surplus -= 1
            else:
                idle += 1
                wake(len(queue) > 0, time)
        elif happens[0][1] == 0:
            queries = happens.pop(0)[2]
            queue += [(q, time) for q in queries]
            longest = max(longest, len(queue))
            wake(-(-len(queries) // most), time)
        else:
            replicas, most = happens.pop(0)[2]
            more = replicas - (idle + len(waiting) + len(busy) - surplus)
            gone = min(-more, idle) if more < 0 else -max(0, more - surplus)
            surplus = surplus - more - gone if more < 0 else max(0, surplus - more)
            idle -= gone
            wake(-(-len(queue) // most) if more > 0 else 0, time)
    return visits, sent, drops, longest


def simulate(pipeline, service, drop_after, visited):
    """visited: (query, stage) that a query came to, for edges with a probability."""
    out = defaultdict(list)  # what a stage, or the source, sends
    leaves = defaultdict(list)
    for edge in pipeline.edges:
        leaves[edge[0]].append(edge)
    sources, changes = {}, defaultdict(list)
    for i, (time, what) in enumerate(pipeline.events):
        if isinstance(what, str):
            sources[what] = time
            out["source"].append(((time, 2, i), [what]))
        else:
            changes[what[0]].append(((time, 2, i), what[1:]))
    finish, visits, drops, stages = dict(sources), [], [], {}
    been = {"source": set(sources)}  # which queries come to a stage at all

    def takes(query, edge):
        p = pipeline.p.get(edge, 1)
        return p == 1 or p > 0 and (query, edge[1]) in visited

    for rank, stage in enumerate(pipeline.order()):
        left, lists = defaultdict(int), []
        for edge in (e for e in pipeline.edges if e[1] == stage):
            for query in been[edge[0]]:
                left[query] += takes(query, edge)
            for key, queries in out[edge[0]]:
                lists.append((key + (leaves[edge[0]].index(edge),),
                              [q for q in queries if takes(q, edge)]))
        been[stage] = {query for query in left if left[query]}
        arrivals = []
        for key, queries in sorted(lists):
            for query in queries:
                left[query] -= 1
            arrivals.append((key, [q for q in queries if not left[q]]))
        arrivals = [(key, queries) for key, queries in arrivals if queries]
        if pipeline.model[stage]:
            seen, out[stage], lost, longest = run_stage(
                arrivals, changes[stage], pipeline.config[stage],
                lambda n, s=stage: pipeline.seconds(s, n, service), rank, drop_after, sources)
            visits += [(v[0], stage) + v[1:] for v in seen]
            drops += [(q, time, stage) for q, time in lost]
            stages[stage] = (len(seen), len(out[stage]),
                             sum((v[3] - v[2]) / v[4] for v in seen), longest)
        else:
            out[stage] = arrivals
        for key, queries in out[stage]:
            for query in queries:
                finish[query] = max(finish[query], key[0])
    for query, _, _ in drops:
        del finish[query]
    return visits, finish, drops, stages, sources


def check(pipeline, lines, service, drop_after):
    got = [line.split("\t") for line in lines]
    visits = [(f[1], f[2], *map(float, f[3:6]), int(f[6])) for f in got if f[0] == "visit"]
    visited = {(v[0], v[1]) for v in visits}
    want, finish, drops, stages, sources = simulate(pipeline, service, drop_after, visited)
    replies = [(f[1], float(f[2]), float(f[3])) for f in got if f[0] == "reply"]
    lost = [(f[1], float(f[3]), f[4]) for f in got if f[0] == "drop"]
    served = {f[1]: dict(k.split("=") for k in f[4:]) for f in got if f[0] == "served"}
    waited = defaultdict(float)
    for v in want:
        waited[v[1]] += v[3] - v[2]
    for query, time, stage in drops:
        waited[stage] += time - max([v[4] for v in want if v[0] == query],
                                    default=sources[query])
    problems = [
        (sorted(visits), sorted(want), "visits"),
        (sorted(replies), sorted((q, sources[q], f) for q, f in finish.items()), "replies"),
        (sorted(lost), sorted(drops), "drops"),
        ([r[2] for r in replies], sorted(r[2] for r in replies), "order of replies"),
        ({s: (int(k["queries"]), int(k["batches"]), int(k["longest"]))
          for s, k in served.items()}, {s: (a, b, d) for s, (a, b, _, d) in stages.items()},
         "counts"),
    ]
    for s, k in served.items():
        problems.append((abs(float(k["busy"]) - stages[s][2]) < 1e-9, True, "busy " + s))
        problems.append((float(k["waiting"]), waited[s], "waiting " + s))
    return [f"{what}:\n  got  {a}\n  want {b}" for a, b, what in problems if a != b]


def main(seed, count):
    draw = random.Random(seed)
    failures = done = visits = 0
    for row, options in ((None, []), (None, ["--service", "query"]),
                         (1, ["--drop-after", "2.5"])):
        pipelines = [Pipeline(draw, row) for _ in range(count)]
        command = ["sim", "serve", "--trace", "--seed", "3", *options]
        text = "".join(p.text() for p in pipelines)
        out = subprocess.run(command, input=text, capture_output=True, text=True)
        if out.returncode:
            raise SystemExit(out.stderr)
        runs, lines = [], []
        for line in out.stdout.split("\n"):
            if line.startswith("served") or not (lines and lines[-1].startswith("served")):
                lines.append(line)
            else:
                runs.append(lines)
                lines = [line]
        assert len(runs) == len(pipelines), (len(runs), len(pipelines))
        for pipeline, lines in zip(pipelines, runs):
            problems = check(pipeline, lines, "query" if "query" in options else "batch",
                             2.5 if row else float("inf"))
            done += 1
            visits += sum(line.startswith("visit") for line in lines)
            if problems:
                failures += 1
                if failures < 4:
                    print("FAILED:", *options, pipeline.text(), *problems, sep="\n")
    print(f"{done} pipelines, {visits} visits, {failures} failures")
    return failures > 0


sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
