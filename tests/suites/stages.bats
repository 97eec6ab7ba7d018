# The whole pipeline: stages swapped for scripts, all models at once, order, repetition,
# and every example of --help.

setup() {
    trap - DEBUG
    cd "$BATS_TEST_TMPDIR" || return 1
    export LC_ALL=C
    if [ -d "$ROOT/../shared/data/pipedream" ]; then
        profiles=("$ROOT"/../shared/data/pipedream/*.txt)
    else
        profiles=("$ROOT"/traces/*.txt)
    fi
    one=${profiles[0]}
    some=("${profiles[@]:0:3}")
    [ -z "${EVERY-}" ] || some=("${profiles[@]}")
    [ -e "$one" ] || skip "no profiles are here"
}

# Records without header, provenance and trailer.
records() { grep -v '^#'; }

# The results of a stream, sorted, so that their order does not depend on the allocator. batch= is left out, because
# only the samples of traces/ give it, and the scripts below do not read it.
results() { grep '^done\|^block' | sed 's/\tbatch=[0-9]*//' | sort; }

same() {
    diff "$1" "$2" | head -n 20
    cmp -s "$1" "$2" && [ -s "$1" ]
}

# Prints the first example of a page that has this word.
example_of() { # page, word
    awk -v word="$2" '/^```sh/ { block = ""; inside = 1; next }
        /^```/ { if (inside && index(block, word)) { printf "%s", block; exit }
                 inside = 0 }
        inside { block = block $0 "\n" }' "$ROOT/docs/$1.md"
}

@test "swap: partition of degree 1 in awk" {
    cat >identity.awk <<'AWK'
BEGIN { FS = OFS = "\t" }
/^#/ { next }
$1 == "graph" { $2 = $2 "/1"; $0 = $0 "\tof=x\tdegree=1" }
$1 == "op" || $1 == "dep" { $2 = $2 "/1" }
$1 == "op" { memory[$2, $3] = $6 }
$1 == "dep" { $5 = memory[$2, $3] }
$1 == "job" { $3 = $3 "/1" }
{ print }
AWK
    for f in "${some[@]}"; do
        pd2graph "$f" | awk -f identity.awk | ramp-alloc | sim | results |
            sed 's/\tdemand_[^\t]*//g' >theirs
        pd2graph "$f" | partition --degree 1 | ramp-alloc | sim | results |
            sed 's/\tdemand_[^\t]*//g' >ours
        same ours theirs
    done
}

@test "swap: splitting all ops in two, in Python" {
    cat >halves.py <<'PYTHON'
"""Every op that takes time in two parts; dep sizes by the published rule."""
import sys

ops, deps = {}, []
for line in sys.stdin:
    field = line.rstrip("\n").split("\t")
    if field[0] == "graph":
        print(f"graph\t{field[1]}/2\t{field[2]}\tdegree=2")
    elif field[0] == "op":
        keys = dict(k.split("=", 1) for k in field[6:])
        ops[field[2]] = (field[3], float(field[4]), float(field[5]), keys["pair"])
    elif field[0] == "dep":
        deps.append((field[2], field[3]))
    elif field[0] == "job":
        job = field
graph = job[2] + "/2"
parts, turn = {}, {}
for op, (kind, compute, memory, pair) in ops.items():
    if kind == "forward":
        parts[op] = parts[pair] = "ab" if compute > 0 else [""]
        turn[op] = len(turn)
        turn[pair] = len(turn)
for op, (kind, compute, memory, pair) in ops.items():
    k = len(parts[op])
    for i, part in enumerate(parts[op]):
        print("op", graph, op + part, kind, repr(compute / k), repr(memory / k),
              f"pair={pair}{part}", *([f"of={op}", f"part={i + 1}/2"] if k > 1 else []),
              sep="\t")
for u, v in deps:
    ku, kv = len(parts[u]), len(parts[v])
    if ku == 1:
        size = ops[u][2] / kv
    elif kv == 1:
        size = ops[v][2] / ku
    else:
        size = ops[u if turn[u] < turn[v] else v][2] / ku / kv
    for i in parts[u]:
        for j in parts[v]:
            print("dep", graph, u + i, v + j, repr(size), sep="\t")
for op, (kind, compute, memory, pair) in ops.items():
    if kind == "backward" and len(parts[op]) > 1:
        for i, j in ("ab", "ba"):
            print("dep", graph, op + i, op + j, repr(memory / 2), "kind=sync", sep="\t")
print("job", job[1], graph, *job[3:], sep="\t")
PYTHON
    for f in "${some[@]}"; do
        pd2graph "$f" | python3 halves.py | ramp-alloc | sim | results |
            sed 's/\tdemand_[^\t]*//g' >theirs
        pd2graph "$f" | partition --degree 2 --quantum 0 | ramp-alloc | sim | results |
            sed 's/\tdemand_[^\t]*//g' >ours
        same ours theirs
    done
}

@test "swap: the allocator of docs/stages.md in awk" {
    example_of stages alloc.awk | sed -n '/^cat/,/^AWK/p' >make
    grep -q BEGIN make
    bash make
    # With degree 1 one server has all ops, as with first-fit, but ops are placed in another order.
    for f in "${some[@]}"; do
        pd2graph "$f" | partition --degree 1 >graphs
        ramp-alloc graphs | sim | results >ours
        awk -f alloc.awk graphs | sim | results >theirs
        same ours theirs
        pd2graph "$f" | partition --degree 4 | awk -f alloc.awk | tee placed |
            reccheck >/dev/null
        sim placed | grep -q '^done'
    done
}

@test "swap: the agents of docs/agents.md block what it says" {
    example_of agents agent.awk >script
    begin_examples && run_example
    [ "$(cut -f 4 example.out | paste -sd ' ')" = "0.529 0.668" ]
}

@test "swap: pd2graph in Python, for simple profiles" {
    cat >read.py <<'PYTHON'
import re
import sys

op, edges = {}, []
for line in open(sys.argv[1]):
    if line.startswith("#"):
        continue
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
    for f in "${some[@]}"; do
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
    # All jobs at the same time on one cluster: each ends or is blocked.
    ramp-alloc --shape 4x4x2 graphs | sim >full
    [ "$(results <full | wc -l)" -eq ${#profiles[@]} ]
}

@test "order: records of a graph may be shuffled" {
    # Sizes and times do not depend on the order of records. But the order of ops decides which of two equal ops
    # runs first. So the ops keep their order, and the deps are reversed and stand before and between the ops.
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
    for f in "${some[@]}"; do
        pd2graph "$f" | records >graph
        partition --degree 1 graph | ramp-alloc | sim | results >ours
        # On one server only rounding depends on the order.
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

# Some of the hundred examples take a second or two. So they run with a tenth of the jobs, queries and runs, and
# with the small models of the samples. With EVERY=1 they run as they are printed.
shorten() {
    [ -n "${EVERY-}" ] ||
        # not with --tune: a plan that was made with few queries fits nearly any rate, so the tuner does nothing
        grep -q -- --tune script || sed -Ei 's/(--(jobs|queries|runs) [0-9]{2,})0\b/\1/; s,traces/\*\.txt,traces/[arv]*.txt,; s/--generations 2/--generations 1/' script
}

# True for every third example; with EVERY=1 for each.
is_turn() {
    turn=$((${turn-0} + 1))
    [ -n "${EVERY-}" ] || [ $((turn % 3)) = 1 ]
}

# Makes a folder in which examples run as README assumes: with traces/, scripts/ and the tools. Changes of
# these files are found at the end.
begin_examples() {
    mkdir -p example
    cp -r "$ROOT/traces" "$ROOT/scripts" example
}
run_example() {
    rm -rf example/build && mkdir example/build
    (cd example && bash -eo pipefail ../script >../example.out 2>../example.err </dev/null) || {
        echo "failed with $?:"
        cat script example.err
        return 1
    }
}
end_examples() {
    diff -r "$ROOT/traces" example/traces && diff -rx __pycache__ "$ROOT/scripts" example/scripts
}

# Prints every tool and every mode.
programs() {
    for bin in "$BUILD"/bin/*; do
        echo "$(basename "$bin")"
        "$bin" --help | sed -n '/^Modes/,/^$/s/^  \([a-z-]* [a-z-]*\) .*/\1/p'
    done
}

@test "--help: every example runs, as it is printed" {
    programs >programs
    [ "$(grep -c ' ' programs)" -ge 5 ]
    begin_examples
    while read -r program; do
        # a line with two blanks begins an example, lines with more blanks continue it
        $program --help | awk '/^Examples?:$/ { on = 1; next } !NF { on = 0 }
            on && /^  [^ ]/ { n++ } on { print >("example" n) }'
        [ -s example1 ] || { echo "$program --help has no examples"; return 1; }
        for example in example[1-9]*; do
            is_turn || continue
            sed 's/^  //; s/model\.txt/traces\/vgg16.txt/' "$example" >script
            shorten
            run_example
        done
        rm example[1-9]*
    done <programs
    end_examples
}

# On a terminal the first stage that has work to do shows the progress of the pipeline. script(1) makes the
# terminal, and timeout(1) ends the pipeline.
terminal() { # COMMAND: the different lines, of each number an N
    script -qec "$1" /dev/null </dev/null | tr '\r' '\n' | sed -E 's/[0-9][0-9,]*/N/g' |
        grep -oE '^[a-z-]+( [a-z]+)?: .*N s' | sort -u
}

@test "progress: one line for a pipeline, from its first stage, with share and time left" {
    script -qec true /dev/null </dev/null >/dev/null || skip "there are no terminals here"
    pd2graph --no-job "$one" >pool
    # the reader takes nothing, so that no stage works; all are ended at once, a second after their first line
    endless='tracegen jobs --limit inf --jobs 4000000000 --interarrival fixed:1'
    rest='{ sleep 9; cat; } | reccheck --pass | reccheck'
    terminal "timeout 2 sh -c '$endless pool | $rest'" >said
    [ "$(cat said)" = 'tracegen jobs: N %, N jobs, N s' ] || { cat said; return 1; }
    terminal "timeout 2 sh -c '$endless --quiet pool | $rest'" >said
    [ ! -s said ] || { cat said; return 1; }
    tracegen jobs --jobs 20000 pool >jobs
    terminal 'reccheck --pass jobs | { sleep 1.2; cat; } | reccheck --pass >/dev/null' >said
    [ "$(cat said)" = 'reccheck: N %, N s left, N records, N s' ] || { cat said; return 1; }
}

@test "progress: of a pipeline from a pipe the first stage tells, of records and their rate" {
    script -qec true /dev/null </dev/null >/dev/null || skip "there are no terminals here"
    pd2graph --no-job "$one" >pool
    head -n 20 pool >begin && tail -n +21 pool >rest
    terminal '{ cat begin; sleep 1.2; cat rest; } | reccheck --pass | partition | cat | metrics' >said
    [ "$(cat said)" = 'reccheck: N records, N/s, N s' ] || { cat said; return 1; }
}

@test "progress: a stage that is asked tells it without a terminal, too" {
    pd2graph --no-job "$one" >pool
    timeout 2 sh -c 'tracegen jobs --limit inf --jobs 4000000000 --interarrival fixed:1 --progress pool 2>said |
        { sleep 9; cat; } | reccheck --pass --progress 2>passed >/dev/null' || true
    grep -q 'tracegen jobs: 0 %, [0-9,]* jobs, 1 s' said
    grep -q 'reccheck: waiting for input, 1 s' passed
}
