# Whole actions of agents: what decides as a heuristic does gives its bytes, whoever writes it; whatever an
# agent says, sim accepts what was started. The parts of an action and the rules are cases of ramp-alloc.

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return
    local profiles=$ROOT/../shared/data/pipedream networks=(alexnet gnmt resnet18 squeezenet1_0 vgg16)
    [ -d "$profiles" ] || { profiles=$ROOT/traces networks=(alexnet bert-large gpt2-xl resnet50 vgg16); }
    networks=("${networks[@]/#/$profiles/}")
    pd2graph --time-unit s --no-job "${networks[@]/%/.txt}" >graphs.rec
    tracegen jobs --jobs 300 --interarrival exponential:1000 --steps fixed:50 \
        --deadline-fraction uniform:0.1:1 graphs.rec >jobs.rec
    partition --degree 8 --quantum 0.01 jobs.rec >parts.rec
    tr ' ' '\t' >small.rec <<'R'
graph g net
op g 1 forward 2 30 pair=4
op g 2 forward 4 40 pair=3
op g 3 backward 4 40 pair=2
op g 4 backward 2 30 pair=1
dep g 1 2 0
dep g 2 3 0
dep g 3 4 0
job a g 0 10 inf
R
}
setup() { trap - DEBUG; cd "$BATS_FILE_TMPDIR" || return 1; }
export PYTHONDONTWRITEBYTECODE=1
actions() { python3 "$ROOT/tests/tools/actions.py" "$@"; }
plain() { grep -v '^#@'; }

# Where layouts, turns and servers are those of a heuristic, the layouts are its, too.
@test "actions: an agent that repeats the placements of a heuristic gives its bytes" {
    cat >repeat.awk <<'A'
BEGIN { FS = OFS = "\t"
        while ((getline <plan) > 0) {
            if ($1 == "place") said[$2] = said[$2] "place\tJOB\t" $3 "\tSLOT" $4 "\n"
            if ($1 == "alloc") { graph[$2] = $3; layout[$2] = $4; servers[$2] = $6 } } }
$1 == "offer" { offered = $3 }
$1 == "ask" { text = said[layout[$2]]; n = split(servers[$2], server, ",")
              gsub(/JOB/, $2, text)
              for (i = n; i > 0; i--) gsub("SLOT" i - 1 "\n", server[i] "\n", text)
              printf "%sanswer\t%s\t%s\n", text, $2, $2 in graph ? graph[$2] : refuse ? "-" : offered; fflush() }
A
    head -n "$(grep -n '^job' parts.rec | sed -n '60s/:.*//p')" parts.rec | grep -v '^#' >some.rec
    for heuristic in first-fit compact; do
        ramp-alloc --heuristic $heuristic some.rec | plain >$heuristic.rec
        [ "$(grep -c '^alloc' $heuristic.rec)" -ge 20 ]
        [ "$(grep -c '^block' $heuristic.rec)" -ge 5 ]
        ramp-alloc --heuristic $heuristic --whole-actions --agent "mawk -W interactive -v plan=$heuristic.rec -f repeat.awk" some.rec |
            plain | cmp - $heuristic.rec
    done
    # blocks that wrap around the cluster are legal, too: those of block, without servers that it only reserves
    ramp-alloc --heuristic block --meta 3x3x2 some.rec >block.rec
    grep '^alloc.*[^0-9]3-.*[^0-9]0-' block.rec | head -n 1
    ramp-alloc --whole-actions --agent "mawk -W interactive -v refuse=1 -v plan=block.rec -f repeat.awk" some.rec |
        grep '^alloc' | cut -f 1-3,5 >started
    grep '^alloc' block.rec | cut -f 1-3,5 | cmp - started
    [ "$(wc -l <started)" -ge 5 ]
}

