# scripts/torch2graph: ResNet-50 as pdgen has it, work in closed form, measured times, what cannot be traced.
# One process makes all graphs, because importing PyTorch takes seconds. Without PyTorch the tests are skipped.

setup_file() {
    export PYTHONDONTWRITEBYTECODE=1
    for python in python3 /usr/bin/python3; do
        if $python -c 'import sys, importlib.util as u
sys.exit(not (u.find_spec("torch") and u.find_spec("torchvision")))'; then
            export PYTHON=$python
            cd "$BATS_FILE_TMPDIR" && $python "$ROOT/tests/tools/torch_runs.py" || return 1
            return 0
        fi
    done
}
setup() {
    trap - DEBUG
    [ -n "${PYTHON-}" ] || skip "PyTorch is not here (scripts/bootstrap torch)"
    cd "$BATS_FILE_TMPDIR" || return 1
}
step() { partition --degree 1 "$1" | ramp-alloc | sim | sed -n 's/.*step=\([^\t]*\).*/\1/p'; }

@test "torch2graph: ResNet-50 is pdgen's, op for op, and takes the same step" {
    pdgen --graph resnet50 >pdgen.rec
    reccheck resnet50.rec
    awk -F'\t' '$4 == "forward" { for (i = 7; i <= NF; i++) if (split($i, p, "=") && p[1] ~ /^(param|flops)$/)
            sum[p[1] (p[1] == "flops" ? /class=(convolution|matmul)/ : "")] += p[2] }
        END { printf "%.0f %.0f\n", sum["param"] / 2, sum["flops1"] / 32 }' resnet50.rec >sums
    [ "$(cat sums)" = '25557032 8178368512' ]
    for graph in pdgen resnet50; do
        grep -E '^(op|dep)' $graph.rec | awk -F'\t' -v OFS='\t' '$1 == "op" { $5 = $7 = "" } { print }' |
            sort >$graph.plain
    done
    cmp pdgen.plain resnet50.plain
    roofline resnet50.rec >filled.rec
    [ "$(step filled.rec)" = "$(step pdgen.rec)" ]
}

# Prints the parameters, the operations of products, of attention and of all other ops, and the backward operations
# of products and of attention.
sums() { # FILE
    awk -F'\t' '$1 == "op" { split("", k); for (i = 7; i <= NF; i++) { split($i, p, "="); k[p[1]] = p[2] }
        class = k["class"] == "convolution" ? "matmul" : k["class"]
        if ($4 == "forward") { param += k["param"] / 2; forward[class] += k["flops"] } else backward[class] += k["flops"] }
        END { printf "%.0f %.0f %.0f %.0f %.0f %.0f\n", param, forward["matmul"], forward["attention"], forward["memory"],
            backward["matmul"], backward["attention"] }' "$1"
}

# Encoder: 2 layers, width 8, 2 heads, 16 inside; 2 samples of 5 words, so 10 rows. A layer: products 2 * 10 * (8 * 24 + 8 * 8
# + 2 * 8 * 16) = 10240; attention 10 * 5 pairs of 2 * 8 + 2 * 8 + 2 * 5: 2100; norms 2 * 8 * 80, dropouts 320, relu 160, sums
# 160: 1920. Parameters 4 * 64 + 4 * 8 + 2 * 128 + 16 + 8 + 4 * 8 = 600.
# GPT: the same with 32 inside, 16 words tied to the head, 64 positions. A layer: products 2 * 10 * (192 + 64 + 512) = 15360 and
# by hand 2 * (2 * 10 * 5 * 8) = 1600; norms 1280, scale, mask and softmax of 100 scores 700, sums 160, GELU 8 * 320: 4700; the
# head 2 * 10 * 8 * 16, positions 80, the last norm 640. Parameters 16 * 8 + 64 * 8 + 16 and 2 layers of 256 + 32 + 512 + 40 +
# 32. Fused and causal attention is half of the square: 2 * 2 * 25 / 2 pairs of 4 * 4 + 5 = 1050.
# ViT-B/16: 197 rows, 768 wide, 12 layers and heads. Products 2 * 196 * 768^2 + 12 * 2 * 197 * 768 * (12 * 768) + 2 * 768 * 1000,
# attention 12 * 197^2 * (4 * 768 + 5 * 12); others 197 * 768 * (2 + 12 * (2 * 8 + 1 + 4 + 1 + 4 * 8 + 2) + 8). The count of its
# parameters is torchvision's. Measured, a MultiheadAttention is one op, which backward does 2 * its products + 2.5 * 2100.
@test "torch2graph: nn.TransformerEncoder, a GPT and torchvision's ViT in closed form" {
    for name in encoder gpt fused vit; do
        reccheck -q $name.rec || return 1
        echo "$name $(sums $name.rec)"
    done >got
    diff got - <<'W'
encoder 1200 20480 4200 3840 40960 10500
gpt 2400 36480 0 10120 72960 0
fused 2400 33280 2100 8720 66560 5250
vit 86567656 33697001472 1458597456 103183872 67394002944 3646493640
W
    # queries, keys and values are each read once, 3 * 80 elements, and 80 elements are written
    [ "$(grep forward fused.rec | grep -c 'class=attention.*activation=160' )" = 2 ]
    [ "$(grep forward fused.rec | grep -c 'moved=640.class=attention' )" = 2 ]
    sums timed.rec | diff - <(echo "$((2 * 1200)) 10240 14440 3840 20480 30980") # of 4 bytes each
    [ "$(grep -c 'type=MultiheadAttention' timed.rec)" = 4 ]
    for name in encoder gpt fused vit timed; do
        grep '^graph' $name.rec | grep -q 'family=transformer' || return 1
    done
}

