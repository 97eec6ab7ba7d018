# One command case, tests/cases/TOOL/NAME; sourced by the .bats files that tests/run makes.
#
#     cmd          a bash script, run in a copy of the directory; standard input: empty
#     in.*         whatever it reads
#     expout       what standard output must be (absent: anything)
#     experr       what standard error must be (absent: empty, if `exit` is 0)
#     exit         the status it must end with (absent: 0)
#     needs-shared the case reads $ROOT/../shared; skipped where that is not

# Shows a difference readably: TABs visible, not endless.
show_diff() {
    diff -a -u --label "expected $3" --label "got $3" "$1" "$2" | sed 's/\t/<TAB>/g' |
        head -n 40
}

run_case() {
    local source=$ROOT/tests/cases/$1 dir=$BUILD/tests/cases/$1 want=0 status=0 bad=0
    if [ -e "$source/needs-shared" ] && ! [ -d "$ROOT/../shared" ]; then
        skip "../shared is not here"
    fi
    mkdir -p "${dir%/*}"
    rm -rf "$dir"
    cp -r "$source" "$dir"
    cd "$dir" || return 1
    [ -e exit ] && want=$(cat exit)
    timeout "${CASE_SECONDS:-120}" bash ./cmd >"$dir.stdout" 2>"$dir.stderr" \
        </dev/null 3>&- || status=$?
    if [ "$status" != "$want" ]; then
        echo "exit status: expected $want, got $status"
        bad=1
    fi
    if [ -e expout ] && ! cmp -s expout "$dir.stdout"; then
        show_diff expout "$dir.stdout" stdout
        bad=1
    fi
    if [ -e experr ]; then
        cmp -s experr "$dir.stderr" || {
            show_diff experr "$dir.stderr" stderr
            bad=1
        }
    elif [ "$want" = 0 ] && [ -s "$dir.stderr" ]; then
        echo "standard error must be empty, got:"
        head -n 20 "$dir.stderr"
        bad=1
    elif [ "$bad" = 1 ]; then
        head -n 20 "$dir.stderr"
    fi
    if [ "$bad" = 1 ]; then
        echo "in $dir, command:"
        head -n 20 cmd
        return 1
    fi
}
