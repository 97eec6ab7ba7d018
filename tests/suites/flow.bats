# Flows that share links (lib/flow), against exact fractions.

setup() {
    trap - DEBUG
    cd "$BATS_TEST_TMPDIR" || return 1
}

@test "flow: random links and flows, weights, loops, failing links: ends as exact fractions give them" {
    run python3 "$ROOT/tests/tools/flow_exact.py" "$BUILD/bench/flow" 1 $((${EVERY:+1600} + 400))
    echo "$output"
    [ "$status" -eq 0 ]
}
