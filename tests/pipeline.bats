# The pipeline as a whole: stages swapped for other programs, bytes reproduced, documents run.

setup() {
    cd "$BATS_TEST_TMPDIR" && cp -r "$ROOT/traces" .
    if [ -d "$ROOT/../shared/data/pipedream" ]; then
        profiles=$(echo "$ROOT"/../shared/data/pipedream/*.txt)
    else
        profiles=$(echo traces/*.txt)
    fi
}
results() { grep -E '^(done|block)' | sort; }

@test "all profiles at once through the whole pipeline, each stage's output valid" {
    pd2graph $profiles | reccheck --pass | partition --degree 8 | reccheck --pass |
        ramp-alloc --shape 4x4x2 | reccheck --pass | sim --timeline | reccheck --pass |
        metrics --format tsv >out
    [ "$(grep -c 'jobs.value' out)" = 1 ]
    jobs=$(awk -F'\t' '$2 == "jobs" { print $4 }' out)
    [ "$jobs" = "$(echo $profiles | wc -w)" ]
}

@test "two runs give the same bytes, and provenance can be run again" {
    run_it() { pd2graph traces/vgg16.txt | partition --degree 4 | ramp-alloc | sim; }
    run_it >a && run_it >b && cmp a b
    cd traces
    grep '^#@' ../a | cut -f 3 | paste -sd'|' >again
    bash ./again >../c && cmp ../a ../c
}

@test "an awk partition of degree 1 replaces ours" {
    cat >one.awk <<'A'
    BEGIN { FS = OFS = "\t" }
    /^#/ { next }
    $1 == "graph" { graph = $2; $2 = $2 "/1"; print; next }
    $1 == "op" { memory[$3] = $6; $2 = graph "/1" }
    $1 == "dep" { $2 = graph "/1"; $5 = memory[$3] }
    $1 == "job" { $3 = $3 "/1" }
    { print }
A
    for f in $profiles; do
        pd2graph $f | awk -f one.awk | ramp-alloc | sim | grep ^done | cut -f 2-15 |
            sed 's/\tdegree=1//' >theirs
        pd2graph $f | partition --degree 1 | ramp-alloc | sim | grep ^done | cut -f 2-16 |
            sed 's/\tdegree=1//' >ours
        cut -f 1-13 theirs >a && cut -f 1-13 ours >b && cmp a b && [ -s a ]
    done
}

@test "a Python partition into two replaces ours" {
    cat >two.py <<'P'
import sys
ops, deps, pair, rank = {}, [], {}, {}
def parts(op): return ["a", "b"] if split(op) else [""]
def split(op):
    forward = op if ops[op][3] == "forward" else pair[op]
    return float(ops[forward][4]) > 0
for line in sys.stdin:
    f = line.rstrip("\n").split("\t")
    if f[0] == "op":
        ops[f[2]] = f
        keys = dict(k.split("=", 1) for k in f[6:])
        pair[f[2]] = keys["pair"]
    elif f[0] == "dep":
        deps.append(f)
    elif f[0] == "job":
        order = [o for o in ops if ops[o][3] == "forward"]
        for i, o in enumerate(order):
            rank[o], rank[pair[o]] = 2 * i, 2 * i + 1
        print("graph", graph[1] + "/2", graph[2], "degree=2", sep="\t")
        for o, r in ops.items():
            k = len(parts(o))
            for j, p in enumerate(parts(o)):
                extra = [f"of={o}", f"part={j + 1}/{k}"] if k > 1 else []
                print("op", r[1] + "/2", o + p, r[3], repr(float(r[4]) / k),
                      repr(float(r[5]) / k), "pair=" + pair[o] + p, *extra, sep="\t")
        for d in deps:
            u, v = d[2], d[3]
            m = float(ops[u][5])
            if split(u) and (not split(v) or rank[v] < rank[u]):
                m = float(ops[v][5])
            size = m / len(parts(u)) / len(parts(v))
            for p in parts(u):
                for q in parts(v):
                    print("dep", d[1] + "/2", u + p, v + q, repr(size), sep="\t")
        for o, r in ops.items():
            if r[3] == "backward" and split(o):
                for p, q in (("a", "b"), ("b", "a")):
                    print("dep", r[1] + "/2", o + p, o + q, repr(float(r[5]) / 2), "kind=sync",
                          sep="\t")
        print(f[0], f[1], f[2] + "/2", *f[3:], sep="\t")
        ops, deps, pair = {}, [], {}
    elif f[0] == "graph":
        graph = f
P
    for f in $profiles; do
        pd2graph $f | python3 two.py | ramp-alloc | sim | results | cut -f 2-15 >theirs
        pd2graph $f | partition --degree 2 --quantum 1e-12 | ramp-alloc | sim | results |
            cut -f 2-15 >ours
        cmp theirs ours && [ -s ours ]
    done
}

@test "a Python pd2graph replaces ours" {
    cat >read.py <<'P'
import re, sys
model = sys.argv[1]
nodes, edges = {}, []
for line in open(sys.argv[2]):
    part = line.strip().split(" -- ")
    if len(part) > 2:
        figures = dict(x.split("=") for x in part[-1].split(", "))
        nodes[int(part[0][4:])] = [float(figures[k]) for k in (
            "forward_compute_time", "backward_compute_time", "activation_size",
            "parameter_size")]
    else:
        edges.append(tuple(int(x[4:]) for x in part))
n = max(nodes)
out = lambda *f: print(*f, sep="\t")
out("graph", model, model)
for i, (f, b, a, p) in nodes.items():
    out("op", model, i, "forward", repr(f * 1e-3), repr(a + p), f"pair={2 * n - i + 1}")
for i, (f, b, a, p) in nodes.items():
    out("op", model, 2 * n - i + 1, "backward", repr(b * 1e-3), repr(a + p), f"pair={i}")
order = {i: k for k, i in enumerate(nodes)}
for u in nodes:
    for s, d in edges:
        if s == u:
            out("dep", model, s, d, nodes[s][2])
    if u == n:
        out("dep", model, n, n + 1, nodes[n][2])
for v in nodes:
    for s in sorted((s for s, d in edges if d == v), key=order.get):
        out("dep", model, 2 * n - v + 1, 2 * n - s + 1, nodes[v][2])
out("job", model, model, 0, 50, "inf")
P
    for m in alexnet vgg16 resnet50; do
        python3 read.py $m traces/$m.txt | partition | ramp-alloc | sim | results >theirs
        pd2graph traces/$m.txt | partition | ramp-alloc | sim | results >ours
        cmp theirs ours && [ -s ours ]
    done
}

@test "the README's awk allocator places as ours does where the rules leave no choice" {
    sed -n "/^cat >alloc.awk/,/^AWK/p" "$ROOT/README.md" | sed '1d;$d' >alloc.awk
    [ "$(wc -l <alloc.awk)" -le 15 ]
    pd2graph traces/vgg16.txt | partition --degree 1 | awk -f alloc.awk | sim | results |
        cut -f 2-13 >theirs
    pd2graph traces/vgg16.txt | partition --degree 1 | ramp-alloc | sim | results |
        cut -f 2-13 >ours
    cmp theirs ours && [ -s ours ]
    pd2graph traces/*.txt | partition --degree 4 | awk -f alloc.awk | sim | grep -c ^done
}

@test "the order of a graph's records does not change a step on one server" {
    pd2graph traces/resnet50.txt >a
    { grep -E '^(#|graph)' a | grep -v '^#end'; grep -E '^(op|dep)' a | sort -r; grep ^job a
      echo '#end'; } >b
    for f in a b; do ramp-alloc $f | sim | grep ^done | tr '\t' '\n' |
        grep -E '^(comm|servers|flows|busy)=' >$f.out; done
    cmp a.out b.out && [ -s a.out ]
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

# Every command of the README in order, in one folder.
@test "the README's examples run" {
    awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' "$ROOT/README.md" >examples
    [ "$(grep -c . examples)" -gt 20 ]
    bash -e -o pipefail examples >out 2>err || { cat err; return 1; }
}

@test "the examples of every --help run" {
    for tool in "$BUILD"/bin/*; do
        # from the source, where lines are whole
        sed -n '/^Example/,/"$/p' "$ROOT/tools/$(basename $tool).ggo" | sed -n 's/^  //p' |
            sed 's/"$//' >examples
        [ -s examples ] || { echo "$tool --help has no examples"; return 1; }
        while read -r example; do
            example=${example/model.txt/traces/vgg16.txt}
            bash -e -o pipefail -c "$example" >out 2>err </dev/null ||
                { echo "$example"; cat err; return 1; }
        done <examples
    done
}
