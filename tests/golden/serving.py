"""Compares sim serve with ../shared/golden/serving.

usage: serving.py GOLDEN_FOLDER queries|runs|stages

queries: the latency of every query at CV 1, and what stages did (summary.csv).
runs: every row of summary_fifo.csv, at CV 1 and CV 4.
stages: service times (service_times.csv) and what follows of them alone (prechecks.csv).

Times of the golden are ms, ours s, so sums are rounded at other digits: at T s by up to
2^-53 T each. Queues that run empty now and then forget it: some additions at 500 s, 1e-12 s.
Where the pipeline is overloaded (c3) it is 50,000 additions of one number up to 5000 s, each
rounded the same way: up to 2.8e-8 s, of latencies of thousands of seconds. So: 1e-9 s, and
1e-12 of a latency. (Measured: 7e-12 s, and 6e-13 of c3's.)
"""
import csv
import gzip
import json
import math
import os
import subprocess
import sys
from itertools import accumulate

golden, mode = sys.argv[1:3]
PIPELINE = os.path.join(os.path.dirname(__file__), "../../traces/serving/image-driver.rec")
TOLERANCE = 1e-9  # seconds
STAGES = "ResNet", "Inception", "KSVM", "LogReg"
failures = checks = 0


def check(ok, *what):
    global failures, checks
    checks += 1
    if not ok:
        failures += 1
        print("FAILED:", *what)


def same(ours, milliseconds, *what, tolerance=TOLERANCE):
    check(abs(ours - milliseconds / 1000) <= tolerance + 1e-12 * ours, *what, ours,
          milliseconds / 1000)


def rows(name):
    path = os.path.join(golden, name)
    with (gzip.open(path, "rt") if path.endswith(".gz") else open(path)) as file:
        return list(csv.DictReader(file))


CONFIGS = json.load(open(os.path.join(golden, "configs.json")))
with open(PIPELINE) as pipeline:
    PARTS = [line.split("\t") for line in pipeline.read().splitlines() if line[:1] != "#"]


def records(*kinds):
    return "".join("\t".join(part) + "\n" for part in PARTS if part[0] in kinds)


def queries(deltas):
    """The first at 0, as the published source has it; sums in ms, as there."""
    with gzip.open(os.path.join(golden, "deltas", deltas + ".deltas.gz"), "rt") as file:
        times = accumulate(map(float, file.read().split()), initial=0.0)
    return "".join(f"query\t{i}\t{time / 1000!r}\n" for i, time in enumerate(times))


def serve(text, *options):
    done = subprocess.run(["sim", "serve", "-v", *options], input=text, capture_output=True,
                          text=True, check=True)
    return done.stdout, int(done.stderr.split(" queries, ")[1].split(" events")[0])


def replies(out):
    """Ids, arrivals and finishes."""
    begin = out.index("reply\t")
    word = out[begin:out.index("served\t", begin)].split()
    assert len(set(word[0::4])) == 1
    return word[1::4], list(map(float, word[2::4])), list(map(float, word[3::4]))


def served(out):
    """Of each stage, its keys."""
    stage = [line.split("\t") for line in out[out.index("\nserved\t"):].split("\n")]
    return {f[1]: dict(key.split("=") for key in f[4:]) for f in stage if f[0] == "served"}


def configured(name, delay=0.0):
    return "".join(f"config\t{stage.lower()}\t{c['hw'].lower()}\t{c['bs']}\t{c['rf']}"
                   f"\tdelay={delay!r}\n" for stage, c in CONFIGS[name].items())


def run(name, deltas, service, delay=0.0):
    """As replies(), then served() and events."""
    text = records("profile", "stage", "edge") + configured(name, delay) + deltas
    out, events = serve(text, "--service", service)
    return (*replies(out), served(out), events)


