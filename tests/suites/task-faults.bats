# Faults inside of runtasks, and of what reads tasks: as in faults.bats.

# shellcheck source=tests/suites/programs.bash
source "$ROOT/tests/suites/programs.bash"
setup_file() {
    export FAULT_STEP=${FAULT_STEP:-2} PATH=$BUILD/tests/loaded/bin:$PATH
    cd "$BATS_FILE_TMPDIR" && make_programs && gzip -k graph.rec || return
    export ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0
}
setup() { trap - DEBUG; cd "$BATS_FILE_TMPDIR" || return 1; }

# Tasks with all fields and options, most of which fail, and the resumption of a log in which all tasks have
# ended. LD_PRELOAD is empty in the tasks: only runtasks itself shall have faults.
@test "tasks that fail, and a run that goes on, without memory" {
    local no=env=LD_PRELOAD=,A=%2C
    { printf 'task\ta\tinf\t-\tp/x,@s\ttrue\tstdout=x\t%s\n' $no
        printf 'task\tb\tinf\tx\ty\tfalse\tstdin=@a.stdout\tcwd=.\tretries=1\t%s\n' $no
        printf 'task\tc\t9\ty\tz\ttrue\tstdin=@b.stderr\tstderr=e\t%s\nfence\tf\n' $no
        printf 'task\td\t9\tp/,@s\tx\tno-such-command\tcost=1\tmemory=1\tcores=2\t%s\n' $no
        printf 'task\te\t9\t@b.stdout\tq/\ttrue\tstdin=@a.stdout\tok=any\t%s\n' $no; } >rich.rec
    rich() { faulty memory runtasks -q --brief -j 2 --backoff 0 --logs rich -o /dev/null --log rich.log rich.rec; }
    mkdir rich
    rich
    [ "$calls" -ge 40 ]
    runtasks --log done.log tasks.rec >/dev/null
    faulty "memory EIO" runtasks --resume done.log tasks.rec
    # ten tasks wait for ten others. All have ended, so each run adds one line to the log, and no attempts.
    awk -v no=$no 'BEGIN { OFS = "\t"
        for (i = 0; i < 10; i++) print "task", "w" i, "inf", "-", "m/" i, "touch m/" i, no
        for (i = 0; i < 10; i++) print "task", "r" i, "inf", "m/", "-", "true", no }' >many.rec
    mkdir m
    runtasks -q --log many.log many.rec >/dev/null
    faulty memory runtasks -q --brief -o /dev/null --resume many.log many.rec
    [ "$calls" -ge 40 ]
    for form in --dot --makefile --check ''; do faulty memory task2graph $form rich.rec || return 1; done
}

# Calls: results that other calls read, a worker that ends, a worker that writes nonsense, and output.
make_calls() {
    mkdir -p calls && cat >calls/worker <<'WORKER'
#!/bin/bash
say() { printf 'end\t%s\t0\tresult=%s\tuser=1\tstdout=o\n' "$id" "$1" >&"$RAMPIPE_WORKER"; }
while read -r -u "$RAMPIPE_WORKER" _ id text; do eval "$text"; done
WORKER
    chmod +x calls/worker
    { printf 'task\ta\tinf\t-\tp\t%s\tcall=say x; echo hello\t%s\n' calls/worker env=LD_PRELOAD=
        printf 'task\tb\tinf\t@a.result\t-\t%s\tcall=exit 3\t%s\n' calls/worker env=LD_PRELOAD=
        printf 'task\tc\tinf\t@b.result\t-\t%s\tcall=say y\t%s\n' calls/worker env=LD_PRELOAD=
        printf 'task\td\tinf\t@a.result\t-\t%s\tcall=echo no >&$RAMPIPE_WORKER\t%s\n' calls/worker env=LD_PRELOAD=
        printf 'task\te\tinf\t@a.result\t-\t%s\tcall=say z\t%s\tcwd=.\n' calls/worker env=LD_PRELOAD=; } >calls.rec
}

@test "calls without memory" {
    make_calls
    faulty "memory memory+" runtasks -q --brief --no-check-outputs -j 1 --grace 1 --logs calls/logs -o /dev/null --log calls.log calls.rec
    [ "$calls" -ge 40 ]
    grep -v $'^task\t[bcd]' calls.rec >good.rec
    runtasks --no-check-outputs --log called.log good.rec >/dev/null
    faulty "memory EIO" runtasks -q --no-check-outputs -o /dev/null --resume called.log good.rec
}

