# Flows that share links (lib/flow), and jobs that do (lib/sim), against exact fractions.

setup() {
    trap - DEBUG
    cd "$BATS_TEST_TMPDIR" || return 1
}

@test "flow: random links and flows, weights, loops, failing links: ends as exact fractions give them" {
    run python3 "$ROOT/tests/tools/flow_exact.py" "$BUILD/bench/flow" 1 $((${EVERY:+1600} + 400))
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "flow: jobs that share links, two steps each: ends as a plain simulation in exact fractions gives them" {
    run python3 "$ROOT/tests/tools/sharing_exact.py" "$BUILD/bin/sim" 1 $((${EVERY:+240} + 60))
    echo "$output"
    [ "$status" -eq 0 ]
}

# The shim runs each program once for each call that fails (faults.bats).
@test "flow: memory that is not there is an error, whichever call asks for it" {
    export ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0 FAULT_STEP=${FAULT_STEP:-4}
    printf 'link\t%s\t1\n' a b c >flows
    for i in {1..70}; do
        printf 'flow\tf%d\t%d\t%d\ta,b,a\nflow\tg%d\t%d\t3\tc\n' "$i" $((i % 7)) "$i" "$i" $((i % 5))
    done >>flows
    : >wrong
    for command in "flow flows" "flow_classes tree 4 2 half"; do
        : >count
        FAULTS='memory memory+' FAULT_LOG=wrong FAULT_COUNT=count LD_PRELOAD=$BUILD/tests/fault/shim.so \
            "$BUILD"/bench/$command >out 2>err </dev/null || true
        cat wrong err
        [ ! -s wrong ]
        [ -s out ]
        read -r _ calls _ <count
        [ "$calls" -ge 20 ]
    done
}
