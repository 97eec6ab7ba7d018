# rampipe, which runs all tools and recipes.

setup() { trap - DEBUG; cd "$BATS_TEST_TMPDIR" || return 1; ln -s "$ROOT/traces" traces; }

@test "rampipe: alone it prints README's questions, its recipes and the tools" {
    rampipe >list
    while read -r question; do grep -qxF "$question" list; done < <(
        sed -n 's/^| \([^|]*?\) | `.*/\1/p' "$ROOT/README.md")
    for recipe in "$ROOT"/scripts/recipes/*; do
        grep -q "^    rampipe ${recipe##*/} " list
        grep -qxF "$(sed -n '2s/^# //p' "$recipe")" list
    done
    [ "$(grep -cF '](' list)" = 0 ] # links are for the page
    grep -q '^  .*ramp-alloc' list
}

@test "rampipe: runs a tool as if it stood on the PATH, with its status" {
    PATH=/usr/bin:/bin
    "$BUILD/bin/rampipe" pd2graph "$ROOT/traces/vgg16.txt" | "$BUILD/bin/rampipe" reccheck 2>&1 | grep -q ok
    echo x >bad
    run "$BUILD/bin/rampipe" sim bad
    [ "$status" = 3 ] && [[ $output == "sim: bad:1: "* ]]
    "$BUILD/bin/rampipe" report --help | grep -q '^Usage: report'
    "$BUILD/bin/rampipe" help report | grep -q '^Usage: report'
    run "$BUILD/bin/rampipe" bootstrap
    [ "$status" = 2 ]
    run "$BUILD/bin/rampipe" simm
    [ "$status" = 2 ] && [[ $output == "rampipe: there is no tool or recipe called 'simm'"* ]]
    run "$BUILD/bin/rampipe" ../sim
    [ "$status" = 2 ]
}

@test "rampipe: help finds the page of a mode, of words; none is status 1" {
    rampipe help preempt | grep -q '^Usage: tracegen preempt'
    rampipe help tracegen preempt | grep -q '^Usage: tracegen preempt'
    [ "$(rampipe help '' 2>&1)" = "$(rampipe --help)" ]
    rampipe help weibull | grep -q 'docs/spot.md: '
    # several words, the beginning of a word, words of the field, tools that no page names for it
    rampipe help bubble pipeline | grep -q '^ .*`--schedule`'
    rampipe help straggler | grep -q '## Stragglers and faults'
    for word in fsdp oom checkpoint moe allreduce infiniband mtbf deepspeed 'kv cache'; do
        rampipe help $word | grep -q 'docs/words.md: '
    done
    rampipe help rendezvous | grep -q '^    sim redundant --help: '
    run rampipe help xyzzy
    [ "$status" = 1 ] && [[ $output == *"about 'xyzzy'" ]]
}

@test "rampipe: a recipe prints what it runs, which gives the same by hand" {
    rampipe fits gpt2-xl --memory 80GB >out 2>said
    grep -q '^gpt2-xl: a batch of 18 fits into 80 GB: it needs 77.97 GB (weights' out
    sed 's/^\$ //' said | bash -o pipefail | sed -n 's/^# //p' | diff - out
    # 32 bits: weights, gradients and outputs are twice as large
    rampipe fits gpt2-xl --memory 80GB --precision fp32 2>/dev/null | grep -q '^gpt2-xl: a batch of 9 .*(weights 6.23 GB'
    # a stream has the precision that it says
    pdgen --graph --precision fp32 gpt2-xl >wide.rec
    rampipe fits wide.rec --memory 80GB 2>/dev/null | grep -q '^gpt2-xl: a batch of 9 .*(weights 6.23 GB'
    rampipe serve traces/serving/image-driver.rec --slo 300ms --queries 1000 >out 2>said
    grep -q '^SLO attainment  *[0-9.]* %$' out
    sed -n '2,$s/^\$ //p; /^ /p' said | bash -o pipefail >again
    diff <(grep '^cost rate' out) <(grep '^cost rate' again)
    rampipe spot traces/spot.rec --profile traces/redundant/bert.tsv --runs 5 >out 2>said
    cost=$(sed 's/^\$ //' said | bash -o pipefail | awk -F '\t' '$2 == "cost" && $3 == "mean" { printf "%.4g", $4 }')
    [ "$cost" = "$(awk '$1 == "cost" { print $2 }' out)" ]
}

