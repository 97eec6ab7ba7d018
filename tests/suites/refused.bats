# Wrong foreign text and wrong option values: each is refused with a message that names it and its place.
# (laws.bats has wrong fields of records: "a field that is wrong".)

setup() { trap - DEBUG; cd "$BATS_TEST_TMPDIR" || return 1; }

# Standard input has lines "INPUT | MESSAGE". For each, the command, on INPUT as printf writes it, ends with
# the given status and a message that matches MESSAGE.
refuses() { # status, command...
    local want=$1 input message status rows=0
    shift
    while IFS='|' read -r input message; do
        printf "${input% }" >in
        rows=$((rows + 1)) status=0
        "$@" >out 2>err </dev/null || status=$?
        if [ "$status" != "$want" ] || ! grep -qF -- "${message# }" err || [ "$(wc -l <err)" != 1 ]; then
            echo "status $status of '$input', which should say:$message"
            cat err
            return 1
        fi
    done
    [ $rows -gt 0 ]
}
# Standard input has lines "VALUE | MESSAGE", each with a wrong value of an option.
refuses_value() { # command...
    local value message status
    while IFS='|' read -r value message; do
        status=0
        "$@" "${value% }" >out 2>err </dev/null || status=$?
        if [ "$status" != 2 ] || ! grep -qF -- "${message# }" err || [ "$(wc -l <err)" != 1 ]; then
            echo "status $status of '$value', which should say:$message"
            cat err
            return 1
        fi
    done
}

@test "refused: rows of spot logs" {
    refuses 3 tracegen fit in <<'ROWS'
timestamp,count\n2021-09-14T17:00:00Z\n | in:2: the row has 1 fields, needs 2
timestamp,count\n20x1-09-14T17:00:00Z,3\n | in:2: a timestamp must be YYYY-MM-DDTHH:MM:SSZ, got '20x1-
timestamp,count\n2021-0x-14T17:00:00Z,3\n | in:2: a timestamp must be
timestamp,count\n2021-09-1xT17:00:00Z,3\n | in:2: a timestamp must be
timestamp,count\n2021-09-14 17:00:00Z,3\n | in:2: a timestamp must be
timestamp,count\n2021-09-14T1x:00:00Z,3\n | in:2: a timestamp must be
timestamp,count\n2021-09-14T17-00:00Z,3\n | in:2: a timestamp must be
timestamp,count\n2021-09-14T17:0x:00Z,3\n | in:2: a timestamp must be
timestamp,count\n2021-09-14T17:00:0xZ,3\n | in:2: a timestamp must be
timestamp,count\n2021-09-14T17:00:00,3\n | in:2: a timestamp must be
timestamp,count\n2021-02-30T17:00:00Z,3\n | in:2: a timestamp must be
timestamp,count\n2021-13-01T17:00:00Z,3\n | in:2: a timestamp must be
timestamp,count\n2021-09-14T24:00:00Z,3\n | in:2: a timestamp must be
timestamp,count\n2021-09-14T17:60:00Z,3\n | in:2: a timestamp must be
timestamp,count\n2021-09-14T17:00:60Z,3\n | in:2: a timestamp must be
timestamp,count\n2021-09-14T17:00:00Z,3.5\n | in:2: the number of instances must be an integer >= 0, got '3.5'
timestamp,count\n2021-09-14T17:00:00Z,-1\n | in:2: the number of instances
timestamp,count\n2021-09-14T17:00:00Z,x\n | in:2: the number of instances
timestamp,count\n2021-09-14T17:00:00Z,1e17\n | in:2: the number of instances
timestamp,number\n2021-09-14T17:00:00Z,3\n | terminations need the log of counts too
2021-12-10, 13:07:45, 80\n2021-12-10, 13:08\n | in:2: a row must be date, time, count; this one has 2 fields
2021-12-10, 13:07:45, 80\n2021-12-10x, 13:08:45, 7\n | in:2: date and time must be YYYY-MM-DD, HH:MM:SS, got '2021-12-10x, 13:08:45'
2021-12-10, 13:07:45, 80\n2021-12-10, 13:08:45x, 7\n | in:2: date and time must be
2021-12-10, 13:07:45, 80\n2021-12-10, 13:08:45, many\n | in:2: the number of instances
0,add,a\n1,add\n | in:2: a row must be milliseconds, add or remove, node; this one has 2 fields
0,add,a\n-1,add,b\n | in:2: milliseconds must be a number from 0 to 1e15, got '-1'
0,add,a\nsoon,add,b\n | in:2: milliseconds must be
0,add,a\n2e15,add,b\n | in:2: milliseconds must be
0,add,a\n1,leave,a\n | in:2: expected add or remove, got 'leave'
0,add,a\n1,add,\n | in:2: a node's name must be text
0,add,a\n1,add,b=c\n | in:2: a node's name must be text
0,add,a\n1,add,"b,c"\n | in:2: a node's name must be text
0,add,a\n1,add,\377\n | in:2: a node's name must be text
trace\t0\t9\n | the stream has no preempt or add records
add\t1\t1\ntrace\t0\t9\n | in:2:
trace\t0\t2e12\n | in:1:
trace\t9\t0\n | in:1:
add\t2e12\t1\n | in:1:
add\t1\t2\tids=a\n | in:1:
ROWS
    # two logs of different kinds
    printf 'timestamp,count\n2021-09-14T17:00:00Z,3\n' >counts
    printf '0,add,a\n' >events
    run tracegen fit counts events
    [ "$status" = 3 ]
    printf 'timestamp,number\n2021-09-14T16:59:00Z,3\n' >early
    run tracegen fit counts early
    [ "$status" = 3 ]
    [[ $output == *"early:2: a termination comes before the first count"* ]]
}

