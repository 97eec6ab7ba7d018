# Every tool and mode, each with a good input: what fault.bats and faults.bats run. And how they fail.

# A good input for each tool, made once.
make_programs() {
    cd "$BATS_FILE_TMPDIR" || return 1
    cp "$ROOT/traces/alexnet.txt" profile.txt
    pd2graph --no-job profile.txt >nojob.rec
    pd2graph profile.txt >graph.rec
    partition --degree 2 graph.rec >parts.rec
    ramp-alloc --shape 2x2x2 parts.rec >alloc.rec
    sim alloc.rec >done.rec
    printf '#rampipe\t1\n' >why.rec
    for to in b c d e; do printf 'load\ta\t%s\t1e9\t1\t2\t1e9\tlinks=4\n' $to; done >>why.rec
    echo "#end" >>why.rec
    printf '#rampipe\t1\nrun\tj\tx\ta\t0\t1\n' >rates.rec
    for to in b c d e; do printf 'rate\tj\ta\t%s\t0\t1\t1e9\t2e9\n' $to; done >>rates.rec
    echo "#end" >>rates.rec
    { printf '#rampipe\t1\ncluster\tisland\t4\t3e11\t2e-6\t8e10\n' && grep -v '^#' parts.rec && echo '#end'; } >island.rec
    { printf '#rampipe\t1\ncluster\tcustom\ta,b,c\t8e10\talgorithm=ring\n' &&
        printf 'link\t%s\ts\t3e11\t1e-6\tboth=1\n' a b c && printf 'route\ta\tb\ts,c,s\n#end\n'; } >net.rec
    alloc --cluster net.rec parts.rec >custom.rec
    printf 'topology: [ Switch, Ring, FullyConnected ]\nnpus_count: [ 2, 3, 2 ]\nbandwidth: [ 9, 5.5, 1 ]\nlatency: [ 1, 2, 3 ]\n' >net.yml
    printf '4 2 1 1 4 A100\n2 3 \n0 2 2400Gbps 0.000025ms 0\n1 2 2400Gbps 25ns 0\n0 3 1Tbps 1us 0\n1 3 1Tbps 1us 0\n' >net.topo
    printf 'GPU0 GPU1 NIC0 CPU Affinity\nGPU0 X NV1 PIX 0-3\nGPU1 NV1 X SYS 4-7\nNIC0 PIX SYS X\n' >two.topo
    ramp-alloc graph.rec | graph2et --prefix trace >/dev/null
    cp "$ROOT/traces/spot.rec" "$ROOT/traces/redundant/bert.tsv" "$ROOT/traces/models/lenet-5.onnx" .
    tracegen fit --stats spot.rec >model.rec
    sim elastic spot.rec >elastic.rec
    { printf '#rampipe\t1\n' && cat "$ROOT/traces/serving/social-media.rec" &&
        seq 0 99 | awk -v OFS='\t' '{ print "query", "q" $1, $1 / 40 }' &&
        echo '#end'; } >serving.rec
    sim serve serving.rec >served.rec
    plan --slo 300ms --rungs 2 serving.rec 2>/dev/null | tracegen queries --rate 120 --queries 200 >tuned.rec
    cp "$ROOT/traces/tasks/"{report.tasks,sweep.yaml} .
    printf 'network,degree\nalexnet,3\n' >rows.csv
    # (preloaded faults are for the runner)
    { printf '#rampipe\t1\n' &&
        printf 'task\t%s\tinf\t%s\t%s\ttrue\tenv=LD_PRELOAD=\n' a - @x b @x @y c @x,@y @z d @z - && echo '#end'; } >tasks.rec
    { printf '#rampipe\t1\n' && printf 'attempt\t%s\t1\t0\t%s\t%s\tuser=1\tsystem=0\n' a 2 0 b 3 1 &&
        printf 'block\tb\t3\tfailed\tstart=0\n#end\n'; } >ran.rec
    cat >agent.sh <<'A'
#!/bin/sh
while IFS='	' read -r type job graph rest; do
    case $type in
    offer) last=$graph ;;
    ask) printf 'answer\t%s\t%s\n' "$job" "$last" ;;
    esac
done
A
    cat >acts.sh <<'A'
#!/bin/sh
first= ops=
while IFS='	' read -r type job op pass rest; do
    case $type in
    op)
        case "$rest	" in
        *"pair=1	"*) ;;
        *) if [ -z "$first" ]; then first=$op; else ops="$ops $op"; fi ;;
        esac ;;
    offer) graph=$op ;;
    ask)
        printf 'split\t%s\t%s\t2\n' "$job" "$first"
        printf 'place\t%s\t%s\t%s\n' "$job" "${first}a" 0-0-0 "$job" "${first}b" 0-1-0
        for op in $ops; do printf 'place\t%s\t%s\t0-0-0\tpriority=1\n' "$job" "$op"; done
        printf 'transfer\t%s\t%sb\t%s\t0\nanswer\t%s\t%s\n' "$job" "$first" 2 "$job" "$graph" ;;
    esac
