"""Applies Perfetto's rules to a trace (Trace Event Format, JSON object form) and prints what it
has, or fails with the rule that is broken.

    timeline_rules.py TRACE [RECORDS]

With the records that it was made of: the slices of each process last as long as they say.
"""
import collections
import gzip
import json
import sys

raw = open(sys.argv[1], "rb").read()
events = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)["traceEvents"]
of = collections.defaultdict(list)
for e in events:
    of[e["ph"]].append(e)
ns = lambda microseconds: round(1000 * microseconds)
assert set(of) <= set("MXCbesfi"), set(of)
times = [ns(e["ts"]) for e in events if e["ph"] != "M"]
assert times == sorted(times), "not in order of time"

# Every process and track has one name, before what it has.
process = {e["pid"]: e["args"]["name"] for e in of["M"] if e["name"] == "process_name"}
thread = {e["tid"]: e["args"]["name"] for e in of["M"] if e["name"] == "thread_name"}
assert len(process) + len(thread) == len(of["M"])
assert all(e["pid"] in process and 0 < e["pid"] < 2**32 for e in events)
assert {e["tid"] for e in of["X"]} == set(thread)

# Slices of a track do not overlap; no track is there without need.
tracks = collections.defaultdict(list)
for e in of["X"]:
    start = ns(e["ts"])
    tracks[e["tid"]].append((start, start + ns(e["dur"])))
for slices in tracks.values():
    for (_, end), (start, _) in zip(slices, slices[1:]):
        assert end <= start, "slices overlap"
lanes = collections.Counter(e["pid"] for e in of["M"] if e["name"] == "thread_name"
                            and e["args"]["name"].startswith(("lane ", "replica ")))
most = collections.Counter()
for e in of["C"]:
    if e["name"] in ("running", "busy replicas"):
        most[e["pid"]] = max(most[e["pid"]], e["args"][e["name"]])
assert all(lanes[p] <= max(most[p], 1) for p in lanes), "more lanes than ran at once"

# Counters end at nothing, and never fall below it.
last = {}
for e in of["C"]:
    for series, value in e["args"].items():
        assert value >= 0
        last[e["pid"], e["name"], series] = value
assert not any(last.values()), last

# Each flight begins and ends once.
open_ = {}
for e in events:
    key = (e["pid"], e.get("cat"), e.get("id"), e["name"])
    if e["ph"] == "b":
        assert key not in open_, key
        open_[key] = e["ts"]
    elif e["ph"] == "e":
        assert open_.pop(key) <= e["ts"]
assert not open_, open_

# Each arrow starts inside of a slice and ends at the beginning of one.
tails = {(e["id"], e["cat"], e["name"]): e for e in of["s"]}
assert len(tails) == len(of["s"]) == len(of["f"])
for e in of["s"]:
    assert any(a <= ns(e["ts"]) < b for a, b in tracks[e["tid"]]), "an arrow from nowhere"
for e in of["f"]:
    assert e["bp"] == "e" and any(a == ns(e["ts"]) < b for a, b in tracks[e["tid"]])
    assert tails[e["id"], e["cat"], e["name"]]["ts"] < e["ts"]

def duration(start, end):
    return ns(1e6 * float(end)) - ns(1e6 * float(start))


if len(sys.argv) > 2:
    want = collections.Counter()
    visits = collections.Counter()
    since = None
    busy = {}
    for line in open(sys.argv[2]):
        f = line.rstrip("\n").split("\t")
        keys = dict(k.split("=", 1) for k in f[1:] if "=" in k)
        if f[0] == "attempt":
            want[keys.get("host", "tasks")] += duration(f[3], f[4])
        elif f[0] == "run":
            want[f[1]] += duration(f[4], f[5])
        elif f[0] == "visit":
            visits[f[2], f[4], f[5], int(f[6])] += 1
        elif f[0] == "done" and "busy" in keys and "step" in keys:
            busy[f[1]] = float(keys["busy"]) * float(keys["servers"]) * float(keys["step"])
        elif f[0] == "state" or f[0] == "trained":
            end = f[1] if f[0] == "state" else f[3]
            want["training"] += duration(since, end) if since else 0
            since = f[0] == "state" and end
    for (stage, start, end, batch), n in visits.items():
        want[stage] += -(-n // batch) * duration(start, end)
    got = collections.Counter()
    for e in of["X"]:
        got[process[e["pid"]]] += 0 if e["cat"] == "iteration" else ns(e["dur"])
    assert want == got, "slices do not last as records say"
    for job in busy.keys() & got.keys():  # the runs are rounded, each by up to half a nanosecond
        assert abs(got[job] - 1e9 * busy[job]) <= len(of["X"]), "slices are not the busy time"
print(", ".join(f"{len(of[ph])} {ph}" for ph in "XbesfiC"),
      f"{len(process)} processes, {len(thread)} tracks")
