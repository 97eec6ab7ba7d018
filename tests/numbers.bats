# Numbers: the same ones on every processor, none that no integer holds, and none of them so
# many that nobody waits for it.

setup() { cd "$BATS_TEST_TMPDIR" || return 1; }

# Runs a command as on a processor without fused multiplication.
plain() { GLIBC_TUNABLES=glibc.cpu.hwcaps=-FMA,-FMA4,-AVX2 "$@"; }

# All that is drawn, fitted or estimated.
draw_all() {
    local dist process
    for dist in exponential:7.5 gamma:3:1.5 gamma:3:0.4 normal:3:2 lognormal:3:2 \
        skewnormal:5:1:2 uniform:0:1:3; do
        tracegen jobs --jobs 5000 --interarrival $dist --deadline-fraction $dist --steps $dist \
            --sampling replace graph.rec
    done
    for process in exponential weibull empirical coin; do
        tracegen fit --stats "$ROOT/traces/spot.rec" |
            tracegen preempt --process $process --minutes 50000 >$process.rec
        tracegen fit --stats $process.rec
        tracegen fit --stats $process.rec |
            tracegen preempt --process weibull --compare "$ROOT/traces/spot.rec"
        cat $process.rec
    done
    metrics done.rec
}

@test "numbers: the same draws, fits and figures without FMA" {
    values='BEGIN { for (i = 1; i < 30000; i++) printf "%.17g %.17g\n", log(i / 30001), exp(i / 30001) }'
    [ "$(awk "$values" | cksum)" != "$(plain awk "$values" | cksum)" ] || skip "no FMA here, or no way to do without"
    printf 'graph\ta\ta\nop\ta\t1\tforward\t1\t1\n' >graph.rec
    # more than are kept one by one
    awk 'BEGIN { for (i = 0; i < 270000; i++) print "done\tj" i "\tg\t" i "\t" i "\t" i + (i * 7919 % 99991) / 7 }' >done.rec
    draw_all >with
    export -f draw_all
    plain bash -ec draw_all >without
    cmp with without
}
