# Faults outside of the tools: full disks, closed pipes, cut and damaged input, for every tool.

source "$ROOT/tests/suites/programs.bash"
setup_file() { make_programs; }
setup() { trap - DEBUG; cd "$BATS_FILE_TMPDIR" || return 1; }

# Tools are the programs in build/bin; modes are tools/TOOL-MODE.ggo.
@test "every tool and mode stands in the list of programs, and has --help" {
    for bin in "$BUILD"/bin/*; do
        tool=$(basename "$bin")
        $tool --help | grep -q "^Usage: $tool"
        $tool --version | grep -q "^$tool [0-9]"
        ! $tool --help | grep '^Usage: .*\[FILE' | grep -qv ' MODE ' ||
            $tool --help | grep -q 'standard input' || { echo "$tool: standard input?"; return 1; }
        [ "$tool" != rampipe ] || continue # reads no records
        modes=$(cd "$ROOT/tools" && ls "$tool"-*.ggo 2>/dev/null || true)
        status_is 2 $tool && only_modes=$modes || only_modes=
        [ -n "$only_modes" ] || cut -f 1 programs | grep -qx -- "$tool" ||
            { echo "$tool has no line in programs"; return 1; }
        for ggo in $modes; do
            mode=${ggo%.ggo} mode=${mode#"$tool"-}
            $tool --help | grep -q "^  $tool $mode "
            $tool $mode --help | grep -q "^Usage: $tool $mode"
            # what reads files says that it reads standard input, too
            $tool $mode --help | grep -q 'standard input' || { echo "$tool $mode: standard input?"; return 1; }
            $tool $mode --version | grep -q "^$tool $mode [0-9]"
            cut -f 1 programs | grep -qx -- "$tool $mode" ||
                { echo "$tool $mode has no line in programs"; return 1; }
        done
    done
}

@test "a full disk is exit 4, with one line" {
    f() { to=/dev/full status_is 4 $program $options $input && one_line "$program: <stdout>: No space left*"; }
    each f
}

@test "a full disk behind -o, plain and gzip" {
    ln -sf /dev/full full && ln -sf /dev/full full.gz
    f() {
        status_is 4 $program $options $input -o full && one_line &&
            status_is 4 $program $options $input -o full.gz && one_line
    }
    each f
}

@test "--help to a full disk is exit 4" {
    f() { to=/dev/full status_is 4 $program --help; }
    each f
}

@test "a reader that goes away ends a tool quietly" {
    f() {
        bash -c "$program $options $input | head -n 1 >/dev/null; s=\${PIPESTATUS[0]}
                 [ \$s = 0 ] || [ \$s = 141 ]" 2>err && [ ! -s err ]
    }
    each f
}

@test "a cut stream is exit 4 at every length, never a plausible result" {
    f() {
        local size head=4 parts=4
        [ -z "${EVERY-}" ] || head=1 parts=25
        size=$(stat -c %s "$input")
        for ((n = 1; n < size - 1; n += n < 13 ? head : size / parts + 1)); do
            head -c $n "$input" >cut
            status_is 4 $program $options cut && one_line '*cut*' || return 1
            [ ! -s out ] || ! grep -q '^#end' out || { echo "wrote a trailer"; return 1; }
        done
    }
    each_filter f
}

@test "a cut gzip file is exit 4" {
    f() {
        gzip -c "$input" >whole.gz && head -c $(($(stat -c %s whole.gz) / 2)) whole.gz >cut.gz
        status_is 0 $program $options whole.gz && status_is 4 $program $options cut.gz &&
            one_line '*cut.gz: the gzip data are cut*'
    }
    each_filter f
    program=pd2graph input=profile.txt options=
    f
}

@test "damaged gzip data are exit 4" {
    f() {
        gzip -c "$input" >bad.gz
        printf 'XXXXXXXXXXXXXXXX' | dd of=bad.gz bs=1 seek=200 conv=notrunc status=none
        status_is 4 $program $options bad.gz && one_line
    }
    each_filter f
}

@test "garbage is exit 3 with file and line" {
    head -c 3000 /dev/zero | tr '\0' '\377' >ones
    printf 'graph\tg\tm\n\001\002\003 what\n' >control
    printf 'This is no record.\n' >prose
    f() {
        for garbage in ones control prose; do
            from=$garbage status_is 3 $program $options && one_line "$program: <stdin>:[0-9]*: *" || return 1
        done
    }
    each_filter f
    program=pd2graph options=
    f
}

@test "a later version of the format is refused by name" {
    printf '#rampipe\t2\n#end\n' >later
    f() { status_is 3 $program $options later && one_line '*later:1:*version 2*'; }
    each_filter f
}

@test "a missing file and a folder are exit 4" {
    f() { status_is 4 $program $options nowhere && one_line && status_is 4 $program $options / && one_line; }
    each_filter f
    program=pd2graph options=
    f
}

@test "an unknown option is exit 2, --help and --version exit 0" {
    f() {
        status_is 2 $program --no-such-option && status_is 0 $program --help && [ -s out ] &&
            status_is 0 $program --version && [ -s out ]
    }
    each f
}

@test "a full disk in the middle of a pipe does not become a result" {
    status_is 4 bash -c "set -o pipefail; pd2graph profile.txt | partition -o full;
        exit \$?"
    : >part.rec && bash -c "head -c 5000 parts.rec | ramp-alloc | sim | metrics" >out 2>err && return 1
    [ ! -s out ] && grep -q 'metrics: <stdin>: the stream is cut' err
}
