# Figures of metrics that must agree with each other and with the records: the total, the
# groups, and the intervals of time.

setup() { trap - DEBUG; cd "$BATS_TEST_TMPDIR" || exit; }

# Jobs that complete, are blocked at once, wait and are then blocked, or are unfinished at the end.
jobs_until() {
    pd2graph --no-job "$ROOT"/traces/{alexnet,vgg16,gpt2-xl}.txt |
        tracegen jobs --jobs 300 --interarrival exponential:0.7 --steps uniform:20:100 \
            --deadline-fraction uniform:0.5:3 |
        partition --policy acceptable-jct | ramp-alloc --shape 2x2x2 --queue 3 | sim --until "$1"
}

@test "metrics: total, groups and intervals of the same jobs agree, whatever became of them" {
    jobs_until 150 >simulated.rec
    for cause in unfinished queue_full deadline; do
        grep -q "^block.*$cause" simulated.rec || { echo "no job is $cause"; return 1; }
    done
    # the same jobs, but every second unfinished one has been running for up to 20 s
    awk 'BEGIN { FS = OFS = "\t" }
        $4 == "unfinished" && /arrival=/ && !/start=/ && n++ % 2 == 0 {
            match($0, /arrival=[0-9.]+/)
            start = substr($0, RSTART + 8, RLENGTH - 8)
            if (start < $3 - 20) start = $3 - 20
            $0 = $0 OFS "start=" start OFS "servers=" n % 3 + 1 (n % 4 ? OFS "busy=0.25" : "")
        } { print }' simulated.rec >started.rec
    reccheck -q started.rec
    grep -q 'unfinished.*start=' started.rec
    python3 - simulated.rec started.rec <<'P'
import csv, math, subprocess, sys

def rows(*args):
    text = subprocess.run(("metrics", "--format", "csv") + args, check=True,
                          capture_output=True, text=True).stdout
    return list(csv.DictReader(text.split("\n")))

def number(text):
    return 0 if text == "nan" else float(text)

def near(what, a, b):
    assert math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9), (what, a, b)

def of_records(path):
    """Sums over the jobs, from the records alone; and how many have each cause."""
    sums = dict.fromkeys("jobs started done blocked running servers busy".split(), 0)
    causes, last = {}, 0
    for line in open(path):
        f = line.rstrip("\n").split("\t")
        if f[0] not in ("done", "block"):
            continue
        key = dict(x.split("=", 1) for x in f[4:] if "=" in x)
        start, end = (f[4], f[5]) if f[0] == "done" else (key.get("start"), f[2])
        ran = float(end) - float(start) if start else 0
        last = max(last, float(end))
        servers, busy = (float(key.get(k, 0)) for k in ("servers", "busy"))
        for k, x in (("jobs", 1), ("started", start is not None), ("done", f[0] == "done"),
                     ("blocked", f[0] == "block"), ("running", ran),
                     ("servers", ran * servers), ("busy", ran * servers * busy)):
            sums[k] += x
        if f[0] == "block":
            causes[f[3]] = causes.get(f[3], 0) + 1
    return sums, causes, last

def of_groups(figures, all_servers):
    """The same sums, of each group of `metrics`."""
    groups = {}
    for r in figures:
        groups.setdefault(r["group"], {})[r["metric"], r["statistic"]] = r["value"]
    for name, g in groups.items():
        value = lambda metric: number(g[metric, "value"])
        h = value("horizon")
        sums = {k: value(k) for k in ("jobs", "started", "done", "blocked")}
        sums.update(running=value("jobs running") * h, servers=value("servers in use") * h,
                    busy=value("cluster utilisation") * all_servers * h)
        causes = {m.split(": ")[1]: number(x) for (m, s), x in g.items()
                  if m.startswith("blocked: ")}
        rest = {k: number(x) for k, x in g.items() if k[1] == "count"}
        groups[name] = sums, causes, rest
    return groups

def add(parts):
    total = {}
    for part in parts:
        for k, x in part.items():
            total[k] = total.get(k, 0) + x
    return total

for path in sys.argv[1:]:
    sums, causes, end = of_records(path)
    total = of_groups(rows(path), 8)["all"]
    for k, x in sums.items():
        near((path, k), total[0][k], x)
    assert {c: n for c, n in total[1].items() if n} == causes, (path, total[1], causes)
    assert sums["done"] + sums["blocked"] == sums["jobs"]
    for by in "model graph degree cause deadline servers nothing".split():
        groups = of_groups(rows("--by", by, path), 8)
        assert groups.pop("all") == total
        assert len(groups) > 1 or by == "nothing"
        for i, of_total in enumerate(total): # sums, causes, counts of distributions
            of_all = add(g[i] for g in groups.values())
            for k, x in of_total.items():
                near((path, by, k), of_all[k], x)
    for width in 0.7, 10, 1000:
        intervals = [{k: number(x) for k, x in r.items()}
                     for r in rows("--series", str(width), path)]
        over = lambda f: sum(f(r) for r in intervals)
        for r in intervals: # the last one ends with the run
            r["seconds"] = min(width, end - r["time"]) if r["time"] < end else width
        for k, column in ("jobs", "arrived"), ("started",) * 2, ("done",) * 2, ("blocked",) * 2:
            near((path, width, k), over(lambda r: r[column]), sums[k])
        for k in "running", "servers":
            near((path, width, k), over(lambda r: r[k] * r["seconds"]), sums[k])
        near((path, width, "busy"),
             over(lambda r: r["cluster_utilisation"] * 8 * r["seconds"]), sums["busy"])
P
}

@test "metrics: pictures of latency, and what has none" {
    cp "$ROOT/tests/cases/metrics/queries/in.rec" .
    cat in.rec in.rec | "$ROOT/scripts/plot-latency" --slo 0.5 - in.rec >cdf.svg
    for word in '</svg>' 'share of replies' SLO 'standard input, run 2' in.rec; do
        grep -q "$word" cdf.svg
    done
    "$ROOT/scripts/plot-latency" --log -o cdf.png in.rec
    [ "$(head -c 4 cdf.png | tail -c 3)" = PNG ]
    printf 'drop\tq1\t0\t1\ta\n' >none.rec
    run "$ROOT/scripts/plot-latency" none.rec
    [ "$status" = 3 ]
    [ "$output" = "plot-latency: no reply is in the stream" ]
    head -n 5 in.rec >cut.rec
    run "$ROOT/scripts/plot-latency" cut.rec
    [ "$status" = 4 ]
    run "$ROOT/scripts/plot-latency" --log - <<<$'reply\ta\t0\t0'
    [ "$status" = 3 ]
    [[ $output == "plot-latency: no reply took any time"* ]]
    run "$ROOT/scripts/plot-latency" --slo 250ms in.rec
    [ "$status" = 2 ]
}
