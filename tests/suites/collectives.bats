# Measured times of collectives: fits find the states that a table has, predictions of rows that no fit has seen
# are near, wrong tables are refused. (unit/test_collective has the laws in closed form.)

setup() { trap - DEBUG; cd "$BATS_TEST_TMPDIR" || return 1; }
fit() { "$ROOT/scripts/fit-collectives" "$@"; }
predict() { "$ROOT/scripts/predict-collectives" "$@"; }
head_line() { printf 'id\tsystem\tkind\tranks\tnodes\tbytes\tseconds\tflag\n'; }

# 10 us + S / 1e9 up to 8 KiB, 50 us + S / 1e10 from 16 KiB: the switch is between them.
two_states() {
    head_line
    awk 'BEGIN { OFS = "\t"; for (s = 512; s <= 1048576; s *= 2)
        print "r" s, "toy", "all-gather", 4, 1, s, s <= 8192 ? 1e-5 + s / 1e9 : 5e-5 + s / 1e10, "" }'
}

@test "collectives: a fit finds the states of a table, their switch, and predicts what was left out" {
    two_states >table.tsv
    fit table.tsv | grep '^piece' | cut -f 3- >pieces
    printf '512\t8192\t1e-05\t1e+09\n16384\t1048576\t5e-05\t1e+10\n' | diff - pieces
    fit --except 'bytes=1024,65536' table.tsv >fit.rec
    predict --alone --collective-table fit.rec --only 'bytes=1024,65536' table.tsv >got
    printf 'r1024\t1.1024e-05\nr65536\t5.65536e-05\n' >want
    paste want got | awk -F'\t' '$1 != $3 || ($2 / $4 - 1) ^ 2 > 1e-8 { exit 1 }'
    # two sizes far apart are no state: any two lie on a line
    printf 'a\ttoy\tall-gather\t4\t1\t1024\t1e-5\t\nb\ttoy\tall-gather\t4\t1\t4096\t3e-5\t\n' |
        { head_line && cat; } >two.tsv
    fit two.tsv | grep '^piece' | cut -f 3- >pieces
    printf '1024\t1024\t1e-05\tinf\n4096\t4096\t3e-05\tinf\n' | diff - pieces
    # a switch that is known from elsewhere: between 16 and 32 KiB
    fit --except 'bytes=16384' --switch toy:4:8192:12288 table.tsv | grep '^piece' | cut -f 3,4 >known
    printf '512\t8192\n12288\t1048576\n' | diff - known
}

@test "collectives: rows with equal bytes are one size, flagged rows do not count, jitter does not cut a state" {
    { two_states
        printf 'x\ttoy\tall-gather\t4\t1\t1024\t9\tnonmonotone\n'
        printf 'x\ttoy\tall-gather\t4\t1\t1048576\t0.0001558576\t\n'; } >table.tsv
    [ "$(fit table.tsv | grep -c '^piece')" = 2 ]
    printf 'collective\tc\ttoy\tall-gather\t4\t1\t1048576\n' >ask.rec
    fit table.tsv >fit.rec
    collective --alone --collective-table fit.rec ask.rec | grep -q 'seconds=0.00015[0-9]*'
}

@test "collectives: reductions of integers are series of their own, other types and exchanges share one" {
    local head # integers take 1.5 times as long
    printf -v head 'id\tsystem\tkind\tdtype\tranks\tnodes\tbytes\tseconds\n'
    for kind in all-reduce all-gather; do
        printf 'h%s\ttoy\t%s\thalf\t4\t1\t1024\t1e-5\n' $kind $kind
        printf 'i%s\ttoy\t%s\tint8\t4\t1\t1024\t1.5e-5\n' $kind $kind
    done >rows
    { printf %s "$head"; cat rows; } >table.tsv
    fit table.tsv >fit.rec
    # of both types of an all-gather the geometric mean: sqrt(1.5) * 10 us
    grep -v '^#' fit.rec | cut -f 1,4- | tr '\t' ' ' | sed 's/^piece .* \([^ ]*\) inf/\1/' >got
    printf '%s\n' 'series all-reduce 4 1' 1e-05 'series all-reduce 4 1 dtype=int8' 1.5e-05 'series all-gather 4 1' 1.2247e-05 | diff - got
    predict --alone --collective-table fit.rec table.tsv | grep all-reduce | cut -f 2 | sort -u | tr '\n' ' ' >got
    [ "$(cat got)" = '1.5e-5 1e-5 ' ]
}