def percentile(ordered, p):
    """As numpy's: linear between order statistics."""
    at = p / 100 * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def compare_queries():
    deltas = queries("100_1.0")
    summary = {(r["config"], r["arrivals"], r["interp"], r["batching_delay_ms"]): r
               for r in rows("summary.csv")}
    recorded = [f[:-len(".csv.gz")].split("__")
                for f in sorted(os.listdir(os.path.join(golden, "latencies")))]
    runs = [(c, s, 0.0) for c, arrivals, s in recorded if arrivals == "100_1.0"]
    runs.append(("c2_resnet_x2", "batch", 2.0))
    for config, service, delay in runs:
        what = config, service, delay
        ids, arrival, finish, stages, events = run(config, deltas, service, delay / 1000)
        latency = [b - a for a, b in zip(arrival, finish)]
        if delay == 0:
            want = rows(f"latencies/{config}__100_1.0__{service}.csv.gz")
            want = {r["id"]: (float(r["source_ms"]), float(r["latency_ms"])) for r in want}
            check(len(want) == len(ids) == len(set(ids)), *what, "queries", len(ids))
            worst = max(max(abs(a - want[i][0] / 1000), abs(x - want[i][1] / 1000))
                        for i, a, x in zip(ids, arrival, latency))
            check(worst <= TOLERANCE, *what, "a query is", worst, "s off")
        row = summary[config, "100_1.0", service, str(delay)]
        check(finish == sorted(finish), *what, "replies in order of time")
        check(len(ids) == int(row["queries"]), *what, "queries")
        latency.sort()
        for p in "p50", "p90", "p95", "p99":
            same(percentile(latency, float(p[1:])), float(row[p + "_ms"]), *what, p)
        same(max(latency), float(row["max_ms"]), *what, "longest")
        same(sum(latency) / len(ids), float(row["mean_ms"]), *what, "mean")
        same(max(finish), float(row["makespan_ms"]), *what, "end")
        # Theirs has an event for each list of queries that comes to the sink: at CV 1 none
        # of them is at the time of another.
        check(events + len(set(finish)) == int(row["events"]), *what, "events", events)
        for stage in STAGES:
            ours = {key: float(x) for key, x in stages[stage.lower()].items()
                    if key != "hardware"}
            check(ours["batches"] == float(row[stage + "_batches"]), *what, stage, "batches")
            check(ours["queries"] == len(ids), *what, stage, "queries")
            # these have six decimals
            check(abs(ours["queries"] / ours["batches"] - float(row[stage + "_mean_batch"]))
                  <= 0.6e-6, *what, stage, "mean batch")
            same(ours["waiting"] / len(ids), float(row[stage + "_mean_wait_ms"]), *what,
                 stage, "mean wait", tolerance=0.6e-9 + TOLERANCE)
            # Theirs is the longest that a list finds when it comes, without it: at the first
            # stages lists are single queries.
            if stage in ("ResNet", "Inception"):
                check(ours["longest"] == 1 + float(row[stage + "_max_queue"]), *what, stage,
                      "longest queue", ours["longest"])


# Stages with several replicas and small batches.
REPLICATED = "c4_tpx", "c5_many_small", "c7_bs1_replicated"


def compare_runs():
    """summary_fifo.csv: no events within 1e-8 ms are made one, and the first in is the first
    out, as with us. At CV 4 one delta in four is lost in the sum: queries at one instant. A
    stage with one replica, or with batches that take them all, has nothing to choose then,
    and all figures are ours. Where several replicas are done at one instant, and what comes
    of them meets in the queue of the next stage, that summary has an order of its own, which
    no rule that we tried gives (by scheduling, by its reverse, by kind of event, by replica;
    first in, first out by hand, stage by stage, gives ours to the last digit). Those queries
    change places, and a percentile by up to 0.61 %, as much as two rules are ever apart; the
    longest latency does not depend on it.

    And every latency of the published rule at CV 4 where it cannot matter who is first: in
    order of size, for ids change places."""
    text, seen = {}, 0
    for row in rows("summary_fifo.csv"):
        name, arrivals, service = what = row["config"], row["arrivals"], row["interp"]
        if not os.path.exists(os.path.join(golden, "deltas", arrivals + ".deltas.gz")):
            continue  # it was not kept
        # Of 28 runs 6, of most configurations one; with EVERY=1, as in CI, all.
        seen += 1
        if seen % 5 != 1 and not os.environ.get("EVERY"):
            continue
        if arrivals not in text:
            text = {arrivals: queries(arrivals)}
        _, arrival, finish, _, _ = run(name, text[arrivals], service)
        latency = sorted(b - a for a, b in zip(arrival, finish))
        share = 0.007 if arrivals == "100_4.0" and name in REPLICATED else 0
        for p in "p50", "p95", "p99":
            same(percentile(latency, float(p[1:])), float(row[p + "_ms"]), *what, p,
                 tolerance=TOLERANCE + share * float(row[p + "_ms"]) / 1000)
        same(latency[-1], float(row["max_ms"]), *what, "longest")
        file = f"latencies/{name}__100_4.0__{service}.csv.gz"
        if arrivals == "100_4.0" and os.path.exists(os.path.join(golden, file)):
            want = sorted(float(r["latency_ms"]) / 1000 for r in rows(file))
            worst = max(map(abs, map(float.__sub__, latency, want)))
            check(len(want) == len(latency) and worst <= TOLERANCE, *what, "in order", worst)