@test "refused: tables of redundant computation" {
    refuses 3 sim redundant --profile in "$ROOT/traces/spot.rec" <<'ROWS'
samples\t8\nstages\t2\n | a profile needs samples, stages, and a step line
stages\t2\nstep\t2\t1\t3\n | a profile needs samples, stages, and a step line
samples\t8\nstages\t2\nstep\t3\t1\t3\n | a profile needs samples, stages, and a step line
samples\t8\nstages\t2\nstep\t2\t2\t3\n | a profile needs samples, stages, and a step line
step\t2\t1\n | in:1: a step line must be: step, stages, pipelines, seconds
step\t2\t1\t0\n | in:1: a step must take from 0.001 to 1e9 seconds
step\t2\t1\t2e9\n | in:1: a step must take from 0.001 to 1e9 seconds
step\t2\t0\t1\n | in:1: a step must take from 0.001 to 1e9 seconds, on at least one pipeline
step\t2\t-1\t1\n | in:1: pipelines must be an integer >= 0, got '-1'
samples\t8\t9\n | in:1: a line must be a key, a TAB and its value
samples\tmany\n | in:1: samples must be a number >= 0, got 'many'
stages\t1.5\n | in:1: stages must be an integer >= 0, got '1.5'
colour\t1\n | in:1: unknown key 'colour'
on_demand_step\t1e13\n | in:1: on_demand_step must be from 0 to 1e+12
ROWS
}

