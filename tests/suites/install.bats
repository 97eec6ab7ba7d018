# Installation and removal, and the installed files: tools with a prefix, manual pages, completion, headers,
# libraries.

# Runs make as a user does, without the variables of the make that runs the tests.
plain_make() { env -u MAKEFLAGS -u BUILD -u WERROR -u CFLAGS -u LDFLAGS make -s -C "$ROOT" "$@"; }

setup_file() {
    export root=$BATS_FILE_TMPDIR/root
    plain_make install DESTDIR="$root" PREFIX=/usr PROGRAM_PREFIX=rp- >/dev/null
}
setup() { trap - DEBUG; cd "$BATS_TEST_TMPDIR" || return 1; }

# The options to link with the installed tree. Its path is the relative "root": pkg-config doubles the
# blanks in a sysroot.
flags() {
    PKG_CONFIG_PATH=root/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=root pkg-config "$@" rampipe
}

@test "install: tools and pages call themselves and each other as they are installed" {
    export PATH=$root/usr/bin:/usr/bin:/bin
    [ "$(rampipe pdgen --version)" = "rp-pdgen $VERSION" ]
    rampipe | grep -q '^    rampipe serve '
    rampipe help elastic | grep -q '^Usage: rp-sim elastic'
    for bin in "$BUILD"/bin/*; do
        tool=$(basename "$bin")
        [ "$tool" != rampipe ] || continue
        rp-$tool --version | grep -q "^rp-$tool [0-9]"
        grep -qF "$(sed 's/-/\\-/g' <<<"rp-$tool(1)")" "$root/usr/share/man/man5/rampipe.5"
    done
    [ "$(rp-ramp-alloc bound --version)" = "rp-ramp-alloc bound $VERSION" ] # a program of its own
    for ggo in "$ROOT"/tools/*.ggo "$ROOT"/scripts/plot-* "$ROOT"/scripts/{report,accuracy} "$ROOT"/scripts/*-{collectives,steps,kernels}; do
        name=$(basename "$ggo" .ggo)
        [[ $name != common && $name != *_* ]] || continue
        page=$root/usr/share/man/man1/rp-$name.1
        grep -q '^\.TH .*[0-9]' "$page"
        grep -q "^rp-$name \\\\- " "$page"
    done
    for page in "$root"/usr/share/man/man1/*; do
        for section in 'EXIT STATUS' 'SEE ALSO'; do
            grep -qE "^\.SH \"?$section" "$page" || { echo "$page has no $section"; return 1; }
        done
    done
    # Tool names that are no English words must have the prefix in all pages but rampipe.1: `rampipe TOOL` takes
    # names without it.
    run grep -nE '(^|[^a-z-])(pdgen|pd2graph|ramp\\?-alloc|tracegen|reccheck|plot-training|plot-latency|plot-network)\b' \
        -r "$root/usr/share/man" --exclude=rampipe.1
    echo "$output"
    [ "$status" = 1 ]
    echo "# nothing" >nothing && run rp-metrics nothing
    [ "$output" = "rp-metrics: no results came (done, block, trained, reply, drop, served, attempt, bound, load, explain, training, spent records): put rp-metrics behind rp-sim" ]
    # examples of --help run where the samples are
    cd "$root/usr/share/rampipe"
    bash -o pipefail -c "$(rp-sim --help | sed -n 's/^  \(.*traces.spot.rec.*\)/\1/p')" |
        grep -q '^all.goodput'
    bash -c "$(rp-plot-training --help | sed -n 's/^  \(.*\) >run.svg/\1/p')" | grep -q '</svg>'
    bash -c "$(rp-plot-latency --help | sed -n 's/^  \(.*\) >latency.svg/\1/p')" | grep -q '</svg>'
    bash -o pipefail -c "$(rp-plot-network --help | sed -n 's/^  \(.*\) >network.svg/\1/p')" | grep -q '</svg>'
    bash -c "$(rp-report --help | sed -n 's/^  \(rp-sim.*\) >build.*/\1/p')" | grep -q '^</html>'
    (cd "$BATS_TEST_TMPDIR" && mkdir -p build &&
        bash -c "$(rp-predict-collectives --help | sed -n 's/^  \(printf.*\)/\1/p')" | grep -q '^a.*state')
    # it finds the other scripts, the tools and the stack records where they are installed
    (cd "$BATS_TEST_TMPDIR" && mkdir -p golden/parallel && cd golden/parallel &&
        printf '%b\n' 'id\tdevice\tm\tk\tn\ttime_s' 'a\th100-80\t4096\t8192\t8192\t1e-3' >gemm.tsv &&
        printf '%b\n' 'id\tfamily\tgpu\tprecision\tlayers\thidden\tffn\theads\tvocab\tseq\tgbs\tstep_s' \
            'a\tmine\th100-80\tbf16\t8\t1024\t4096\t8\t32000\t1024\t8\t1' >steps.tsv &&
        rp-accuracy --only steps,kernels .. 2>told >out && grep -q '^mine ' out && grep -q '^h100-80/bf16/gemm' out &&
        rp-measure-kernels --no-gpu 2>told >mine.rec && rp-steptime --devices mine.rec --list | grep -q '^mine ')
    export PYTHONDONTWRITEBYTECODE=1
    python3 traces/agents/train.py --generations 0 --jobs 3 | grep '^trained	'
    PATH=/usr/bin:/bin python3 traces/tasks/matrix_powers/arguments.py 3 3 | grep '^trace of power 3: '
    cd scripts && python3 -c 'import rampipe_shared; rampipe_shared.Queue().put(1)'
}