def compare_stages():
    """A stage for each model, hardware and n, with batches of n that wait for the delay of
    1 s, and a replica for each of 64 queries at time 0: the first batch is of n. And a stage
    for each stage of each configuration, as it is configured: 1920 queries at time 0 are
    batches of the largest size only, so what is busy is 1920 / n times the service."""
    want = rows("service_times.csv")
    profile = records("profile")
    for service, column in (("batch", "batch_ms"), ("query", "query_ms")):
        names = [f"{r['model']}/{r['hw']}/{r['n']}" for r in want]
        text = profile + "".join(f"stage\t{name}\t{name.split('/')[0].lower()}\n"
                                 for name in names)
        text += "".join("config\t{0}\t{1}\t{2}\t64\tdelay=1\n".format(
            name, *name.lower().split("/")[1:]) for name in names)
        text += "".join(f"query\t{i}\t0\n" for i in range(64))
        out, _ = serve(text, "--service", service, "--trace")
        visits = [line.split("\t") for line in out.split("\n") if line[:6] == "visit\t"]
        seconds = {(f[2], f[6]): float(f[5]) - float(f[4]) for f in visits}
        for name, r in zip(names, want):
            same(seconds[name, r["n"]], float(r[column]), "service time", service, name)
    compare_prechecks(profile)


def compare_prechecks(profile):
    burst = "".join(f"query\t{i}\t0\n" for i in range(1920))
    text = records("profile", "price")
    for name, config in CONFIGS.items():
        for stage, c in config.items():
            text += (f"stage\t{name}/{stage}\t{stage.lower()}\n"
                     f"config\t{name}/{stage}\t{c['hw'].lower()}\t{c['bs']}\t{c['rf']}\tdelay=1\n")
    paths = ("ResNet", "KSVM"), ("Inception", "LogReg")
    for service in "batch", "query":
        stages = served(serve(text + burst, "--service", service)[0])
        for r in rows("prechecks.csv"):
            name, config = r["config"], CONFIGS[r["config"]]
            s = {stage: stages[f"{name}/{stage}"] for stage in STAGES}
            each = {stage: float(s[stage]["busy"]) / float(s[stage]["batches"])
                    for stage in STAGES}
            same(max(sum(each[x] for x in path) for path in paths),
                 float(r[f"path_service_{service}_ms"]), name, service, "on the longest path")
            if service == "query":
                continue
            rate = {stage: config[stage]["bs"] / each[stage] for stage in STAGES}
            all_rates = {stage: rate[stage] * config[stage]["rf"] for stage in STAGES}
            for ours, column in ((rate, "max_throughput_coded_no_replicas_qps"),
                                 (all_rates, "max_throughput_with_replicas_qps")):
                least = min(ours.values())
                check(math.isclose(least, float(r[column]), rel_tol=1e-9), name, column, least)
            check(min(all_rates, key=all_rates.get) == r["bottleneck"], name, "bottleneck")
            check(sum(float(s[x]["price"]) * config[x]["rf"] for x in STAGES)
                  == float(r["cost"]), name, "cost")


{"queries": compare_queries, "runs": compare_runs, "stages": compare_stages}[mode]()
print(f"{mode}: {checks} comparisons, {failures} failures")
sys.exit(1 if failures or not checks else 0)
