# run_case TOOL/NAME: runs one folder of tests/cases and compares. See tests/run.

same() { # expected, got
    diff -u "$1" "$2" >difference || { head -n 40 difference; return 1; }
}

run_case() {
    local from=$ROOT/tests/cases/$1 at=$BUILD/tests/run/cases/$1 want=0 status=0 lines
    [ ! -e "$at" ] || rm -rf "$at"
    [ -e "${at%/*}" ] || mkdir -p "${at%/*}"
    cp -rT "$from" "$at"
    cd "$at" || return 1
    [ ! -e exit ] || want=$(cat exit)
    bash ./cmd >out 2>err </dev/null || status=$?
    # provenance names the version of each stage; what is expected does not
    mapfile -t lines <out
    [[ ${lines[*]} != *$'#@\t'* ]] || sed -i "s/^\(#@\t[^\t ]*\) $VERSION\t/\1 VERSION\t/" out
    if [ "$status" != "$want" ]; then
        echo "exit status $status, expected $want"
        head -n 20 err
        return 1
    fi
    [ ! -e expout ] || same expout out || return 1
    if [ -e experr ]; then
        same experr err
    elif [ "$want" = 0 ] && [ -s err ]; then
        echo "it succeeded, but said on standard error:"
        head -n 20 err
        return 1
    fi
}
