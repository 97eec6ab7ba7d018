# Cost grows no faster than the input. Work is counted (house/work.c), not timed; tests/bench/scale-* measure
# times.

setup_file() {
    cc -shared -fPIC -O2 -fno-builtin -o "$BATS_FILE_TMPDIR/work.so" "$ROOT/tests/tools/house/work.c" -ldl
}
setup() {
    trap - DEBUG
    PATH=$BUILD/tests/loaded/bin:$PATH
    cd "$BATS_TEST_TMPDIR" || return 1
    # the runtime of a sanitizer must be the first library, so nothing can be preloaded
    ! nm "$BUILD/bin/sim" | grep -q __asan_init || skip "sanitizers take no preloaded library"
}

# near_linear COMMAND [STATUS]: counts the work of the command for $n = 1000 and for $n = 4000. The second may be
# at most 8 times the first. A linear cost gives 4; the random seeds of hash tables moved that up to 6. A quadratic
# cost gives 16. The command must end with STATUS.
near_linear() {
    local n work=() status
    for n in 1000 4000; do
        rm -f count
        export n
        WORK_COUNT=$PWD/count LD_PRELOAD=$BATS_FILE_TMPDIR/work.so bash -c "exec $1" >out && status=0 || status=$?
        [ $status = "${2:-0}" ]
        work+=("$(cat count)")
    done
    echo "$1: ${work[*]}"
    [ "${work[0]}" -gt 1000 ] && [ "${work[1]}" -le $((8 * work[0])) ]
}

@test "scale: pd2graph, thousands of files of one name" {
    printf 'node1 -- L -- forward_compute_time=1, backward_compute_time=1, activation_size=1, parameter_size=1\n' >a.txt
    near_linear 'pd2graph $(yes a.txt | head -n $n)'
}

@test "scale: tracegen preempt, hourly traces of many instances" {
    near_linear 'tracegen preempt --process hourly --desired $n --minutes 120 --removal 1 --addition 1'
}

# A trace in which $n instances with names are added at once; then every 100 s one is removed and one added.
named() {
    for n in 1000 4000; do
        awk -v n=$n 'BEGIN {
            OFS = "\t"
            for (i = 1; i <= n; i++) ids = ids (i > 1 ? "," : "") "node" i
            print "trace", 0, 100 * n + 100, "instances=0"
            print "add", 1, n, "ids=" ids
            for (i = 1; i <= n; i++) {
                print "preempt", 100 * i, 1, "ids=node" i * 7919 % n + 1
                print "add", 100 * i + 50, 1, "ids=new" i
            } }' >named$n.rec
    done
}
# The same trace without names: $n instances, and every 100 s one is removed and one added.
nameless() {
    for n in 1000 4000; do
        awk -v n=$n 'BEGIN {
            OFS = "\t"
            print "trace", 0, 100 * n + 100, "instances=" n
            for (i = 1; i <= n; i++) print "preempt", 100 * i, 1 "\nadd", 100 * i + 50, 1
            }' >nameless$n.rec
    done
}

@test "scale: sim elastic and redundant, preemptions by name" {
    named
    near_linear 'sim elastic --capacity 100000 --brief named$n.rec'
    near_linear 'sim redundant --profile $ROOT/traces/redundant/bert.tsv --steps 0 --brief named$n.rec'
}

@test "scale: sim elastic and redundant, --victims lowest" {
    nameless
    near_linear 'sim elastic --victims lowest --capacity 100000 --brief nameless$n.rec'
    near_linear 'sim redundant --victims lowest --profile $ROOT/traces/redundant/bert.tsv --steps 0 --brief nameless$n.rec'
}

@test "scale: metrics, distinct causes of blocking" {
    for n in 1000 4000; do
        awk -v n=$n 'BEGIN { OFS = "\t"; for (i = 1; i <= n; i++) print "block", "j" i, i, "cause" i }' >causes$n.rec
    done
    near_linear 'metrics causes$n.rec'
    near_linear 'metrics --by cause --format table causes$n.rec'
}

@test "scale: metrics --series, jobs that last for all intervals" {
    for n in 1000 4000; do
        awk -v n=$n 'BEGIN { OFS = "\t"; for (i = 1; i <= n; i++) print "done", "j" i, "g", i, i, 3 * n + i, "servers=1" }' >long$n.rec
    done
    near_linear 'metrics --series 1 long$n.rec'
}

# Serving pipelines with $n queries, and with a chain of $n / 5 stages.
serving() {
    for n in 1000 4000; do
        awk -v n=$n 'BEGIN { OFS = "\t"
            print "profile", "m", "h", 1, 0.1, 100 "\nstage", "s", "m\nconfig", "s", "h", 1, 2
            for (i = 1; i <= n; i++) print "query", "q" i, int(i / 3) / 50 }' >queries$n.rec
        awk -v n=$n 'BEGIN { OFS = "\t"
            print "profile", "m", "h", 1, 0.1, 100
            for (i = 1; i <= n / 5; i++) {
                print "stage", i, "m\nconfig", i, "h", 1, 1
                if (i > 1) print "edge", i - 1, i
            }
            for (i = 1; i <= 20; i++) print "query", "q" i, i }' >stages$n.rec
    done
}

