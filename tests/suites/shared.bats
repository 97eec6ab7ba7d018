# scripts/rampipe_shared.py, a dictionary and a queue for many processes: the same tests with a
# SQLite file and with a Redis server. SHARED_SECONDS=60 lets the random operations last a minute.

setup_file() {
    export PYTHONDONTWRITEBYTECODE=1
    for python in python3 /usr/bin/python3; do # Debian's packages are for Debian's Python
        if (PATH=$PATH:/usr/sbin && command -v redis-server) >/dev/null && $python -c 'import redis' 2>/dev/null; then
            export PYTHON=$python
            return
        fi
    done
}
setup() {
    trap - DEBUG
    cd "$BATS_TEST_TMPDIR" || return 1
    PATH=$PATH:/usr/sbin
}
sqlite() { timeout 300 python3 "$ROOT/tests/tools/shared_random.py" "$1" sqlite; }
redis() {
    [ -n "${PYTHON-}" ] || skip "redis-server or python3-redis is not here (scripts/bootstrap test)"
    timeout 300 "$PYTHON" "$ROOT/tests/tools/shared_random.py" "$1" redis
}

@test "shared: two writers and four readers see what one process could have seen: SQLite" { sqlite random; }
@test "shared: two writers and four readers see what one process could have seen: Redis" { redis random; }

@test "shared: killed processes lose and double nothing of the others: SQLite" { sqlite kills; }
@test "shared: killed processes lose and double nothing of the others: Redis" { redis kills; }

@test "shared: the dictionary is one; keys, values, sizes, names: SQLite" { sqlite dictionary; }
@test "shared: the dictionary is one; keys, values, sizes, names: Redis" { redis dictionary; }

@test "shared: waiting for keys, items and room: SQLite" { sqlite waiting; }
@test "shared: waiting for keys, items and room: Redis" { redis waiting; }

@test "shared: forks, threads and other interpreters have connections of their own: SQLite" { sqlite forks; }
@test "shared: forks, threads and other interpreters have connections of their own: Redis" { redis forks; }

@test "shared: a file that is locked or removed is an error with its name" { sqlite gone; }
@test "shared: a server that is killed, stopped or restarted is an error with its name" { redis gone; }

@test "shared: what cannot hold the data is refused: SQLite" { sqlite refused; }
@test "shared: what cannot hold the data is refused: Redis" { redis refused; }

@test "shared: close, exceptions and kills leave no file and no descriptor" { sqlite left; }

@test "shared: keys are objects of hazards" {
    sqlite objects >tasks.rec
    task2graph tasks.rec >graph.rec
    cut -f 1,3,4,6 graph.rec | grep '^dep'
    [ "$(grep -c '^dep' graph.rec)" = 1 ] # w to r; that o writes a key whose name only begins so is none
    grep -q $'^dep\t[^\t]*\tw\tr\t' graph.rec
}

@test "shared: pydoc shows the module's documentation, and its example runs" {
    (cd "$ROOT/scripts" && python3 -m pydoc rampipe_shared) >page
    grep -q 'WHERE THE DATA ARE' page
    grep -q 'class DDict' page
    export PYTHONPATH=$ROOT/scripts
    python3 -c 'import rampipe_shared; print(rampipe_shared.__doc__)' |
        sed -n 's/^    //; /^from/,/^Processes that/{/^Processes that/!p}' | sed 's,redis://node1:6379/0,results.sqlite,' >example.py
    cat example.py
    cat >>example.py <<'PYTHON'
assert d["loss", 3] == 0.25 == reader["best"] and len(d) == 2 and q.empty()
PYTHON
    [ "$(grep -c '' example.py)" -gt 12 ]
    python3 example.py
}