@test "actions: the heuristics as parts of actions decide as those built in, on five networks" {
    for degree in 2 8; do
        partition --degree $degree --quantum 0.01 jobs.rec | ramp-alloc | sim | plain >built-in
        actions heuristics jobs.rec $degree own.rec
        sim own.rec | plain | cmp - built-in
        [ "$(grep -c '^done' built-in)" -ge 1 ]
        [ ! -d "$ROOT/../shared" ] || [ "$(grep -c '^done' built-in)" -ge 100 ]
        [ ! -d "$ROOT/../shared" ] || [ "$(grep -c '^block' built-in)" -ge 50 ]
        # the agent has really said servers and priorities
        [ "$(grep -c '^place.*priority=' own.rec)" -ge 500 ]
        grep -q '^graph.*of=vgg16.degree=' own.rec
    done
}

@test "actions: what is started is legal for sim, and figures are those of metrics" { 
    awk 'BEGIN { FS = OFS = "\t" } $1 == "job" { $6 = "inf" } { print }' jobs.rec >patient.rec
    actions random patient.rec
}

@test "actions: a graph that is split in Python is the one that partition makes" { actions split graphs.rec; }

@test "actions: deps between two servers that share a channel wait for each other" { actions channels; }

@test "actions: the state of the cluster, waiting jobs, errors, ends" { actions state small.rec; }

# The graphs of splits need memory only while jobs run on them, up to 64 MiB. A name never comes again.
@test "actions: graphs that were made are forgotten when no job runs on them" {
    cat >many.awk <<'A'
BEGIN { FS = OFS = "\t" }
$1 == "op" && $4 == "forward" { op[n++] = $3 }
$1 == "offer" { graph = $3 }
$1 == "ask" { at = job < 60 ? job : job - 60; job++ # all in 16, but one op, another one for each job
              for (i = 0; i < n; i++) print "split", $2, op[i], i == at % n ? 2 + 2 * int(at / n) : 16
              print "answer", $2, graph; fflush() }
A
    # the first job runs on; the others one after the other; the last two are split as the first two
    pd2graph --time-unit s --no-job "$ROOT/traces/vgg16.txt" | tracegen jobs --jobs 62 --interarrival fixed:1000000 |
        awk 'BEGIN { FS = OFS = "\t" } $1 == "job" && !n++ { $5 *= 1000000 } { print }' |
        ramp-alloc --whole-actions --agent 'mawk -W interactive -f many.awk' >many.rec
    [ "$(grep '^alloc' many.rec | cut -f 3 | sed -n '1,2p;60,62p' | tr '\n' ' ')" = \
        "vgg16/16 vgg16/16-2 vgg16/16-60 vgg16/16 vgg16/16-61 " ]
    sim many.rec | grep -c '^done' | grep -x 62
}

# wrong MESSAGE LINES: this answer ends the run with status 3, and this message.
wrong() {
    local status=0
    ramp-alloc --whole-actions --agent "mawk -W interactive '\$1 == \"ask\" { printf \"$2\"; fflush() }'" small.rec \
        >out 2>err || status=$?
    [ "$status" = 3 ] && grep -q "^ramp-alloc: small.rec:9: agent '.*, job 'a': $1" err && return
    echo "status $status: $2"
    cat err
    return 1
}

