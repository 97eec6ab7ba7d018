# scripts/rampipe_batch.py, the Python front of runtasks. BATCH_PROGRAMS=500, BATCH_CLIENTS=8 and
# BATCH_TASKS=10000 run the tests with that many programs, clients and tasks.

export PYTHONDONTWRITEBYTECODE=1
setup_file() {
    # The tests run with cloudpickle and without it, if one Python here has it and another has not.
    PYTHONS=$(for python in $(type -ap python3); do
        "$python" -c 'import sys; print(sys.executable)' 2>/dev/null
    done | sort -ru | paste -sd ' ')
    [ -n "${EVERY-}" ] || PYTHONS=${PYTHONS%% *}
    PYTHON=${PYTHONS%% *} # of one is enough where what is tested is not how it pickles
    export PYTHONS PYTHON
}
setup() {
    trap - DEBUG
    cd "$BATS_TEST_TMPDIR" || return 1
}
front() { for python in $PYTHONS; do timeout -k 1 150 "$python" "$ROOT/tests/tools/batch_front.py" "$@" || return; done; }
one() { timeout -k 1 150 "$PYTHON" "$ROOT/tests/tools/batch_front.py" "$@"; }
programs() { # HOW-MANY [kill]
    BATCH_ALARM=3000 timeout -k 1 3000 "$PYTHON" "$ROOT/tests/tools/batch_random.py" 1 "$@"
}

@test "batch: results, output, handles as arguments, programs, environment" { front results; }

@test "batch: hazards, compiled tasks, fences; what starts when" { one order; }

@test "batch: each failure comes out of get() as what it is" { front errors; }

@test "batch: a dictionary and a queue in tasks, keys as objects of hazards" { one shared; }

@test "batch: templates; what is misspelt is named" {
    "$PYTHON" -c 'import yaml' 2>/dev/null || skip "python3-yaml is not here (scripts/bootstrap test)"
    one templates
}

@test "batch: many clients at one time, each has its own results, none is lost or doubled" { one clients; }

@test "batch: a log is drawn, counted and gone on with" { one log; }

@test "batch: a service that is killed is an error, not a hang" { one gone; }

@test "batch: no file, descriptor or process is left, whatever the end" { one left; }

@test "batch: random programs give what they give one after the other" { programs "${BATCH_PROGRAMS:-4}"; }

@test "batch: random programs whose service is killed, and that are resumed" { programs "${BATCH_PROGRAMS:-2}" kill; }

@test "batch: powers of a matrix by files, by a dictionary, by arguments" {
    cd "$ROOT/traces/tasks/matrix_powers"
    "$PYTHON" -c 'import yaml' 2>/dev/null || skip "python3-yaml is not here (scripts/bootstrap test)"
    for program in files dictionary ${EVERY:+arguments}; do # (README runs that)
        timeout -k 1 60 "$PYTHON" $program.py 8 10 2>&1
    done | tee "$BATS_TEST_TMPDIR/said"
    [ "$(sort "$BATS_TEST_TMPDIR/said" | uniq -c | sed 's/^ *//')" = "$([ -z "${EVERY-}" ] && echo 2 || echo 3) trace of power 8: 667686" ]
}

@test "batch: a program without a file, and one whose main is not guarded, are told so" {
    run timeout -k 1 60 "$PYTHON" - <<'PYTHON'
import os, sys
sys.path.insert(0, os.environ["ROOT"] + "/scripts")
import rampipe_spool
rampipe_spool.cloudpickle = None
from rampipe_batch import Batch
def f(): pass
with Batch(jobs=1) as b: b.function(f)
PYTHON
    [[ $output == *"TypeError: f is defined in a program that is in no file"* ]]
    cat >unguarded.py <<'PYTHON'
import os, sys
sys.path.insert(0, os.environ["ROOT"] + "/scripts")
import rampipe_spool
rampipe_spool.cloudpickle = None
from rampipe_batch import Batch
def f(): pass
b = Batch(jobs=1)
b.function(f).result.get(30)
PYTHON
    run timeout -k 1 60 "$PYTHON" unguarded.py
    [ "$status" = 1 ]
    [[ $output == *"RuntimeError: a worker imports the main module, which makes a Batch: it belongs behind"* ]]
}

@test "batch: pydoc shows the module's documentation, and its example runs" {
    (cd "$ROOT/scripts" && "$PYTHON" -m pydoc rampipe_batch) >page
    grep -q 'WHEN TASKS START' page
    grep -q 'class Batch' page
    export PYTHONPATH=$ROOT/scripts
    "$PYTHON" -c 'import rampipe_batch; print(rampipe_batch.__doc__)' |
        sed -n 's/^    //; /^from/,/^Tasks are/{/^Tasks are/!p}' >example.py
    cat example.py
    [ "$(timeout -k 1 60 "$PYTHON" example.py)" = 285 ]
}
