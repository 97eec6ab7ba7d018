# The pipeline as a whole, on all profiles that are here; conservation laws.

setup() {
    cd "$BATS_TEST_TMPDIR" && cp -r "$ROOT/traces" .
    if [ -d "$ROOT/../shared/data/pipedream" ]; then
        profiles=$(echo "$ROOT"/../shared/data/pipedream/*.txt)
    else
        profiles=$(echo traces/*.txt)
    fi
}

@test "all profiles at once through the whole pipeline, each stage's output valid" {
    pd2graph $profiles | reccheck --pass | partition --degree 8 | reccheck --pass |
        ramp-alloc --shape 4x4x2 | reccheck --pass | sim --timeline | reccheck --pass |
        metrics --format tsv >out
    [ "$(grep -c 'jobs.value' out)" = 1 ]
    jobs=$(awk -F'\t' '$2 == "jobs" { print $4 }' out)
    [ "$jobs" = "$(echo $profiles | wc -w)" ]
}

@test "server-seconds of allocs equal those of dones; no server has two jobs" {
    pd2graph $profiles | partition --degree 4 | ramp-alloc >alloc.rec && sim alloc.rec >done.rec
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