@test "actions: what is malformed is an error that names it" {
    wrong "it places op '9', which graph 'g' lacks" 'place\ta\t9\t0-0-0\nanswer\ta\tg\n'
    wrong "it places op '1': there is no server '9-0-0' in a 4x4x2 cluster" 'place\ta\t1\t9-0-0\nanswer\ta\tg\n'
    wrong "it places op '1' twice" 'place\ta\t1\t0-0-0\nplace\ta\t1\t0-0-1\nanswer\ta\tg\n'
    wrong "it wrote a line that lacks a field; right is 'place JOB OP SERVER'" 'place\ta\t1\nanswer\ta\tg\n'
    wrong "it wrote a line that lacks the job" 'place\nanswer\ta\tg\n'
    wrong "it wrote a line about another job" 'place\tb\t1\t0-0-0\nanswer\ta\tg\n'
    wrong "it wrote a line that has a field too many" 'place\ta\t1\t0-0-0\t7\nanswer\ta\tg\n'
    wrong "priority= is no finite number" 'place\ta\t1\t0-0-0\tpriority=inf\nanswer\ta\tg\n'
    wrong "it splits op '9', which graph 'g' lacks" 'split\ta\t9\t2\nanswer\ta\tg\n'
    wrong "it splits op '2' twice" 'split\ta\t2\t2\nsplit\ta\t2\t4\nanswer\ta\tg\n'
    wrong "its split: graph 'g' has no forward op '3' to split" 'split\ta\t3\t2\nanswer\ta\tg\n'
    wrong "PARTS is no number from 1 to 65536" 'split\ta\t2\t0\nanswer\ta\tg\n'
    wrong "its split: it would be about .* ops and deps, more than 20000000" 'split\ta\t2\t9999\nanswer\ta\tg\n'
    wrong "it places op '2', which graph 'g/2' lacks" 'split\ta\t2\t2\nplace\ta\t2\t0-0-0\nanswer\ta\tg\n'
    wrong "it gives the dep from '2' to '1' a channel, which graph 'g' lacks" 'transfer\ta\t2\t1\t0\nanswer\ta\tg\n'
    wrong "it gives the dep from '1' to '2' of graph 'g' a channel twice" \
        'transfer\ta\t1\t2\t0\ntransfer\ta\t1\t2\t1\nanswer\ta\tg\n'
    wrong "CHANNEL is no integer >= 0" 'transfer\ta\t1\t2\t-1\nanswer\ta\tg\n'
    wrong "sizes= is neither reference nor gradient" 'split\ta\t2\t2\nanswer\ta\tg\tsizes=x\n'
    wrong "sizes= is neither reference nor gradient" 'answer\ta\tg\tsizes=x\n'
    wrong "sync= is not one of deps, all-gather, all-reduce" 'answer\ta\tg\tsync=x\n'
    wrong "sync= is not one of deps, all-gather, all-reduce" 'split\ta\t2\t2\nanswer\ta\tg\tsync=x\n'
    wrong "it refuses the job, but says how it starts" 'split\ta\t2\t2\nanswer\ta\t-\n'
    # an agent that floods with lines of an action is ended, by their bytes and not by those of one reading: the
    # first brings a part of a line
    # shellcheck disable=SC2016
    flood='$1 == "ask" { x = "0"; while (length(x) < 30000) x = x x
                         printf "place\ta\t1\t0-0-0\tx=" x; fflush(); system("sleep 0.05"); print ""
                         for (;;) print "place\ta\t1\t0-0-0\tx=" x }'
    run -3 ramp-alloc --whole-actions --agent "mawk -W interactive '$flood'" small.rec
    [[ $output == *"its action has more than 67108864 bytes"* ]]
    # and without --whole-actions they are no answers
    run -3 ramp-alloc --agent "mawk -W interactive '\$1 == \"ask\" { print \"split\ta\t2\t2\"; fflush() }'" small.rec
    [[ $output == *"it wrote a line that is not an answer"* ]]
}

@test "actions: an environment of one's own, and an agent that learns in it" {
    cp "$ROOT"/traces/agents/*.py . # as a user would: somewhere else
    sed -i "s|HERE, os.path.join(HERE, \"..\", \"..\", \"scripts\")|HERE, \"$ROOT/scripts\"|" custom.py
    local much=(--generations 1 --jobs 20)
    [ -z "${EVERY-}" ] || much=(--generations 12)
    python3 custom.py "${much[@]}" >rates
    cat rates
    awk -F'\t' -v every="${EVERY-}" '{ rate[$1] = $2 }
        END { exit !(NR == 3 && rate["fewest"] < rate["random"] &&
                     (every ? rate["trained"] < rate["fewest"] : rate["trained"] < 1)) }' rates
}
