# The rules of the source tree: which room may include which, tables that do not compile if a row is
# incomplete, cases that people can read. See HACKING.md.

setup() { trap - DEBUG; cd "$BATS_TEST_TMPDIR" || return 1; }

house() { # a copy of the tree's sources, to be damaged
    at=$(mktemp -d) && cp -r "$ROOT/lib" "$ROOT/include" "$ROOT/tools" "$at/"
}
builds() { gcc -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror -I"$at/include" -fsyntax-only "$at/lib/$1"; }

@test "house: arrows among rooms go down, no header is needless, foreign libraries have one room" {
    run python3 "$ROOT/tests/tools/house/includes.py" "$ROOT"
    echo "$output"
    [ "$status" = 0 ] && [ -z "$output" ]
}

@test "house: the test of arrows finds what is planted" {
    house
    sed -i '0,/#include/s//#include "rampipe\/sim.h"\n#include/' "$at/lib/graph/graph.c"
    sed -i '0,/#include/s//#include <zlib.h>\n#include/' "$at/lib/csv/csv.c"
    sed -i '0,/#include/s//#include "rampipe\/random.h"\n#include/' "$at/lib/csv/csv.c"
    sed -i '0,/#include/s//#include "rampipe\/csv.h"\n#include/' "$at/lib/random/rng.c"
    mkdir "$at/lib/attic"
    python3 "$ROOT/tests/tools/house/includes.py" "$at" >found
    grep -q 'lib/graph/graph.c: an arrow from lib/graph up to lib/sim' found
    grep -q 'lib/graph/graph.c: needs nothing of rampipe/sim.h' found
    grep -q 'lib/csv/csv.c: an arrow from lib/csv along a floor to lib/random' found
    grep -q 'lib/csv/csv.c: <zlib.h> is for lib/record alone' found
    grep -q 'a circle: csv -> random -> csv' found
    grep -q 'lib/attic: a room without a floor' found
    rm -rf "$at"
}

