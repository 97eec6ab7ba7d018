# Numbers: the same results on every processor, no number that is too large for its integer type, and no
# amount of work that would take too long.

setup() { trap - DEBUG; cd "$BATS_TEST_TMPDIR" || return 1; }

# Runs a command as on a processor without fused multiplication.
plain() { GLIBC_TUNABLES=glibc.cpu.hwcaps=-FMA,-FMA4,-AVX2 "$@"; }

# Runs every tool that draws, fits or estimates.
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
    for dist in '--cv 1' '--cv 3 --on-off 1:2:9' '--cv 0.7 --sinusoid 1:7'; do
        tracegen queries --no-input --rate 90 $dist --queries 20000
    done
    metrics done.rec
}

@test "numbers: the same draws, fits and figures without FMA" {
    values='BEGIN { for (i = 1; i < 30000; i++) printf "%.17g %.17g\n", log(i / 30001), exp(i / 30001) }'
    [ "$(awk "$values" | cksum)" != "$(plain awk "$values" | cksum)" ] || skip "no FMA here, or no way to do without"
    printf 'graph\ta\ta\nop\ta\t1\tforward\t1\t1\n' >graph.rec
    # more jobs than metrics keeps one by one for its quantiles
    awk 'BEGIN { for (i = 0; i < 270000; i++) print "done\tj" i "\tg\t" i "\t" i "\t" i + (i * 7919 % 99991) / 7 }' >done.rec
    draw_all >with
    export -f draw_all
    plain bash -ec draw_all >without
    cmp with without
}

# refuses INPUT STATUS MESSAGE COMMAND...: the command, with INPUT on standard input, ends soon with this
# status and a message that has MESSAGE.
refuses() {
    local input=$1 wanted=$2 message=$3 status=0
    shift 3
    printf "$input" | timeout 20 "$@" >out 2>err || status=$?
    [ $status = "$wanted" ] && [ "$(wc -l <err)" = 1 ] && grep -qF -e "$message" err ||
        { echo "$* <$input: status $status"; cat err; return 1; }
}

@test "numbers: what no integer or generator can hold is refused" {
    model='model\tspot\tx\tchance_preempt_minute=0.1\t'
    refuses '' 2 'must be at most 1e+12' tracegen preempt --preempt-chance 0.1 --preempt-mean 1e300
    refuses '' 2 'must be at most 1e+12' tracegen preempt --preempt-chance 0.1 --preempt-mean 1 --preempt-std 1e300
    refuses "${model}start_instances=1e300\tpreempt_mean=1\n" 3 start_instances tracegen preempt
    refuses "${model}start_instances=9007199254740992\tpreempt_mean=1\n" 2 'at most are 1073741824' tracegen preempt
    refuses "${model}total_minutes=1e300\tpreempt_mean=1\n" 2 '--minutes' tracegen preempt
    refuses "${model}preempt_counts=1e300:1\tpreempt_spacings=1:1\n" 2 'must be at most 1e+12' \
        tracegen preempt --process empirical
    refuses 'add\t0\t18446744073709551615\nadd\t1\t18446744073709551615\n' 3 'more than 2^64' \
        sim elastic --brief --start 0 --capacity 0
    printf 'samples\t1\nstages\t1\nstep\t1\t1\t1e9\n' >slow.tsv
    refuses 'add\t0\t1\n' 3 'after 1e+12 s' sim redundant --steps 100000 --profile slow.tsv --brief
    printf 'graph\ta\ta\nop\ta\t1\tforward\t1\t1\n' >graph.rec
    for dist in gamma:1:1e155 gamma:1:1e-200 lognormal:1:1e200; do
        refuses '' 2 'must be' tracegen jobs --interarrival $dist graph.rec
    done
    timeout 20 tracegen jobs --interarrival skewnormal:1e154:0:1 graph.rec >out
    timeout 20 tracegen jobs --interarrival uniform:1e300:1e300:15 --jobs 2 graph.rec >out
    grep -qw 1e300 out
}

@test "numbers: a NUL byte is no text" {
    printf 'graph\ta\ta\nop\ta\t1\tforward\t1\t1\n' >graph.rec
    refuses '0,add,a\0b\n' 3 '<stdin>:1: a NUL byte' tracegen fit
    refuses 'node1 -- a\0 -- forward_compute_time=1\n' 3 '<stdin>:1: a NUL byte' pd2graph
    refuses '1\n2\0\n' 3 ':2: a NUL byte' tracegen jobs --interarrival file:/dev/stdin graph.rec
}

@test "numbers: work that would never end is refused before it begins, unless --limit is raised" {
    local coins='tracegen preempt --preempt-chance 1e-9 --preempt-mean 1 --interval 0.001'
    printf 'graph\ta\ta\nop\ta\t1\tforward\t1\t1\n' >graph.rec
    printf 'samples\t1\nstages\t1\nstep\t1\t1\t0.001\n' >fast.tsv
    refuses '' 2 'about 1e+11 jobs' tracegen jobs --jobs 100000000000 graph.rec
    refuses '' 2 'about 1e+15 jobs' tracegen jobs --until 1e12 --interarrival fixed:1e-3 graph.rec
    refuses '' 2 '1.2e+15 draws' $coins --minutes 1e10
    refuses '' 2 'about 6.912e+17 draws, more than 1000000000 (--limit' $coins --runs 4000000000
    refuses '' 2 'draws, more than' tracegen preempt --preempt-chance 1e300 --preempt-mean 1 --process exponential
    refuses '' 2 '1.667e+14 draws' tracegen preempt --process hourly --desired 1000000 --minutes 1e10
    refuses 'trace\t0\t1e12\n' 2 'more than 100000000 (--limit' sim elastic --iteration 1:0.001
    refuses 'trace\t0\t1e12\n' 2 'more than 100000000 (--limit' sim elastic --tick 0.001
    refuses 'add\t1e12\t1\n' 2 'more than 100000000 (--limit' sim elastic --iteration 1:0.001
    refuses 'trace\t0\t1e12\nadd\t0\t1\n' 2 'more than 100000000 (--limit' sim redundant --steps 0 --profile fast.tsv
    refuses 'add\t0\t1\n' 2 'more than 100000000 (--limit' sim redundant --steps 18446744073709551615 --profile fast.tsv
    for model in elastic 'redundant --profile fast.tsv'; do
        refuses 'trace\t0\t1e6\tinstances=18446744073709551615\n' 3 'more than 1048576 instances' sim $model
    done
    local queries='tracegen queries --no-input --rate 100'
    refuses '' 2 'about 1e+10 queries, more than' $queries --queries 10000000000
    refuses '' 2 'about 1e+12 queries, more than' $queries --until 1e10
    refuses '' 2 'about 1.5e+300 queries, more than' $queries --until 1e298 --on-off 1:1:200
    refuses '' 2 'about 1e+12 queries, more than' tracegen queries --no-input --interarrival fixed:1e-3 --until 1e9
    # if the number is known exactly, so is the limit
    tracegen jobs --jobs 10 --limit 10 graph.rec >out
    refuses '' 2 'about 10 jobs, more than 9 (--limit' tracegen jobs --jobs 10 --limit 9 graph.rec
    printf 'trace\t0\t100\n' | sim elastic --iteration 1:1 --limit 100 >out
    refuses 'trace\t0\t100\n' 2 'more than 99 (--limit' sim elastic --iteration 1:1 --limit 99
    $coins --minutes 1 --limit 120000 >out
    refuses '' 2 '1.2e+05 draws' $coins --minutes 1 --limit 119999
}
