# Serving pipelines: sim serve is compared with a simulator that is written in another way. (unit/test_serving has
# closed forms, golden.bats the published figures.)

setup() { trap - DEBUG; cd "$BATS_TEST_TMPDIR" || return 1; }

@test "serving: random pipelines, query by query as stage by stage without an event queue" {
    python3 "$ROOT/tests/tools/serving_brute.py" 1 150
}

@test "serving: that comparison finds a reply that is late by a bit" {
    mkdir bin
    printf '#!/bin/sh\n"%s" "$@" | sed "s/^\\(reply.*\\)\\.5$/\\1.50001/"\n' "$BUILD/bin/sim" >bin/sim
    chmod +x bin/sim
    PATH=$PWD/bin:$PATH run python3 "$ROOT/tests/tools/serving_brute.py" 1 20
    [ "$status" = 1 ]
    [[ $output == *replies* ]]
}
