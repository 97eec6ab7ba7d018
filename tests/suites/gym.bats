# The Gymnasium environment, scripts/rampipe_env.py: its contract, its processes, the published
# observation and rewards worked out by hand, and heuristics through it against ramp-alloc's own.

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return
    pd2graph --time-unit s --no-job "$ROOT"/traces/{alexnet,vgg16}.txt >graphs.rec
    tracegen jobs --jobs 100 --interarrival exponential:1000 --deadline-fraction uniform:0.2:2 \
        graphs.rec >jobs.rec
    tr ' ' '\t' >golden.rec <<'R'
graph g net
op g 1 forward 1 100 pair=4
op g 2 forward 3 300 pair=3
op g 4 backward 2 100 pair=1
op g 3 backward 6 300 pair=2
dep g 1 2 40
dep g 2 3 80
dep g 3 4 80
graph h net
op h 1 forward 4 200 pair=2
op h 2 backward 8 200 pair=1
dep h 1 2 10
job a g 0 10 60
job b h 5 20 240
job c g 8 15 135
R
    { sed '/^job/d' golden.rec; printf 'job\t%s\th\t%s\t1\tinf\n' p 0 q 100; } >idle.rec
}
setup() { trap - DEBUG; cd "$BATS_FILE_TMPDIR" || return 1; }
export PYTHONDONTWRITEBYTECODE=1
gym() { python3 "$ROOT/tests/tools/gym_env.py" "$@"; }

@test "gym: spaces, seeds, reset in mid-episode, errors: the contract, with numpy and without" {
    gym contract
    ! python3 -c 'import numpy' 2>/dev/null || WITHOUT=numpy gym contract
}

@test "gym: vector environments take every observation, in one process and in many" { gym vector; }

@test "gym: arguments and tools that are wrong" { gym arguments; }

@test "gym: many at once, killed, interrupted, forked, dropped: no process and no descriptor is left" { gym processes; }

@test "gym: the end of Python is that of the pipeline" { gym endings; }

@test "gym: the published observation is the one worked out by hand" { gym golden; }

@test "gym: normalised over the episode, or over a scale that does not look ahead" { gym scale; }

@test "gym: the published rewards are those worked out by hand" { gym rewards; }

@test "gym: heuristics through the environment decide as ramp-alloc does" {
    gym heuristics >blocked
    partition --policy all --quantum 0.01 --shape 2x2x1 jobs.rec | ramp-alloc --shape 2x2x1 | grep -v '^#@' >own
    grep -v '^#@' first.rec | cmp - own
    partition --policy max --quantum 0.01 --shape 2x2x1 jobs.rec |
        ramp-alloc --shape 2x2x1 --choose first-degree >own.widest
    for run in widest.rec own.widest; do
        grep '^alloc' $run | cut -f 2-3,5- >$run.alloc
        grep '^block' $run | cut -f 2 >$run.block
    done
    cmp widest.rec.alloc own.widest.alloc
    cmp widest.rec.block own.widest.block
    [ "$(cat blocked)" = "first $(grep -c '^block' own)
widest $(grep -c '^block' own.widest)" ]
    grep -q '^alloc' own.widest
    sim widest.rec | metrics | grep 'blocking rate.value'
}

@test "gym: the sample agent learns to block less than chance and the first that fits" {
    [ -n "${EVERY-}" ] || skip "it takes seconds: EVERY=1 runs it"
    python3 "$ROOT/traces/agents/train.py" --generations 2 --jobs 80 >rates
    cat rates
    awk -F'\t' '{ rate[$1] = $2 }
        END { exit !(NR == 3 && rate["trained"] < rate["random"] && rate["trained"] < rate["first"]) }' rates
}

@test "gym: with several heuristics an action says which one places the job" { gym places; }
