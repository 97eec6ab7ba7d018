"""Compares jobs that share links with a plain simulation in exact fractions.

    sharing_exact.py SIM SEED CASES

Each case has two or three jobs on servers behind two switches. Their ops and messages form
random graphs, and take tenths of seconds, which binary numbers only come near to: so much
happens at one instant, and rounding must not decide what comes first. The plain simulation
keeps all jobs on one clock. At each instant first everything ends, then flows start and lanes
choose, then rates are computed: all are raised together, a full link keeps its flows.
"""
import random
import subprocess
import sys
from fractions import Fraction


class Step:
    """A step of a job that is under way."""

    def __init__(self, job, begun):
        self.job, self.begun = job, begun
        self.left = list(job["compute"])
        self.waiting = [sum(to == op for _, to, _ in job["deps"]) for op in range(len(self.left))]
        self.ready = {op for op, n in enumerate(self.waiting) if n == 0}
        self.running, self.since = {}, begun  # server -> op
        self.todo = len(self.left) + len(job["deps"])

    def pass_time(self, now):
        """Servers have worked until now. Returns the ops that have ended."""
        for op in self.running.values():
            self.left[op] -= now - self.since
        self.since = now
        ended = [op for op in self.running.values() if self.left[op] == 0]
        self.running = {s: op for s, op in self.running.items() if self.left[op] > 0}
        return ended

    def arrive(self, op):
        self.todo -= 1
        self.waiting[op] -= 1
        if self.waiting[op] == 0:
            self.ready.add(op)

    def choose(self):
        """The shortest op runs; of equal ones the one that was placed last."""
        for server in set(self.job["server"]):
            ops = [op for op in self.ready if self.job["server"][op] == server]
            if server in self.running:
                ops.append(self.running[server])
            if ops:
                first = min(ops, key=lambda op: (self.job["compute"][op], -op))
                if server in self.running:
                    self.ready.add(self.running[server])
                self.ready.discard(first)
                self.running[server] = first


def find_rates(capacity, routes):
    rate, left = [None] * len(routes), dict(capacity)
    while None in rate:
        load = {link: sum(link in r for r, x in zip(routes, rate) if x is None) for link in left}
        level, link = min((left[link] / n, link) for link, n in load.items() if n > 0)
        for i, route in enumerate(routes):
            if rate[i] is None and link in route:
                rate[i] = level
                for crossed in route:
                    left[crossed] -= level
    return rate


def simulate(capacity, latency, jobs):
    """The end of each job."""
    now, flows, waiting, end = Fraction(0), [], [], {}  # flows: [bytes left, route, step, op]
    steps = {}
    pending = sorted(jobs, key=lambda job: job["start"])
    while pending or steps:
        rates = find_rates(capacity, [flow[1] for flow in flows])
        times = [job["start"] for job in pending[:1]] + [entry[0] for entry in waiting]
        times += [now + flow[0] / rate for flow, rate in zip(flows, rates)]
        times += [s.since + s.left[op] for s in steps.values() for op in s.running.values()]
        time = min(times)
        for flow, rate in zip(flows, rates):
            flow[0] -= rate * (time - now)
        now = time
        for flow in [flow for flow in flows if flow[0] == 0]:
            flow[2].arrive(flow[3])
        flows = [flow for flow in flows if flow[0] > 0]
        for step in steps.values():
            job = step.job
            for op in step.pass_time(now):
                step.todo -= 1
                for _, to, size in [dep for dep in job["deps"] if dep[0] == op]:
                    route = job["route"].get((job["server"][op], job["server"][to]))
                    if route:
                        wait = sum(latency[link] for link in route)
                        waiting.append((now + wait, [size, route, step, to]))
                    else:
                        step.arrive(to)
        flows += [entry[1] for entry in waiting if entry[0] == now]
        waiting = [entry for entry in waiting if entry[0] > now]
        for name, step in list(steps.items()):
            if step.todo == 0:
                step.job["steps"] -= 1
                steps[name] = Step(step.job, now)
                if step.job["steps"] == 0:
                    end[name] = now
                    del steps[name]
        while pending and pending[0]["start"] == now:
            steps[pending[0]["name"]] = Step(pending[0], now)
            pending.pop(0)
        for step in steps.values():
            step.choose()
    return end