@test "refused: measurements of elastic training" {
    mkdir profile
    measured() {
        printf 'a,b,c,reconfig\n1,2,3,40\n1,2,3,60\n' >profile/reconfig.csv
        printf '30\n' >profile/async-checkpoint_0.csv
        printf '2,0,0,0,9,0,0\n4,0,0,0,5,0,0\n' >profile/loop_times_0.csv
    }
    tell() {
        echo "# nothing happens" |
            sim elastic --profile profile --depth 2 --start 4 --until 100 2>err
    }
    measured
    # 4 instances need 5 s for an iteration, so there are 20 steps until 100 s
    tell | grep -q '^trained.elastic.0.100.20.'
    for damage in 'reconfig.csv a,b,c,d\n1,2,3\n 2:.a.row.must.have.4.fields' \
        'reconfig.csv a,b,c,d\n .no.measured.values' \
        'async-checkpoint_0.csv -1\n 1:.a.row.must.have.1.fields' \
        'async-checkpoint_0.csv inf\n 1:.a.row.must.have.1.fields' \
        'loop_times_0.csv x,0,0,0,9,0,0\n 1:.a.row.must.have.7.fields' \
        'loop_times_0.csv 0,0,0,0,9,0,0\n 1:.a.row.must.have.7.fields' \
        'loop_times_0.csv 2,0,0,0,x,0,0\n 1:.a.row.must.have.7.fields' \
        'loop_times_0.csv 2,0,0,0,0.1,0,0\n .'; do
        set -- $damage
        measured
        printf -- "$2" >profile/$1
        status=0
        tell >out || status=$?
        [ $status = 3 ] && grep -q "$1:.*$3" err || { echo "$status: $damage"; cat err; return 1; }
    done
}

@test "refused: profiles" {
    refuses 3 pd2graph in <<'ROWS'
what\n | in:1:
node1 -- L -- forward_compute_time=x, backward_compute_time=1, activation_size=1, parameter_size=1\n | forward_compute_time must be
node1 -- L -- forward_compute_time=1, backward_compute_time=-1, activation_size=1, parameter_size=1\n | backward_compute_time must be
node1 -- L -- forward_compute_time=1, backward_compute_time=1, activation_size=[1; inf], parameter_size=1\n | activation_size
node1 -- L -- forward_compute_time=1, backward_compute_time=1, activation_size=1\n | in:1:
node1 -- L -- forward_compute_time, backward_compute_time=1, activation_size=1, parameter_size=1\n | in:1:
node1 -- L\n | in:
nodex -- L -- forward_compute_time=1, backward_compute_time=1, activation_size=1, parameter_size=1\n | in:1:
node1 -- L -- forward_compute_time=1, backward_compute_time=1, activation_size=1, parameter_size=1 -- stage_id=1234567890123456789\n | in:1:
node1 -- L -- forward_compute_time=1, backward_compute_time=1, activation_size=1, parameter_size=1 -- stage_id=x\n | in:1:
node1 -- L -- forward_compute_time=1, backward_compute_time=1, activation_size=1, parameter_size=1\n\tnode1 -- node2\n | in:2:
ROWS
}

@test "refused: distributions" {
    pd2graph --no-job "$ROOT/traces/alexnet.txt" >graphs
    printf '1\nx\n' >numbers
    echo "# no value" >none
    refuses_value tracegen jobs graphs --interarrival <<'ROWS'
uniform:2:1 | uniform
uniform:1:2:1.5 | uniform
uniform:1:2:16 | uniform
exponential:-1 | exponential
gamma:1:0 | gamma
gamma:0:1 | gamma
normal:-1:1 | normal
lognormal:0:1 | lognormal
lognormal:1:-1 | lognormal
skewnormal:1:3:2 | skewnormal
skewnormal:1:-1:2 | skewnormal
pmf:1=0.5 | pmf
pmf:1=0.5,2 | pmf
pmf:x=1 | pmf
pmf:1=x | pmf
pmf:inf=1 | pmf
pmf: | pmf
fixed: | fixed
fixed:1:2 | fixed
fixed:inf | fixed
beta:1:2 | beta
ROWS
    run tracegen jobs graphs --interarrival file:numbers
    [ "$status" = 3 ] && [[ $output == *"numbers:2: "* ]]
    run tracegen jobs graphs --interarrival file:none
    [ "$status" = 3 ] && [[ $output == *"none"* ]]
}