@test "install: no page makes man warn" {
    # as `man --warnings` runs it, but once for all pages
    LC_ALL=C.UTF-8 groff -K utf8 -t -man -wmac -rLL=80n -Tutf8 -Z "$root"/usr/share/man/man*/* 2>warnings >pages
    cat warnings
    [ ! -s warnings ]
    [ "$(find "$root/usr/share/man" -type f | wc -l)" -ge 15 ]
}

@test "install: uninstall with the same variables leaves the tree as it was" {
    there() { find "$1" -printf '%P %y %m\n' | sort; }
    set -- PROGRAM_PREFIX=rp- libdir="$PWD/our own/lib/any" mandir="$PWD/our own/man"
    mkdir -p our\ own/{bin,lib/any,include,share,man/man1}
    touch our\ own/man/man1/somebody.1
    there "our own" >before
    plain_make install PREFIX="$PWD/our own" "$@" >/dev/null
    [ -x "our own/bin/rp-sim" ] && [ -e "our own/lib/any/librampipe.so" ]
    plain_make uninstall PREFIX="$PWD/our own" "$@"
    there "our own" | diff before -
    # In a DESTDIR, which is a scratch tree, no folder is left. (This is a copy: other tests need $root.)
    cp -a "$root" "a root"
    [ -x "a root/usr/bin/rp-sim" ] && [ -e "a root/usr/share/man/man5/rampipe.5" ]
    plain_make uninstall DESTDIR="$PWD/a root" PREFIX=/usr PROGRAM_PREFIX=rp-
    [ -z "$(ls "a root")" ]
}

@test "install: programs in C and C++ link the library, shared and static, by README's command" {
    cat >count.c <<'C'
#include <rampipe/record.h>
#include <stdio.h>
int
main(void)
{
    struct rec_error err;
    struct rec_reader *reader = rec_reader_open(NULL, 0, NULL, &err);
    struct rec rec;
    int n = 0, status = -1;
    while (reader && (status = rec_next(reader, &rec, &err)) > 0)
        n += rec.type == REC_OP;
    rec_reader_close(reader);
    printf("%d ops\n", n);
    return status < 0;
}
C
    pd2graph "$ROOT/traces/alexnet.txt" | gzip >ops.gz
    ln -s "$root" root
    for compiler in "cc count.c" "g++ -x c++ count.c -x none"; do
        $compiler $(flags --cflags --libs) -o count
        readelf -d count | grep -q 'NEEDED.*librampipe\.so\.[0-9]*\]'
        [ "$(LD_LIBRARY_PATH=$root/usr/lib ./count <ops.gz)" = "42 ops" ]
        libs=$(flags --static --cflags --libs)
        $compiler ${libs/-lrampipe/-Wl,-Bstatic -lrampipe -Wl,-Bdynamic} -o count
        readelf -d count >needed
        [ "$(grep -c 'NEEDED.*librampipe' needed)" = 0 ]
        [ "$(./count <ops.gz)" = "42 ops" ]
    done
}

@test "install: every header compiles alone in C, and all in C++" {
    for header in "$root"/usr/include/rampipe/*.h; do
        # included twice: the include guard must work
        printf '#include <rampipe/%s>\n' "$(basename "$header")" "$(basename "$header")" >alone.c
        echo 'extern int nothing_more;' >>alone.c
        set -- -fsyntax-only -Wall -Wextra -Wpedantic -Werror -I"$root/usr/include"
        gcc -std=c17 "$@" alone.c
        cat alone.c >>all.cc
    done
    g++ -std=c++17 "$@" all.cc
}

@test "install: the shared library shows what the headers declare, no more and no less" {
    cat "$root"/usr/include/rampipe/*.h | tr -cs 'A-Za-z0-9_' '\n' | sort -u >declared
    nm -g --defined-only "$root/usr/lib/librampipe.a" | awk 'NF == 3 { print $3 }' | sort -u |
        comm -12 - declared >public
    nm -D --defined-only "$root/usr/lib/librampipe.so" | awk '{ print $3 }' | sort | diff public -
    [ "$(wc -l <public)" -gt 200 ]
}

# Completes the last of the given words as bash does. Prints the offered words in one line, and "files" if
# file names are offered.
complete_line() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=() files=
    compopt() { [ "$*" != "-o default" ] || files=files; }
    local by
    by=$(complete -p "${1##*/}") && by=${by##*-F }
    ${by%% *} "$1" "${!#}" "${*: -2:1}"
    echo "${COMPREPLY[*]}${files:+${COMPREPLY[*]:+ }$files}"
}