def make(draw):
    """A cluster of 3 servers below each of two switches, and jobs on servers of their own."""
    servers = ["s%d" % i for i in range(6)]
    draw.shuffle(servers)
    capacity, latency, jobs = {}, {}, []
    links = [(s, "x" if s < "s3" else "y") for s in servers] + [("x", "y")]
    for pair in links + [(b, a) for a, b in links]:
        capacity[pair] = Fraction(draw.randint(5, 20))
        latency[pair] = Fraction(draw.randint(0, 1), 10)
    for number in range(draw.choice((2, 2, 3))):
        own = servers[2 * number : 2 * number + 2]
        n = draw.randint(2, 5)
        deps, sizes = [], draw.sample(range(1, 60), 10)  # of equal sizes, sim sends two as one
        for to in range(n):
            for src in range(to):
                if draw.random() < 0.5:
                    deps.append((src, to, Fraction(sizes.pop())))
        route = {}
        for a, b in (own, own[::-1]):
            up, down = ("x" if a < "s3" else "y"), ("x" if b < "s3" else "y")
            route[a, b] = [(a, up)] + ([(up, down)] if up != down else []) + [(down, b)]
        jobs.append({"name": "j%d" % number, "start": Fraction(draw.randint(0, 10), 10),
                     "steps": 2, "compute": [Fraction(draw.randint(1, 20), 10) for _ in range(n)],
                     "server": [draw.choice(own) for _ in range(n)], "own": own,
                     "deps": deps, "route": route})
    return capacity, latency, jobs


def write(capacity, latency, jobs):
    lines = [("cluster", "custom", ",".join("s%d" % i for i in range(6)), "inf")]
    lines += [("link", *pair, repr(float(c)), repr(float(latency[pair])))
              for pair, c in capacity.items()]
    for job in jobs:
        g = "g" + job["name"]
        lines.append(("graph", g, "m"))
        lines += [("op", g, "o%d" % op, "task", repr(float(c)), "0")
                  for op, c in enumerate(job["compute"])]
        lines += [("dep", g, "o%d" % src, "o%d" % to, repr(float(size)))
                  for src, to, size in job["deps"]]
        lines.append(("job", job["name"], g, "0", str(job["steps"]), "inf"))
        lines.append(("layout", "L" + g, g, "2"))
        lines += [("place", "L" + g, "o%d" % op, str(job["own"].index(server)))
                  for op, server in enumerate(job["server"])]
    for job in sorted(jobs, key=lambda job: job["start"]):
        g = "g" + job["name"]
        lines.append(("alloc", job["name"], g, "L" + g, repr(float(job["start"])),
                      ",".join(job["own"])))
    return "".join("\t".join(line) + "\n" for line in lines)


sim, seed, cases = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
draw, wrong, compared, slowed, worst = random.Random(seed), 0, 0, 0, 0
for case in range(cases):
    capacity, latency, jobs = make(draw)
    text = write(capacity, latency, jobs)
    run = subprocess.run([sim, "--contention"], input=text, text=True, capture_output=True)
    if run.returncode != 0:
        sys.exit("case %d: sim: status %d: %s" % (case, run.returncode, run.stderr))
    ours = {line.split("\t")[1]: float(line.split("\t")[5]) for line in run.stdout.splitlines()
            if line.startswith("done\t")}
    for line in run.stdout.splitlines():
        if line.startswith("done\t"):
            keys = dict(x.split("=") for x in line.split("\t")[6:])
            slowed += float(keys["step"]) > float(keys["alone"]) * (1 + 1e-9)
    end = simulate(capacity, latency, jobs)
    for name in end:
        error = abs(Fraction(ours[name]) / end[name] - 1)
        compared, worst, wrong = compared + 1, max(worst, error), wrong + (error > 1e-9)
        if error > 1e-9:
            print("case %d, job %s: %r, exactly %s" % (case, name, ours[name], float(end[name])))
print("%d cases, %d ends, %d of jobs that others slow, %d wrong; the largest error is %.1e" % (
    cases, compared, slowed, wrong, worst))
sys.exit(wrong > 0 or slowed == 0)