@test "rampipe: a recipe without an answer says so, with a status" {
    run rampipe spot traces/spot.rec --profile traces/redundant/bert.tsv --runs 3 --days 1
    [ "$status" = 1 ] && [[ $output == *"in 3 of 3 runs the training has not ended after 1 days"* ]]
    # a training without an end has no cost
    run rampipe spot traces/spot.rec --profile traces/redundant/alexnet.tsv --runs 1
    [ "$status" = 2 ] && [[ $output == *"alexnet.tsv does not say how many steps the training has: give --steps" ]]
    run rampipe spot traces/spot.rec --profile <(cat traces/redundant/alexnet.tsv) --runs 1
    [ "$status" = 2 ] && [[ $output == *"does not say how many steps the training has: give --steps" ]]
    # a profile with an end may be a pipe, or compressed
    gzip -c traces/redundant/bert.tsv >"$BATS_TEST_TMPDIR/bert.tsv.gz"
    rampipe spot traces/spot.rec --profile traces/redundant/bert.tsv --runs 2 >"$BATS_TEST_TMPDIR/plain" 2>/dev/null
    rampipe spot traces/spot.rec --profile <(cat traces/redundant/bert.tsv) --runs 2 2>/dev/null |
        diff "$BATS_TEST_TMPDIR/plain" -
    rampipe spot traces/spot.rec --profile "$BATS_TEST_TMPDIR/bert.tsv.gz" --runs 2 2>/dev/null |
        diff "$BATS_TEST_TMPDIR/plain" -
    run rampipe spot traces/spot.rec --profile traces/redundant/alexnet.tsv --runs 1 --steps 0
    [ "$status" = 2 ] && [[ $output == *"--steps must be at least 1"* ]]
    # of one run there is no deviation; 08 is a number of days
    run rampipe spot traces/spot.rec --profile traces/redundant/alexnet.tsv --runs 1 --steps 1000 --days 08
    [ "$status" = 0 ] && [[ $output == *"cost "*" -          - "* ]]
    run rampipe fits traces/models/llama-2-70b.json --memory 80GB
    [ "$status" = 1 ] && [[ $output == *"not even a batch of 1 fits into 80 GB"* ]]
    run rampipe serve traces/serving/image-driver.rec --slo 30ms --queries 500
    [ "$status" = 1 ] && [[ $output == *"plan: no configuration meets 0.03 s"* ]]
    run rampipe serve traces/serving/image-driver.rec
    [ "$status" = 2 ] && [[ $output == *"it needs --slo"* ]]
    pd2graph traces/alexnet.txt >"$BATS_TEST_TMPDIR/profile.rec"
    run rampipe fits "$BATS_TEST_TMPDIR/profile.rec" --memory 80GB
    [ "$status" != 0 ] && [[ $output == *"has no precision="* ]]
    run rampipe fits gpt2-xl --memory 80GB --memory 8GB
    [ "$status" = 2 ] && [[ $output == *"--memory is given twice"* ]]
    run rampipe serve --speed 3
    [ "$status" = 2 ]
    run rampipe serve "no such file" --slo 300ms
    [ "$status" = 4 ] && [[ $output == *"no such file: No such file or directory"* ]]
}

@test "rampipe: each recipe has a question, how it is called, and --help" {
    for recipe in "$ROOT"/scripts/recipes/*; do
        name=${recipe##*/}
        rampipe $name --help >help
        [[ $(sed -n 1p help) == *"?" ]]
        [[ $(sed -n 2p help) == "rampipe $name "* ]]
        [ "$(wc -l <help)" -ge 4 ]
    done
}

@test "rampipe step: the step, what bounds it, and measured ones near it, of what it prints" {
    mix=(--device h100-80 --gpus 64 --tp 8 --dp 8 --micro-batch 1 --global-batch 64)
    rampipe step --model traces/models/llama-2-70b.json "${mix[@]}" --tokens 15T --price 2.5 >out 2>said
    grep -v '^#' said | sed 's/^\$ //' | bash -o pipefail >again
    [ "$(sed -n 's/^step  *\([0-9.]*\) s/\1/p' out)" = "$(sed -n 's/^training.*\tseconds=\([0-9.]*\).*/\1/p' again | awk '{ printf "%.4g", $1 }')" ]
    grep -q '^bound by  *[a-z]*$' out && grep -q '^training  *[0-9.]* days, [0-9.e+]* US\$$' out
    # each row is predicted / measured - 1, and of the same kind of device
    awk '/^near it/ { rows = 1; next } rows { off = 100 * ($2 / $1 - 1); if ((off - $3) ^ 2 > 0.1 || $5 !~ /^h100/) print; n++ }
        END { if (n != 3) print n " rows" }' out >wrong
    diff /dev/null wrong
    # docs/training.md: with few samples, gradients of 32 bits decide, and it says what would halve them
    mix[-1]=8
    rampipe step --model traces/models/llama-2-70b.json "${mix[@]}" 2>/dev/null >few
    grep -q 'summed in 32 bits; --gradients bf16 would halve them' few
    rampipe step --model traces/models/llama-2-70b.json "${mix[@]}" --gradients bf16 2>/dev/null >half
    [ "$(awk '/^step/ { printf "%.2f s ", $2 }' few half)" = '1.03 s 0.73 s ' ]
    # the graph is the same step
    sed -n 's/^# *//p' said | tail -n 2 | bash -o pipefail | awk -F '\t' '$2 == "step time" && $3 == "mean" { printf "%.4g\n", $4 }' >graph
    [ "$(cat graph)" = "$(sed -n 's/^step  *\([0-9.]*\) s/\1/p' out)" ]
    run rampipe step --model traces/models/llama-2-70b.json --device h100-80 --gpus 64 --tp 7 --micro-batch 1 --global-batch 64
    [ "$status" = 1 ] && [[ $output == *"rampipe step: 64 devices are no whole number of replicas"* ]]
    run rampipe step --model traces/models/llama-2-70b.json --device h100-80 --tp 8
    [ "$status" = 2 ] && [[ $output == *"it needs --gpus"* ]]
}
