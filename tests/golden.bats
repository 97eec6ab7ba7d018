# The figures of the published models, ../shared/golden (absent for users: skipped).

setup() {
    shared=$ROOT/../shared
    [ -d "$shared" ] || skip "../shared is not here"
}

ramp() {
    run python3 "$ROOT/tests/golden/ramp.py" "$shared/golden/ramp" \
        "$shared/data/pipedream" "$1"
    echo "$output"
    [ "$status" -eq 0 ]
    grep '^differs' <<<"$output" | sed 's/^/# /' >&3 || true
}

@test "golden: mirrored graphs, ops and deps in the reference's order" { ramp mirror; }
@test "golden: partitioned graphs, degrees 1 to 8" { ramp partition; }
@test "golden: the notebook's partitions by list and its placements" { ramp notebook; }
@test "golden: first-fit placements on three shapes" { ramp placement; }
@test "golden: start and end of every op and flow" { ramp detail; }
@test "golden: step time, overheads, busy fraction of 168 cases" { ramp step; }

cluster() {
    run python3 "$ROOT/tests/golden/cluster.py" "$shared/golden/ramp" \
        "$shared/data/pipedream" "$1"
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "golden: dynamic arrivals, whole runs decision by decision" { cluster whole; }
@test "golden: dynamic arrivals, job by job, each difference a listed fault" { cluster job-by-job; }
