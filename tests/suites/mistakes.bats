# Mistakes that users make, and messages that say what to do instead.

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    cp "$ROOT/traces/alexnet.txt" profile.txt
    gzip -k profile.txt
    cp "$ROOT/traces/models/lenet-5.onnx" model.onnx
    pd2graph profile.txt >graph.rec
    ramp-alloc graph.rec | graph2et --prefix trace >/dev/null
    echo '{"schemaVersion": 1, "traceEvents": [{"ph": "X", "name": "aten::mm", "ts": 0, "dur": 5}]}' >kineto.json
    echo '{"model_type": "llama", "hidden_size": 4096}' >config.json
    printf 'Time,Nodes\n0,8\n60,7\n' >spot.csv
    cp "$ROOT/traces/tasks/report.tasks" list.tasks
    cp "$ROOT/traces/tasks/sweep.yaml" .
    rec2sqlite -o runs.db graph.rec
}
setup() { trap - DEBUG; cd "$BATS_FILE_TMPDIR" || return 1; }

@test "mistakes: each has a message that names a way out" {
    wrong=0
    while IFS=$'\t' read -r command words; do
        bash -c "$command" >out 2>err || :
        grep -qF -- "$words" err && [ "$(wc -l <err)" = 1 ] && continue
        wrong=$((wrong + 1))
        echo "$command: expected '$words', got: $(cat err)"
    done < <(grep -v '^#' "$ROOT/tests/tools/mistakes.tsv")
    [ $wrong = 0 ]
}

@test "mistakes: names of devices and units are taken as people write them" {
    printf '#rampipe\t1\ngraph\tg\tm\tbatch=4\nop\tg\t1\tforward\t0\t8\tflops=9\tmoved=8\n#end\n' >work.rec
    roofline --device a100 --precision fp16 work.rec | grep -v '^#@' >want
    roofline --device A100 --precision FP16 work.rec | grep -v '^#@' | cmp - want
    ramp-alloc --bandwidth 100GB/s --memory 80GB graph.rec | grep -v '^#@' >want
    for rate in '100 GB/s' 800Gb/s 800Gbps '800 Gbit/s'; do
        ramp-alloc --bandwidth "$rate" --memory '80 gb' graph.rec | grep -v '^#@' | cmp - want
    done
}