needs_each_field() { # file of lib/, the type of the row at its end, the number of the row's fields
    house
    local file=$at/lib/$1 start before row i field
    start=$(grep -n "^const struct $2 " "$file" | cut -d: -f1)
    before=$(head -n $((start - 1)) "$file") row=$(tail -n "+$start" "$file" | tr -s ' \n' ' ')
    IFS=, read -ra field <<<"$(sed 's/^[^{]*{//; s/,* *};.*//' <<<"$row")"
    [ ${#field[@]} = "$3" ]
    for ((i = 0; i <= $3; i++)); do # the last round takes out none
        { echo "$before"
            echo "${row%%\{*}{"
            printf '%s,\n' "${field[@]:0:i}" "${field[@]:i+1}"
            echo '};'; } >"$file"
        run builds "$1"
        [ $((status == 0)) = $((i == $3)) ] || { echo "$1 without ${field[i]-none}: $output"; return 1; }
    done
    rm -rf "$at"
}

# Lines of a copy of the tree that have words of RAMP, outside its files and its rows of tables.
ramp_words() {
    (cd "$1" && find lib include tools -name '*.[ch]' -exec sed -i 's/ramp-alloc//g' {} + &&
        sed -i -e '/^REC_KIND_ROW(CLUSTER, ramp,/,/^$/d' -e '/"ramp, island, fat-tree/d' include/rampipe/record_table.h &&
        find lib include tools -name '*.[ch]' ! -name 'ramp*' ! -name net_ramp.h ! -name net_kind.h \
            ! -path lib/place/kinds.c -exec \
            grep -HniE '\<(ramp|racks?|c-r-s)\>|communication groups?|CxRxS|(net|place)_ramp' {} +)
}

@test "house: what is RAMP's alone stands in files of its name" {
    house
    run ramp_words "$at"
    echo "$output"
    [ -z "$output" ]
    for line in 'lib/sim/step.c:/* a rack */' 'lib/alloc/price.c:#include "rampipe/net_ramp.h"' \
        'tools/sim.c:"CxRxS"'; do
        house
        echo "${line#*:}" >>"$at/${line%%:*}"
        ramp_words "$at" >found
        grep -q "^${line%%:*}:" found
    done
}

@test "house: a family of results does not build without any one of what each family needs" {
    house
    for word in '"tasks", ' 'cases, ' 'keys, ' 'sums, ' 'quantities, ' 'figures, ' 'shown, ' ', take'; do
        sed "/METRICS_NEEDED/s/$word//" "$ROOT/lib/metrics/tasks.c" >"$at/lib/metrics/tasks.c"
        run cmp -s "$ROOT/lib/metrics/tasks.c" "$at/lib/metrics/tasks.c"
        [ "$status" = 1 ]
        run builds metrics/tasks.c
        [ "$status" != 0 ] || { echo "tasks.c without $word"; return 1; }
    done
    cp "$ROOT/lib/metrics/tasks.c" "$at/lib/metrics/tasks.c"
    builds metrics/tasks.c
    rm -rf "$at"
}

@test "house: a kind of station does not build without any one of its fields" {
    needs_each_field serve/batch.c serve_station_kind 6
}

@test "house: a row of the table of records that is wrong does not build" {
    house
    builds record/schema.c
    table=$at/include/rampipe/record_table.h
    # a row without its keys
    sed 's/^)$//' "$ROOT/include/rampipe/record_table.h" >"$table"
    run builds record/schema.c
    [ "$status" != 0 ]
    rm -rf "$at"
}

# The reader compares the first 8 bytes as a number.
@test "house: names of records may be longer than 8 bytes, and begin alike" {
    [ -n "${EVERY-}" ] || skip "it compiles a room: EVERY=1 runs it"
    house
    sed -i 's/REC_ROW(PREEMPT, ALONE, "preempt"/REC_ROW(PREEMPT, ALONE, "preemption"/
            s/REC_ROW(ADD, ALONE, "add"/REC_ROW(ADD, ALONE, "preemptive"/' "$at/include/rampipe/record_table.h"
    cat >"$at/main.c" <<'T'
#include "rampipe/record.h"
#include <stdio.h>
int main(void)
{
    struct rec_error err;
    struct rec_reader *reader = rec_reader_open(NULL, 0, NULL, &err);
    struct rec rec;
    while (reader && rec_next(reader, &rec, &err) > 0)
        if (rec.type != REC_MARK)
            printf("%s ", rec.spec ? rec.spec->name : "none");
}
T
    gcc -std=c17 -D_GNU_SOURCE -ffp-contract=off -I"$at/include" "$at/main.c" "$at"/lib/record/*.c \
        -lz -ldeflate -lm -o "$at/main"
    [ "$(printf '%s\t1\t2\n' preemption preemptive preempti preemptions preempt run | "$at/main")" = \
        'preemption preemptive none none none run ' ]
    rm -rf "$at"
}

# The message for a wrong name lists all valid names; help and man page must have each of them.
said_everywhere() { # tool option value...: the option's names
    local tool=$1 mode=$2 option=$3 name names
    names=$($tool $mode $option nonsense </dev/null 2>&1 | sed -n "s/.*one of \\(.*\\), got.*/\\1/p" | tr -d ' ')
    names=${names%,acolon*} # of distributions: "... file, a colon and its parameters"
    [ -n "$names" ] || { echo "$tool $mode $option: no names"; return 1; }
    for name in ${names//,/ }; do
        $tool $mode --help | tr -s ' \n' ' ' | grep -qE "[ (,;:]$name([ (,;:.[)]|\$)" ||
            { echo "$tool $mode --help does not say $name of $option"; return 1; }
    done
}

@test "house: help names every heuristic, policy, process, rule and distribution" {
    said_everywhere ramp-alloc '' --heuristic
    said_everywhere alloc '' '--cluster ramp:2,2,2 --place'
    said_everywhere alloc '' '--cluster island:2,1,1,1 --place'
    said_everywhere ramp-alloc '' --choose
    said_everywhere ramp-alloc '' --order
    said_everywhere partition '' --policy
    said_everywhere partition '' --sizes
    said_everywhere tracegen jobs --steps
    said_everywhere tracegen jobs --sampling
    said_everywhere tracegen preempt --process
    said_everywhere tracegen queries --interarrival
    said_everywhere sim elastic --rules
    said_everywhere sim elastic --victims
}

@test "house: the manual page of onnx2graph names every operator that it reads" {
    sed -nE 's/^    ([A-Z]*\(|\{)"([A-Za-z0-9]*)".*/\2/p' "$ROOT/lib/onnx/operators.c" | sort >rows
    sed -n '/^The known operators are/,/^$/p' "$ROOT/tools/onnx2graph.h2m" | sed '1,2d' | grep -oE '[A-Za-z0-9]+' | sort >named
    [ "$(wc -l <rows)" -gt 100 ]
    diff rows named
}

@test "house: every case says what it shows, expects something, and is not another" {
    run python3 "$ROOT/tests/tools/house/cases.py" "$ROOT/tests/cases"
    echo "$output"
    [ "$status" = 0 ] && [ -z "$output" ]
}

@test "house: the test of cases finds what is planted" {
    at=$(mktemp -d) && mkdir -p "$at"/sim/{a,b,c,d,e}
    for case in a b c d; do echo 3 >"$at/sim/$case/exit" && echo record >"$at/sim/$case/in"; done
    printf '# one\nsim in\n' | tee "$at/sim/a/cmd" >"$at/sim/e/cmd"
    printf '# the same in other words\nsim in\n' >"$at/sim/b/cmd"
    printf 'sim in # another\n' >"$at/sim/c/cmd"
    printf '# writes\nsim in >out.rec\n' >"$at/sim/d/cmd" && touch "$at/sim/d/out.rec"
    python3 "$ROOT/tests/tools/house/cases.py" "$at" >found
    [ "$(wc -l <found)" = 4 ]
    grep -q '^sim/d: cmd writes out.rec' found
    grep -q '^sim/b: the same command .* as sim/a$' found
    grep -q '^sim/c: the first line of cmd does not say' found
    grep -q '^sim/e: nothing is expected' found
    rm -rf "$at"
}

@test "house: the version stands in the Makefile, changelogs and packages follow" {
    cd "$ROOT"
    version=$(sed -n 's/^VERSION := //p' Makefile) abi=$(sed -n 's/^ABI := //p' Makefile)
    [ "$(sed -n 's/^## \([0-9.]*\) .*/\1/p' CHANGELOG.md | head -n 1)" = "$version" ]
    [[ $(head -n 1 debian/changelog) == "rampipe ($version) "* ]]
    grep -qx "Package: librampipe$abi" debian/control
    for bin in "$BUILD"/bin/*; do [ "$("$bin" --version)" = "$(basename "$bin") $version" ]; done
}

@test "house: Debian's build has every package that bootstrap knows for building and testing" {
    cd "$ROOT"
    # all packages except those that are essential or in build-essential; pkgconf is the package of pkg-config
    for package in $(scripts/bootstrap --list build man test | tr ' ' '\n' |
        grep -vxE 'gcc|g\+\+|binutils|mawk|libc6-dev'); do
        sed -n '/^Build-Depends/,/^Standards/p' debian/control |
            grep -qE " ${package/pkg-config/pkgconf}(,| |$)" ||
            { echo "$package is not in Build-Depends"; return 1; }
    done
    # the development package needs the libraries that the static library needs
    for package in $(scripts/bootstrap --list build | tr ' ' '\n' | grep -- '-dev$' | grep -v libc6); do
        sed -n '/^Package: .*-dev/,/^Description/p' debian/control | grep -q " $package,"
    done
}

@test "house: make help names every target that is asked for by name" {
    sed -n 's/^## //p' "$ROOT/Makefile" >text
    for target in $(sed -n '/^\.PHONY:/,/[^\\]$/p' "$ROOT/Makefile" | tr -d '\\' | sed 's/^\.PHONY://'); do
        case $target in all | default | help | fuzz-targets) continue ;; esac
        grep -qw -- "$target" text || { echo "$target is not in make help"; return 1; }
    done
}

@test "house: no stray file stands beside README" {
    command -v git >/dev/null && git -C "$ROOT" rev-parse 2>/dev/null || skip "this is no clone"
    run bash -c "git -C '$ROOT' ls-files | grep -v / |
        grep -vxE '\.clang-format|\.gitignore|Makefile|LICENSE|(CHANGELOG|HACKING|README)\.md'"
    echo "$output"
    [ -z "$output" ]
}

@test "house: no line of C is longer than 90 columns, comments and strings included" {
    cd "$ROOT"
    LC_ALL=C.UTF-8 run -1 grep -rnE '^.{91,}$' --include='*.[ch]' lib include tools tests
}

@test "house: large libraries are loaded by the tools that use them, and by no others" {
    for bin in "$BUILD"/bin/* "$BUILD"/libexec/rampipe/*; do
        for library in $(readelf -d "$bin" 2>/dev/null | grep -oE 'lib(glpk|sqlite3|yaml|protobuf-c)'); do
            echo "${bin##*/} $library"
        done
    done >loaded
    # (yaml and protobuf-c may be linked into the tools: see STATIC in the Makefile)
    cat loaded
    [ "$(grep -E 'glpk|sqlite3' loaded)" = "rec2sqlite libsqlite3
ramp-alloc-bound libglpk" ]
    ! grep -E 'yaml|protobuf-c' loaded | grep -vxE 'task2graph libyaml|(et2graph|graph2et|onnx2graph) libprotobuf-c'
}
