# Many environments in one process, scripts/rampipe_vector.py and the library: they decide as ramp-alloc does.

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return
    pd2graph --time-unit s --no-job "$ROOT"/traces/{alexnet,vgg16}.txt |
        tracegen jobs --jobs 100 --interarrival exponential:1000 --deadline-fraction uniform:0.2:2 |
        partition --policy all --quantum 0.01 --shape 2x2x1 >offered.rec
    ramp-alloc --shape 2x2x1 offered.rec >first.rec
}
setup() {
    trap - DEBUG
    ! nm "$RAMPIPE_LIBRARY" | grep -q __asan_init || skip "Python cannot load a library with sanitizers"
    cd "$BATS_FILE_TMPDIR" || return 1
}
export PYTHONDONTWRITEBYTECODE=1
export RAMPIPE_LIBRARY="${RAMPIPE_LIBRARY:-$BUILD/librampipe.so.$VERSION}"
vector() { python3 "$ROOT/tests/tools/vector_env.py" "$@"; }
# Prints the first python3 that has this module.
python_with() {
    for python in python3 /usr/bin/python3; do
        ! $python -c "import $1" 2>/dev/null || { echo $python; return 0; }
    done
}

@test "vector: features, rewards and records are those of ramp-alloc by the same choices" {
    vector equal
    ! python3 -c 'import numpy' 2>/dev/null || WITHOUT=numpy vector equal
}

@test "vector: the jobs of a stream give the records of ramp-alloc" { vector stream; }

@test "vector: what is wrong is said, with numpy and without" {
    WITHOUT=numpy vector wrong
    python=$(python_with numpy)
    [ -z "$python" ] || $python "$ROOT/tests/tools/vector_env.py" wrong
}

@test "vector: a graph network in ONNX, read back, decides alike in batches, as an agent and by hand" {
    python=$(python_with numpy)
    [ -n "$python" ] || skip "numpy is not here"
    blocked=$($python "$ROOT/tests/tools/graph_policy.py" policy.onnx)
    onnx2graph --dimension ops=30,rows=6 policy.onnx >network.rec
    [ "$(grep -c '^op.*type=MatMul.*forward\|^op.*forward.*type=MatMul' network.rec)" = 6 ]
    tracegen jobs --jobs 60 --seed 1 --interarrival exponential:100 --steps fixed:50 --deadline-fraction uniform:0.1:1 \
        --sampling remove-and-repeat graphs.rec | partition --policy all --quantum 0.01 |
        ramp-alloc --agent "$python $ROOT/traces/agents/graph_agent.py policy.onnx graphs.rec" >played.rec
    [ "$(grep -c '^block' played.rec)" = "$blocked" ]
}

@test "vector: training a graph network by PPO, and one line without PyTorch" {
    mkdir -p none && echo 'raise ImportError("none", name="torch")' >none/torch.py
    PYTHONPATH=none python3 "$ROOT/traces/agents/train_graph.py" 2>said >out
    [ ! -s out ]
    [ "$(cat said)" = "train_graph.py: skipped: torch is not installed (scripts/bootstrap torch)" ]
    [ -n "${EVERY-}" ] || skip "it takes half a minute: EVERY=1 trains"
    python=$(python_with torch)
    [ -n "$python" ] || skip "PyTorch is not here (scripts/bootstrap torch)"
    $python "$ROOT/traces/agents/train_graph.py" --iterations 12 --seconds inf >rates
    cat rates
    [ -s policy.onnx ]
    awk -F'\t' '{ rate[$1] = $2 }
        END { exit !(NR == 3 && rate["trained"] < 0.85 * rate["random"] && rate["trained"] < 0.85 * rate["first"]) }' rates
}
