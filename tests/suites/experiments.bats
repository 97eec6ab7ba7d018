# Experiments as make rules: a point that was made with other parameters is not used, and a failing stage
# leaves no file. (pipeline.bats and spot.bats test that they make the same bytes each time, and resume.)

setup() {
    trap - DEBUG
    cd "$BATS_TEST_TMPDIR" || return 1
    experiments=$ROOT/traces/experiments
    # relative paths: make cannot have blanks in a name, but the path of the tree may have some
    out=$(realpath --relative-to="$experiments/load" "$PWD")
    bin=$(realpath --relative-to="$experiments/load" "$BUILD/bin")
}

load() { # OUT, parameters
    make -s -C "$experiments/load" BIN="$bin" PROFILES=../../alexnet.txt OUT="$out/$1" \
        CURVES='max@first none@first' INTERARRIVALS=1 "${@:2}"
}
spot() {
    make -s -j2 -C "$experiments/spot" BIN="$bin" OUT="$out/$1" REMOVALS='0.25 0.50' CHUNK=2 \
        "${@:2}"
}
nothing_of() { # OUT NAME...: no file of these names
    local at=$1 name
    shift
    for name; do find "$at" -type f -name "$name"; done >left
    cat left
    [ ! -s left ]
}

@test "load: other jobs, seeds or splitting make what a fresh run makes" {
    load old JOBS=40 SEEDS='1 2' >log
    for other in ${EVERY+"JOBS=60 SEEDS='1 2'"} ${EVERY+"JOBS=60 SEEDS=2"} "JOBS=60 SEEDS=2 SPLIT=--quantum=0.01"; do
        cp old/load.tsv before
        eval "load old $other" >log
        eval "load fresh $other" >log
        cmp old/load.tsv fresh/load.tsv
        cmp old/blocking.svg fresh/blocking.svg
        ! cmp -s old/load.tsv before || { echo "the same with $other"; return 1; }
        rm -r fresh
    done
    # the same parameters again make no point
    cp old/points.rec before
    load old JOBS=60 SEEDS=2 SPLIT=--quantum=0.01 >log
    cmp old/points.rec before
}

