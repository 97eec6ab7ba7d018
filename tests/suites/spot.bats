# Spot instances, from the log to the figures: whole pipelines, swapped stages, the experiment, and pictures.

setup() { trap - DEBUG; cd "$BATS_TEST_TMPDIR" || return 1; }

@test "spot: log, model, trace, both trainings and their figures, checked between all stages" {
    # a log of events that is made from a trace, and read back
    tracegen fit "$ROOT/traces/spot.rec" | awk -F'\t' '
        $1 == "add" || $1 == "preempt" {
            n = split(substr($4, 5), id, ",")
            for (i = 1; i <= n; i++)
                printf "%d,%s,%s\n", $2 * 1000, $1 == "add" ? "add" : "remove", id[i]
        }' >events.csv
    tracegen fit events.csv | grep -v '^#' >back
    diff <(grep -v '^#\|^trace' "$ROOT/traces/spot.rec" | awk -F'\t' '{ n[$1 " " $2] += $3 } END { for (k in n) print k, n[k] }' | sort) \
        <(grep -v '^trace' back | awk -F'\t' '{ n[$1 " " $2] += $3 } END { for (k in n) print k, n[k] }' | sort)
    for process in coin exponential weibull empirical; do
        tracegen fit --stats events.csv | reccheck --pass |
            tracegen preempt --process $process --minutes 3000 | reccheck --pass >trace.rec
        sim elastic trace.rec | reccheck --pass | metrics >figures
        awk -F'\t' '$2 ~ /^(useful|wasted|idle) share$/ && $3 == "mean" { sum += $4 } END { exit !(sum > 0.999999 && sum < 1.000001) }' figures
        sim redundant --profile "$ROOT/traces/redundant/vgg.tsv" trace.rec |
            reccheck --pass | metrics | grep -q '^all.goodput.mean'
    done
}

@test "spot: instance-time by state is that of the trace" {
    cp "$ROOT/traces/redundant/bert.tsv" .
    for model in elastic "redundant --profile bert.tsv --steps 0"; do
        sim $model --brief "$ROOT/traces/spot.rec" >run.rec
        awk -F'\t' '
            FNR == NR && $1 == "trace" { end = $3 }
            FNR == NR && ($1 == "add" || $1 == "preempt") {
                sum += n * ($2 - last); last = $2; n += $1 == "add" ? $3 : -$3 }
            FNR != NR && $1 == "account" { accounts += $4 }
            FNR != NR && $1 == "trained" {
                for (i = 6; i <= NF; i++) {
                    split($i, kv, "=")
                    if (kv[1] ~ /^(active|standby|preparing)$/) states += kv[2]
                }
            }
            END { sum += n * (end - last); print sum, accounts, states
                  d = 1e-9 * sum
                  exit !(accounts - sum < d && sum - accounts < d && states - sum < d && sum - states < d) }
        ' "$ROOT/traces/spot.rec" run.rec
    done
}

@test "spot: a trace made by awk, a trainer made by awk" {
    # every ten minutes an instance is taken away, and a minute later one is added
    awk 'BEGIN { OFS = "\t"; for (t = 600; t < 7200; t += 600) { print "preempt", t, 1; print "add", t + 60, 1 } }' |
        sim elastic --victims oldest --until 7200 | metrics >ours
    grep -q '^all.preempted instances.mean.11$' ours
    # a trainer in awk that never stops; metrics knows it only by its records
    awk -F'\t' 'BEGIN { OFS = "\t" } $1 == "trace" { end = $3 } END {
        print "account", "useful", end, end * 32
        print "trained", "mine", 0, end, int(end / 11), "samples=10", "price=1" }' \
        "$ROOT/traces/spot.rec" | metrics | grep -q '^all.steps.mean.7854$'
}

@test "spot: the same seed gives the same bytes, another others" {
    pipe() {
        tracegen preempt --process hourly --removal 0.3 --addition random --minutes 2000 \
            --runs 3 --seed "$1" | sim elastic --seed "$2"
    }
    pipe 1 1 >a
    pipe 1 1 >b
    pipe 2 1 >c
    cmp a b
    cmp -s a c && return 1
    # these removals name their victims; without names, sim's seed decides
    coins() {
        tracegen preempt --preempt-chance 0.1 --preempt-mean 2 --preempt-std 1 \
            --add-chance 0.1 --add-mean 2 --add-std 1 | sim elastic --seed "$1"
    }
    coins 1 >a
    coins 1 >b
    coins 2 >c
    cmp a b
    ! cmp -s a c
}

@test "spot: the removal sweep makes its table from nothing, the same bytes, and resumes" {
    # relative paths: make cannot have blanks in a name, but the path of the tree may have some
    out=$(realpath --relative-to="$ROOT/traces/experiments/spot" "$PWD")
    bin=$(realpath --relative-to="$ROOT/traces/experiments/spot" "$BUILD/bin")
    sweep() {
        make -s -C "$ROOT/traces/experiments/spot" BIN="$bin" OUT="$out/$1" \
            RUNS=5 CHUNK=2 REMOVALS='0.05 0.50' MINUTES=8000 -j2
    }
    sweep a >log 2>&1 && sweep b >>log 2>&1 || { cat log; return 1; }
    for f in table.tsv table.txt table.svg elastic.svg redundant.svg; do
        cmp a/$f b/$f && [ -s a/$f ] || return 1
    done
    [ "$(awk -F'\t' 'NR > 1 { print $1, $2 }' a/table.tsv | paste -sd';')" = "0.05 5;0.50 5" ]
    # the runs are the same in chunks as in one piece
    make -s -C "$ROOT/traces/experiments/spot" BIN="$bin" OUT="$out/c" RUNS=5 \
        CHUNK=5 REMOVALS='0.05 0.50' MINUTES=8000 "$out/c/table.tsv" >>log
    cmp a/table.tsv c/table.tsv
    # the state of a run that was killed while it made one chunk
    sed -i '/^attempt\t0.50\/3-2\t/d' a/log
    rm a/table.tsv a/points.rec
    sweep a >again
    cmp a/table.tsv b/table.tsv
    [ "$(grep ^done a/points.rec | cut -f 2)" = 0.50/3-2 ]
}

@test "spot: pictures of a run, and what has none" {
    sim elastic "$ROOT/traces/spot.rec" | "$ROOT/scripts/plot-training" >run.svg
    for word in '</svg>' standby wasted; do grep -q "$word" run.svg; done
    sim redundant --profile "$ROOT/traces/redundant/gnmt.tsv" "$ROOT/traces/spot.rec" >run.rec
    "$ROOT/scripts/plot-training" -o run.png run.rec
    [ "$(head -c 4 run.png | tail -c 3)" = PNG ]
    run "$ROOT/scripts/plot-training" "$ROOT/traces/spot.rec"
    [ "$status" = 3 ]
    [ "$output" = "plot-training: no training run is in the stream" ]
    sim elastic --brief "$ROOT/traces/spot.rec" >brief.rec
    run "$ROOT/scripts/plot-training" brief.rec
    [ "$status" = 3 ]
    [[ $output == *"without --brief"* ]]
    head -c 3000 run.rec >cut.rec
    run "$ROOT/scripts/plot-training" cut.rec
    [ "$status" = 4 ]
}