@test "scale: sim serve, queries, and stages in a row" {
    serving
    near_linear 'sim serve queries$n.rec'
    near_linear 'sim serve --trace stages$n.rec'
}

@test "scale: task2graph, files, folders that are read and written as a whole, templates" {
    for n in 1000 4000; do
        awk -v n=$n 'BEGIN { OFS = "\t"; for (i = 0; i < n; i++)
            print "task", "t" i, "inf", i % 100 ? "-" : "d/", i % 50 ? "d/" i % 9 "/" i : "d/" i % 9 "/", "true" }' >tasks$n.rec
    done
    near_linear 'task2graph tasks$n.rec'
    near_linear 'task2graph --makefile tasks$n.rec'
    printf 'parameters: {a: , b: [1, 2]}\ntasks:\n- {name: "x{a}", executables: [{target: t}], writes: "{a}"}\n- {name: "{a}-{b}", executables: [{target: t}], reads: "{a}"}\n' >t.yaml
    near_linear 'task2graph --template t.yaml --set a=1..$n'
    for n in 1000 4000; do { echo a && seq $n; } >rows$n.csv; done
    near_linear 'task2graph --template t.yaml rows$n.csv'
}

@test "scale: runtasks, folders that are written by many tasks and read by many" {
    # The first task fails, so that no other is started: the work is that of names and of weighing edges.
    for n in 1000 4000; do
        awk -v n=$n 'BEGIN { OFS = "\t"
            for (i = 0; i < n; i++) print "task", "w" i, "inf", "-", "d/" i, i ? "true" : "false", "cost=" n - i
            for (i = 0; i < n; i++) print "task", "r" i, "inf", "d/", "e/" i, "true"
            for (i = 0; i < n; i++) print "task", "v" i, "inf", "e/" i, "d/" i, "true" }' >tasks$n.rec
    done
    near_linear 'runtasks --jobs 1 --fail-fast --quiet tasks$n.rec' 1
}

@test "scale: tasks that all run at once, in a timeline, compared, as costs" {
    for n in 1000 4000; do
        # four times as many, so that the effect of hash seeds on the work is small
        awk -v n=$((4 * n)) 'BEGIN { OFS = "\t"; for (i = 0; i < n; i++)
            print "attempt", "task" i, 1, i, n + i, 0 }' >runs$n.rec
        awk -v n=$((4 * n)) 'BEGIN { OFS = "\t"; for (i = 0; i < n; i++)
            print "task", "task" i, "inf", "-", "-", "true" }' >tasks$n.rec
    done
    near_linear 'timeline runs$n.rec'
    near_linear 'timeline --html runs$n.rec'
    near_linear 'metrics --compare runs$n.rec runs$n.rec'
    near_linear 'task2graph --costs runs$n.rec tasks$n.rec'
}

@test "scale: execution traces of many ranks, read and written" {
    for n in 1000 4000; do
        mkdir ranks$n
        awk -v n=$((n / 10)) -v at=ranks$n 'BEGIN { for (i = 0; i < n; i++) {
            print "> " at "/t." i ".et"
            print "1 comp 4 c\n2 coll 0 r data=1 comm_type=0 comm_size=64 pg_name=all"
            print "3 coll 0 p data=2 comm_type=2 comm_size=8 pg_name=pair" int(i / 2)
            print "4 send 0 s data=3 comm_size=8 comm_dst=" (i + 1) % n
            print "5 recv 0 t comm_size=8 comm_src=" (i + n - 1) % n
            print "6 comp 2 d data=5,3" } }' | python3 "$ROOT/tests/tools/chakra_trace.py"
        et2graph ranks$n/t.*.et >ranks$n.rec
    done
    near_linear 'et2graph ranks$n/t.*.et'
    near_linear 'graph2et --prefix ranks$n/u ranks$n.rec'
}

@test "scale: sim, colls that queue on one lane, each with an op behind it" {
    for n in 1000 4000; do
        awk -v n=$n 'BEGIN { OFS = "\t"; print "cluster", "island", 4, 1e9, 0, 1e9; print "graph", "g", "m"
            for (i = 0; i < 4; i++) print "op", "g", "o" i, "forward", 1, 1
            for (i = 0; i < n; i++) {
                print "dep", "g", "c" i, "p" i, 0
                print "coll", "g", "c" i, "all-gather", 1e9, "ops=o" i % 4 ",o" (i + 1 + int(i / 4) % 3) % 4, "lane=x"
                print "op", "g", "p" i, "forward", 0.5, 1
            }
            print "job", "j", "g", 0, 1, "inf\nlayout", "L", "g", 4
            for (i = 0; i < 4; i++) print "place", "L", "o" i, i
            for (i = 0; i < n; i++) print "place", "L", "p" i, i % 4
            print "alloc", "j", "g", "L", 0, "0,1,2,3" }' >colls$n
    done
    near_linear 'sim colls$n'
    near_linear 'sim --contention colls$n'
}
