# runtasks: what it does to files, processes and its log.

setup() { trap - DEBUG; cd "$BATS_TEST_TMPDIR" || return 1; }

task() { # ID READS WRITES COMMAND [KEY...]
    printf 'task\t%s\tinf\t%s\t%s\t%s' "$1" "$2" "$3" "$4"
    shift 4
    [ $# = 0 ] || printf '\t%s' "$@"
    echo
}
random_program() { python3 "$ROOT/tests/tools/tasks_random.py" "$@"; }
sequentially() { # tasks.rec, folder
    mkdir "$2" && cut -f 6 "$1" >commands && (cd "$2" && sh ../commands)
}
status_is() {
    local want=$1 got=0
    shift
    "$@" >out 2>err </dev/null || got=$?
    [ "$got" = "$want" ] || { echo "status $got, expected $want: $*"; cat err; return 1; }
}

@test "in parallel random programs leave the files that they leave one after the other" {
    for seed in 1 2; do
        random_program $seed 20 5 >tasks.rec
        sequentially tasks.rec right$seed
        mkdir got$seed
        (cd got$seed && runtasks -j 6 ../tasks.rec >../out)
        diff -r right$seed got$seed
        [ "$(grep -c ^done out)" = 25 ]
    done
}

@test "tasks start while the stream grows, be it cut in the middle of a line" {
    mkfifo in
    runtasks -j 2 <in >out &
    exec 9>in
    printf 'task\ta\tinf\t-\tx\ttouch x\ntask\tb\tinf\tx\ty\ttou' >&9
    for ((i = 0; i < 200; i++)); do
        if grep -q '^done.a' out; then break; fi
        sleep 0.01
    done
    [ -e x ]
    [ "$i" -lt 200 ]
    printf 'ch y\n' >&9
    exec 9>&-
    wait $!
    [ -e y ]
}

# Each task notes how many tasks of its kind run when it begins.
@test "no more run at once than cores and memory allow" {
    local look='mkdir run/$0; ls run | wc -l >>seen; sleep 0.01; rmdir run/$0'
    mkdir run
    for i in 1 2 3 4 5 6 7 8 9; do task c$i - - "sh -c '$look' $i" cores=2; done >tasks.rec
    runtasks -j 5 tasks.rec >out
    [ "$(wc -l <seen)" = 9 ]
    [ "$(sort -n seen | tail -n 1)" = 2 ]
    rm seen && sed 's/cores=2/memory=3e9/' tasks.rec | runtasks -j 5 --memory 10GB >out
    [ "$(sort -n seen | tail -n 1)" = 3 ]
    rm seen && sed 's/\tcores=2//' tasks.rec | runtasks -j 1 >out
    [ "$(sort -n seen | tail -n 1)" = 1 ]
}

@test "a task that does not fit is not overtaken for ever" {
    { task first - - 'sleep 0.02'
        task wide - - 'sh -c "echo wide >>order"' cores=2
        for i in 1 2 3 4 5 6 7 8 9; do task n$i - - "sh -c 'echo n >>order; sleep 0.01'"; done; } |
        runtasks -j 2 >out
    head -n 6 order | grep -q wide
}

@test "the critical path is first, then the order of submission" {
    { task a - - 'sh -c "echo a >>order"' cost=1
        task b - x 'sh -c "echo b >>order; touch x"' cost=1
        task c - - 'sh -c "echo c >>order"' cost=1
        task d x - 'sh -c "echo d >>order"' cost=9; } >tasks.rec
    runtasks -j 1 tasks.rec >out
    [ "$(paste -sd ' ' order)" = 'b d a c' ]
}

@test "standard input, output and error, working directory, environment" {
    mkdir dir
    { task a - - "sh -c 'echo \$A-\$B; pwd; echo wrong >&2'" cwd=dir env=A=1%2C2,B=3 stdout=o stderr=e
        task b - - cat stdin=@a.stdout stdout=copy
        task c - - cat stdout=none; } | runtasks >out
    [ "$(cat copy)" = "1,2-3"$'\n'"$PWD/dir" ]
    [ "$(cat e)" = wrong ]
    [ ! -s none ]
    { task a/b - - 'echo kept'
        task c - - cat stdin=@a/b.stdout; } | runtasks --logs logs >out
    [ "$(cat logs/a%2Fb.stdout)" = kept ]
    [ "$(cat logs/c.stdout)" = kept ]
}

@test "a timeout ends the whole process group, by SIGKILL if need be" {
    printf 'task\ta\t0.3\t-\t-\tsh -c %s\n' "'trap \"\" TERM; sleep 60 & echo \$! >pid; wait; sleep 60'" >tasks.rec
    status_is 1 runtasks --grace 50ms tasks.rec
    grep -q '^attempt.a.*timeout' out
    [ ! -e "/proc/$(cat pid)" ] || grep -q '^State:.Z' "/proc/$(cat pid)/status"
}

@test "retries go on until it works" {
    task a n n "sh -c 'echo >>n; [ \$(wc -l <n) = 3 ]'" retries=5 >tasks.rec
    runtasks --backoff 1ms tasks.rec >out
    [ "$(grep -c ^attempt out)" = 3 ]
    rm n && sed -i 's/\tretries=5//' tasks.rec
    status_is 1 runtasks --retries 1 --backoff 1ms tasks.rec
    [ "$(grep -c ^attempt out)" = 2 ]
}

@test "killed at any moment, it goes on with what is missing" {
    random_program 7 40 6 >tasks.rec
    sequentially tasks.rec right
    mkdir got && cd got
    RANDOM=7
    for ((n = 0; n < 12; n++)); do
        runtasks -j 2 --resume ../log ../tasks.rec >/dev/null 2>&1 &
        pid=$!
        sleep 0.0$((RANDOM % 7))$((RANDOM % 10))
        kill -9 $pid 2>/dev/null || true
        wait $pid || true
    done
    runtasks -j 2 --resume ../log ../tasks.rec >../out
    cd .. && diff -r right got
    [ "$(awk -F '\t' '$1 == "attempt" && $6 == 0 && !seen[$2]++' log | wc -l)" = 46 ]
    (cd got && runtasks --resume ../log ../tasks.rec >../out)
    [ "$(grep -cv '^#' out)" = 0 ]
}

# Lists that change, runs that are killed, and files that somebody else changes, at random. 600 seeds were run
# by hand.
@test "what is gone on with is what comes of running the list one after the other" {
    python3 "$ROOT/tests/tools/tasks_resume.py" 1 6
}

@test "--durable: what a task wrote is on the disk before the log says that it has ended" {
    gcc -shared -fPIC -x c - -o sync.so <<'C'
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int fsync(int fd)
{
    char at[64], path[400] = "", line[400];
    int ended = 0;
    FILE *out = fopen("synced", "a"), *log = fopen("log", "r");
    sprintf(at, "/proc/self/fd/%d", fd);
    if (readlink(at, path, sizeof path - 1) > 0)
        while (log && fgets(line, sizeof line, log))
            ended += strncmp(line, "attempt", 7) == 0;
    fprintf(out, "%s %d\n", strrchr(path, '/') + 1, ended);
    return fclose(out) + (log ? fclose(log) : 0);
}
C
    # the runtime of a sanitizer wants to be the first library, but sync.so is
    export ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0 PATH=$BUILD/tests/loaded/bin:$PATH
    task a - sub/x 'touch sub/x' >tasks.rec
    mkdir sub
    LD_PRELOAD=$PWD/sync.so runtasks --log log tasks.rec >out
    [ ! -e synced ]
    rm log && LD_PRELOAD=$PWD/sync.so runtasks --durable --log log tasks.rec >out
    [ "$(tail -n 4 synced | paste -sd ,)" = 'log 0,x 0,sub 0,log 1' ]
}

@test "a task that was interrupted has its outputs removed, one that changed is run again" {
    task a - x 'sh -c "[ ! -e x ] && echo new >x"' >tasks.rec
    cp tasks.rec log && echo half >x
    runtasks --resume log tasks.rec >out
    [ "$(cat x)" = new ]
    task b x y 'cp x y' >>tasks.rec
    runtasks --resume log tasks.rec >out
    [ "$(grep -c ^done out)" = 1 ]
    sed -i 's/echo new/echo newer/' tasks.rec
    runtasks --resume log tasks.rec >out
    [ "$(cat y)" = newer ]
}

# Task b failed, and then c overwrote the file that b reads. So a must make the file again before b runs.
@test "what was overwritten is made again" {
    { task a - x 'sh -c "echo a >x"'
        task b x y 'sh -c "[ -e go ] && cp x y"'
        task c - x 'sh -c "echo c >x"'; } >tasks.rec
    status_is 1 runtasks --log log tasks.rec
    touch go
    runtasks --resume log tasks.rec >out
    [ "$(cat y x)" = $'a\nc' ]
}

@test "a cut line of the log is dropped with a warning" {
    task a - - 'sh -c "echo >>ran"' >tasks.rec
    runtasks --log log tasks.rec >out
    truncate -s -3 log
    runtasks --resume log tasks.rec >out 2>err
    grep -q '^runtasks: warning: log: the last line was cut' err
    [ "$(wc -l <ran)" = 2 ]
    runtasks --resume log tasks.rec >out
    [ "$(wc -l <ran)" = 2 ]
}

@test "what a killed run left running is waited for" {
    task a - - 'sh -c "until [ -e go ]; do sleep 0.01; done & echo >begun; wait"' >tasks.rec
    runtasks --log log tasks.rec >/dev/null 2>&1 &
    until [ -e begun ]; do sleep 0.01; done
    kill -9 $!
    status_is 4 runtasks --grace 10ms --resume log tasks.rec
    grep -q 'log: the log is in use' err
    touch go
    runtasks --resume log tasks.rec >out
    grep -q '^done' out
}

@test "a signal ends tasks and runner, and nothing is left at -o" {
    task a - - 'sh -c "echo \$\$ >pid; sleep 60"' >tasks.rec
    for signal in INT TERM HUP; do
        rm -f pid
        env --default-signal runtasks --log log -o out tasks.rec 2>err &
        runner=$!
        until [ -s pid ]; do sleep 0.01; done
        status=0
        kill -$signal $runner && wait $runner || status=$?
        [ $status = $((128 + $(kill -l $signal))) ]
        [ ! -e "/proc/$(cat pid)" ]
        [ ! -e out ]
        [ ! -s err ]
    done
    [ "$(grep -c '^attempt.*SIGTERM' log)" = 3 ]
}

@test "a full disk, a log that cannot be written, a reader that goes away end the tasks" {
    { task a - - true; task b - - 'sh -c "echo \$\$ >pid; exec sleep 60"'; } >tasks.rec
    ended() { [ ! -s pid ] || [ ! -e "/proc/$(cat pid)" ]; }
    status_is 4 bash -c 'runtasks -j 2 tasks.rec >/dev/full'
    ended
    status_is 4 runtasks -j 2 --log /dev/full tasks.rec
    grep -qx 'runtasks: /dev/full: No space left on device' err
    ended
    status_is 4 runtasks --log nowhere/log tasks.rec
    grep -qx 'runtasks: nowhere/log: No such file or directory' err
    # the reader goes away when there is nothing to write before the second task has ended
    sed -i 's/exec sleep 60/sleep 60; touch late/' tasks.rec
    { runtasks -j 2 tasks.rec 2>err || echo $? >status; } | grep -q '^done.a'
    [ "$(cat status)" = 141 ]
    [ ! -s err ]
    [ ! -e late ]
    ended
}

@test "bad input: nothing more is started, what runs is waited for" {
    { task a - - 'sh -c "sleep 0.05; touch a"'; echo Nonsense; task b - - 'touch b'; } >tasks.rec
    status_is 3 runtasks tasks.rec
    grep -q '^runtasks: tasks.rec:2: ' err
    [ "$(wc -l <err)" = 1 ]
}

@test "progress: done, running, failed, time left" {
    { task a - - true; task b - - false; task c - - 'sleep 1.3'; } >tasks.rec
    status_is 1 runtasks -j 1 --progress tasks.rec
    tr '\r' '\n' <err | grep -qE '^runtasks: [0-9]+ %, [0-9]+ s left, 1 of 3 tasks done, 1 running, 1 failed or skipped, [0-9] s'
}

@test "what no run can do is refused, and where" {
    refused() { # message
        cat >tasks.rec
        status_is 3 runtasks tasks.rec
        grep -q "^runtasks: tasks.rec:[12]: .*$1" err
    }
    task a - - true env==x | refused "env of task 'a' must be NAME=VALUE,..., got '=x'"
    task a - - true "env=$(printf '%090d' 0)" | refused "got '0*'$"
    task a - - true stdout=@x | refused "stdout= and stderr= of task 'a' must be files"
    task a - - true stderr=@x | refused "stdout= and stderr= of task 'a' must be files"
    { task a - - true stdout=x; task b - - cat stdin=@a.stderr; } | refused "the stderr of task 'a' is needed, but not kept"
    { task a - - true stderr=x; task b - - cat stdin=@a.stdout; } | refused "the stdout of task 'a' is needed, but not kept"
    { task a - - 'sh -c "echo said >&2"' stderr=x; task b - - cat stdin=@a.stderr stdout=y cwd=/; } >tasks.rec
    status_is 0 runtasks --log log tasks.rec
    [ "$(cat y)" = said ]
    status_is 0 runtasks --resume log tasks.rec
    [ "$(grep -c ^done out)" = 0 ]
}

# The status of each attempt says why it failed. One that is no number is not an exit status.
@test "what cannot be started, and signals, are attempts with that status" {
    echo 'echo $0' >script
    { task none - - no-such-command
        task no_x - - ./script
        task no_cwd - - true cwd=nowhere
        task no_input - - true stdin=nowhere/x
        task no_stdout - - true stdout=nowhere/y
        task no_stderr - - true stderr=nowhere/z
        task segv - - 'sh -c "kill -SEGV \$\$"'
        task real - - 'sh -c "kill -40 \$\$"'
        task seven - - 'sh -c "exit 7"'; } >tasks.rec
    status_is 1 runtasks -j 1 tasks.rec
    [ "$(sed -n 's/^attempt\t\([^\t]*\)\t1\t[^\t]*\t[^\t]*\t\([^\t]*\)\t.*/\1 \2/p' out | paste -sd ,)" = \
        'none ENOENT,no_x EACCES,no_cwd ENOENT,no_input ENOENT,no_stdout ENOENT,no_stderr ENOENT,segv SIGSEGV,real SIG40,seven 7' ]
    grep -qx "runtasks: warning: task 'no_x' failed: it cannot be started: EACCES" err
    grep -qx "runtasks: warning: task 'segv' failed: SIGSEGV" err
}

@test "a command is looked for in the PATH of its env" {
    mkdir bin && printf '#!/bin/sh\necho found, $(basename "$PWD")\n' >bin/tool && chmod +x bin/tool
    { task a - - tool "env=PATH=$PWD/bin:$PATH" cwd=bin stdout=a
        task b - - tool env=X=1; } >tasks.rec
    status_is 1 runtasks tasks.rec
    [ "$(cat a)" = 'found, bin' ]
    grep -q '^block.b.*status=ENOENT' out
}

# With 20 file descriptors runtasks cannot run thirty tasks at a time: some must wait.
@test "tasks for which there is no room now wait until others have ended" {
    for ((i = 0; i < 30; i++)); do task $i - - 'sleep 0.02'; done >tasks.rec
    status_is 0 bash -c 'ulimit -n 20; runtasks -j 30 tasks.rec'
    [ "$(grep -c '^attempt.[0-9]*.1.*	0	user' out)" = 30 ]
    task a - - true stdin=tasks.rec stdout=x stderr=y >one.rec
    for n in 5 6 7 8 9 10 11 12 13; do bash -c "ulimit -n $n; runtasks one.rec" || :; done >few 2>&1
    grep -qx 'runtasks: signals: Too many open files' few
    grep -q 'status=EMFILE' few # none runs that could end
    grep -q '^done.a' few
}

@test "output goes to TMPDIR, to /tmp, or nowhere but memory" {
    task a - - 'sh -c "echo said; readlink -f /proc/self/fd/1; false"' >tasks.rec
    TMPDIR=$PWD status_is 1 runtasks tasks.rec
    grep -q "^$PWD/.*deleted" err
    TMPDIR='' status_is 1 runtasks tasks.rec
    grep -q "^/tmp/.*deleted" err
    TMPDIR=$PWD/nowhere status_is 1 runtasks tasks.rec
    grep -qx said err
    grep -q memfd:output err
}

# Runs the task of tasks.rec, and sends two signals, so many seconds apart.
signal_twice() { # SECONDS [OPTION]...
    env --default-signal runtasks --log log "${@:2}" tasks.rec >out 2>err &
    until [ -s pid ]; do sleep 0.01; done
    kill -TERM $!
    sleep "$1"
    kill -TERM $!
    status=0
    wait $! || status=$?
    [ $status = 143 ]
    [ ! -e "/proc/$(cat pid)" ]
}

@test "a second signal kills at once what heeds no first one" {
    task a - - 'sh -c "trap \"\" TERM; echo \$\$ >pid; while :; do sleep 0.1; done"' >tasks.rec
    signal_twice 0.4 --grace 20s
    grep '^attempt.a.1.*SIGKILL' log | awk '{ exit !($5 < 10) }'
}

# timeout(1) sends two signals, one to its child and one to the process group.
@test "two signals at once are one: a task has its grace time" {
    task a - - 'sh -c "trap \"sleep 0.1; echo kept >kept; exit\" TERM; echo \$\$ >pid; while :; do sleep 0.01; done"' >tasks.rec
    signal_twice 0.02
    [ -s kept ]
}

# The task ends within its timeout, while runtasks is stopped.
@test "a task that has ended is not late" {
    task a - - 'sh -c "echo >begun; sleep 0.3"' | sed 's/inf/1/' >tasks.rec
    runtasks tasks.rec >out &
    until [ -e begun ]; do sleep 0.01; done
    kill -STOP $!
    sleep 1.05
    kill -CONT $!
    wait $!
    grep -q '^done.a' out
}

@test "a file that is no log is left alone, and so is one that has other lines" {
    task a - - true >tasks.rec
    refused() { # status, message
        cp log before
        status_is "$1" runtasks --resume log tasks.rec
        grep -q "^runtasks: log:.*$2" err && cmp log before
    }
    printf 'my notes' >log && refused 3 'this file is not the log of a run'
    printf 'my notes\n' >log && refused 3 'this file is not the log of a run'
    printf 'task\ta\tinf\t-\t-\ttrue\nmy notes' >log && refused 3 'this file is not the log of a run'
    printf 'task\ta\tinf\t-\t-\t"true\n' >log && refused 3 'quote'
    printf 'attempt\ta\t1\t0\n' >log && refused 3 'attempt'
    printf 'my notes' >log && status_is 3 runtasks --log log tasks.rec && [ "$(cat log)" = 'my notes' ]
    mkdir folder && status_is 4 runtasks --resume folder tasks.rec
    grep -qx 'runtasks: folder: Is a directory' err
    status_is 4 runtasks --resume /dev/null tasks.rec
    grep -qx 'runtasks: /dev/null: cannot resume from this log: it must be a regular file' err
    # a log with comments, an attempt of a task that is not in the list, and a line that was cut
    printf '# mine\nattempt\ta\t1\t0\t1\t0\nattempt\tz\t1\t0\t1\t0\nmark\n' >log
    status_is 0 runtasks --resume log tasks.rec
    [ "$(grep -c '^done.a' out)" = 1 ]
    printf 'att' >log && status_is 0 runtasks --resume log tasks.rec
    [ "$(cut -f 1,2 log | tail -n 3)" = $'task\ta\nprocess\ta\nattempt\ta' ]
}

# The files that the interrupted task left in the folder are neither removed nor taken as complete: the task that
# reads the folder runs after the new attempt.
@test "an interrupted task that writes a folder is run again in it" {
    { task a - d/,d2 'sh -c "echo new >d/x"'
        task b d/ y 'cat d/x' stdout=y; } >tasks.rec
    head -n 1 tasks.rec >log
    mkdir d d2 && echo half >d/x && echo kept >d/other
    status_is 0 runtasks --resume log tasks.rec
    [ "$(cat y)" = new ]
    [ "$(cat d/other)" = kept ]
    [ -d d2 ]
}
