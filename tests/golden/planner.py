"""Plans against the published scenarios' optima, ../shared/golden/serving/planner.

    planner.py GOLDEN TRACES

Every scenario names its arrivals, its objective, and the least cost of all configurations,
found by brute force over profiled batches. plan --exact must find and prove it. Greedy
planners after the paper (four variants) get what is under "greedy"; what plan finds before it
searches on must cost no more than the one that starts as ours does, on the hardware of least
latency, and judges by the whole simulation. Scenarios whose arrivals are not there are left out.
"""
import glob
import json
import os
import re
import subprocess
import sys
import time

golden, traces = sys.argv[1:]
wrong = seen = 0


def plan(scenario):
    """The planned record's cost and keys, what the greedy planner said, and seconds."""
    deltas = f"{golden}/deltas/{scenario['arrivals']}.deltas.gz"
    command = (f"tracegen queries --deltas {deltas} --unit ms --speed-up {scenario['delta_divisor']} "
               f"{traces}/serving/image-driver.rec | plan -v --slo {scenario['slo_ms']}ms "
               f"--holdout 0 --percentile {100 * scenario['quantile']:g} --exact")
    start = time.monotonic()
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    field = next(line for line in done.stdout.split("\n") if line.startswith("planned")).split("\t")
    greedily = float(re.search(r"greedily: (\S+) US", done.stderr)[1])
    return (float(field[2]), dict(f.split("=") for f in field[3:]), greedily,
            time.monotonic() - start)


for path in sorted(glob.glob(f"{golden}/planner/*.json")):
    scenario = json.load(open(path))
    if not os.path.exists(f"{golden}/deltas/{scenario['arrivals']}.deltas.gz"):
        continue
    seen += 1
    if seen > 1 and not os.environ.get("EVERY"):  # all of them in CI
        continue
    optimum = scenario["optimal_cost"]
    theirs = scenario["greedy"].get("latency_local_exact", scenario["greedy"]["latency_local"])["cost"]
    cost, keys, greedily, took = plan(scenario)
    print(f"{scenario['name']}: {greedily:g} greedily, {cost:g} proved, in {took:.2f} s, "
          f"{keys['simulations']} simulations")
    if (cost != optimum or float(keys["lower"]) != cost or int(keys["queries"]) != scenario["queries"]
            or int(keys["late"]) > scenario["allowed_violations"]):
        wrong += 1
        print(f"{scenario['name']}: the optimum is {optimum}, plan --exact says {cost} {keys}")
    if not optimum <= greedily <= theirs:
        wrong += 1
        print(f"{scenario['name']}: the published greedy one costs {theirs}")
sys.exit(wrong > 0 or seen < 5)
