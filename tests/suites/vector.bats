# Many environments in one process, scripts/rampipe_vector.py and the library: they decide as ramp-alloc does.

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return
    pd2graph --time-unit s --no-job "$ROOT"/traces/{alexnet,vgg16}.txt |
        tracegen jobs --jobs 100 --interarrival exponential:1000 --deadline-fraction uniform:0.2:2 |
        partition --policy all --quantum 0.01 --shape 2x2x1 >offered.rec
    ramp-alloc --shape 2x2x1 offered.rec >first.rec
}
setup() { trap - DEBUG; cd "$BATS_FILE_TMPDIR" || return 1; }
export PYTHONDONTWRITEBYTECODE=1
export RAMPIPE_LIBRARY="${RAMPIPE_LIBRARY:-$BUILD/librampipe.so.$VERSION}"
vector() { python3 "$ROOT/tests/tools/vector_env.py" "$@"; }

@test "vector: features, rewards and records are those of ramp-alloc by the same choices" {
    vector equal
    ! python3 -c 'import numpy' 2>/dev/null || WITHOUT=numpy vector equal
}

@test "vector: the jobs of a stream give the records of ramp-alloc" { vector stream; }

@test "vector: what is wrong is said" { vector wrong; }