@test "refused: models, shapes, amounts with units" {
    refuses 3 tracegen preempt --process empirical in <<'ROWS'
model\tspot\tx\tpreempt_spacings=5\n | in:1: a list of values must be VALUE:WEIGHT,...
model\tspot\tx\tpreempt_spacings=5:0\n | in:1: a list of values
model\tspot\tx\tpreempt_spacings=5:x\n | in:1: a list of values
model\tspot\tx\tpreempt_spacings=-5:1\n | in:1: a list of values
model\tspot\tx\tpreempt_spacings=inf:1\n | in:1: a list of values
model\tspot\tx\tpreempt_spacings=5:inf\n | in:1: a list of values
model\tspot\tx\tpreempt_mean=inf\n | in:1:
model\tlunar\tx\n | in:1: the model is of kind 'lunar', not spot
model\tspot\n | in:1:
ROWS
    refuses_value ramp-alloc --shape <<'ROWS'
4x4 | --shape
4x4x4x4 | --shape
0x1x1 | --shape
ax1x1 | --shape
2000000x1x1 | --shape
4096x4096x4096 | --shape
2x4x1 | at most as many racks as communication groups
ROWS
    refuses_value ramp-alloc --memory <<'ROWS'
80XB | --memory
-1GB | --memory
nan | --memory
GB | --memory
1e999GB | --memory
ROWS
    refuses_value ramp-alloc --bandwidth <<'ROWS'
0 | bandwidth
1GB | --bandwidth
inf | --bandwidth
ROWS
    refuses_value ramp-alloc --io <<'ROWS'
5parsec | --io
s | --io
ROWS
}

# Each model in this folder becomes a graph that reccheck accepts, or is refused with one line. TAKEN and REFUSED
# are about how many of all models are accepted and refused; at least half as many must be. Only every eighth
# model is tried, with EVERY=1 all.
judge_models() { # TAKEN REFUSED
    local status refused=0 taken=0 n=0 share=8
    [ -z "${EVERY-}" ] || share=1
    for file in *.onnx; do
        n=$((n + 1)) status=0
        [ $((n % share)) = 0 ] || continue
        onnx2graph "$file" >out 2>err || status=$?
        case $status in
        0)
            reccheck out >said || { cat said; return 1; }
            taken=$((taken + 1))
            ;;
        3)
            grep -q "^onnx2graph: $file: " err && [ "$(wc -l <err)" = 1 ] && [ ! -s out ] ||
                { echo "$file"; cat err; return 1; }
            refused=$((refused + 1))
            ;;
        *) echo "$file: status $status"; cat err; return 1 ;;
        esac
    done
    echo "$taken taken, $refused refused"
    [ $taken -ge $(($1 / share / 2)) ] && [ $refused -ge $(($2 / share / 2)) ]
}

# One operator for each combination of rule and cost, without inputs, with inputs of each kind in turn (of rank 0,
# 1, 2 and 4, and integer constants of the file), and with attributes that do not fit.
@test "refused: operators of ONNX with inputs that do not fit, and never a graph that reccheck refuses" {
    sed -nE 's/^    ([A-Z]*\(|\{)"([A-Za-z]*)"(.*)/\2 \1\3/p' "$ROOT/lib/onnx/operators.c" |
        awk '{ name = $1; $1 = "" } !seen[$0]++ { print name }' >names
    [ "$(wc -l <names)" -gt 35 ]
    cat >ways <<'WAYS'
.
o,o
v,k
m,k
x,k,k
x,x,x
x,-,k
x,l,l,l,l
x axis=9
x axes=[-9]
x axes=[1,1] keepdims=0
x kernel_shape=[2,0]
x kernel_shape=[2,2] group=3 auto_pad=SAME_LOWER
x,w kernel_shape=[2,2,2] pads=[-1,0,0,0]
x,w group=2 strides=[1,9007199254740993]
h,h shape=[0,-1,-1] perm=[0,0,1,1] split=[9]
h,h equation=aij,akj->aik k=9223372036854775807
x,x,x is_causal=1 q_num_heads=0 direction=sideways
h,h,h,h,h,h,h,h layout=1 direction=bidirectional num_heads=-1
WAYS
    while read -r name; do
        while read -r inputs attributes; do
            { printf 'input o -\ninput v 2\ninput m 2,3\ninput x 2,3,4,4\ninput h 1,2097152,2097152\ninit w 3,3,2,2\n'
                printf 'init k 2 int64 1,-1\ninit l 9 int64 1,2,3,4,5,6,7,8,9\n%s %s -> y %s name=here\nRelu y -> z\n' \
                    "$name" "$inputs" "$attributes"; } >>models
        done <ways
    done <names
    awk -v n="$(wc -l <ways)" 'NR == FNR { name[NR] = $0; next }
        /^input o/ { print "> " name[int(at / n) + 1] "-" at % n ".onnx"; at++ } { print }' names models |
        python3 "$ROOT/tests/tools/onnx_model.py"
    judge_models 50 300
}

