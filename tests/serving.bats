# Serving pipelines: what sim serve does, against a simulator written in another way. (Closed
# forms: unit/test_serving; published figures: golden.bats.)

setup() { trap - DEBUG; cd "$BATS_TEST_TMPDIR" || return 1; }

@test "serving: random pipelines, query by query as stage by stage without an event queue" {
    python3 "$ROOT/tests/serving_brute.py" 1 150
}

@test "serving: that comparison finds a reply that is late by a bit" {
    mkdir bin
    printf '#!/bin/sh\n"%s" "$@" | sed "s/^\\(reply.*\\)\\.5$/\\1.50001/"\n' "$BUILD/bin/sim" >bin/sim
    chmod +x bin/sim
    PATH=$PWD/bin:$PATH run python3 "$ROOT/tests/serving_brute.py" 1 20
    [ "$status" = 1 ]
    [[ $output == *replies* ]]
}
