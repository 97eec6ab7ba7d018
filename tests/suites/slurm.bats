# runtasks on a Slurm cluster of one node, which is started for this file. Long runs are started at the beginning,
# and their results are checked at the end.

task() { # ID READS WRITES COMMAND [KEY...]
    printf 'task\t%s\t%s\t%s\t%s\t%s' "$1" "${TIMEOUT:-inf}" "$2" "$3" "$4"
    shift 4
    [ $# = 0 ] || printf '\t%s' "$@"
    echo
}
# A chain of 20 tasks. A task that reads the file of c3 fails; other tasks read its files and overwrite them.
chain() {
    task c1 - x1 'sh -c "echo 1 >x1"'
    for ((i = 2; i <= 20; i++)); do
        task c$i x$((i - 1)) x$i "sh -c 'cat x$((i - 1)) >x$i && echo $i >>x$i'"
        [ $i != 3 ] || {
            task fails x3,z y 'sh -c "echo no >&2; exit 5"' retries=1
            task reader y w 'sh -c "echo never >w"'
            task second w - 'sh -c "echo never >v"'
            task over - w,z 'sh -c "echo over >w; echo >z"'
        }
    done
}
# Tasks with everything that a task record can have.
all() {
    task makes - dir/,sub/ 'mkdir dir sub'
    task 'a/b "$(touch no)"' dir/ - 'sh -c "echo \$A-\$B; ls -d dir/..; echo wrong >&2"' \
        env=A=1%2C2,B=3 stdout=o%2C1 stderr=e
    task c - - cat 'stdin=@a/b "$(touch no)".stdout' stdout=copy
    TIMEOUT=0.1 task d - - 'sleep 60' retries=1
    TIMEOUT=60 task f n n "sh -c 'echo >>n; [ \$(wc -l <n) = 3 ]'" retries=5 memory=1000000
    task -g sub/ - 'sh -c "pwd >here; exit 7"' ok=any cwd=sub cores=2
    task h - - /nowhere
    task called - made "$ROOT/tests/tools/worker.sh" 'call=touch made; result=place%09'
    task after @called.result,dir/ seen "$ROOT/tests/tools/worker.sh" 'call=cp made seen; (exit 4)' ok=any
    task ends @after.result - "$ROOT/tests/tools/worker.sh" call=exit\ 9
}
# Task i is not run, because `fails` does, but it still counts as waiting for `slow`: j, which comes after i, must
# not begin at once.
held() {
    task fails - x false
    task slow - y 'sh -c "sleep 3; echo slow >y"'
    task i x y 'sh -c "echo i >y"'
    task j - y 'sh -c "cp y seen; echo j >y"'
}
# Prints how the attempts and tasks ended, without times.
fates() { awk -F '\t' '$1 == "attempt" { print $1, $2, $3, $6 } $1 == "done" { print $1, $2 }
    $1 == "block" { cause = $4; for (i = 5; i <= NF; i++) if ($i ~ /^(task|status)=/) cause = cause " " $i
                    print $1, $2, cause }' "$1" | sort; }
engine() { # ENGINE FOLDER [OPTION...]: tasks.rec, in a folder of its own
    local engine=$1 folder=$2 status=0
    shift 2
    mkdir "$folder" && cd "$folder" || return 1
    runtasks --engine "$engine" --backoff 1ms "$@" ../tasks.rec >../"$folder.out" 2>../"$folder.err" || status=$?
    cd .. && echo $status >"$folder.status"
}
same() { # FOLDER FOLDER: the same files, fates, and status
    diff -r "$1" "$2"
    diff <(fates "$1.out") <(fates "$2.out")
    diff "$1.status" "$2.status"
}
status_is() {
    local want=$1 got=0
    shift
    "$@" >out 2>err </dev/null || got=$?
    [ "$got" = "$want" ] || { echo "status $got, expected $want: $*"; cat err; return 1; }
}
# a minute at least: on a loaded machine jobs of Slurm wait for those of other tests
wait_for() { for ((i = 0; i < 6000; i++)); do if "$@"; then return; fi; sleep 0.01; done; false; }

# Slurm listens at the address of the machine's name. If that is no loopback address, a preloaded gethostname()
# returns localhost.
stay_here() {
    case $(getent ahostsv4 "$(hostname)") in 127.*) return ;; esac
    echo 'int gethostname(char *name, unsigned long n) { __builtin_strncpy(name, "localhost", n); return 0; }' |
        gcc -shared -fPIC -x c - -o "$BATS_FILE_TMPDIR/here.so" && export LD_PRELOAD=$BATS_FILE_TMPDIR/here.so
    export ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0
}
setup_file() {
    stay_here
    local status=0
    SLURM_CONF=$("$ROOT/scripts/slurm-loopback" start "$BATS_FILE_TMPDIR/slurm") || status=$?
    if [ $status = 69 ]; then
        export LACKS="there are no cgroups here, which slurmd needs"
        return
    fi
    [ $status = 0 ] || return 1
    export SLURM_CONF
    for list in chain all held; do
        mkdir "$BATS_FILE_TMPDIR/$list" && cd "$BATS_FILE_TMPDIR/$list" || return 1
        $list >tasks.rec
        (engine slurm-jobs slurm-jobs) 3>&- &
        echo $! >>"$BATS_FILE_TMPDIR/runs"
    done
}
teardown_file() {
    [ -z "${LACKS-}" ] || return 0
    for run in $(cat "$BATS_FILE_TMPDIR/runs"); do # those that nobody has waited for
        pkill -TERM -P "$run" && tail --pid="$run" -f /dev/null
    done
    "$ROOT/scripts/slurm-loopback" stop "$BATS_FILE_TMPDIR/slurm"
}
setup() {
    trap - DEBUG
    [ -z "${LACKS-}" ] || skip "$LACKS"
    cd "$BATS_TEST_TMPDIR" || return 1
}

@test "slurm: tasks start while the stream grows, and are told of as they end" {
    mkfifo in
    runtasks --engine slurm -j 1 <in >out &
    exec 9>in
    printf 'task\ta\tinf\t-\tx\ttouch x\ntask\tb\tinf\tx\ty\ttou' >&9
    wait_for grep -q '^done.a' out
    [ -e x ]
    printf 'ch y\n' >&9
    exec 9>&-
    wait $!
    [ -e y ]
    [ "$(tail -n 1 out)" = '#end' ]
}

@test "slurm: a signal ends tasks and runner, and so do a full disk and a reader that goes away" {
    # a loop of short sleeps: Slurm signals the sleep first, and its end must not end the shell before the trap runs
    task a - - "sh -c 'trap \"echo ended >ended; exit 1\" TERM; echo \$\$ >pid; while :; do sleep 0.1; done'" >tasks.rec
    for signal in INT TERM; do
        rm -f pid ended
        env --default-signal runtasks --engine slurm -j 1 --log log -o out tasks.rec 2>err &
        wait_for [ -s pid ]
        status=0
        kill -$signal $! && wait $! || status=$?
        [ $status = $((128 + $(kill -l $signal))) ]
        [ ! -e "/proc/$(cat pid)" ]
        [ ! -e out ]
        [ -e ended ]
    done
    [ "$(grep -c '^attempt' log)" = 2 ]
    status_is 4 bash -c 'runtasks --engine slurm -j 1 tasks.rec >/dev/full'
    grep -qx 'runtasks: <stdout>: No space left on device' err
    task first - - 'sleep 0.1' | cat - tasks.rec >two.rec # (who has gone is seen when one writes)
    { runtasks --engine slurm -j 1 two.rec 2>err || echo $? >status; } | head -n 1 >out
    [ "$(cat status)" = 141 ]
    wait_for [ ! -e "/proc/$(cat pid)" ]
}

@test "slurm: a run in an allocation is resumed in another" {
    { task a - x 'sh -c "echo a >>x"'; task b x - 'sh -c "[ -e go ]"'; } >tasks.rec
    status_is 1 runtasks --engine slurm -j 1 --log log tasks.rec
    touch go
    runtasks --engine slurm -j 1 --resume log tasks.rec >out
    [ "$(fates out)" = $'attempt b 1 0\ndone b' ]
    [ "$(cat x)" = a ]
}

@test "slurm, slurm-jobs: streams, folders, environment, names, retries, timeouts as in a local run" {
    cd "$BATS_FILE_TMPDIR/all"
    engine local local
    engine slurm slurm -j 2
    wait_for [ -e slurm-jobs.status ]
    rm */sub/here
    same local slurm
    same local slurm-jobs
    for out in local.out slurm.out slurm-jobs.out; do
        [ "$(grep ^attempt.called $out | cut -f 9)" = result=place%09 ]
    done
    [ "$(cat slurm-jobs/copy)" = $'1,2-3\ndir/..' ]
    reccheck -q slurm-jobs.out
}

@test "slurm: the experiments make the same products there as here" {
    sweep() { # EXPERIMENT PARAMETER...
        make -s -j2 -C "$ROOT/traces/experiments/$1" BIN="$(realpath --relative-to="$ROOT/traces/experiments/$1" "$BUILD/bin")" \
            OUT="$(realpath --relative-to="$ROOT/traces/experiments/$1" "$PWD")/$ENGINE/$1" ENGINE="$ENGINE" "${@:2}" >>log 2>&1
    }
    for ENGINE in local slurm; do
        sweep load PROFILES=../../alexnet.txt CURVES='max@first none@first' INTERARRIVALS=1 JOBS=20 SEEDS='1 2' \
            SLURM_OPTIONS=--comment='one\ word'
        sweep spot RUNS=2 CHUNK=1 MINUTES=300 REMOVALS=0.25
        sweep agents PROFILES=../../alexnet.txt HEURISTICS=first-fit CHOOSERS='max@first learned' INTERARRIVALS=100 \
            JOBS=20 SEEDS=1 POLICY=../../policies/pac-ml.rec
    done
    # log and points.rec have times, and tasks.rec has the name of the folder
    diff -r -x log -x points.rec -x tasks.rec -x ingredients local slurm
    [ -s slurm/load/blocking.svg ] && [ -s slurm/spot/table.tsv ] && [ -s slurm/agents/agents.tsv ]
    [ "$(grep -c Name=runtasks- "$BATS_FILE_TMPDIR/slurm/jobs.log")" -ge 3 ]
    # a second sweep runs nothing, and an unknown engine is refused
    before=$(cat slurm/load/points.rec)
    ENGINE=slurm sweep load PROFILES=../../alexnet.txt CURVES='max@first none@first' INTERARRIVALS=1 JOBS=20 SEEDS='1 2'
    [ "$(cat slurm/load/points.rec)" = "$before" ]
    ! ENGINE=cloud sweep load || false
    grep -q "ENGINE must be local or slurm, got 'cloud'" log
}

@test "slurm: functions, programs and a dictionary of a Batch" {
    PYTHONDONTWRITEBYTECODE=1 timeout -k 1 90 python3 "$ROOT/tests/tools/batch_front.py" slurm
    [ -z "$(ls -A)" ]
}

@test "slurm-jobs: what is not run still holds back what comes after it" {
    cd "$BATS_FILE_TMPDIR/held"
    wait_for [ -e slurm-jobs.status ]
    [ "$(cat slurm-jobs/seen)" = slow ]
    [ "$(grep ^block.i slurm-jobs.out | cut -f 4,5)" = $'input_failed\ttask=fails' ]
}

@test "slurm-jobs: a signal cancels the jobs, a failure with --fail-fast those that wait" {
    { task a - x 'sh -c "echo \$\$ >pid; sleep 60"'; task b x - true; } >tasks.rec
    env --default-signal runtasks --engine slurm-jobs -o out tasks.rec 2>err &
    wait_for [ -s pid ]
    status=0
    kill -INT $! && wait $! || status=$?
    [ $status = 130 ]
    [ ! -e "/proc/$(cat pid)" ]
    [ ! -e out ]
    [ -z "$(squeue --noheader --name=a,b)" ]
    [ -z "$(ls -d .runtasks-* 2>/dev/null)" ]
    # b waits for c, which takes longer than it takes runtasks to learn that a has failed
    { task a - x 'sh -c "echo bad; false"'; task c - y 'sh -c "sleep 1; echo >y"'; task b y - true; } >tasks.rec
    status_is 1 runtasks --engine slurm-jobs --fail-fast --log log tasks.rec
    grep -qx bad err
    [ "$(grep -c '^attempt.a' log)" = 1 ]
    grep -q '^block.b.*not_started' out
}

@test "slurm-jobs: a second signal leaves what does not end to Slurm" {
    task stays - x 'sh -c "trap : TERM; echo >begun; until [ -e end ]; do sleep 0.1; done"' >tasks.rec
    env --default-signal runtasks --engine slurm-jobs -o out tasks.rec 2>err &
    wait_for [ -e begun ]
    kill -INT $!
    wait_for eval '! squeue --noheader --name=stays --states=RUNNING | grep -q .'
    sleep 0.3
    kill -INT $!
    status=0
    wait $! || status=$?
    state=$(squeue --noheader --name=stays --format=%T)
    echo >end
    [ "$status $state" = '130 COMPLETING' ] || { echo "$status $state"; return 1; }
}

@test "slurm-jobs: a job that Slurm ends is a task that failed, and says how" {
    { task killed - x 'sh -c "echo >begun; sleep 60"'; task after x - true; } >tasks.rec
    runtasks --engine slurm-jobs tasks.rec >out 2>err &
    wait_for [ -e begun ]
    scancel --name=killed
    status=0
    wait $! || status=$?
    [ $status = 1 ]
    [ "$(fates out)" = "$(printf '%s\n' 'attempt killed 1 CANCELLED' \
        'block after input_failed task=killed' 'block killed failed status=CANCELLED')" ]
}

@test "what Slurm refuses, that it is away, and that it is not there, is said in a line" {
    task a - - true >tasks.rec
    for engine in slurm slurm-jobs; do
        status_is 4 runtasks --engine $engine --slurm-options '--partition=none' tasks.rec
        grep -q 'nvalid partition' err
        status_is 2 runtasks --engine $engine --slurm-options "'--partition" tasks.rec
        grep -q 'a quote is not closed' err
        { sed 's/^SlurmctldPort=.*/SlurmctldPort=1/' "$SLURM_CONF" && echo MessageTimeout=1; } >away.conf
        SLURM_CONF=$PWD/away.conf status_is 4 runtasks --engine $engine tasks.rec
        grep -q 'Unable to contact slurm controller' err
        PATH=$BUILD/bin status_is 4 "$BUILD/bin/runtasks" --engine $engine tasks.rec
        /usr/bin/grep -q 'cannot start s[a-z]*: No such file or directory; Debian has it in slurm-client' err
    done
}

@test "slurm-loopback: stops what it started, and nothing else" {
    mkdir other && sleep 60 3>&- &
    wait_for [ -d other ]
    echo $! | tee other/slurmd.pid >other/slurmctld.pid
    "$ROOT/scripts/slurm-loopback" stop other
    kill $!
    status_is 4 "$ROOT/scripts/slurm-loopback" start "$BATS_FILE_TMPDIR/slurm"
    grep -q 'has a Slurm that runs' err
    [ "$(sinfo --noheader --format=%a)" = up ]
    status_is 2 "$ROOT/scripts/slurm-loopback" start
}

@test "a chain of 20 tasks and a failing branch come to the same in all engines" {
    cd "$BATS_FILE_TMPDIR/chain"
    engine local local
    [ "$(cat local.status)" = 1 ]
    [ "$(tail -n 1 local/x20)" = 20 ]
    engine slurm slurm -j 2
    same local slurm
    for ((n = 0; n < 9; n++)); do if wait_for [ -e slurm-jobs.status ]; then break; fi; done
    same local slurm-jobs
    metrics --format table slurm-jobs.out | grep -qx 'done  *21'
    [ "$(head -n 2 slurm-jobs.err)" = "runtasks: warning: task 'fails' failed: exit status 5, in all its attempts"$'\nno' ]
}