@test "install: bash completes options, modes, values and files of each tool" {
    for bin in "$root"/usr/bin/*; do
        tool=$(basename "$bin")
        [[ $tool == rp-plot-* || $tool == rp-@(report|accuracy) || $tool == rp-*-@(collectives|steps|kernels) ]] || # the name by which bash looks for it
            source "$root/usr/share/bash-completion/completions/$tool"
    done
    is() { [ "$output" = "$1" ] || { echo "'$output' instead of '$1'"; return 1; }; }
    run complete_line rp-sim el
    is "elastic files"
    run complete_line /usr/bin/rp-sim elastic --ru
    is "--rules"
    run complete_line rampipe sp
    is "spot"
    run complete_line rampipe sim elastic --ru
    is "--rules"
    run complete_line rampipe spot traces/
    is "files"
    run complete_line rp-sim --ru # no option of jobs
    is ""
    run complete_line rp-sim elastic --rules ""
    is "sane published later"
    run complete_line rp-metrics --format = c
    is "csv"
    run complete_line rp-metrics -f j
    is "json"
    # the offered words are those that the tool takes
    run complete_line rp-roofline --device ""
    is "$(sed -n 's/^device\t\([^\t]*\).*/\1/p' "$ROOT/traces/devices.rec" | paste -sd ' ')"
    run complete_line rp-ramp-alloc --heuristic ""
    is "first-fit block compact compact-2 compact-3 compact-back free-block"
    run complete_line rp-ramp-alloc bound --heuristic c
    is "compact compact-2 compact-3 compact-back"
    run complete_line rp-ramp-alloc --order ""
    is "fifo shortest"
    run complete_line rp-ramp-alloc --base l
    is "learned:"
    run complete_line rp-pdgen --attention ""
    is "fused unfused"
    run complete_line rp-tracegen jobs --interarrival un
    is "uniform:"
    run complete_line rp-runtasks --engine s
    is "slurm slurm-jobs"
    run complete_line rp-runtasks --slurm-options ""
    is ""
    run complete_line rp-partition --output ""
    is "files"
    run complete_line rp-partition --degree "" # any number
    is ""
    # every option of --help is offered, and every offered value is taken by the tool
    touch seen
    for ggo in "$ROOT"/tools/*.ggo; do
        name=$(basename "$ggo" .ggo) mode='' operand=
        [[ $name != common && $name != *_* ]] || continue
        turn=$((${turn-0} + 1)) # every fourth; with EVERY=1, as in CI, each
        [ -n "${EVERY-}" ] || [ $((turn % 4)) = 1 ] || continue
        [ $name != pdgen ] || operand=vgg16
        tool=$name
        while [ ! -e "$BUILD/bin/$tool" ]; do tool=${tool%-*} mode=${name#"$tool"-}; done
        "$BUILD/bin/$tool" $mode --help | grep -oE '^  .{4}--[a-z-]+' | grep -oE -- '--.*' |
            sort >options
        complete_line rp-$tool $mode -- | tr ' ' '\n' | sort | diff options -
        for option in $(grep -vxFf seen options); do
            values=$(complete_line rp-$tool $mode $option "")
            [[ -z $values || $values == *files ]] && continue
            for value in ${values//:/:1}; do
                [ "$option" != --base ] || operand='--choose rollout:2'
                said=$(timeout 10 "$BUILD/bin/$tool" $mode $option $value $operand 2>&1 </dev/null) || true
                [[ $said != *"$option"*" one of "* ]] || { echo "$name $option $value: $said"; return 1; }
            done
        done
        sed -n 's/^option "\([a-z-]*\)".*/--\1/p' "$ROOT/tools/common.ggo" >seen
        printf '%s\n' --help --version >>seen
    done
}

@test "install: a packager's flags add to ours" {
    run plain_make -Bn V=1 BUILD=none CPPFLAGS=-DTHEIRS CFLAGS=-O3 LDFLAGS=-Wl,-z,now \
        LDLIBS=-ltheirs none/bin/reccheck
    [[ $output == *" -Iinclude "*" -Wduplicated-cond "*" -DTHEIRS -O3 "*" -std=c17 "* ]]
    [[ $output == *" -O3 -Wl,-z,now "*" -lsqlite3 "*" -ltheirs -o none/bin/reccheck"* ]]
    [[ $output != *-Werror* ]]
    CPPFLAGS=-DTHEIRS run plain_make -Bn V=1 BUILD=none WERROR=1 none/lib/record/map.o
    [[ $output == *" -Werror "*" -DTHEIRS -O2 -g "* ]]
}
