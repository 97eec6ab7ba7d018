# runtasks --listen: a service for several clients. tests/tools/service.py plays the clients.

setup() { trap - DEBUG; cd "$BATS_TEST_TMPDIR" || return 1; }
scenario() { python3 -S "$ROOT/tests/tools/service.py" "$@" 3>&-; }

@test "--listen: a socket for its user alone, as long as there are clients" { scenario one; }
@test "--listen: names, results and failures are each client's own" { scenario two; }
@test "--listen: bad input is told its client, whose tasks end; others go on" { scenario bad; }
@test "--listen: what is no stream of a client is refused, and so is a second one of a name" { scenario refused; }
@test "--listen: the tasks of a client that goes away are finished" { scenario orphans finish; }
@test "--listen: or cancelled" { scenario orphans cancel; }
@test "--listen: a client that has sent all may go away" { scenario joined_orphan; }
@test "--listen: a stream that is cut is no whole one" { scenario cut; }
@test "--listen: a client that does not read stops no other" { scenario slow; }
@test "--listen: clients take turns" { scenario turns; }
@test "--listen: a wide task is not overtaken for ever by other clients" { scenario wide; }
@test "--listen: a socket that was left is replaced, one in use or another file is not" { scenario stale; }
@test "--listen: SIGTERM ends tasks and workers; clients see no end of their streams" { scenario term; }
@test "--listen: killed, it goes on for each client from its log" { scenario resume; }
@test "--listen: logs and printed output of each client" { scenario logs; }
@test "--listen: eight clients, whose results are neither lost nor doubled" { scenario many; }

@test "--listen: options that it does not have" {
    for option in '-o x' --partial --progress in.rec; do
        run -2 runtasks --listen s $option
        [ "$output" = "runtasks: with --listen, tasks come from clients, and results go to them: leave out FILE, --output, --partial and --progress" ]
    done
    run -2 runtasks --orphans=cancel
    [ "$output" = 'runtasks: --orphans is for --listen' ]
    run -2 runtasks --listen "$(printf '%0108d' 0)"
    [ "$output" = 'runtasks: --listen: the path of a socket must have 1 to 107 bytes' ]
    run -2 runtasks --listen ''
    [ ! -e s ]
}
