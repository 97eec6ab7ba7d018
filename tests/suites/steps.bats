# Measured training steps: predictions are within the tolerances of ../shared/golden/parallel/README.md, a fit finds
# the numbers of a stack again, wrong tables are refused. (unit/test_steptime has the model in closed form.)

setup() { trap - DEBUG; cd "$BATS_TEST_TMPDIR" || return 1; }
predict() { "$ROOT/scripts/predict-steps" "$@"; }
fit() { "$ROOT/scripts/fit-steps" "$@"; }

# family, limit of the mean error in percent: of --errors
below() {
    awk -v name="$1" -v limit="$2" '$1 == name { n = $2; mean = $4 + 0 }
        END { if (!n || mean > limit) { print name, n, mean; exit 1 } }' errors
}

@test "steps: measured steps are predicted within the tolerances of their tables" {
    golden=$ROOT/../shared/golden
    [ -d "$golden/parallel" ] || skip "needs ../shared"
    predict --errors "$golden"/parallel/steps{,-single-node}.tsv "$golden/measured/mlperf-example.tsv" >errors
    for family in sc21-table1 sc21-table2-ptd megatron-jan21 seqsel-table5 mlperf-gpt3; do below $family 3; done
    for family in mpt-fsdp nemo-h100 simumax-b200; do below $family 5; done
    for family in torchtitan bridge-dense-h100 bloom-a bloom-b; do below $family 7; done
    for family in vtrain-multi vtrain-single; do below $family 9; done
    # no stack was fitted to these
    below mlperf-405b 5
    below mlperf-gpt3-v4.1 5
}

@test "steps: what a table does not say is assumed aloud; what is not covered is nan" {
    head='id\tgpu\tlayers\thidden\tffn\theads\tvocab\tseq\ttp\tdp\tmbs\tgbs\trecompute\n'
    printf %b "$head" 'a\th100-80\t8\t1024\t4096\t8\t32000\t1024\t1\t2\t\t8\t?\n' 'b\tabacus\t8\t1024\t4096\t8\t32000\t1024\t1\t2\t1\t8\tfull\n' >table.tsv
    predict --how table.tsv >got 2>told && return 1
    mapfile -t lines <got
    [[ ${lines[0]} == a$'\t'0.* && ${lines[0]} == *"products"* ]]
    [[ ${lines[1]} == b$'\t'nan$'\t'nan* && ${lines[1]} == *"got 'abacus'"* ]]
    grep -q '1 rows that do not say it (a, ...): microbatches of one sample' told
    grep -q '(a, ...): nothing recomputed' told
    grep -q '1 of 2 rows have no prediction' told
}

@test "steps: wrong tables are refused with file and line" {
    head='id\tgpu\tlayers\thidden\tffn\theads\tvocab\tseq\tmbs\tgbs\n'
    wrong() { # table, text
        printf %b "$1" >wrong.tsv
        run predict wrong.tsv
        [ "$status" = 3 ] && [[ $output == *"$2"* ]] || { echo "$status $output"; return 1; }
    }
    wrong 'id\tgpu\n' 'wrong.tsv:1: the table must have the column layers'
    wrong "${head}a\th100-80\n" 'wrong.tsv:2: 10 columns are needed'
    wrong "${head}a\th100-80\tx\t8\t8\t1\t8\t8\t1\t8\n" "wrong.tsv:2: training 'r0': layers"
    run predict none.tsv
    [ "$status" = 4 ]
}

# Steps that steptime itself predicts with known numbers: a fit that starts elsewhere finds them.
@test "steps: a fit finds the numbers that made the steps" {
    printf 'stack\tmine\t0.6\t0.5\t0.4\t0.3\t1e-7\t0.7\tfamilies=mine\n' >true.rec
    printf 'stack\tmine\t0.66\t0.45\t0.44\t0.27\t1e-7\t0.77\tfamilies=mine\n' >start.rec
    head='id\tfamily\tgpu\tlayers\thidden\tffn\theads\tvocab\tseq\ttp\tdp\tsp\tmbs\tgbs\toverlap'
    printf "$head\n" >asked.tsv
    n=0
    for tp in 1 4; do for dp in 1 16; do for seq in 1024 16384; do for hidden in 2048 8192; do
        n=$((n + 1))
        printf '%s\tmine\th100-80\t16\t%s\t%s\t16\t32000\t%s\t%s\t%s\t%s\t1\t%s\ttp,dp\n' $n $hidden $((4 * hidden)) \
            $seq $tp $dp $((tp > 1)) $((2 * dp)) >>asked.tsv
    done; done; done; done
    { printf "$head\tstep_s\n" && tail -n +2 asked.tsv | paste - <(predict --alone --stacks true.rec asked.tsv | cut -f 2); } >table.tsv
    fit --rounds 12 --stacks start.rec table.tsv >fitted.rec
    awk -F'\t' '{ for (i = 9; i <= NF; i++) if ($i ~ /^fit=/) { split($i, a, "="); exit a[2] > 0.01 } exit 1 }' fitted.rec
    # every third row, predicted by a fit to the others
    awk -F'\t' '{ for (i = 9; i <= NF; i++) if ($i ~ /^error=/) { split($i, a, "="); exit a[2] > 0.02 } exit 1 }' fitted.rec
}

# A shape that was not measured, between two that were; and tables that are none.
@test "steps: kernels of a table are predicted, wrong tables are refused" {
    head='id\tdevice\tdtype\tm\tn\tk\n'
    printf %b "$head" 'a\th100-80\tbf16\t4224\t8192\t8192\n' 'b\th100-80\tbf16\t8448\t8192\t8192\n' >kernels.tsv
    "$ROOT/scripts/predict-kernels" kernels.tsv >got
    # 2 x 4224 x 8192^2 operations at 60 to 85 % of 989 TFLOP/s; twice as many rows take about twice as long
    awk '{ t[$1] = $2 } END { s = 2 * 4224 * 8192 * 8192 / t["a"] / 989.4e12; r = t["b"] / t["a"]
        exit !(s > 0.6 && s < 0.85 && r > 1.8 && r < 2.2) }' got
    printf 'id\tdevice\n' >wrong.tsv
    run "$ROOT/scripts/predict-kernels" wrong.tsv
    [ "$status" = 3 ] && [[ $output == *"wrong.tsv:1: "* ]]
    printf %b "$head" 'a\th100-80\tbf16\tx\t8192\t8192\n' >wrong.tsv
    run "$ROOT/scripts/predict-kernels" wrong.tsv
    [ "$status" = 3 ] && [[ $output == *"wrong.tsv:2: "* ]]
}
