# The figures of the published models, ../shared/golden (absent for users: skipped).

# A relative path: the scripts write it into commands, where it may have no blank.
setup() {
    trap - DEBUG
    cd "$BATS_TEST_TMPDIR" || return 1
    shared=shared
    ln -s "$ROOT/../shared" $shared
    [ -d $shared/. ] || skip "../shared is not here"
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
@test "golden: step time, overheads, busy fraction" { ramp step; }

cluster() {
    run python3 "$ROOT/tests/golden/cluster.py" "$shared/golden/ramp" \
        "$shared/data/pipedream" "$1"
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "golden: dynamic arrivals, whole runs decision by decision" { cluster whole; }
@test "golden: dynamic arrivals, job by job, each difference a listed fault" { cluster job-by-job; }

elastic() {
    run python3 "$ROOT/tests/golden/elastic.py" "$shared/golden/elastic" "$shared/data/spot" "$1"
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "golden: statistics of spot logs, as CSV and converted" { elastic statistics; }
@test "golden: elastic training, every event by three sets of rules" { elastic events; }
@test "golden: how many instances come and go in a drawn event" { elastic counts; }
@test "golden: elastic training, means over drawn traces" { elastic runs; }
@test "golden: redundant training, every event and figure" { elastic redundant; }
@test "golden: replayed inter-arrival times, to the last digit" {
    tracegen queries --no-input --unit ms --deltas $shared/golden/serving/deltas/100_1.0.deltas.gz |
        grep ^query | cut -f 3 >ours
    zcat $shared/golden/serving/latencies/c1_notebook__100_1.0__batch.csv.gz | tail -n +2 | cut -d, -f 2 |
        paste ours - | awk '$1 != $2 / 1000 { bad++ } END { exit NR != 50001 || bad }'
}

@test "golden: redundant training, means over removal probabilities" { elastic table; }

serving() {
    run python3 "$ROOT/tests/golden/serving.py" "$shared/golden/serving" "$1"
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "golden: serving, every query, and what stages did, at CV 1" { serving queries; }
@test "golden: serving, percentiles of every run at CV 1 and 4" { serving runs; }
@test "golden: serving, service times, and rates and costs of configurations" { serving stages; }

@test "golden: the cheapest configuration of a pipeline, found and proved" {
    run python3 "$ROOT/tests/golden/planner.py" "$shared/golden/serving" "$ROOT/traces"
    echo "$output"
    [ "$status" -eq 0 ]
}