done
A
    chmod +x agent.sh acts.sh
    { printf '#rampipe\t1\n' && printf 'graph\tg\tm\tbatch=4\n' &&
        printf 'op\tg\t%s\tforward\t0\t8\tflops=9\tmoved=8\n' 1 2 3 && echo '#end'; } >work.rec
    printf 'collective\tc%s\th100-sxm\tall-reduce\t%s\t1\t1048576\n' 1 8 2 4 | cat <(printf '#rampipe\t1\n') - \
        <(echo '#end') >collective.rec
    printf 'training\tt%s\tdevice=h100-80\tlayers=4\thidden=1024\tffn=4096\theads=8\tvocab=32000\tseq=1024\ttp=%s\tdp=2\tmbs=1\tgbs=8\n' 1 1 2 2 3 4 | cat <(printf '#rampipe\t1\n') - <(echo '#end') >training.rec
    grep -v 'training.t[^1]' training.rec >step.rec
    sed 's/\ttp=.\tdp=2\tmbs=1//' training.rec >plan.rec
    printf 'kernel\tk%s\th100-80\tgemm\tbf16\t%s,4096,8192\n' 1 512 2 1024 3 2048 4 4096 | cat <(printf '#rampipe\t1\n') - <(echo '#end') >kernel.rec
    kernel fit <(printf '%s\n' device,dtype,m,k,n,time_s h100-80,bf16,{1024,2048,4096},4096,8192,2e-4) >laws.rec
    cat >programs <<T
pd2graph	profile.txt
partition	graph.rec
ramp-alloc	parts.rec
alloc	parts.rec	--cluster=island:8,300GB/s,2us,80GB
alloc	island.rec
alloc	parts.rec	--cluster=$PWD/net.rec
net2rec	net.yml
net2rec	net.topo	--memory=80GB
net2rec links	net.rec
net2rec	two.topo	--nvlink=25GB/s --pcie=16GB/s --socket=9GB/s --latency=1us
ramp-alloc	parts.rec	--agent=$PWD/agent.sh
ramp-alloc	graph.rec	--whole-actions --agent=$PWD/acts.sh
ramp-alloc bound	parts.rec
learn	parts.rec	--threads=1 --generations=1 --jobs=9 --loads=9 --held-out=0
graph2et	alloc.rec	--prefix=$PWD/again
et2graph	trace.0.et	-q
onnx2graph	lenet-5.onnx	--batch=2
sim	alloc.rec
sim	custom.rec
sim elastic	spot.rec
sim redundant	spot.rec	--profile=bert.tsv
sim serve	tuned.rec	--trace --tune --activation=0.2 --scale-down-after=0.5
plan	serving.rec	--slo=300ms	--holdout=0
plan train	plan.rec	--gpus=4
task2graph	report.tasks
task2graph	rows.csv	--template=sweep.yaml --costs=ran.rec -q
metrics	done.rec
metrics	why.rec	--links
metrics	elastic.rec
metrics	ran.rec	--compare=tasks.rec
metrics	served.rec	--histogram=9
reccheck	alloc.rec	--pass
rec2sqlite	done.rec
timeline	ran.rec
timeline	ran.rec	--svg
timeline	ran.rec	--html
timeline	rates.rec	--links=1
runtasks	tasks.rec	--brief -j1
pdgen	vgg16
roofline	work.rec	--batch=8
collective	collective.rec
steptime	training.rec	--overlap=dp
parallel	step.rec	--micro-batch=2
kernel	kernel.rec
kernel fit	laws.rec
footprint	nojob.rec	--precision=fp16
footprint	nojob.rec	--precision=fp16 --largest-batch --memory=80GB
tracegen jobs	nojob.rec
tracegen fit	spot.rec
tracegen preempt	model.rec
tracegen queries	nojob.rec	--rate=100
T
}
# Calls `f`, which uses $program, $input and $options, for each program; those of
# each_filter read records.
# shellcheck disable=SC2034
each() {
    while IFS=$'\t' read -r program input options; do
        $1 || { echo "$program failed"; return 1; }
    done <"${2:-programs}"
}
each_filter() { grep -vE $'^(pd2graph|pdgen|task2graph|et2graph|onnx2graph|net2rec)\t' programs >filters; each "$1" filters; }

# Standard input is $from, and standard output goes to $to, or to the file "out".
status_is() { # expected status, command...
    local want=$1 got=0
    shift
    "$@" >"${to-out}" 2>err <"${from-/dev/null}" || got=$?
    [ "$got" = "$want" ] || { echo "status $got, expected $want: $*"; cat err; return 1; }
}
# Is the message one line, like the pattern? (without a process: it is asked some thousand times)
one_line() {
    local lines
    mapfile lines <err
    # shellcheck disable=SC2053
    [[ ${#lines[@]} == 1 && ${lines[0]} == ${1-*}$'\n' ]] || { cat err; return 1; }
}

# faulty KINDS COMMAND...: runs the command with faults of these kinds. Sets $calls: the number of calls that
# could fail.
faulty() {
    local kinds=$1
    shift
    : >wrong
    : >count
    local same=
    [[ " $kinds " == *" "[A-Z]* ]] || same=2
    FAULT_SAME=$same FAULT_SEEN=seen FAULTS=$kinds FAULT_LOG=wrong FAULT_COUNT=count LD_PRELOAD=$BUILD/tests/fault/shim.so \
        "$@" >out 2>err </dev/null || true
    [ ! -s wrong ] || { head -n 40 wrong; return 1; }
    local n
    calls=
    while read -r _ n _; do
        [ -n "$calls" ] && [ "$calls" -le "$n" ] || calls=$n
    done <count
    [ "${calls:-0}" -ge 1 ] || { echo "no call could fail: $*"; return 1; }
}