# A client connects again and again. It gets all results, or an error record, or a stream without its end.
@test "a service without memory" {
    make_calls
    cat >come.py <<'PYTHON'
import os, socket, sys, time
send = b"#rampipe\t1\nclient\tc\n" + open("calls.rec", "rb").read() + b"fence\tf\n#end\n"
while not os.path.exists("enough"):
    told, client = b"", socket.socket(socket.AF_UNIX)
    try:
        client.connect("socket")
        client.sendall(send)
        while data := client.recv(1 << 16):
            told += data
    except OSError:
        pass
    client.close()
    if told.endswith(b"\n#end\n"):
        all_done = all(b"\ndone\t%s\t" % name in told for name in (b"a", b"e"))
        print("whole" if all_done and told.count(b"\nblock\t") == 3 else "WRONG: %s" % told, flush=True)
    elif told:
        print("told" if b"\nerror\t" in told else "cut", flush=True)
    time.sleep(0.001)
PYTHON
    served() { # KINDS: what clients have been told stands in came
        rm -f enough
        python3 -S come.py >came 3>&- &
        faulty "$1" runtasks -q --no-check-outputs -j 1 --grace 1 --listen socket --logs service --log service.log ||
            { touch enough; return 1; }
        touch enough
        wait $!
        sort came | uniq -c
        grep -q whole came && [ "$(grep -vc "^whole\$\|$2" came)" = 0 ]
    }
    served "memory memory+" '^told$\|^cut$'
    grep -q told came
    served EIO '^told$\|^cut$'
    served "EINTR EAGAIN short" '^nothing else'
}

# Each task reads files and overwrites files that another task has read. So the files would differ at the end
# if a task ran again too late, or not at all, or beside a worker of the killed run.
@test "a run that is killed at any of its calls, and resumed, gives what it would have given" {
    local task='task\t%s\tinf\t%s\t%s\t' call="$ROOT/tests/tools/worker.sh\\tcall=" n killed=0
    { printf "$task${call}echo 1 >x\n" a - x
        printf "$task${call}cat x x >y\n" b x y
        printf "${task}sh -c \"cat y y >x\"\n" c y x
        printf "$task${call}cat x >z; cat y >>z\n" d x,y z
        printf "${task}sh -c \"cat z z >y\"\n" e z y
        printf "$task${call}cat y x >z\n" f x,y z; } >chain.rec
    mkdir chain && cd chain
    runtasks -q -j 2 ../chain.rec >/dev/null
    cat x y z >../right && grep -q 1 ../right
    for ((n = 1; ; n += FAULT_STEP == 1 ? 1 : 1 + n / 10)); do
        rm -f ./*
        FAULTS=KILL FAULT_AT=$n LD_PRELOAD=$BUILD/tests/fault/shim.so runtasks -q -j 2 --log log ../chain.rec >out 2>&1 && break
        [ $? = 137 ] || { echo "call $n:" && cat out && return 1; }
        killed=$((killed + 1))
        if [ -s log ]; then how=--resume; else how=--log; fi # it was killed before it had a log
        runtasks -q --grace 5 $how log ../chain.rec >out 2>&1 || { echo "call $n:" && cat out && return 1; }
        cat x y z | cmp - ../right || { echo "call $n:" && cat log && return 1; }
    done
    [ "$killed" -ge 20 ]
}

@test "clients of a service that has jobs of Slurm" {
    [ -d slurm ] || make_slurm
    mkdir service-slurm && cd service-slurm
    PATH=$PWD/../slurm:$PATH python3 -S "$ROOT/tests/tools/service.py" slurm_jobs 3>&-
}

# Stand-ins for the commands of Slurm: sbatch writes the result of the job at once.
make_slurm() {
    mkdir -p slurm
    cat >slurm/sbatch <<'SBATCH'
#!/bin/sh
for word; do case $word in --output=*.rec) out=${word#--output=} ;; --job-name=*) task=${word#*=} ;; esac; done
n=${out##*/} n=${n%.rec} status=0
[ $task = b ] && status=1
{ printf 'attempt\t%s\t1\t0.1\t0.2\t0\n' $task
    printf 'attempt\t%s\t2\t0.3\t0.4\t%s\tuser=0.1\tsystem=0\tmemory=1\thost=h\tbegan=1\n' $task $status
    [ $status = 1 ] || printf 'done\t%s\ttasks\t0\t0.3\t0.4\n' $task; } >$out
