# The whole pipeline, on all profiles in this tree: conservation laws, the load experiment, the installed
# library. (stages.bats tests that the output of each stage is valid.)

setup() {
    trap - DEBUG
    cd "$BATS_TEST_TMPDIR" && ln -s "$ROOT/traces" .
    if [ -d "$ROOT/../shared/data/pipedream" ]; then
        profiles=("$ROOT"/../shared/data/pipedream/*.txt)
    else
        profiles=(traces/*.txt)
    fi
}

@test "server-seconds of allocs equal those of dones; no server has two jobs" {
    pd2graph "${profiles[@]}" | partition --degree 4 | ramp-alloc >alloc.rec
    sim alloc.rec >done.rec
    python3 - <<'P'
allocs, dones = {}, {}
for line in open("alloc.rec"):
    f = line.rstrip("\n").split("\t")
    if f[0] == "alloc":
        allocs[f[1]] = (float(f[4]), f[5].split(","))
for line in open("done.rec"):
    f = line.rstrip("\n").split("\t")
    if f[0] == "done":
        dones[f[1]] = (float(f[4]), float(f[5]), dict(k.split("=", 1) for k in f[6:]))
assert allocs.keys() == dones.keys() and allocs
held = sum(len(s) * (dones[j][1] - t) for j, (t, s) in allocs.items())
used = sum(int(k["servers"]) * (e - b) for b, e, k in dones.values())
assert abs(held - used) <= 1e-9 * held, (held, used)
spans = {}
for j, (t, servers) in allocs.items():
    for s in servers:
        spans.setdefault(s, []).append((t, dones[j][1]))
for s, list_ in spans.items():
    list_.sort()
    assert all(a[1] <= b[0] for a, b in zip(list_, list_[1:])), s
for b, e, k in dones.values():  # work in = work out
    busy = float(k["busy"]) * int(k["servers"]) * float(k["step"])
    assert abs(busy - float(k["sequential"])) <= 1e-9 * busy
P
}

@test "what a profile is of, and how it was made, reaches the results" {
    pdgen -d h100 -b 4 vgg16 | pd2graph | partition --degree 2 >parts.rec
    grep -q $'^graph\tvgg16/2\tvgg16\tdevice=h100\tbatch=4\t' parts.rec
    ramp-alloc parts.rec | sim >done.rec
    grep -q $'^done\tvgg16\t.*\tmodel=vgg16\t' done.rec
    pipe=$(sed -n 's/^#@\t[^\t]*\t//p' parts.rec | paste -sd '|')
    echo "$pipe"
    bash -c "$pipe" | cmp - parts.rec
    [ "$pipe" = 'pdgen --device=h100 --batch=4 vgg16|pd2graph|partition --degree=2' ]
}

# Jobs over time: every job ends in exactly one way, and no two jobs have a server at the same time.
@test "arrived = completed + blocked, over time, with policies and a queue" {
    pd2graph --no-job traces/*.txt |
        tracegen jobs --jobs 1000 --interarrival exponential:2 \
            --deadline-fraction uniform:0.5:3 --sampling replace |
        partition --policy all --max-degree 4 >jobs.rec
    for way in "first 0" "first-degree 0" "fastest 5" "fewest-servers 20"; do
        set -- $way
        ramp-alloc --choose $1 --queue $2 jobs.rec | tee alloc.rec | reccheck --pass | sim >done.rec
        python3 - <<'P'
held, spans, jobs, ends, causes = 0, {}, {}, {}, {}
for line in open("alloc.rec"):
    f = line.rstrip("\n").split("\t")
    if f[0] == "job":
        jobs[f[1]] = (float(f[3]), float(f[5]))
    elif f[0] == "alloc":
        ends[f[1]] = (float(f[4]), f[5].split(","))
    elif f[0] == "block":
        causes[f[1]] = f[3]
assert len(jobs) == 1000 and ends.keys() | causes.keys() == jobs.keys()
assert not ends.keys() & causes.keys() and ends
last = 0.0
for line in open("done.rec"):
    f = line.rstrip("\n").split("\t")
    if f[0] != "done":
        continue
    start, finish = float(f[4]), float(f[5])
    assert start == ends[f[1]][0] and start >= jobs[f[1]][0] and finish >= last
    assert finish - jobs[f[1]][0] <= jobs[f[1]][1] * (1 + 2e-9)
    last = finish
    for s in ends.pop(f[1])[1]:
        spans.setdefault(s, []).append((start, finish))
assert not ends
for s, times in spans.items():
    times.sort()
    assert all(a[1] <= b[0] for a, b in zip(times, times[1:])), s
P
        metrics done.rec >figures
        [ "$(awk -F'\t' '$2 == "jobs" { print $4 }' figures)" = 1000 ]
    done
}

@test "the load sweep makes its plots from nothing, the same bytes each time, and resumes" {
    # relative paths: make cannot have blanks in a name, but the path of the tree may have some
    out=$(realpath --relative-to="$ROOT/traces/experiments/load" "$PWD")
    bin=$(realpath --relative-to="$ROOT/traces/experiments/load" "$BUILD/bin")
    sweep() {
        make -s -C "$ROOT/traces/experiments/load" BIN="$bin" OUT="$out/$1" JOBS=40 \
            SEEDS='1 2' INTERARRIVALS='0.3 3' CURVES='max@first none@first acceptable-jct@fastest' PROFILES=../../alexnet.txt
    }
    sweep a >log
    sweep b >>log
    for f in load.tsv blocking.svg completion.svg; do
        cmp a/$f b/$f
        [ -s a/$f ]
    done
    # the state of a run that was killed while it made one point
    sed -i '/^attempt\tmax@first\/3\/1\t/d' a/log
    rm a/load.tsv a/points.rec
    echo half >a/max@first/3/1.tsv
    sweep a >again
    [ "$(grep ^done a/points.rec | cut -f 2)" = max@first/3/1 ]
    cmp a/load.tsv b/load.tsv
}
