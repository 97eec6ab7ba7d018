# What goes wrong outside: full disks, closed pipes, cut and damaged input, for every tool.

# A good input for each tool, made once.
setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    cp "$ROOT/traces/alexnet.txt" profile.txt
    pd2graph --no-job profile.txt >nojob.rec
    pd2graph profile.txt >graph.rec
    partition --degree 2 graph.rec >parts.rec
    ramp-alloc --shape 2x2x2 parts.rec >alloc.rec
    sim alloc.rec >done.rec
    cp "$ROOT/traces/spot.rec" .
    tracegen fit --stats spot.rec >model.rec
    sim --model elastic spot.rec >elastic.rec
    cat >tools <<'T'
pd2graph profile.txt
partition graph.rec
ramp-alloc parts.rec
sim alloc.rec
metrics done.rec
reccheck alloc.rec
pdgen vgg16
tracegen nojob.rec jobs
tracegen spot.rec fit
tracegen model.rec preempt
sim spot.rec --model=elastic
metrics elastic.rec
T
    echo "sim spot.rec --model=redundant --profile=$ROOT/traces/redundant/bert.tsv" >>tools
}
setup() { cd "$BATS_FILE_TMPDIR"; }

# Calls `f TOOL INPUT SUBCOMMAND` for each tool; the filters alone read records.
each() { while read -r tool input sub; do $1 || { echo "$tool failed"; return 1; }; done <tools; }
each_filter() {
    grep -vE '^(pd2graph|pdgen) ' tools >filters
    while read -r tool input sub; do $1 || { echo "$tool failed"; return 1; }; done <filters
}

status_is() { # expected status, command...
    local want=$1 got=0
    shift
    "$@" >out 2>err </dev/null || got=$?
    [ "$got" = "$want" ] || { echo "status $got, expected $want: $*"; cat err; return 1; }
}
one_line() { [ "$(wc -l <err)" = 1 ] || { cat err; return 1; }; }

@test "a full disk is exit 4, with one line" {
    f() {
        status_is 4 bash -c "$tool $sub $input >/dev/full" && one_line &&
            grep -q "^$tool: <stdout>: No space left" err
    }
    each f
}

@test "a full disk behind -o, plain and gzip" {
    ln -sf /dev/full full && ln -sf /dev/full full.gz
    f() {
        status_is 4 $tool $sub $input -o full && one_line &&
            status_is 4 $tool $sub $input -o full.gz && one_line
    }
    each f
}

@test "--help to a full disk is exit 4" {
    f() { status_is 4 bash -c "$tool --help >/dev/full"; }
    each f
}

@test "a reader that goes away ends a tool quietly" {
    f() {
        bash -c "$tool $sub $input | head -n 1 >/dev/null; s=\${PIPESTATUS[0]}
                 [ \$s = 0 ] || [ \$s = 141 ]" 2>err && [ ! -s err ]
    }
    each f
}

@test "a cut stream is exit 4 at every length, never a plausible result" {
    f() {
        local size step
        size=$(stat -c %s "$input") && step=$((size / 60 + 1))
        for ((n = 1; n < size - 1; n += n < 15 ? 1 : step)); do
            head -c $n "$input" >cut
            status_is 4 $tool $sub cut && one_line && grep -q "cut" err || return 1
            ! grep -q '^#end' out || { echo "wrote a trailer"; return 1; }
        done
    }
    each_filter f
}

@test "a cut gzip file is exit 4" {
    f() {
        gzip -c "$input" >whole.gz && head -c $(($(stat -c %s whole.gz) / 2)) whole.gz >cut.gz
        status_is 0 $tool $sub whole.gz && status_is 4 $tool $sub cut.gz && one_line &&
            grep -q "cut.gz: the gzip data are cut" err
    }
    each_filter f
    tool=pd2graph input=profile.txt sub=
    f
}

@test "damaged gzip data are exit 4" {
    f() {
        gzip -c "$input" >bad.gz
        printf 'XXXXXXXXXXXXXXXX' | dd of=bad.gz bs=1 seek=200 conv=notrunc status=none
        status_is 4 $tool $sub bad.gz && one_line
    }
    each_filter f
}

@test "garbage is exit 3 with file and line" {
    head -c 3000 /dev/zero | tr '\0' '\377' >ones
    printf 'graph\tg\tm\n\001\002\003 what\n' >control
    printf 'This is no record.\n' >prose
    f() {
        for garbage in ones control prose; do
            status_is 3 bash -c "$tool $sub <$garbage" && one_line &&
                grep -qE "^$tool: <stdin>:[0-9]+: " err || return 1
        done
    }
    each_filter f
    tool=pd2graph sub=
    f
}

@test "a later version of the format is refused by name" {
    printf '#rampipe\t2\n#end\n' >later
    f() { status_is 3 $tool $sub later && one_line && grep -q 'later:1:.*version 2' err; }
    each_filter f
}

@test "a missing file and a folder are exit 4" {
    f() { status_is 4 $tool $sub nowhere && one_line && status_is 4 $tool $sub / && one_line; }
    each_filter f
    tool=pd2graph sub=
    f
}

@test "an unknown option is exit 2, --help and --version exit 0" {
    f() {
        status_is 2 $tool --no-such-option && status_is 0 $tool --help && [ -s out ] &&
            status_is 0 $tool --version && grep -q "^$tool 0" out
    }
    each f
}

@test "a full disk in the middle of a pipe does not become a result" {
    status_is 4 bash -c "set -o pipefail; pd2graph profile.txt | partition -o full;
        exit \$?"
    : >part.rec && bash -c "head -c 5000 parts.rec | ramp-alloc | sim | metrics" >out 2>err && return 1
    [ ! -s out ] && grep -q 'metrics: <stdin>: the stream is cut' err
}