echo "$((n + 1));cluster"
SBATCH
    printf '#!/bin/sh\nsed -n "s/^task\t/x/p" >/dev/null\nprintf "#rampipe\\t1\\n#end\\n"\n' >slurm/srun
    printf '#!/bin/sh\n' >slurm/scancel
    printf '#!/bin/sh\n' >slurm/squeue
    chmod +x slurm/*
}

@test "tasks in Slurm without memory" {
    make_slurm
    { printf 'task\ta\t9\t-\tx,z\ttrue\tmemory=1\tcwd=.\tstdout=o\tenv=A=1\n'
        printf 'task\tb\tinf\tx\ty\tfalse\tstdin=@a.stdout\n'
        printf 'task\tc\t9\ty\tw\ttrue\nfence\tf\ntask\td\tinf\t-\tz,x\ttrue\n'
        printf 'task\te\tinf\tz\t-\ttrue\ntask\tg\tinf\t-\tz\ttrue\n'; } >slurm.rec
    PATH=$PWD/slurm:$PATH faulty memory runtasks -q --engine slurm-jobs --slurm-options '--time=9 -x "a b"' \
        --retries 2 --logs slurm.logs -o /dev/null --log slurm.log slurm.rec
    [ "$calls" -ge 60 ]
    PATH=$PWD/slurm:$PATH faulty memory runtasks -q --engine slurm -j 1 --memory 1 slurm.rec
    head -n 6 "$ROOT/tests/cases/timeline/attempts/cmd" | bash # makes in.rec
    faulty memory timeline in.rec
    faulty memory timeline --html in.rec
}

@test "what Slurm's commands must not say" {
    [ -d slurm ] || make_slurm
    printf 'task\ta\tinf\t-\tx\ttrue\n' >one.rec
    jobs() { PATH=$PWD/slurm:$PATH status_is "$1" runtasks -q --engine slurm-jobs one.rec; }
    cp slurm/sbatch right
    printf '#!/bin/sh\necho hello\n' >slurm/sbatch
    jobs 4
    grep -qx "runtasks: sbatch: must print the number of the job, got 'hello'" err
    for wrong in 's/t0.1/tx/' 's/t0.2/tx/' 's/user=0.1/user=x/' 's/system=0/system=x/' 's/memory=1/memory=x/' \
        's/began=1/began=x/' 's/t2/tx/'; do
        sed "$wrong" right >slurm/sbatch
        cmp -s right slurm/sbatch && return 1
        jobs 3
    done
    # the job leaves no result, and Slurm does not know it, or says that it has failed
    printf '#!/bin/sh\necho noise; echo 7\n' >slurm/sbatch
    jobs 1
    grep -q 'status=missing' out
    printf '#!/bin/sh\necho 7 FAILED; echo 8 RUNNING\n' >slurm/squeue
    jobs 1
    grep -q 'status=FAILED' out
    cp right slurm/sbatch
}

# All fields, with texts so long that each needs an allocation of its own.
@test "templates and task files without memory" {
    local n long=x
    for ((n = 0; n < 9; n++)); do long=$long$long; done
    cat >long.yaml <<YAML
parameters: {p: [1, $long$long]}
tasks:
- name: a-{p}
  executables: [{target: t, arguments: [$long, "it's {p}"], cwd: "{p},$long", env: {A: "{p}$long", B: "$long"}}]
  reads: {files: ["r{p}"], keys: ["k{p}"]}
  writes: ["w{p}", "{p}/"]
  stdin: "i{p}$long"
  stdout: "o{p}$long$long"
  stderr: "e{p}$long$long$long"
  timeout: {days: 1, seconds: "2"}
  cores: 2
  memory: 1e9
  cost: 0.5
  retries: 2
  ok: any
- name: j-{p}
  type: job
  executables: [{target: t, ranks: 2, cwd: "$long"}, {target: u, env: {A: "{p}"}, arguments: ["{p}$long"]}]
YAML
    faulty memory task2graph --template long.yaml --dot
    [ "$calls" -ge 50 ]
    { printf 'a%s: b%s ../c d/ -> e%s ../../f/ | true %s\n' $long $long$long $long$long$long $long$long
        printf 'g: @%s ../.. -> d/%s\n  cwd %s%s\n  run %s\n  stdout %s%s%s\n' $long $long $long $long $long $long $long $long
        printf 'h: ../../f/x d/ -> / ../ d/\n  run true\n---\ni: / -> d/%s/y | true\n' $long; } >long.tasks
    for form in --dot --makefile --check ''; do faulty memory task2graph $form long.tasks || return 1; done
}
