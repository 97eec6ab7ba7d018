"""Compares dynamic job arrivals with ../shared/golden/ramp/cluster.

usage: cluster.py GOLDEN_FOLDER PROFILES_FOLDER whole|job-by-job

whole: the runs in which the published simulator's faults play no part; every decision and
every completion time of the episode is the same.

job-by-job: the other runs. Each job arrives alone at a cluster on which exactly the servers that
the golden says were taken are out of service (--down), so that one difference does not
hide behind another. Decision, servers and completion time are the same, or differ by a
fault that ../shared/reference/ramp.md lists:
  rounding       at deadline fraction 1.0 and degree 1 the last bit decided (8.4, 9)
  memo           the golden repeats the time of the first placement of that model and
                 degree, whatever the placement (7.6)
  shared channel a dep could finish late on a channel that another used (7.4 variant i), and
                 an op start early (7.3): published.py, which does so too, gives the golden's
                 time for one of the orders that depended on hashes
"""
import csv
import functools
import glob
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # the tests leave nothing beside the sources
import published

golden, profiles, mode = sys.argv[1:4]
# A network 1000 times slower than published in every respect.
SLOW_NETWORK = "--bandwidth 1.6e9 --propagation 50e-6 --io 100e-6"
MODELS = "alexnet vgg16 squeezenet1_0 resnet18 gnmt".split()
scratch = os.path.relpath(tempfile.mkdtemp())
for model in MODELS:
    subprocess.run(["pd2graph", "--no-job", "--time-unit", "s", f"{profiles}/{model}.txt",
                    "-o", f"{scratch}/{model}.rec"], check=True)


def close(a, b):
    return a == b or abs(a - b) <= 1e-9 * max(abs(a), abs(b))


def policy(name):
    heuristic = name.split("-")[0]
    return {"NoParallelism": "none", "MinParallelism": "min",
            "AcceptableJCT": "acceptable-jct"}.get(heuristic) or "sip-ml:" + heuristic[5:]


def call(*command, text=None):
    return subprocess.run(command, check=True, capture_output=True, text=True, input=text).stdout


@functools.cache
def partitioned(policy, jobs):
    """A file of the jobs' graphs and alternatives; most jobs that run alone share theirs."""
    graphs = [f"{scratch}/{m}.rec" for m in MODELS if any(model == m for _, model, _, _ in jobs)]
    lines = "".join("\t".join(["job", name, model, arrival, "50", deadline]) + "\n"
                    for name, model, arrival, deadline in jobs)
    path = f"{scratch}/partitioned-{partitioned.cache_info().misses}.rec"
    call("partition", "--policy", policy, "--quantum", "0.01", *graphs, "-", "-o", path, text=lines)
    return path


def allocate(name, jobs, down):
    """The file of what ramp-alloc says; the next call writes the same one."""
    path = f"{scratch}/allocated.rec"
    with open(path, "w") as out:
        subprocess.run(["ramp-alloc", "--choose", "first-degree",
                        *(SLOW_NETWORK.split() if "lowbw" in name else ()),
                        *(("--down", ",".join(down)) if down else ()),
                        partitioned(policy(name), jobs)], check=True, stdout=out)
    return path


@functools.cache
def run(name, jobs, down=()):
    """Our results by job: (status, cause, completion time, servers)."""
    allocated = allocate(name, jobs, down)
    results, servers = {}, {}
    for line in open(allocated).read().split("\nalloc\t")[1:]:
        record = line.split("\n", 1)[0].split("\t")
        servers[record[0]] = sorted(record[4].split(","))
    for line in call("sim", allocated).split("\n"):
        r = line.split("\t")
        if r[0] == "done":
            results[r[1]] = ("completed", "", float(r[5]) - float(r[3]), servers[r[1]])
        elif r[0] == "block":
            results[r[1]] = ("blocked", r[3], None, None)
    return results


def is_published(seconds, name, jobs, down):
    """Does the published loop take that long for the only job?"""
    allocated = allocate(name, jobs, down)
    job = published.Placed(open(allocated).read(), call("sim", "--timeline", allocated))
    return any(close(seconds, 50 * published.step_seconds(job, seed)) for seed in range(20))


def explain(row, ours, first, *ran):
    """The fault that a difference comes from; None if there is none; 'wrong' otherwise."""
    if ours[0] != row["status"]:
        if (row["frac"] == "1.0" and row["action"] == "1"
                and "acceptable_jct" in row["cause"]):
            return "rounding"
        return "wrong"
    if ours[0] == "blocked":
        causes = {"deadline": "acceptable_jct", "no_servers": "action=0"}
        return None if causes.get(ours[1], "op_placement") in row["cause"] else "wrong"
    if ours[3] != sorted(row["servers"].split()):
        return "wrong"
    theirs = float(row["lookahead_jct"])
    if close(ours[2], theirs):
        return None
    key = (row["model"], row["max_degree_actual"])
    if first[key][1] == row["lookahead_jct"] and first[key][0] != row["job_idx"]:
        return "memo"
    return "shared channel" if is_published(theirs, *ran) else "wrong"


