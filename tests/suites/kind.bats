# A kind of cluster that the suite does not have, tests/kind/pods.c, in all tools: HACKING.md, "A kind of
# cluster".

setup() { trap - DEBUG; cd "$BATS_TEST_TMPDIR" || return 1; PATH=$BUILD/tests/kind:$PATH; }

# By hand, on pods of 2 servers with 1e9 bytes/s, 0.5 s, and 1/4 of the bandwidth between pods. The graph is
# that of cases/sim/island: two seconds of compute, a collective in which 2e9 bytes cross and sync deps of 4e9
# bytes in all. In a pod 0.5 + 2e9 / 2 / 1e9 = 1.5 s and 0.5 + 4e9 / 2 / 1e9 = 2.5 s: a step of 6 s. From pod
# to pod 1 + 4 = 5 s and 1 + 8 = 9 s: a step of 16 s.
@test "kind: pods are allocated, simulated, replayed, checked, reported, drawn and converted" {
    grep -vE '^(layout|place)' "$ROOT/tests/cases/sim/island/in.rec" >graph.rec
    step() { grep '^done' | tr '\t' '\n' | sed -n 's/^step=//p'; }
    alloc --cluster pods:2,2,1GB/s,500ms,100,taper=4 graph.rec >alloc.rec
    grep -q '^alloc.*0.0,0.1$' alloc.rec
    reccheck -q alloc.rec
    [ "$(sim alloc.rec | step)" = 6 ]
    alloc --down 0.1,1.0 --cluster pods:2,2,1e9,0.5,100,taper=4 --map graph.rec 2>map >far.rec
    grep -q '^alloc.*0.0,1.1$' far.rec && grep -q 'pod 1' map
    [ "$(sim far.rec | step)" = 16 ]
    # 4 s of compute in 16 s on two of four servers
    sim far.rec | metrics | grep -q 'cluster utilisation.value.0.0625'
    sim --timeline far.rec | timeline | grep -q '1\.1'
    graph2et --prefix t <far.rec >/dev/null
    et2graph t.?.et >back.rec
    grep -q '^cluster.pods.2.2.1000000000.0.5.100.taper=4$' back.rec
    [ "$(sim back.rec | step)" = 16 ]
}

@test "kind: partition knows what fits, and what is wrong is said by its name" {
    pd2graph "$ROOT/traces/alexnet.txt" | partition --policy max --cluster pods:3,2,1,1,1 | grep '^job' >job
    grep -q '	alexnet/6,alexnet/4,alexnet/2,alexnet/1	' job
    run -3 sim < <(printf 'cluster\tpods\t2\t2\t1\t1\t100\n'; cat "$ROOT/tests/cases/sim/island/in.rec"
        printf 'alloc\tj\tg\tL\t0\t0.0,2.0\n')
    [[ $output == *"there is no server '2.0' in 2 pods of 2"* ]]
    run -3 sim < <(printf 'cluster\tpods\t0\t2\t1\t1\t1\n')
    [[ $output == *'<stdin>:1: a cluster has from 1 to 16777216 servers, got 0 as P'* ]]
}
