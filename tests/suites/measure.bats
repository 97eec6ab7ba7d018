# scripts/measure-kernels: with a stand-in for PyTorch whose kernels take known times, and without a GPU.

export PYTHONDONTWRITEBYTECODE=1
setup() { trap - DEBUG; cd "$BATS_TEST_TMPDIR" || return 1; }
measure() { PYTHONPATH="$ROOT/tests/tools/stand_in" "$ROOT/scripts/measure-kernels" "$@"; }

# The stand-in has 62 % of 3e14 FLOP/s in its tiles, attention at half of it, 1.5e12 bytes/s of copies and 80 % of them in
# other ops, 4 us of the host for a kernel, all-reduces of 20 us and 2e11 bytes/s of bus bandwidth.
@test "measure: what kernels take becomes the numbers of a device and its stack, which steptime reads" {
    GPUS=4 measure --peak 3e14 --repeats 3 --raw raw >mine.rec 2>told
    [ ! -s told ]
    grep -q '^# mine: measured on 4 x Stand-in' mine.rec
    grep -q $'^device\tmine\t1.5e+12\t8e+10\t.*bf16=3e+14\tprocessors=100\t' mine.rec
    grep -q $'^stack\tmine\t0.62\t0.8\t0.5\t0.3\t4e-06\t0.8\t.*ADAPTER are assumed' mine.rec
    awk -F'\t' '$1 == "fabric" { exit !($3 == "nvlink" && $4 > 1.98e11 && $4 < 2.01e11) }' mine.rec
    # 4 GPUs: bus bandwidth is 1.5 times bytes over time
    awk -F'\t' '$1 == "piece" { n++; ok = $5 > 1.9e-5 && $5 < 2.1e-5 && $6 > 1.32e11 && $6 < 1.35e11 } END { exit !(n == 1 && ok) }' mine.rec
    reccheck mine.rec
    printf 'training\tt\t%s\n' "$(echo device=mine layers=4 hidden=4096 ffn=16384 heads=32 vocab=32000 seq=4096 mbs=1 gbs=4 |
        tr ' ' '\t')" | steptime --devices mine.rec --tp 4 >answer.rec
    grep -q 'law=stack mine' answer.rec
    # an all-reduce of 4,096 x 4,096 elements of 2 bytes twice a layer and pass, and once at each end: 18 a microbatch
    awk -F'\t' '{ for (i = 3; i <= NF; i++) { split($i, a, "="); v[a[1]] = a[2] } } END {
        match(v["why"], /tensor [0-9.]+/); got = substr(v["why"], RSTART + 7, RLENGTH - 7) / 100 * v["seconds"]
        want = 4 * 18 * (2e-5 + 1.5 * 4096 * 4096 * 2 / 2e11); print got, want; exit !(got > 0.97 * want && got < 1.03 * want) }' answer.rec
    # the raw tables are those of kernel and of fit-collectives
    grep '^device' mine.rec >device.rec
    kernel --devices device.rec --gemm-table raw/gemm.tsv --device mine --shape 4096,4096,14336 --with set=training |
        grep '^kernel' | grep -q 'how=measured'
    kernel --devices device.rec --attention-table raw/attention.tsv --device mine --op attention --shape 1,4096,32,32 \
        --pass backward --with set=training | grep '^kernel' | grep -q 'how=measured'
    [ "$(wc -l <raw/gemm.tsv) $(wc -l <raw/attention.tsv) $(wc -l <raw/collectives.tsv)" = '46 9 9' ]
}

@test "measure: what one GPU cannot tell, and a peak that nobody named, are said" {
    GPUS=1 measure --repeats 1 --name one >one.rec
    grep -q $'^fabric\tone\tnvlink\t4.5e11\t.*source=as h100-80, not measured' one.rec
    grep -q '^device.*the peak is that of the best product' one.rec
    awk -F'\t' '$1 == "stack" { exit !($3 > 0.9 && $3 < 1.1) }' one.rec # of the best product's rate
    run grep -c '^series' one.rec
    [ "$output" = 0 ]
}

@test "measure: without a GPU the table is the model's, and says so" {
    GPUS=0 measure --like a100-80 --name trial >trial.rec 2>told
    grep -q '^# trial: NOT MEASURED (PyTorch finds no GPU): predicted from the model of a100-80' trial.rec
    grep -q 'PyTorch finds no GPU: nothing is measured' told
    run grep -vc 'NOT MEASURED' <(grep -E '^(device|stack|fabric)' trial.rec)
    [ "$output" = 0 ]
    GPUS=4 measure --no-gpu --like a100-80 --name trial 2>told | diff - <(sed 's/PyTorch finds no GPU/--no-gpu/' trial.rec)
    # the best product of the model is below the data sheet's peak, 312e12, and above half of it
    awk -F'\t' '$1 == "device" { split($6, a, "="); exit !($4 == 8e10 && a[2] > 1.56e14 && a[2] < 3.12e14) }' trial.rec
    # rampipe step takes the file, and its answer is near that of the device itself
    step() { rampipe step --model "$ROOT/traces/models/gpt2-xl.json" --gpus 8 --dp 8 --micro-batch 4 --global-batch 64 "$@" |
        sed -n 's/^step *\([0-9.]*\) s/\1/p'; }
    mine=$(step --devices trial.rec --device trial) own=$(step --device a100-80)
    awk -v a="$mine" -v b="$own" 'BEGIN { print a, b; exit !(a > 0.6 * b && a < 1.6 * b) }'
    # its kernels are those of the step where they are alike; and of the step that plan train chooses
    grep -q $'^law\tl1\ttrial\tgemm\tbf16\ttraining' trial.rec
    most() {
        rampipe step --model "$ROOT/traces/models/gpt2-xl.json" --gpus 8 "$@" --global-batch 64 --devices trial.rec --device trial 2>told >said
        awk '/^measured/ { found = $2 > 50 && $2 < 100 } END { exit !found }' said || { cat told said; return 1; }
    }
    most --dp 8 --micro-batch 4
    most
}

@test "measure: what it cannot do is refused" {
    refuse() { # status, text, operands
        GPUS=0 run measure "${@:3}"
        [ "$status" = "$1" ] && [[ $output == *"$2"* ]] || { echo "$status $output"; return 1; }
    }
    refuse 2 "--name must be letters and digits, got 'h100-80'" --name h100-80
    refuse 2 "there is no device 'abacus' in traces/devices.rec" --like abacus
    refuse 2 "of device 'p100' processors or bf16 are not known" --like p100
    refuse 2 '--repeats must be at least 1' --repeats 0
    refuse 4 '/dev/null/raw: Not a directory' --like a100-80 --raw /dev/null/raw
    # other records than those of a machine
    printf 'device\tx\t1e12\t1e10\tbf16=1e14\nop\ta\n' >bad.rec
    run steptime --list --devices bad.rec
    [ "$status" = 3 ] && [[ $output == *"bad.rec:2: a table of devices has device and reach records, got 'op'"* ]]
    printf '#\nfabric\tx\n' >bad.rec
    run steptime --list --devices bad.rec
    [ "$status" = 3 ] && [[ $output == *'bad.rec:2: fabric needs 4 fields'* ]]
}