def job_by_job(name, rows):
    faults, first = {}, {}
    for n, row in enumerate(rows):
        key = (row["model"], row["max_degree_actual"])
        if row["lookahead_jct"] and key not in first:
            first[key] = (row["job_idx"], row["lookahead_jct"])
        time = float(row["arrival"])
        down = [s for other in rows[:n]
                if other["status"] == "completed" and float(other["end"]) > time
                for s in other["servers"].split()]
        # Alone it takes as long whenever it arrives, so all arrive at 0.
        alone = (("job", row["model"], "0", row["max_acceptable_jct"]),)
        # Every tenth job; with EVERY=1, as in CI, all of them.
        if n % 10 and not os.environ.get("EVERY"):
            continue
        ran = name, alone, tuple(sorted(down))
        ours = run(*ran)["job"]
        fault = explain(row, ours, first, *ran)
        if fault:
            faults.setdefault(fault, []).append(row["job_idx"])
            if fault == "wrong":
                print("   ", row["job_idx"], "ours", ours, "golden", row["status"],
                      row["cause"], row["lookahead_jct"], row["servers"])
    return faults


# Figures of an episode: ours (metric, statistic), theirs, and the factor between them.
# The others of the published list are means over the simulator's steps, unweighted, where
# ours are weighted by time (section 9), or divide by the number of steps (7.5).
EPISODE = [
    ("blocking rate", "value", "blocking_rate", 1),
    ("acceptance rate", "value", "acceptance_rate", 1),
    ("jobs", "value", "num_jobs_arrived", 1),
    ("done", "value", "num_jobs_completed", 1),
    ("horizon", "value", "episode_time", 1),
    ("completion time", "mean", "job_completion_time__mean", 1),
    ("speed-up", "mean", "job_completion_time_speedup__mean", 1),
    ("sequential time", "mean", "jobs_completed_job_sequential_completion_time__mean", 1),
    ("deadline", "mean", "jobs_completed_max_acceptable_job_completion_time__mean", 1),
    ("deadline fraction", "mean",
     "jobs_completed_max_acceptable_job_completion_time_frac__mean", 1),
    ("sequential time of blocked", "mean",
     "jobs_blocked_job_sequential_completion_time__mean", 1),
    ("deadline of blocked", "mean", "jobs_blocked_max_acceptable_job_completion_time__mean", 1),
    ("servers", "mean", "jobs_completed_num_mounted_workers__mean", 1),
    ("utilisation", "mean", "jobs_completed_mean_mounted_worker_utilisation_frac__mean", 50),
    ("compute throughput", "value", "mean_compute_throughput", 1),
    ("dep throughput", "value", "mean_dep_throughput", 1),
    ("flow throughput", "value", "mean_flow_throughput", 1),
    ("cluster throughput", "value", "mean_cluster_throughput", 1),
    ("demand compute throughput", "value", "mean_demand_compute_throughput", 1),
    ("demand dep throughput", "value", "mean_demand_dep_throughput", 1),
    ("demand throughput", "value", "mean_demand_total_throughput", 1),
]


def episode(name, jobs):
    """The figures of the whole run that differ from the golden's."""
    with open(f"{golden}/cluster/{name}.episode.csv") as f:
        theirs = {r["metric"]: float(r["value"]) for r in csv.DictReader(f)}
    text = call("metrics", "--format", "tsv", text=call("sim", allocate(name, jobs, ())))
    ours = {(r[1], r[2]): float(r[3]) for r in
            (line.split("\t") for line in text.split("\n")[1:] if line)}
    wrong = []
    for metric, statistic, published, factor in EPISODE:
        if not close(ours[metric, statistic], theirs[published] * factor):
            print("   ", metric, ours[metric, statistic], "golden", theirs[published] * factor)
            wrong.append(metric)
    return wrong


def whole(name, rows):
    jobs = tuple((r["job_idx"], r["model"], r["arrival"], r["max_acceptable_jct"]) for r in rows)
    ours = run(name, jobs)
    wrong = [r["job_idx"] for r in rows
             if explain(r, ours[r["job_idx"]], {}, name, jobs, ()) is not None]
    return {"wrong": wrong + episode(name, jobs)}


failed = compared = 0
for path in sorted(glob.glob(f"{golden}/cluster/*.jobs.csv")):
    name = os.path.basename(path)[:-len(".jobs.csv")]
    if (mode == "whole") != name.startswith("SiPML"):
        continue
    with open(path) as f:
        rows = list(csv.DictReader(f))
    faults = (whole if mode == "whole" else job_by_job)(name, rows)
    compared += len(rows)
    failed += len(faults.get("wrong", []))
    print(f"{name}: {len(rows)} jobs;",
          ", ".join(f"{k}: {len(v)}" for k, v in sorted(faults.items()) if v) or "all equal")
print(f"{compared} jobs compared, {failed} differ without a listed fault")
sys.exit(1 if failed or not compared else 0)
