# Laws that hold for every result: streams with the same meaning, but another spelling, have the same result
# in every tool and mode that reads records. tests/tools/laws/laws.py has the programs and the laws.

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    cp "$ROOT/traces/redundant/bert.tsv" .
    awk '/^#/ || /^node[1-5] / || / -- node[2-5]$/' "$ROOT/traces/alexnet.txt" >small.txt
    awk '/^#/ || /^node[1-4] / || / -- node[2-4]$/' "$ROOT/traces/vgg16.txt" >other.txt
    pd2graph --no-job small.txt other.txt >graphs.rec
    tracegen jobs --jobs 30 --steps fixed:30 --interarrival exponential:0.5 \
        --deadline-fraction uniform:0.5:2 graphs.rec >jobs.rec
    partition --policy all --max-degree 4 jobs.rec >parts.rec
    # there are few servers, so that some jobs wait and some are blocked
    ramp-alloc --shape 2x2x2 --queue 3 parts.rec >alloc.rec
    { head -n 1 parts.rec && printf 'cluster\tcustom\ta,b,c,d\t8e10\n' &&
        printf 'link\t%s\t%s\t3e11\t1e-6\tboth=1\n' a s b s c t d t s t && printf 'route\ta\tb\ts,t,s\n' &&
        printf 'server\tb\tspeed=0.5\tdelay=1e-3\n' && printf 'fault\t%s\ts\tt\t%s\tboth=1\n' 5 0.5 7 1 &&
        grep -v '^#' parts.rec && echo '#end'; } >custom.rec
    alloc custom.rec >laid.rec
    { printf '#rampipe\t1\n' && cat "$ROOT/tests/cases/sim/coll-contention/in.rec" && echo '#end'; } >colls.rec
    pd2graph small.txt | ramp-alloc --shape 2x2x2 >placed.rec
    grep -q '^block' alloc.rec
    sim alloc.rec >done.rec
    { grep '^#rampipe' alloc.rec && sim --contention --links --explain laid.rec | grep -E '^(load|explain)' && echo '#end'; } >why.rec
    { grep '^#rampipe' alloc.rec && sim --contention --links --timeline laid.rec | grep -E '^(run|rate)' && echo '#end'; } >rates.rec
    { head -n 150 "$ROOT/traces/spot.rec" | grep -v '^#end' && echo '#end'; } >spot.rec
    tracegen fit --stats spot.rec >model.rec
    sim elastic --until 4000 spot.rec >elastic.rec
    sim redundant --profile bert.tsv --steps 0 --until 1000 spot.rec >redundant.rec
    { cat "$ROOT/traces/serving/image-driver.rec"
        seq 0 59 | awk -v OFS='\t' '{ print "query", "q" $1, $1 / 150 }'; } >queries.rec
    sim serve --drop-after 0.2 queries.rec | grep -vE '^(profile|price|stage|edge)' >serving.rec
    grep -q '^drop' serving.rec
    { printf '#rampipe\t1\n' && cat "$ROOT/traces/serving/social-media.rec"
        seq 0 59 | awk -v OFS='\t' '{ print "query", "q" $1, int($1 / 3) / 50 }' && echo '#end'; } >chances.rec
    plan --slo 300ms --rungs 2 queries.rec | tracegen queries --rate 400 --queries 60 >tuned.rec
    { printf '#rampipe\t1\n' && task2graph "$ROOT/tests/cases/task2graph/file/in.tasks" |
        grep -E '^(task|fence)' && echo '#end'; } >tasks.rec
    { printf 'graph\tg\tnet\n' && printf 'task\t%s\t60\t%s\t%s\ttouch x y\tcost=1.5\n' a - x b x y && printf 'fence\tf\n'; } >runs.rec
    { printf 'attempt\t%s\t1\t%s\t%s\t%s\tuser=1\tsystem=0\tbegan=9\n' a 0.5 1.5 0 b 1.5 3 1 &&
        printf 'block\tb\t3\tfailed\tstart=1.5\nblock\tc\t3\tinput_failed\ttask=b\n'; } >attempts.rec
    sim --timeline alloc.rec | grep -E '^(#|run|send|dep|block)' | head -n 60 | sed 's/^#@.*/# &/' >moves.rec
    echo '#end' >>moves.rec
    pdgen --graph --batch 3 alexnet >work.rec
    printf 'collective\tc%s\th100-sxm\tall-reduce\t%s\t1\t1048576\n' 1 8 2 4 >collective.rec
    printf 'training\tt%s\tdevice=h100-80\tlayers=4\thidden=1024\tffn=4096\theads=8\tvocab=32000\tseq=1024\ttp=%s\tdp=2\tmbs=1\tgbs=8\n' 1 1 2 2 3 4 >training.rec
    head -n 1 training.rec >one.rec
    sed 's/\ttp=.\tdp=2\tmbs=1//' training.rec >plan.rec
    printf 'kernel\tk%s\th100-80\tgemm\tbf16\t%s,4096,8192\n' 1 512 2 1024 3 2048 4 4096 >kernel.rec
    kernel fit <(printf '%s\n' device,dtype,m,k,n,time_s h100-80,bf16,{1024,2048,4096},4096,8192,2e-4) | grep -v '^#' >laws.rec
    printf '0,add,n1\n0,add,n2\n1500.5,remove,n2\n1500.5,add,"n3"\n90000,remove,n1\n' >events.csv
}

setup() { trap - DEBUG; cd "$BATS_TEST_TMPDIR" || return 1; }
law() {
    rm -rf "${BATS_FILE_TMPDIR:?}/$1"
    python3 "$ROOT/tests/tools/laws/laws.py" "$1" "$BATS_FILE_TMPDIR"
}

@test "laws: lines may end in CR LF" { law crlf; }
@test "laws: gzip changes nothing, in one member or two" { law compressed; }
@test "laws: comments may be anywhere behind the head" { law comments; }
@test "laws: empty lines may be anywhere" { law empty-lines; }
@test "laws: unknown records may be anywhere" { law unknown-records; }
@test "laws: unknown keys change nothing" { law unknown-keys; }
@test "laws: keys may be in any order" { law key-order; }
@test "laws: numbers may be spelled in any way" { law number-spelling; }
@test "laws: a stream without header may be split into files behind any record" { law split-files; }
@test "laws: the last line of a file needs no line feed" { law last-line-feed; }
@test "laws: graphs and jobs may come as several whole streams" { law pieces; }
@test "laws: streams are the same in two files, in one, in one gzip file" { law joined; }
@test "laws: names mean nothing" { law renamed; }

@test "laws: a field that is wrong is refused at its line" { law damaged; }

@test "laws: a tool that looks at how its input is spelled is found" {
    mkdir -p bin
    printf '#!/bin/sh\nwc -c "$@" && exec "%s" "$@"\n' "$BUILD/bin/metrics" >bin/metrics
    chmod +x bin/metrics
    EVERY=1 PATH=$PWD/bin:$PATH run law joined
    [ "$status" = 1 ]
    [[ $output == *"joined, metrics elastic.rec, way 1"* ]]
}

@test "laws: a tool that reads records has a line among the programs" {
    for ggo in "$ROOT"/tools/*.ggo; do
        name=$(basename "$ggo" .ggo)
        case $name in common | *_* | pdgen | et2graph | onnx2graph | net2rec | tracegen) continue ;; esac
        case $name in sim-* | tracegen-* | ramp-alloc-* | net2rec-* | kernel-* | plan-*) name="${name%-*} ${name##*-}" ;; esac
        grep -q "^$name " "$ROOT/tests/tools/laws/laws.py" || { echo "$name has none"; return 1; }
    done
}