# As files in ONNX's format, whose attention is by hand: 2 * (2 * 10 * 5 * 8) = 1600 a layer more in products. The command that
# a message has leads there: a Linear of 4 by 4 (2 * 2 * 4 * 4 = 64, 20 parameters) and an LSTM of 2 steps, of 4 by 4: 2 * 4 *
# (2 * 4 * 8 + 32) = 768, of 4 * 4 * 8 + 32 parameters; what makes of its gates ONNX's order takes nothing.
@test "torch2graph: what is exported to ONNX has the same closed form, and so has what only that way leads to" {
    for name in encoder gpt recurrent gated; do
        onnx2graph -q $name.onnx >$name.onnx.rec || return 1
        echo "$name $(sums $name.onnx.rec | cut -d' ' -f1-3)"
    done >got
    diff got - <<'W'
encoder 1200 23680 0
gpt 2400 36480 0
recurrent 180 832 0
gated 20 64 0
W
}

@test "torch2graph: attention by hand, a sum in place, tied weights, two outputs: work in closed form" {
    reccheck small.rec
    awk -F'\t' '$4 == "forward" { split("", k); for (i = 7; i <= NF; i++) { split($i, p, "="); k[p[1]] = p[2] }
        print k["type"], k["flops"], k["moved"] / 4, k["param"] / 4, k["activation"] / 4, k["class"], k["gemm"] }' small.rec >got
    # 2 x 5 words of 6: an embedding of 10; a Linear to 18, cut in three views; 2 products of 5x6 by 6x5
    diff got - <<'W'
Input 0 0 0 10 memory 
Embedding 0 130 60 60 memory 
LayerNorm 480 132 12 60 memory 
Linear 2160 366 126 180 matmul 1x10x18x6
matmul 600 170 0 50 matmul 2x5x5x6
mul 50 100 0 50 memory 
softmax 250 100 0 50 memory 
matmul 600 170 0 60 matmul 2x5x6x5
add 60 180 0 60 memory 
Conv1d 360 140 20 60 convolution 
Dropout 60 120 0 60 memory 
Linear 1200 220 0 100 matmul 1x10x10x6
mean 60 72 0 12 memory 
Output 0 0 0 0 memory 
W
    [ "$(grep -c '^dep' small.rec)" = 33 ]
    [ "$(grep '^job' small.rec)" = $'job\tSmall\tSmall\t0\t50\tinf' ]
}

@test "torch2graph: --measure gives each op that does something a time, forward and backward" {
    reccheck measured.rec
    awk -F'\t' '$1 == "op" { idle = /type=(Input|Output)/; if (idle == ($5 > 0)) bad = bad " " $3; n++ }
        END { print n bad }' measured.rec >got
    [ "$(cat got)" = 28 ]
    cut -f1-4,6- small.rec | grep -E '^(op|dep)' >a
    cut -f1-4,6- measured.rec | grep -E '^(op|dep)' | cmp a -
    grep '^graph' measured.rec | grep -q 'device=cpu	batch=2	precision=fp32'
    grep -q 'type=LSTM' lstm.rec # of which nothing else is known
    run grep 'type=LSTM.*flops' lstm.rec
    [ "$status" = 1 ]
    ramp-alloc measured.rec | sim | grep -q '^done'
}

# As onnx2graph (onnx2graph/merged-weights): 64x8 by 8x64, and a sum of 64 * 64, of which each reads no data.
@test "torch2graph: weights made of other weights are work of each step" {
    reccheck -q adapter.rec
    awk -F'\t' '$4 == "forward" { split("", k); for (i = 7; i <= NF; i++) { split($i, p, "="); k[p[1]] = p[2] }
        print k["type"], k["flops"], k["moved"] / 2, k["param"] / 2, k["gemm"] }' adapter.rec >got
    diff got - <<'W'
