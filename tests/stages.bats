# Stages on all profiles: what pipeline.bats does not look at.

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    export LC_ALL=C
    if [ -d "$ROOT/../shared/data/pipedream" ]; then
        profiles=("$ROOT"/../shared/data/pipedream/*.txt)
    else
        profiles=("$ROOT"/traces/*.txt)
    fi
    one=${profiles[0]}
    [ -e "$one" ] || skip "no profiles are here"
}

# Records without header, provenance and trailer.
records() { grep -v '^#'; }

# The results of a stream, in an order that depends on nothing.
results() { grep '^done\|^block' | sort; }

same() {
    diff "$1" "$2" | head -n 20
    cmp -s "$1" "$2" && [ -s "$1" ]
}

@test "swap: pd2graph in Python, for simple profiles" {
    cat >read.py <<'PYTHON'
import re
import sys

op, edges = {}, []
for line in open(sys.argv[1]):
    field = line.strip().split(" -- ")
    if len(field) == 2:
        edges.append([int(n[4:]) for n in field])
    else:
        f = dict(re.findall(r"(\w+)=(\[.*?\]|[^,\s]+)", line[line.rindex("forward_comp"):]))
        size = f["activation_size"].strip("[]")
        op[int(field[0][4:])] = (
            float(f["forward_compute_time"]) * 1e-3,
            float(f["backward_compute_time"]) * 1e-3,
            sum(float(x) for x in size.split(";")) if size else 0.0,
            float(f["parameter_size"]))
n, name = max(op), sys.argv[2]
print("graph", name, name, sep="\t")
for which, kind in ((0, "forward"), (1, "backward")):
    for i in op:
        me, twin = (i, 2 * n - i + 1)[::1 - 2 * which]
        print("op", name, me, kind, repr(op[i][which]), repr(op[i][2] + op[i][3]),
              f"pair={twin}", sep="\t")
for u in op:
    for v in [b for a, b in edges if a == u] + ([n + 1] if u == n else []):
        print("dep", name, u, v, repr(op[u][2]), sep="\t")
at = {i: k for k, i in enumerate(op)}
for v in op:
    for u in sorted((a for a, b in edges if b == v), key=at.get):
        print("dep", name, 2 * n - v + 1, 2 * n - u + 1, repr(op[v][2]), sep="\t")
print("job", name, name, 0, 50, "inf", sep="\t")
PYTHON
    for f in "${profiles[@]}"; do
        name=$(basename "$f" .txt)
        python3 read.py "$f" "$name" >theirs.rec
        reccheck theirs.rec
        partition --degree 4 theirs.rec | ramp-alloc | sim | results >theirs
        pd2graph "$f" | partition --degree 4 | ramp-alloc | sim | results >ours
        same ours theirs
    done
}

@test "all models at once are each model alone" {
    pd2graph "${profiles[@]}" | partition --degree 8 >graphs
    awk -F'\t' -v OFS='\t' '$1 == "job" { $4 = 1e9 * n++ } { print }' graphs |
        ramp-alloc --shape 4x4x2 | sim | tee done.rec | reccheck >/dev/null
    [ "$(grep -c '^done' done.rec)" -eq ${#profiles[@]} ]
    for f in "${profiles[@]}"; do
        pd2graph "$f" | partition --degree 8 | ramp-alloc --shape 4x4x2 | sim |
            grep '^done' | cut -f 2,7- >>alone
    done
    grep '^done' done.rec | cut -f 2,7- | sort >ours
    sort alone >theirs
    same ours theirs
    # On one cluster at one time: every job ends or is blocked.
    ramp-alloc --shape 4x4x2 graphs | sim >full
    [ "$(results <full | wc -l)" -eq ${#profiles[@]} ]
}

@test "order: records of a graph may be shuffled" {
    # Dep sizes and times stay the same; which of two equal ops goes first may not, so the
    # ops keep their order and the deps are turned round, before and between the ops.
    cat >shuffle.py <<'PYTHON'
import random
import sys

random.seed(int(sys.argv[1]))
head, ops, deps, tail = [], [], [], []
for line in sys.stdin:
    kind = line.split("\t")[0]
    {"op": ops, "dep": deps, "job": tail}.get(kind, head).append(line)
mixed = ops
for line in random.sample(deps, len(deps)):
    mixed.insert(random.randint(0, len(mixed)), line)
sys.stdout.writelines(head + mixed + tail)
PYTHON
    cat >any.py <<'PYTHON'
import random
import sys

random.seed(1)
head, body, tail = [], [], []
for line in sys.stdin:
    kind = line.split("\t")[0]
    {"op": body, "dep": body, "job": tail}.get(kind, head).append(line)
random.shuffle(body)
sys.stdout.writelines(head + body + tail)
PYTHON
    for f in "${profiles[@]}"; do
        pd2graph "$f" | records >graph
        partition --degree 1 graph | ramp-alloc | sim | results >ours
        # On one server nothing depends on any order, but rounding does.
        python3 any.py <graph | partition --degree 1 | ramp-alloc | sim | results |
            cut -f 1-4 >any
        cut -f 1-4 ours >first
        same first any
        partition --degree 1 graph | records | sort >sorted
        python3 shuffle.py 7 <graph | partition --degree 1 | records | sort >shuffled
        same sorted shuffled
    done
}

@test "reccheck accepts what every stage writes" {
    pd2graph "${profiles[@]}" >1
    partition --degree 4 1 >2
    partition --degree 2 --sizes gradient 1 >2g
    ramp-alloc 2 >3
    ramp-alloc --heuristic block 2 >3b
    sim --timeline 3 >4
    sim --until 1e-3 3 >4u
    pd2graph --pass forward --memory activation "$one" >1f
    for f in 1 1f 2 2g 3 3b 4 4u; do
        reccheck $f
    done
}

@test "repetition: two runs are the same bytes" {
    for run in a b; do
        pd2graph "${profiles[@]}" | partition --degree 8 | ramp-alloc --map 2>map.$run |
            sim --timeline >out.$run
    done
    same out.a out.b
    same map.a map.b
}

@test "provenance: its lines, run again, make the same stream" {
    mkdir files
    cp "${profiles[@]}" files
    cd files
    cp "$(basename "$one")" "it's a file.txt"
    pd2graph --time-unit s --steps 3 "it's a file.txt" |
        partition --quantum 0.01 --degree 4 | ramp-alloc --shape 4x2x4 --io 1e-6 |
        sim --timeline >../first
    pipe=$(sed -n 's/^#@\t[^\t]*\t//p' ../first | paste -sd '|')
    echo "$pipe"
    bash -c "$pipe" >../second
    cd ..
    same first second
}

# Runs a script in a scratch copy of what README assumes: traces/ and the tools.
run_example() {
    rm -rf example
    mkdir example
    cp -r "$ROOT/traces" example
    (cd example && bash -eo pipefail ../script >../example.out 2>../example.err </dev/null) || {
        echo "failed with $?:"
        cat script example.err
        return 1
    }
}

# What is there to run the examples with.
need_traces() {
    [ -e "$ROOT/traces/vgg16.txt" ] || skip "traces/vgg16.txt is not here yet"
    command -v pdgen >/dev/null || skip "pdgen is not here yet"
    command -v metrics >/dev/null || skip "metrics is not here yet"
}

@test "man pages: every example runs" {
    need_traces
    for page in "$ROOT"/tools/*.h2m; do
        sed -n '/^\[EXAMPLES\]/,/^\[/p' "$page" | sed -n '/^\.nf/,/^\.fi/p' |
            sed -e '/^\./d' -e 's/\\-/-/g' -e 's/\\e/\\/g' >script
        [ -s script ] || continue
        grep -q '| head' script && sed -i '1i set +o pipefail' script
        run_example
    done
}
