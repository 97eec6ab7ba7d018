# Faults inside of the tools: no memory, and calls that fail, are interrupted or do only a part of their work.
# tests/fault/shim.c runs a program once for each call that shall fail, and judges each run. Here every tool
# has short runs, and not each call fails: the steps from call to call grow fast, in CI more slowly. With FAULT_STEP=1
# every call fails in turn; of calls for memory that one stack makes, two. `make check-faults` does this for every case.

# shellcheck source=tests/suites/programs.bash
source "$ROOT/tests/suites/programs.bash"
setup_file() {
    export FAULT_STEP=${FAULT_STEP:-2} PATH=$BUILD/tests/loaded/bin:$PATH
    cd "$BATS_FILE_TMPDIR" && make_programs && gzip -k graph.rec || return
    export ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0
}
setup() { trap - DEBUG; cd "$BATS_FILE_TMPDIR" || return 1; }

@test "memory that is not there is exit 4, whichever call asks for it" {
    f() { faulty memory $program $options $input && [ "$calls" -ge 10 ]; }
    each f
}

@test "memory that runs out for good is exit 4" {
    f() { FAULT_STEP=3 faulty memory+ $program $options $input; }
    each f
    FAULT_STEP=3 faulty "memory memory+" partition graph.rec.gz -o out.gz
}

@test "--help and --version without memory" {
    f() { faulty "memory memory+" $program --help; }
    each f
    faulty "memory memory+" sim --version
}

@test "a call that fails is exit 4, whichever it is" {
    f() { faulty "EIO ENOSPC EINTR" $program $options $input; }
    each f
    faulty "EIO ENOSPC EINTR" runtasks --brief -j 1 --log /dev/null tasks.rec
    faulty "EIO ENOSPC EINTR" partition graph.rec.gz -o out.gz
}

@test "a limit on the size of files is exit 4, with one line" {
    limited() { # command: its messages in err, through a pipe, which has no limit
        status_is 4 bash -c "(ulimit -f 0; $* >limited) 2>&1 | cat; exit \${PIPESTATUS[0]}" &&
            mv out err && one_line && grep -q "^$program: <stdout>: " err
    }
    f() { limited $program $options $input && limited $program --help; }
    each f
}

@test "messages that cannot be written change nothing else" {
    f() {
        status_is 2 bash -c "$program --no-such-option 2>&-" && [ ! -s out ] &&
            status_is 2 bash -c "$program --no-such-option 2>/dev/full" && [ ! -s out ] &&
            status_is 0 bash -c "$program -v $options $input 2>&-" && mv out silent &&
            status_is 0 $program -v $options $input && cmp silent out
    }
    each f
    g() { status_is 4 bash -c "$program $options nowhere 2>&-" && ! grep -q "No such" out; }
    each_filter g
}

@test "what is interrupted, would block or does a part is done all the same" {
    f() { faulty "EAGAIN short storm" $program $options $input; }
    each f
    faulty "EAGAIN short storm" runtasks --brief -j 1 --log /dev/null tasks.rec
    faulty "EAGAIN short storm" partition graph.rec.gz
}

@test "descriptors that do not block are waited for" {
    cat >wait.py <<'PYTHON'
import os, subprocess, sys, threading, time
read_in, write_in = os.pipe()
read_out, write_out = os.pipe()
os.set_blocking(read_in, False)
os.set_blocking(write_out, False)
tool = subprocess.Popen(sys.argv[2:], stdin=read_in, stdout=write_out)
os.close(read_in)
os.close(write_out)
def feed():
    with open(sys.argv[1], "rb") as data, open(write_in, "wb") as pipe:
        pipe.write(data.read(5000))
        pipe.flush()
        time.sleep(0.1)  # it finds nothing to read, and later no room to write
        pipe.write(data.read())
threading.Thread(target=feed).start()
time.sleep(0.2)
sys.stdout.buffer.write(open(read_out, "rb").read())
sys.exit(tool.wait())
PYTHON
    partition --degree 16 graph.rec >right
    [ "$(wc -c <right)" -gt 100000 ]
    python3 wait.py graph.rec partition --degree 16 - >got
    cmp <(grep -v '^#@' got) <(grep -v '^#@' right)
}

@test "-o is the old file or the whole new one, whatever fails, and nothing else is left" {
    in_folder() { # kinds, name of the result, command...
        local kinds=$1 name=$2
        shift 2
        rm -rf folder && mkdir folder && cp graph.rec "folder/$name" &&
            FAULT_FOLDER=folder faulty "$kinds" "$@" -o "folder/$name"
    }
    f() { in_folder "EIO INT" out $program $options $input; }
    each f
    in_folder "EIO EINTR INT TERM" out.gz partition graph.rec
    in_folder "memory memory+ EIO INT TERM" out partition folder/out
}