@test "load: other tools and inputs make new points" {
    mkdir tools
    ln -s "$BUILD"/bin/* tools/
    cp "$ROOT/traces/alexnet.txt" profile.txt
    bin=$out/tools
    load old JOBS=20 SEEDS=1 PROFILES="$out/profile.txt" >log
    # the new tool is older than the points, like a tool from an archive
    rm tools/sim
    printf '#!/bin/sh\nexec "%s" --until 40 "$@"\n' "$BUILD/bin/sim" >tools/sim
    chmod +x tools/sim
    touch -d 2020-01-01 tools/sim
    load old JOBS=20 SEEDS=1 PROFILES="$out/profile.txt" >log
    [ "$(grep -c ^done old/points.rec)" = 3 ] # the graphs and two points
    cp "$ROOT/traces/vgg16.txt" profile.txt
    touch -d 2020-01-01 profile.txt
    load old JOBS=20 SEEDS=1 PROFILES="$out/profile.txt" >log
    [ "$(grep -c ^done old/points.rec)" = 3 ]
}

@test "sharing: jobs that are spread slow each other, those that lie near do not; figures and plots say so" {
    make -s -C "$experiments/sharing" BIN="$bin" PROFILES=../../alexnet.txt OUT="$PWD/sharing" JOBS=8 SEEDS=1 \
        CURVES='near@4 spread@4' INTERARRIVALS='0.5 9' >log
    cut -f 1-3,9 sharing/sharing.tsv >slowdowns
    [ "$(head -n 1 slowdowns)" = "place	taper	interarrival	slowdown" ]
    [ "$(wc -l <slowdowns)" = 5 ]
    [ "$(awk '$1 == "near" && $4 == 1' slowdowns | wc -l)" = 2 ]
    awk '$1 == "spread" { slowed[$3] = $4 } END { exit !(slowed[0.5] > slowed[9] && slowed[9] >= 1) }' slowdowns
    for plot in slowdown tail completion; do grep -q 'spread@4' sharing/$plot.svg; done
}

@test "load: on a terminal it says how many tasks have ended; without one nothing, nor in a product" {
    script -qec true /dev/null </dev/null >/dev/null || skip "there are no terminals here"
    mkdir tools
    ln -s "$BUILD"/bin/* tools/ && rm tools/ramp-alloc
    printf '#!/bin/sh\nsleep 1.2\nexec "%s" "$@"\n' "$BUILD/bin/ramp-alloc" >tools/ramp-alloc
    chmod +x tools/ramp-alloc
    bin=$out/tools
    export -f load
    export experiments out bin
    # script(1) must start bash: no other shell takes exported functions
    SHELL=$BASH script -qec 'load seen JOBS=5 SEEDS=1 -j2' /dev/null </dev/null >said &
    load unseen JOBS=5 SEEDS=1 -j2 >log 2>&1
    wait $!
    tr '\r' '\n' <said | grep -qE '^runtasks: [0-9]+ %, ([0-9]+ s left, )?[0-9] of 3 tasks done, [0-9] running'
    ! grep -q 'runtasks:' log || { cat log; return 1; }
    ! grep -rq '% *,.* of 3 tasks' seen || { echo "a product has it"; return 1; }
    cmp seen/load.tsv unseen/load.tsv
}

agents() { # OUT, parameters
    # the quality of the policy does not matter here, so it is trained briefly on few jobs
    [ -d tools ] || { mkdir tools && ln -s "$BUILD"/bin/* tools/ && rm tools/learn &&
        printf '#!/bin/sh\nexec "%s" --jobs 100 --held-out 0 --final 8 "$@"\n' "$BUILD/bin/learn" >tools/learn &&
        chmod +x tools/learn && bin=$out/tools; } || return
    make -s -C "$experiments/agents" BIN="$bin" PROFILES=../../alexnet.txt OUT="$out/$1" JOBS=60 GENERATIONS=1 \
        FRACTIONS=skew:5 SEEDS=1000001 "${@:2}"
}
@test "agents: rules, a policy that is trained first, and the bound, which none beats, by each heuristic and by two" {
    agents agents INTERARRIVALS='100 fixed:200' HEURISTICS='first-fit first-fit_compact' SEEDS=1000001..1000002 \
        CHOOSERS='sip-ml:4@first learned rollout:2 bound' >log
    [ -s agents/blocking.svg ]
    # 4 choosers, 2 heuristics, 2 loads
    awk -F'\t' 'NR > 1 { n++; plus = index($1, "+"); by = substr($1, 1, plus - 1)
            at = substr($1, plus) SUBSEP $2 SUBSEP $3; if (by == "bound") bound[at] = $5; else rate[by, at] = $5 + 1e-9 }
        END { for (k in rate) { at = k; sub(/^[^\034]*\034/, "", at); bad += rate[k] < bound[at]; pairs++ }
              print n, pairs, bad + 0 }' agents/agents.tsv >summary
    diff - summary <<<"16 12 0"
    for heuristic in first-fit first-fit_compact; do grep -qx "policy	${heuristic/_/,}" agents/policy/$heuristic.rec; done
}

@test "agents: of several policies each heuristic gets the one that was trained for it" {
    agents given INTERARRIVALS=100 JOBS=2 HEURISTICS='first-fit compact block' CHOOSERS=learned \
        POLICY='../../policies/pac-ml-compact.rec ../../policies/pac-ml.rec' "$out/given/agents.tsv" >log 2>&1
    cmp given/policy/first-fit.rec "$ROOT/traces/policies/pac-ml.rec"
    cmp given/policy/compact.rec "$ROOT/traces/policies/pac-ml-compact.rec"
    cmp given/policy/block.rec given/policy/compact.rec
}

# The policy is hardly trained. Its experts are those of three shapes, the same for clusters of other shapes, and eight for
# clusters of hundreds of servers.
@test "agents: train-many trains a policy for many clusters, and held-out measures it" {
    [ -n "${EVERY-}" ] || skip "it takes half a minute: EVERY=1 trains"
    [ -d "$ROOT/../shared/data/pipedream" ] || skip "../shared is not here"
    export BIN=$BUILD/bin
    JOBS=10 TIMES="--generations 1 --jobs 6 --final 1 --held-out 0" "$experiments/agents/train-many" \
        "$ROOT/../shared/data/pipedream" 0.01 --generations=1 --jobs=6 --final=1 --held-out=0 >many.rec
    awk -F'\t' '$1 == "expert" { n++; print $2 == n, $NF ~ /^cluster=/ ? $NF : "any" }' many.rec | uniq -c |
        sed 's/^ *//' >experts
    diff - experts <<'EXPERTS'
7 1 cluster=a 2x2x2 cluster
7 1 cluster=a 6x2x3 cluster
7 1 cluster=a 4x4x2 cluster
23 1 any
EXPERTS
    ROWS="2x2x2/../../alexnet.txt,../../vgg16.txt/fixed:50/95" JOBS=40 SEEDS=1..8 RULES='all@first all@fastest' \
        "$experiments/agents/held-out" "$PWD/many.rec" >table
    # a rate is a number of the 320 jobs, and the last column that of the policy less the least of the heuristics
    awk -F' *[|] *' 'NR == 3 { best = $4; for (i = 5; i < 7; i++) if ($i < best) best = $i
            split($8, less, " "); off = $7 - best - less[1]
            whole = int($7 * 320 + 0.5)
            print $2, $3, (off * off < 1e-6), (($7 * 320 - whole) ^ 2 < 1e-3), (whole > 32 && whole < 320), (less[3] > 0) }
        END { print NR }' table >summary
    diff - summary <<<$'2x2x2, alexnet vgg16, fixed:50 95 % 1 1 1 1\n3'
}