# Numbers with which nodes compute shapes: ends of slices and of shapes, sizes to infer, quotients.
@test "refused: numbers in models in ONNX's format that lead nowhere, and never a graph that reccheck refuses" {
    local n=0 top=9223372036854775807
    model() { # lines
        n=$((n + 1))
        printf '> %d.onnx\ninput x 2,3,4,4\ninput h 1,2097152,2097152\n' $n
        printf '%s\n' "$@" 'Relu y -> z'
    }
    {
        for from in -9 -1 0 9; do for to in -9 -1 1 $top; do
            model "Shape x -> s start=$from end=$to name=here" 'Reshape x,s -> y'
            for by in 1 -1 2 -$top; do
                model "init a 1 int64 $from" "init b 1 int64 $to" 'init c 1 int32 -1' "init d 1 int64 $by" \
                    'Slice x,a,b,c,d -> y name=here'
                model 'Shape x -> s' "init a 1 int32v $from" "init b 1 int64v $to" 'init c 1 bool 0' "init d 1 int64 $by" \
                    'Slice s,a,b,c,d -> t name=here' 'Expand x,t -> y'
            done
        done; done
        model 'init a 1 int64 0' 'init b 2 int64 1,2' 'Slice x,a,b -> y name=here'
        model 'init a 1 int64 0' 'init b 1 int64 9' 'init c 1 int64 7' 'Slice x,a,b,c -> y name=here'
        model 'init a 1 int64 0' 'init b 1 int64 9' 'init c 1 int64 0' 'init d 1 int64 0' 'Slice x,a,b,c,d -> y name=here'
        model 'init a 1 int64 0' 'init b 1 int64 9' 'init c 2 int64 0,1' 'Slice x,a,b,c -> y name=here'
        model 'init a 1 int64 0' 'Slice x,a,x -> y name=here'
        for shape in 0,-1 -1,-1 5,-1 0,0,0,0,0,0 96 2,-1,3,4,4 0,0,-1 -2,2 $top,$top 0 -1,$top; do
            model "init a $(tr -cd , <<<"$shape," | wc -c) int64 $shape" 'Reshape x,a -> y name=here'
            model "init a $(tr -cd , <<<"$shape," | wc -c) int64 $shape" 'Reshape x,a -> y allowzero=1 name=here'
            model "init a $(tr -cd , <<<"$shape," | wc -c) int64 $shape" 'Expand x,a -> y name=here'
            model "init a $(tr -cd , <<<"$shape," | wc -c) int64 $shape" 'ConstantOfShape a -> b name=here' 'Add b,x -> y'
            model "init a $(tr -cd , <<<"$shape," | wc -c) int64 $shape" "Split x,a -> y,o,p axis=1 name=here"
            model "Split x -> y,o axis=1 split=[$shape] name=here"
            model "init a $(tr -cd , <<<"$shape," | wc -c) int64 $shape" 'Pad x,a -> y name=here'
        done
        for at in -9 -1 0 3 9; do
            model 'Shape x -> s' "init i - int64 $at" 'Gather s,i -> g name=here' 'Constant . -> o value_ints=[0]' \
                'Unsqueeze g,o -> t' 'Reshape x,t -> y'
            model 'Shape x -> s' "init i 1 int64 $at" 'Gather s,i -> t name=here' 'Expand x,t -> y'
            model "Flatten h -> y axis=$at name=here"
            model "Concat h,h,h -> y axis=$at name=here"
            model "LRN x -> y size=$at name=here"
            for op in Add Sub Mul Div Mod Equal; do
                model 'Shape x -> s' "init i 1 int64 $at" "$op s,i -> t name=here" 'Reshape x,t -> y'
                model "init s 1 int64 -$top" "init i 1 int64 $at" "$op s,i -> t name=here" 'Expand x,t -> y'
            done
            model 'Shape x -> s' "init i 1 int64 $at" 'Equal s,i -> e' 'Where e,i,s -> t name=here' 'Reshape x,t -> y'
        done
        model "init a 8 int64 $top,$top,$top,$top,$top,$top,$top,$top" 'Pad x,a -> y name=here'
        model 'init a 6 int64 0,1,1,0,1,1' 'Pad h,a -> y name=here'
        model 'Constant . -> a value_float=word name=here' 'Add x,a -> y'
        model 'Constant . -> a value=word name=here' 'Add x,a -> y'
        model 'init a 4096,4096 int64' 'Gather a,h -> y name=here'
        model 'MatMul h,h -> a' 'MatMul a,h -> b' 'MatMul b,h -> y name=here'
        model 'Gather h,h -> a' 'Gather a,h -> y name=here'
        model 'Unsqueeze x -> y axes=[0,1,2,3,4,5] name=here'
        for how in 'dilations=[0,1]' 'pads=[1]' 'pads=[4611686018427387904,0,0,0]' auto_pad=VALID group=0 group=2 group=3 \
            'kernel_shape=[9,9]' 'kernel_shape=[0,1]' auto_pad=SAME_UPPER 'output_padding=[-1,0]' 'output_shape=[9,9]' \
            'strides=[2,2] output_padding=[1,1]' 'group=4294967296'; do
            model 'init f 4,3,2,2' "Conv x,f -> y $how name=here"
            model 'init f 3,4,2,2' "ConvTranspose x,f -> y $how name=here"
            model "MaxPool x -> y $how name=here"
        done
        model 'init f 4,3,9,9' 'Conv x,f -> y name=here'
        model 'init f 3,4294967296,2,2' 'ConvTranspose x,f -> y name=here'
        model 'input g 1,3,4294967296' 'init f 3,4,2' 'ConvTranspose g,f -> y strides=[4294967296] name=here'
        model 'input g 5,4,2' 'MatMul x,g -> y name=here'
        model 'input g 2,3,4,4' 'input a 3,3,4,4' 'MatMul g,a -> y name=here'
        model 'input g 7' 'MatMul g,x -> y name=here' 'Add x,g -> b'
        for equation in aij,akj-\>aik aij,bkl-\>abijkl aij,bij aij,aij-\> ...,...-\>... ...i,i...-\>...i -\> ',' .-\>. i...i; do
            model "Einsum h,h -> y equation=$equation name=here"
        done
        for state in 0 4 1073741824 9223372036854775807; do
            model 'input l 1,2,3' "init w 1,$((state * 4)),3" "init r 1,$((state * 4)),$state" \
                "LSTM l,w,r -> y hidden_size=$state name=here"
            model "input l 1,2,$state" "init w 1,4,$state" 'init r 1,4,4' 'RNN l,w,r -> y,z activations=[Relu] name=here'
            model "TopK h -> y,i k=$state name=here" "input q 1,2,$state,8" 'Attention q,q,q -> b is_causal=1'
            model "input q 1,2,$state,8" "input p 1,2,$state,8" 'Attention q,q,q,-,p,p -> y,a,b,c is_causal=1 name=here'
            model "input q 1,$state,8" "Attention q,q,q -> y,a,b,c q_num_heads=$state kv_num_heads=$state name=here"
            model "input q 1,2,$state" "init a 9,$((state / 2))" 'input p 1,2 int64' \
                'RotaryEmbedding q,a,a,p -> y num_heads=1 name=here'
        done
        model 'ReduceSum x -> y noop_with_empty_axes=1 name=here'
        model 'ArgMax x -> y axis=9 name=here'
        model 'input o -' 'MatMul x,o -> y name=here'
        model 'input o -' 'MatMul o,x -> y name=here'
        model 'input g 4,4' 'MatMul g,x -> y name=here'
        model 'input g 3,4,9' 'MatMul x,g -> y name=here'
        model 'input o -' 'Shape o -> s' 'init a 1 int64 0' 'init b 1 int64 1' 'Slice s,a,b -> t' 'Expand x,t -> y name=here'
        model 'init a 1 int64 0' 'init b 1 int64 9' 'init c 1 int64 0' 'init d 1 int64 -9223372036854775808' \
            'Slice x,a,b,c,d -> y name=here'
        model 'Shape x -> s' 'init i 1,1 int64 0' 'Gather s,i -> t name=here' 'Expand x,t -> y'
        model 'Shape h -> s' 'input i 1,1,1,1,1,1' 'Gather x,i -> y name=here'
        model 'init a 2 int64 2,2' 'ConstantOfShape a -> b value=int64:1:5 name=here' 'Expand x,b -> y'
        model 'init a 1 int64 2' 'ConstantOfShape a -> b value=int64:1:3 name=here' 'Expand x,b -> y'
        model 'ConstantOfShape . -> b name=here' 'Expand x,b -> y'
        model 'init a 8 int64 0,0,0,0,0,0,0,0' 'Pad x,a,a,a -> y name=here'
        model 'init a 1 int64 0' 'Div a,a -> b' 'Mod a,b -> t name=here' 'Expand x,t -> y'
    } >models
    python3 "$ROOT/tests/tools/onnx_model.py" <models
    judge_models 80 120
}