Input 0 0 0 
matmul 65536 5120 1024 1x64x64x8
add 4096 12288 4096 
linear 32768 4608 0 1x4x64x64
W
}

# 2 x 5 words look up rows of 6: 120 elements of the table, 10 indices and 60 results are moved.
@test "torch2graph: parameters that data look up, or that get the shape of data, are counted" {
    reccheck -q lookups.rec
    awk -F'\t' '$4 == "forward" { split("", k); for (i = 7; i <= NF; i++) { split($i, p, "="); k[p[1]] = p[2] }
        print $3, k["type"], k["flops"], k["moved"] / 2, k["param"] / 2, k["activation"] / 2 }
        $1 == "dep" && $4 < 8 { print $3, $4 }' lookups.rec >got
    diff got - <<'W'
1 Input 0 0 0 10
2 getitem 0 190 120 60
3 mul 60 126 6 60
4 linear 480 124 24 40
5 argmax 10 12 0 2
6 getitem 0 50 0 8
7 Output 0 0 0 0
1 2
1 5
2 3
3 4
4 6
4 7
5 6
6 7
W
    # from a buffer, too: 2 * 5 * 9 * 6 elements
    grep -o 'forward.*type=getitem.*activation=1080' buffered.rec
    grep -o 'forward.*type=mul.flops=540' buffered.rec
}

@test "torch2graph: what cannot be traced, counted or read is named, with the way out" {
    diff errors - <<'W'
3 torch2graph: torch.fx cannot trace block.1 (Gate): symbolically traced variables cannot be used as inputs to control flow; try: python3 -c 'import torch, torch_models; torch.onnx.export(torch_models.gated(), (torch.ones([2, 4], dtype=torch.float32),), "gated.onnx", opset_version=14, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)' && onnx2graph gated.onnx
3 torch2graph: it is not known how many operations module block.1 (LSTM) does; --measure times it; try: python3 -c 'import torch, torch_models; torch.onnx.export(torch_models.recurrent(), (torch.ones([2, 4], dtype=torch.float32),), "recurrent.onnx", opset_version=14, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)' && onnx2graph recurrent.onnx
3 torch2graph: torch_models:nothing must make a torch.nn.Module, got int
3 torch2graph: torch_models:absent: AttributeError: module 'torch_models' has no attribute 'absent'
3 torch2graph: absent:model: ModuleNotFoundError: No module named 'absent'
2 torch2graph: --input must be sizes such as 1,3,224,224, or 8,128:int64, got '2,x'
2 torch2graph: name a model as MODULE:FUNCTION, got 'torch_models:'
2 torch2graph: --precision must be one of fp32, tf32, fp16, bf16, got 'int8'
2 torch2graph: --repeat is for --measure
2 torch2graph: name one MODULE:FUNCTION, and its --input
3 torch2graph: torch_models:Pair does not take this input: y has no --input
3 torch2graph: torch_models:Small does not take this input: 1 --input more than it takes
3 torch2graph: torch.fx cannot trace Pair: item() asks for what is in a tensor; try: python3 -c 'import torch, torch_models; torch.onnx.export(torch_models.Pair(), (torch.ones([2, 4], dtype=torch.float32),torch.ones([2, 4], dtype=torch.float32),torch.ones([2, 4], dtype=torch.float32),), "Pair.onnx", opset_version=14, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)' && onnx2graph Pair.onnx
W
}

# Parameters by hand. words: a table of 60, which is the head, too, norm 12, qkv 126, conv 20. patches: token 8,
# positions 40, stem 392, norm 16, attention 288, its norms 32, two Linears 280, scale 8, head 90.
@test "onnx2graph: what PyTorch exports without parameters has the graph of what it exports with them" {
    for name in words patches encoder gpt; do
        onnx2graph -v --name m $name.onnx 2>said | grep -v '^#@' >with
        onnx2graph -q --name m $name-bare.onnx | grep -v '^#@' | cmp with -
        grep -o '[0-9]* parameters' said
    done >got
    diff got - <<'W'
218 parameters
1154 parameters
1200 parameters
2400 parameters
W
}

@test "torch2graph: its version is that of the suite" {
    [ "torch2graph ${VERSION:-}" = "$(python3 "$ROOT/scripts/torch2graph" --version)" ]
    python3 "$ROOT/scripts/torch2graph" --help | grep -q -- '--measure'
}