@test "agents: held-out says no standard error of one stream" {
    for seeds in 1..1 1..2; do
        BIN=$BUILD/bin ROWS="2x2x1/../../alexnet.txt/fixed:50/300" JOBS=8 SEEDS=$seeds RULES=all@first WAYS=first-fit \
            "$experiments/agents/held-out" | tail -n 1 | grep -o '[+]- [-0-9.]*'
    done >errors
    diff - <(sed 's/[0-9]/d/g' errors) <<<$'+- -\n+- d.dddd'
}

@test "spot: another network, other runs make what a fresh run makes" {
    spot old RUNS=4 MINUTES=600 >log 2>&1
    for other in ${EVERY+"RUNS=4 NETWORK=vgg"} "RUNS=3 NETWORK=vgg REMOVALS=0.50"; do
        cp old/table.txt before
        spot old MINUTES=600 $other >log 2>&1
        spot fresh MINUTES=600 $other >log 2>&1
        for table in table.tsv table.txt table.svg redundant.svg; do
            cmp old/$table fresh/$table
        done
        ! cmp -s old/table.txt before || { echo "the same with $other"; return 1; }
        rm -r fresh
    done
}

@test "a stage that fails after a whole result leaves no product, nor an older one" {
    load whole JOBS=20 SEEDS=1 >log
    spot spots RUNS=2 MINUTES=600 >log 2>&1
    fails() { # experiment OUT
        local status=0
        $1 "$2" JOBS=21 SEEDS=1 RUNS=2 MINUTES=601 >log 2>&1 || status=$?
        [ $status = 2 ] || { echo "$1 $2: status $status with a failing $tool"; cat log; return 1; }
    }
    for tool in pd2graph tracegen partition ramp-alloc sim metrics; do
        mkdir $tool
        ln -s "$BUILD"/bin/* $tool/
        rm $tool/$tool
        printf '#!/bin/sh\n"%s" "$@"\nexit 1\n' "$BUILD/bin/$tool" >$tool/$tool
        chmod +x $tool/$tool
        bin=$out/$tool
        fails load load-$tool
        nothing_of load-$tool '*.tsv'
        case $tool in
        tracegen | sim | metrics)
            fails spot spot-$tool
            nothing_of spot-$tool '*.tsv'
            ;;
        esac
    done
    nothing_of load-pd2graph '*.gz'
    nothing_of spot-tracegen '*-*.rec' points.rec
    nothing_of spot-sim '*-*.rec' '*.svg'
    fails load whole
    fails spot spots
    nothing_of whole load.tsv '*.svg'
    nothing_of spots table.tsv table.txt
    nothing_of . '*.part' '*.new'
}

@test "demo: a stage that fails is a failing demo" {
    mkdir -p build/bin
    ln -s "$BUILD"/bin/* build/bin/
    rm build/bin/ramp-alloc
    printf '#!/bin/sh\n"%s" "$@"\nexit 1\n' "$BUILD/bin/ramp-alloc" >build/bin/ramp-alloc
    chmod +x build/bin/ramp-alloc
    run env BUILD="$PWD/build" "$ROOT/scripts/demo"
    [ "$status" != 0 ]
}

@test "a man page that the tool could not print is an error" {
    printf '#!/bin/sh\necho .TH half\nexit 1\n' >reccheck
    chmod +x reccheck
    cd "$ROOT"
    run scripts/make-man '' "$BATS_TEST_TMPDIR/reccheck" '' 0 "$BATS_TEST_TMPDIR/rampipe.5"
    [ "$status" = 1 ]
}

# What the provenance of a policy says makes the same records.
same_again() { # FILE
    command=$(grep '^#@.learn' "$1" | tail -n 1 | cut -f 3)
    eval "$command" | grep -v '^#@' >again.r && grep -v '^#@' "$1" | cmp - again.r
}

@test "learn, interrupted, writes the means of what it has learned so far, as its provenance says" {
    pd2graph --time-unit s "$ROOT/traces/alexnet.txt" | partition --policy all --quantum 1 >in.r
    # values and lessons have not begun then, and are left out
    learn -v --progress --threads 1 --minutes 9 --loads 100 --jobs 30 --held-out 0 --shape 2x2x1 --values 1 --value-jobs 1000 \
        --taught 1 --teacher "learned:a teacher" --taught-jobs 1000 in.r >policy.r 2>said &
    learner=$!
    for _ in {1..450}; do ! grep -qE "[1-9][0-9,]* generations" said || break; sleep 0.1; done
    kill -TERM $learner
    wait $learner
    grep -q "interrupted after" said
    # the progress is the share of the 9 minutes, of which little has passed
    tr '\r' '\n' <said | grep -qE '^learn: [0-9] %, ([0-9]+ (h|min) [0-9]+ (min|s) left, )?[0-9,]+ generations'
    grep -q '^#@.learn.*--final=0 --generations=[0-9]* ' policy.r
    same_again policy.r
}

# A lesson opens its teacher anew, here a pipe: so it is known where the tool is when the signal comes.
@test "learn, interrupted in its second lesson, keeps what came before, as its provenance says" {
    printf 'graph\tg\tg\nop\tg\ta\ttask\t2\t1\njob\tj\tg\t0\t1\tinf\n' >in.r
    printf 'expert\t%s\tload=0\tneed=0\tspread=0\tvariation=0\nweight\tone\t1\n' 1 2 >two.r
    printf 'weight\tone\t-1\n' >refuses.r
    mkfifo teacher.r next.r
    learn --shape 1x1x1 --heuristic first-fit --loads fixed:1,fixed:1.1 --fractions fixed:2 --steps fixed:1 --generations 0 --init two.r \
        --values 1 --value-jobs 128 --taught 2,1 --taught-jobs 500 --teacher learned:teacher.r in.r >policy.r 2>said &
    learner=$!
    exec 8>teacher.r # waits until the first lesson opens it
    mv next.r teacher.r
    cat refuses.r >&8
    exec 8>&-
    exec 8>teacher.r
    kill -TERM $learner
    cat refuses.r >&8
    exec 8>&-
    wait $learner
    diff said - <<<"learn: warning: interrupted: --taught 1 is left out"
    mv refuses.r teacher.r
    same_again policy.r
    grep -q -- '--values=1 .*--taught=2 ' policy.r
}

# The first generation would need 48,000 episodes. Status 124: learn ended on SIGTERM; 137: it was killed.
@test "learn of thousands of loads heeds SIGTERM, and without a generation writes nothing" {
    pd2graph --time-unit s "$ROOT/traces/alexnet.txt" | partition --policy all --quantum 1 >in.r
    run -124 timeout -k 5 0.5 learn --loads "$(seq -s , 3000)" -o policy.r in.r
    [[ $output == *"interrupted before the first generation was over: there is no result" ]]
    [ ! -e policy.r ]
}