# The models are small, because damage that leaves a valid configuration builds the model.
@test "refused: members of a configuration of a transformer that are wrong, or gone, by name" {
    cat >damage.py <<'PYTHON'
import json, sys
n = 0
small = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4,
         "intermediate_size": 8, "vocab_size": 9, "max_position_embeddings": 4, "hidden_act": "silu",
         "tie_word_embeddings": True, "attention_bias": False, "mlp_bias": True}
for config in [{"model_type": "llama", **small}, {"model_type": "bert", "type_vocab_size": 2, **small},
               {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2, **small},
               {"model_type": "gpt2", "n_embd": 8, "n_layer": 2, "n_head": 2, "n_inner": 8, "n_positions": 4,
                "vocab_size": 9, "activation_function": "gelu", "tie_word_embeddings": False}]:
    for key in config:
        for wrong in "text", -1, 99999999, True, None:
            with open(f"{n:03}-{key}.json", "w") as f:
                json.dump({k: wrong if k == key else v for k, v in config.items()}, f)
            n += 1
        with open(f"{n:03}-{key}.json", "w") as f:
            json.dump({k: v for k, v in config.items() if k != key}, f)
        n += 1
PYTHON
    python3 damage.py
    # every fifth file, so that keys and kinds of damage change; with EVERY=1, as in CI, all files
    local refused=0 status n=0 share=5
    [ -z "${EVERY-}" ] || share=1
    for file in *.json; do
        n=$((n + 1)) status=0
        [ $((n % share)) = 0 ] || continue
        pdgen --graph --batch 1 --transformer "$file" >out 2>err || status=$?
        [ $status = 0 ] && continue
        [ $status = 3 ] && [ "$(wc -l <err)" = 1 ] && [ ! -s out ] && grep -q "^pdgen: $file:" err || { cat err; return 1; }
        refused=$((refused + 1))
    done
    echo "$refused refused"
    [ $refused -gt $((60 / share)) ]
}