@test "collectives: predictions come in the order of rows, without results, and nan where no law covers a row" {
    printf 'id\tsystem\tkind\tranks\tnodes\tbytes\nb\th100-sxm\tall-reduce\t8\t1\t1024\n' >table.tsv
    printf 'a\th100-sxm\tall-gather\t4\t1\t1048576\n' >>table.tsv
    predict table.tsv >out
    [ "$(cut -f 1 out | paste -sd ' ')" = "b a" ] && awk -F'\t' '!($2 > 0 && $2 < 1) { exit 1 }' out
    printf 'c\tunheard-of\tall-gather\t4\t1\t1048576\n' >>table.tsv
    run predict table.tsv
    [ "$status" = 1 ] && [[ $output == *$'c\tnan\n'*"1 of 3 rows"* ]]
    run predict --how --only id=c table.tsv
    [[ $output == *$'c\tnan\tnone\tsystem '*"was not measured"* ]]
}

@test "collectives: wrong tables are refused with file and line" {
    refuse() { # status, message, command...
        local want=$1 text=$2
        run "${@:3}"
        [ "$status" = "$want" ] && [[ ${lines[0]} == *"$text"* ]] || { echo "$status: $output"; return 1; }
    }
    two_states | cut -f 1-5,7- >no-size.tsv
    refuse 3 'no-size.tsv:1: the table must have the column bytes' fit no-size.tsv
    refuse 3 'no-size.tsv:1: the table must have the column bytes' predict no-size.tsv
    two_states | sed '3s/1024/0/2' >zero.tsv
    refuse 3 "zero.tsv:3: bytes must be a number > 0, got '0'" fit zero.tsv
    two_states | awk -F'\t' -v OFS='\t' 'NR == 4 { $7 = "x" } 1' >seconds.tsv
    refuse 3 "seconds.tsv:4: seconds must be a number > 0, got 'x'" fit seconds.tsv
    two_states | awk -F'\t' -v OFS='\t' 'NR == 5 { $4 = 1 } 1' >one.tsv
    refuse 3 'one.tsv:5: RANKS must be at least 2' predict one.tsv
    two_states | sed 's/all-gather/all-gathers/' >kind.tsv
    refuse 3 'kind.tsv:2: KIND must be one of' predict kind.tsv
    two_states | sed '6s/\t[^\t]*$//' >short.tsv
    refuse 3 'short.tsv:6: 8 columns are needed' fit short.tsv
    refuse 4 'none.tsv: No such file' fit none.tsv
    printf 'id\tsystem\xff\n' >bytes.tsv
    refuse 3 'bytes.tsv: the text must be UTF-8' fit bytes.tsv
    two_states >table.tsv
    refuse 1 'no row is left' fit --except kind=all-gather table.tsv
    refuse 2 'TABLE is needed' fit
    refuse 2 'a filter must be' fit --except x table.tsv
    refuse 2 'a fold must be' fit --fold 3/3 table.tsv
    refuse 2 '--switch must be' fit --switch x table.tsv
    refuse 2 'are for --errors' predict --by kind table.tsv
}

# What no fit saw: the limits are a little above the errors that docs/collectives.md shows.
below() { # case, mean: of `checked` records
    awk -F'\t' -v name="$1" -v limit="$2" '$2 == name { n++; mean += $4 }
        END { if (!n || mean / n > limit) { print name, n, mean / n; exit 1 } }' checked
}

@test "collectives: sizes, ranks, tokens, systems that no fit has seen are predicted within their errors" {
    [ -d "$ROOT/../shared/golden/measured" ] || skip "needs ../shared"
    measured=$ROOT/../shared/golden/measured
    try() { # table, filter, which of these rows count
        fit --except "$2" "$measured/$1.tsv" >fit.rec
        predict --alone --collective-table fit.rec --errors --records x --only "$2 ${3:-}" "$measured/$1.tsv" >>checked
    }
    : >checked
    # a size of all series that has neighbours on both sides
    try nccl 'bytes=131072 system*=sxm,gb'
    # (4 B200 switch between 4 and 8 MiB, where groups of 2 and 8 do not)
    try nccl 'system=b200-sxm,b300-sxm ranks=4' 'bytes=512,4096,131072,1048576,134217728,536870912'
    try deepep 'tokens=32 library=deepep-ll'
    try deepep 'system=gb200-nvl72 ranks=32 op=dispatch'
    below size 0.03
    below ranks 0.04
    below tokens-size 0.04
    below tokens-ranks 0.04
    : >checked
    try nccl 'system=b200-sxm,b300-sxm,gb200,gb300'
    below sheet-nvlink 0.09
    try deepep system=gb200 # which has half the ranks in a node
    below tokens-sheet 0.1
    : >checked # both of another generation
    try deepep 'system=b200-sxm,gb200'
    below tokens-sheet 0.18
}
