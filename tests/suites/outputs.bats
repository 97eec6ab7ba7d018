# Whole or nothing: the file of -o is the old one or the complete new one, and an incomplete input is never
# taken for a complete one.

source "$ROOT/tests/suites/programs.bash"
setup_file() { make_programs; }
setup() { trap - DEBUG; cd "$BATS_FILE_TMPDIR" && rm -rf at && mkdir at; }

no_litter() {
    local all
    all=$(ls -A at)
    [ "$all" = "$1" ] || { echo "in the folder: $all"; return 1; }
}
is_old() { echo old | cmp - at/result; }

@test "with -o, the old file stands if anything fails, a new one is not begun" {
    f() {
        head -c 100 "$input" >cut && echo old >at/result || return 1
        status_is 4 $program $options -o at/result cut && is_old && no_litter result &&
            status_is 4 $program $options -o at/result nowhere && is_old && no_litter result &&
            rm at/result && status_is 4 $program $options -o at/result cut && no_litter ""
    }
    each_filter f
}

@test "with -o, a full disk leaves the old file" {
    f() { # in blocks of 512 bytes: enough to begin, not for the whole
        echo old >at/result
        $program $options "$input" >whole || return 1
        [ "$(stat -c %s whole)" -gt 1536 ] || return 0
        status_is 4 bash -c "ulimit -f 1; exec $program $options $input -o at/result" &&
            one_line && grep -q "^$program: at/result: File too large" err && is_old &&
            no_litter result
    }
    each f
}

@test "with -o, the input may be the output" {
    f() {
        cp "$input" at/file && cd at &&
            $program $options file -o whole && $program $options file -o file &&
            cmp file whole && cd ..
    }
    sed -E "s,--(profile|template|costs|compare)=,&$PWD/,g" programs | grep -v '^pdgen' >inputs
    each f inputs
}

@test "with -o, a signal leaves the old file and nothing else" {
    mkfifo at/fifo && echo old >at/result
    for signal in INT TERM HUP PIPE; do
        env --default-signal partition -o at/result at/fifo &
        pid=$!
        exec 9>at/fifo
        cat graph.rec >&9
        for ((i = 0; i < 100; i++)); do
            compgen -G 'at/.rampipe-*' >found && break
            sleep 0.02
        done
        [ "$i" -lt 100 ]
        kill -$signal $pid
        status=0
        wait $pid || status=$?
        exec 9>&-
        [ $status = $((128 + $(kill -l $signal))) ]
        is_old
        rm at/fifo
        no_litter result
        mkfifo at/fifo
    done
}

@test "with -o, what a killed writer left goes with the next writer of that file, and nothing else" {
    start() { # file, number
        mkfifo fifo$2
        partition -o at/$1 fifo$2 3>&- &
        pids[$2]=$!
        for ((i = 0; i < 500 && $(ls -A at | wc -l) < $2; i++)); do sleep 0.01; done
        [ "$(ls -A at | wc -l)" = $2 ] || { echo "no temporary file of writer $2"; return 1; }
    }
    rm -f fifo?
    local pids=()
    start result 1
    start result 2 # at the same time
    start other 3
    exec 9<>fifo2
    kill -9 ${pids[1]} ${pids[3]}
    wait ${pids[1]} ${pids[3]} || true
    [ "$(ls -A at | wc -l)" = 3 ] # they could not do a thing
    pd2graph profile.txt -o at/result
    cmp at/result graph.rec
    [ "$(ls -A at | wc -l)" = 3 ] # the result, what the living one writes, what is left of other
    pd2graph profile.txt -o at/other
    [ "$(find at -mindepth 1 ! -name '.rampipe*' -printf '%f\n' | sort)" = $'other\nresult' ]
    [ "$(ls -A at | wc -l)" = 3 ]
    cat graph.rec >fifo2
    exec 9>&-
    wait ${pids[2]} # the living one is not disturbed
    partition graph.rec | sed 's/ graph.rec$/ fifo2/' | cmp at/result -
    no_litter $'other\nresult'
}

@test "with -o, a link stays and leads to the new file, which has the old one's mode" {
    echo old >at/file && chmod 640 at/file && ln -s file at/link && ln -s nowhere at/new
    pd2graph profile.txt -o at/link && pd2graph profile.txt -o at/new
    [ -L at/link ]
    [ -L at/new ]
    [ "$(stat -c %a at/file)" = 640 ]
    cmp at/file graph.rec
    cmp at/nowhere graph.rec
}

@test "with -o, a FIFO is written directly, and /dev/stdout is standard output" {
    mkfifo at/fifo
    cat at/fifo >got &
    pd2graph profile.txt -o at/fifo && wait $!
    cmp got graph.rec
    [ -p at/fifo ]
    no_litter fifo
    { echo before && pd2graph profile.txt -o /dev/stdout; } >got
    { echo before && cat graph.rec; } | cmp - got
}

@test "no bytes at all are a cut stream; --partial accepts them" {
    f() {
        status_is 4 bash -c "$program $options </dev/null" && one_line && grep -q cut err &&
            { [ ! -s out ] || ! grep -q '^#end' out; } || return 1
        local got=0
        $program $options --partial </dev/null >out 2>err || got=$?
        [ $got != 4 ] && grep -q "warning: <stdin>: the stream is cut" err
    }
    each_filter f
    gzip -c </dev/null >none.gz
    status_is 4 metrics none.gz
    status_is 4 bash -c "no-such-tool 2>/dev/null | partition"
    status_is 4 bash -c "pd2graph --no-such-option profile.txt 2>/dev/null | partition"
}

@test "a stage shows its header before its input comes" {
    for program in partition ramp-alloc sim 'tracegen jobs'; do
        rm -f fifo && mkfifo fifo
        $program <fifo >head 2>/dev/null &
        exec 9>fifo
        for ((i = 0; i < 100; i++)); do
            [ -s head ] && break
            sleep 0.02
        done
        exec 9>&-
        wait $! || true
        [ "$(head -n 1 head)" = $'#rampipe\t1' ]
    done
}

@test "with descriptors 0, 1 or 2 closed no message gets into the output" {
    f() {
        $program $options "$input" >whole || return 1
        $program $options -v "$input" -o at/result 2>&- && cmp at/result whole &&
            rm at/result && # (a database is not replaced)
            $program $options -v "$input" -o at/result >&- 2>err && cmp at/result whole &&
            rm at/result && $program $options "$input" -o at/result <&- && cmp at/result whole &&
            status_is 4 bash -c "$program $options $input >&-" &&
            one_line && grep -q '<stdout>: Bad file descriptor' err
    }
    each f
    status_is 4 bash -c 'sim <&-'
    grep -q '<stdin>: Bad file descriptor' err
}