@test "refused: JSON that is none, by line, and a key that is there twice" {
    refuses 3 pdgen --transformer in <<'ROWS'
{"model_type": "gpt2",\n "n_embd": 8,\n "n_embd": 8} | in:3: the key 'n_embd' is there twice
{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": 1, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": 1} | is there twice
{"n_embd": 8\n | in:
{"n_embd": }\n | in:1: this is no JSON
{\n}\n} | in:
ROWS
}

# Messages shorten long names: of 70 letters they show 60.
@test "refused: graphs and ops of long names that lack what roofline and footprint need" {
    local l=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
    tried() { # status, message, command...: of what stands on standard input
        local want=$1 message=$2 status=0
        shift 2
        tr ' ' '\t' | "$@" >out 2>err || status=$?
        [ $status = "$want" ] && grep -qF -- "$message" err && ! grep -q "${l:0:61}" err || { echo "$status instead of $want"; cat err; return 1; }
    }
    echo "graph $l m" | tried 3 'has no precision=' footprint
    echo "op $l x forward 1 1 param=1" | tried 3 'comes before its graph' footprint
    printf 'graph g m precision=fp16\nop g %s forward 1 1 param=1.7e308 activation=1.7e308 pair=y\n' $l |
        tried 3 'becomes too large' footprint
    echo "graph $l m batch=2 precision=fp16 optimizer=adam" | tried 3 'scale the graph before MEMORY is filled in' roofline --device a100 --batch 4
    printf 'device\td\t1\t1\tfp16=0.1\n' >slow.rec
    printf 'graph g m batch=2 precision=fp16\nop g x forward 0 1 flops=1.7e308 moved=0\n' |
        tried 3 'longer than a number can say' roofline --device d --devices slow.rec
    printf 'graph g m precision=fp16\nop g x forward 0 1 flops=5 moved=0 class=%s\n' $l | tried 3 'class' roofline --device a100
    printf 'graph g m precision=fp16\nop g x forward 0 1 flops=5 moved=0\n' | tr ' ' '\t' | roofline --device a100 | grep -q 'flops=5'
    printf 'graph g m precision=fp16\nop g x forward 0 1 flops=2 moved=6 gemm=1x1x1x1\n' | tr ' ' '\t' | roofline --device a100 | grep -q 'gemm'
    echo "$l 1 2" >devices.rec
    tried 3 devices.rec:1: roofline --device a100 --devices devices.rec </dev/null
}

@test "refused: numbers of devices and shares that are wrong, by line" {
    for bad in 'device d x 1 fp32=1' 'device d 1 x fp32=1' 'device d 1 1 fp32=x' 'device d 1 1 fp16=-1' 'device d 1' \
        'reach any memory x' 'reach any memory 2' 'reach any memory 0.5 latency=x' 'reach any matmul 0.5 tile=x' \
        'reach any memory 0.5 precision=fp7' 'reach nobody memory' 'job j'; do
        printf '%s\n' 'device e 1e12 1e9 fp32=1e12' "$bad" | tr ' ' '\t' >devices.rec
        status=0
        roofline --device e -p fp32 --devices devices.rec /dev/null >out 2>err || status=$?
        [ $status = 3 ] && [ "$(wc -l <err)" = 1 ] && grep -q '^roofline: devices.rec:2: ' err || { echo "$bad: $status"; cat err; return 1; }
    done
}
