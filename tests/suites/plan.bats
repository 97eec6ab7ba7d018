# plan train: the closed form on all rows of the golden tables, published mixes, what it tells the other tools.
# (unit/test_search compares the search with brute force, cases/plan-train has its options.)

setup() { trap - DEBUG; cd "$BATS_TEST_TMPDIR" || return 1; }

@test "plan train: the closed form is within 0.5 % of the simulation on all golden rows, and never above" {
    [ -d "$ROOT/../shared/golden/parallel" ] || skip "needs ../shared"
    "$ROOT/tests/bench/closed" >off
    awk '$1 == "all" { n = $2; worst = $5 + 0; least = $6 + 0 }
        END { if (n < 1000 || worst > 0.5 || least < -1e-6) { print n, worst, least; exit 1 } }' off
}

# GPT-3 175B on 1,024 A100: Narayanan et al., SC 2021, divide it by t = 8 and p = 8, 12 or 16, with 1,536 samples.
@test "plan train: the best mix of GPT-3 on 1,024 devices is at least as good as published ones" {
    printf 'training\tgpt3\tdevice=a100-80\tstack=megatron-2021-04\tlayers=96\thidden=12288\tffn=49152\theads=96\tvocab=51200\tseq=2048\tmlp=gelu\tattention=unfused\toverlap=dp\tgpus=1024\tgbs=1536\n' >gpt3.rec
    seconds() { plan train --top 1 "$@" gpt3.rec | sed -nE 's/^training.*\tseconds=([^\t]*).*/\1/p'; }
    best=$(seconds)
    for mix in tp=8,pp=8,vp=1 tp=8,pp=8 tp=8,pp=16 tp=8,pp=16,mbs=1,recompute=full,zero=0 tp=8,pp=8,recompute=full,zero=0; do
        published=$(seconds --fix "$mix")
        awk -v a="$best" -v b="$published" -v mix="$mix" 'BEGIN { if (!(a > 0 && a <= b)) { print mix, a, b; exit 1 } }'
    done
    # no other mix can be better: the best ten are at least as fast as the closed form of the rest
    plan train -v gpt3.rec 2>told >ten.rec
    [ "$(grep -c ^training ten.rec)" = 10 ]
    sed -nE 's/.*no other is faster than ([0-9.]+) s.*/\1/p' told >bound
    awk -F'\t' 'NR == FNR { bound = $1; next } /^training/ { for (i = 3; i <= NF; i++) if (sub(/^seconds=/, "", $i) && $i > bound * 1.00001) { print $i, bound; exit 1 } }' bound ten.rec
}

@test "plan train: mixes of published steps are found again, or better ones" {
    golden=$ROOT/../shared/golden/parallel/steps.tsv
    [ -e "$golden" ] || skip "needs ../shared"
    # families whose rows say all; memory of the published mix is what a device may need
    for family in sc21-table1 nemo-h100 mcore-h100; do
        awk -F'\t' -v family=$family 'NR == 1 || ($2 == family && n++ < 3)' "$golden" >rows.tsv
        python3 - "$ROOT" >asked.rec <<'P'
import sys
from importlib.machinery import SourceFileLoader
sys.dont_write_bytecode = True
predict = SourceFileLoader("predict", sys.argv[1] + "/scripts/predict-steps").load_module()
print("#rampipe\t1")
for row in predict.read_rows("test", ["rows.tsv"]):
    print(f"training\t{row['id']}\t" + "\t".join(f"{k}={v}" for k, v in predict.question(row)[0].items()))
print("#end")
P
        steptime asked.rec >published.rec
        while IFS= read -r line; do
            [[ $line == training* ]] || continue
            memory=$(sed -E 's/.*\tmemory=([^\t]*).*/\1/' <<<"$line")
            seconds=$(sed -E 's/.*\tseconds=([^\t]*).*/\1/' <<<"$line")
            tr '\t' '\n' <<<"$line" | grep -vE '^(tp|pp|vp|cp|ep|dp|zero|sp|mbs|recompute|ends|seconds|memory|why|how|law|error)=' | paste -s >free.rec
            plan train --memory "$memory" --top 1 free.rec | sed -nE 's/^training.*\tseconds=([^\t]*).*/\1/p' |
                awk -v published="$seconds" '{ n++; if ($1 > published * (1 + 1e-9)) { print "slower", $1, published; exit 1 } } END { exit !n }' ||
                { echo "$line"; return 1; }
        done <published.rec
    done
}

# Chunks of one layer, a head that takes longer than these, messages that hold the stages up: far from the closed form.
@test "plan train: a search that is cut says what it has not shown" {
    printf 'training\tm\tdevice=h100-80\tlayers=48\thidden=1024\tffn=4096\theads=8\tvocab=250000\tseq=2048\tgbs=64\toverlap=none\n' >m.rec
    plan train --gpus 32 --fix pp=4,vp=2..12 --simulate 5 --top 5 m.rec 2>cut | grep -q ^training
    grep -q 'that fit 5 were simulated, and another may be as fast as' cut
    plan train --gpus 32 --fix pp=4,vp=2..12 --top 5 m.rec 2>whole | grep -q ^training
    [ ! -s whole ]
}
