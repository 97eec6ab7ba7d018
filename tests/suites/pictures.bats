# Pictures must be readable for a person: pictures.py reports what is not.

setup() { trap - DEBUG; cd "$BATS_TEST_TMPDIR" || return 1; }

readable() { python3 "$ROOT/tests/tools/pictures.py" "$@"; }

@test "pictures: charts of steps, training, serving and tasks are readable" {
    pd2graph "$ROOT/traces/alexnet.txt" | partition --degree 4 | ramp-alloc | sim --timeline >step.rec
    timeline --svg -o step.svg step.rec
    timeline --svg --from 1.632ms --to 2ms -o cut.svg step.rec
    sim elastic --until 40000 "$ROOT/traces/spot.rec" | timeline --svg -o training.svg
    tracegen queries --rate 100 --queries 200 "$ROOT/traces/serving/image-driver.rec" | sim serve --trace |
        timeline --svg --to 1 -o serving.svg
    printf 'attempt\t%s\t1\t%s\t%s\t%s\n' a-task 123456.789 123457 0 failing 123457 123458 1 |
        timeline --svg -o tasks.svg
    readable ./*.svg
    # layers have their names if there is room; the axis names its first time, to the nanosecond
    grep -q '>27a Linear</text>' cut.svg
    grep -q '>time since 1 ms 632 us, us</text>' cut.svg
    grep -q '>time since 1 d 10 h 17 min 36 s 789 ms, s</text>' tasks.svg
}

@test "pictures: graphs are readable" {
    pd2graph --dot "$ROOT/traces/alexnet.txt" | dot -Tsvg >both.svg
    pd2graph --pass forward --dot "$ROOT/traces/vgg16.txt" | dot -Tsvg >forward.svg
    task2graph --dot "$ROOT/traces/tasks/report.tasks" | dot -Tsvg >tasks.svg
    readable ./*.svg
    for text in Conv2d '368 us' '38.5 MB'; do grep -q ">$text</text>" both.svg; done
}

@test "pictures: plots of latency are readable, wherever the curves lie" {
    tracegen queries --rate 100 --queries 200 "$ROOT/traces/serving/image-driver.rec" | sim serve >served.rec
    # Most replies are late, so the curve passes through the corner where gnuplot would put the legend.
    awk -F'\t' -v OFS='\t' '$1 == "reply" { $4 = $3 + (n++ < 5 ? 0.1 : 1.2345) } 1' served.rec >late.rec
    plot() { "$ROOT/scripts/plot-latency" "$@"; }
    plot --slo 0.25 served.rec late.rec served.rec late.rec >linear.svg
    plot --log --slo 0.123456 served.rec >log.svg
    plot --slo 10 served.rec >far.svg
    plot --log --slo 10 late.rec >log-far.svg
    # latencies from a microsecond to a minute
    printf 'reply\t%s\t0\t%s\n' a 1e-6 b 0.0123 c 55 | plot --log >wide.svg
    readable ./*.svg
    for text in 'SLO 0.25 s' 'Latency of queries: share of replies with at most this latency' late.rec; do
        grep -q ">$text<" linear.svg
    done
    # the line of --slo is drawn also beyond all replies; an axis of less than a factor of ten has numbers
    grep -q '>SLO 10 s<' far.svg
    for text in 'SLO 0.123 s' '0.1' '0.2' '0.5'; do grep -Eq "> *$text<" log.svg; done
    for text in 1e-06 0.001 100; do grep -Eq "> *$text<" wide.svg; done
}

@test "pictures: plots of training and of experiments are readable" {
    sim elastic "$ROOT/traces/spot.rec" | "$ROOT/scripts/plot-training" >elastic.svg
    sim redundant --profile "$ROOT/traces/redundant/bert.tsv" --steps 0 "$ROOT/traces/spot.rec" |
        "$ROOT/scripts/plot-training" >redundant.svg
    { printf 'policy\tchoose\tinterarrival\tseeds\tblocking\tblocking_se\tcompletion\tcompletion_se\n'
        printf '%s\t%s\t%s\t2\t%s\t0.0667\t%s\n' max first 0.1 0.95 '0.215912552	0.000549' \
            max first 10 0.9 '0.1	0.01' acceptable-jct fastest 0.1 0.5 '-	-' acceptable-jct fastest 10 1 '-	-'
    } >load.tsv
    for what in blocking completion; do
        gnuplot -e "input='load.tsv'; what='$what'" "$ROOT/traces/experiments/plot.gp" >$what.svg
    done
    { printf 'removal\tperformance\tperformance_sd\tagainst_on_demand\tagainst_on_demand_sd\n'
        printf '%s\t%s\t10.8959936\t2.205445161\t0.0401\n' 0.01 154.2446705 0.10 90.1 0.50 89.38699527
    } >table.tsv
    gnuplot -e "input='table.tsv'" "$ROOT/traces/experiments/spot/plot.gp" >table.svg
    readable ./*.svg
    grep -q '33.9 thousand steps in 24 h' redundant.svg
    grep -q '>policy@choose<' blocking.svg
}

@test "pictures: plots of plans are readable, and show machines and devices" {
    plot() { "$ROOT/scripts/plot-plan" "$@"; }
    printf 'training\tsmall\tdevice=h100-80\tlayers=8\thidden=4096\tffn=16384\theads=32\tvocab=32000\tseq=2048\tgbs=64\n' >model.rec
    # the machine as it is comes first; with a quarter of the memory the old mix does not fit
    plan train --gpus 16 --vary bandwidth=0.5:2:3,memory=0.25:4:3,island=0.5:2:3,peak=1:2:2,inside=1:2:2,memory-bandwidth=1:2:2 model.rec | plot >vary.svg
    plan train --gpus 4..16,12 --price 3 --steps 200 model.rec | plot >priced.svg
    plan train --gpus 8,16 model.rec | plot >devices.svg
    readable ./*.svg
    for text in 'small on 16 devices: speed with other machines' memory-bandwidth 'old mix'; do grep -q ">$text<" vary.svg; done
    for text in 'US$ (right)' 12 16; do grep -qF ">$text<" priced.svg; done
    run -3 plot model.rec
    [[ $output == 'plot-plan: the stream has no plan'* ]]
}

@test "pictures: maps of networks are readable, and show what links carried" {
    draw() { "$ROOT/scripts/plot-network" "$@"; }
    # Server 0 sends 0.2 of what its link could carry, the switch 0.95 to it; each half of the line has its colour.
    { printf 'cluster\tisland\t3\t1e9\t0\t1e9\n'
        printf 'load\t%s\t%s\t%s\t%s\t10\t1e9\n' 0 switch 2e9 9 switch 0 9.5e9 9.5; } >island.rec
    draw <island.rec >island.svg
    grep -q 'title="0 to switch: 20 %, busy 90 %, 2 GB; back: 95 %, busy 95 %, 9.5 GB"' island.svg
    [ "$(grep -o 'stroke="#f2c230"' island.svg | wc -l) $(grep -o 'stroke="#3b0f52"' island.svg | wc -l)" = '1 1' ]
    # by busy time both halves are above 0.9 and have one colour; by bytes 2 GB is more than a fifth of 9.5 GB
    draw --by busy island.rec | grep -c 'stroke="#3b0f52"' | grep -qx 1
    draw --by bytes --title 'Mine & <yours>' island.rec -o bytes.svg
    grep -q 'stroke="#ee8026"' bytes.svg
    for text in 'Mine &amp; &lt;yours&gt;' 'to 1.9 GB' '7.6 GB to 9.5 GB' nothing 'Bytes carried in 10 s'; do
        grep -q ">${text}[^<]*<" bytes.svg
    done
    pd2graph --no-job "$ROOT/traces/alexnet.txt" | tracegen jobs --jobs 2 --interarrival fixed:0.01 --steps fixed:1 |
        partition -q --degree 4 >jobs.rec
    for kind in fat-tree:4x4,12.5GB/s,1us,80GB,taper=4 rail:2,2,4,50GB/s,1us,450GB/s,80GB torus:3x3x2,50GB/s,1us,80GB \
        dragonfly:3,2,2,25GB/s,1us,80GB fat-tree:8x8x4,12.5GB/s,1us,80GB,taper=2 island:72,50GB/s,1us,80GB; do
        alloc --place spread --cluster $kind jobs.rec | sim --contention --links | draw >"${kind%%,*}.svg"
    done
    { printf 'cluster\tcustom\tg0,g1\t80e9\nlink\tg0\tpcie\t2e9\t0\tboth=1\nlink\tg1\tpcie\t2e9\t0\tboth=1\n'
        printf 'link\tg0\tg1\t5e9\t0\nload\tg0\tg1\t4e9\t1\t1\t5e9\n'; } | draw >custom.svg
    readable ./*.svg
    # Large networks are folded: of 72 servers the 68 without jobs are alike, and two times two others.
    for text in '2 × server' '68 × server' '73 nodes, folded'; do grep -q ">$text" island:72.svg; done
    alloc --cluster torus:8x8x8,50GB/s,1us,80GB --place spread jobs.rec | sim --contention --links >torus.rec
    run -3 draw torus.rec
    [[ $output == *'a picture of 512 nodes could not be read'*'--nodes=512 draws all' ]]
}

@test "pictures: the map in the pages is what its commands draw" {
    mkdir build
    awk '/^```sh/ { block = "" } { block = block $0 "\n" } /plot-network -o/ { found = block } END { printf "%s", found }' \
        "$ROOT/docs/networks.md" | sed "1d; s#traces/#$ROOT/&#; s#^scripts/#$ROOT/&#" | bash >/dev/null
    # the figures and the colours; where Graphviz puts things is its own matter
    shown() { grep -oE 'title="[^"]*"|stroke="#[0-9a-f]*"' "$1" | sort; }
    diff <(shown build/network.svg) <(shown "$ROOT/docs/network.svg")
    [ "$(shown build/network.svg | wc -l)" -gt 40 ]
}

@test "pictures: what is no map of a network is refused" {
    refuse() { # status, message, operands; the stream is standard input
        run -"$1" "$ROOT/scripts/plot-network" "${@:3}"
        [[ $output == *"$2"* ]] || { echo "$output"; return 1; }
    }
    printf 'cluster\tisland\t3\t1e9\t0\t1e9\n' >bare.rec
    printf 'load\t0\tswitch\t2e9\t9\t10\t1e9\n' >loads.rec
    refuse 3 'no load records are in the stream: sim --contention --links writes them' bare.rec
    refuse 3 'there must be one cluster in the stream, there are 0' loads.rec
    cat bare.rec loads.rec bare.rec >two.rec
    refuse 3 'a stream must have only one cluster record' two.rec
    { cat bare.rec; sed s/switch/leaf/ loads.rec; } >strange.rec
    refuse 3 "a load record has a link from '0' to 'leaf', which the cluster has not" strange.rec
    { cat "$ROOT/traces/clusters/ramp.rec" loads.rec; } | grep -v '^#' >ramp.rec
    refuse 3 'no links are known of a 4x4x2 cluster' ramp.rec
    gzip -c bare.rec loads.rec | head -c 60 >cut.rec
    refuse 4 cut cut.rec
    refuse 2 "--by must be share, busy or bytes, got 'size'" --by size bare.rec
    refuse 2 "--nodes must be a number up to 999999, got '-1'" --nodes=-1 bare.rec
    refuse 2 'option --size not recognized' --size
    cat bare.rec loads.rec >good.rec
    refuse 4 'No space left' -o /dev/full good.rec
}

@test "pictures: what is not readable is told" {
    svg() { # FILE, what is in it
        printf '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 200" font-size="10">%s</svg>' "$2" >"$1"
    }
    bars='<rect x="100" y="50" width="200" height="50"><title>a</title></rect>'
    svg good.svg "$bars<g id=\"legend\"><text x=\"100\" y=\"20\">0.1235 and 12350000, 1-2-34567</text></g>"
    svg digits.svg "$bars<text x=\"10\" y=\"20\">took 0.012345 s</text>"
    svg legend.svg "$bars<g id=\"legend\"><text x=\"120\" y=\"70\">forward</text></g>"
    svg cut.svg "$bars<text x=\"30\" y=\"20\" text-anchor=\"end\">server-17</text>"
    svg over.svg "$bars<text x=\"30\" y=\"20\">one</text><g transform=\"translate(35,21)\"><text>two</text></g>"
    svg empty.svg "$bars"
    readable good.svg
    run -1 readable digits.svg legend.svg cut.svg over.svg empty.svg
    diff - <(echo "$output") <<'T'
digits.svg: 'took 0.012345 s' has a number of 5 digits
legend.svg: the legend's 'forward' lies on the data
cut.svg: 'server-17' leaves the picture
over.svg: 'one' lies on 'two'
empty.svg: no text at all
T
    # gnuplot's default picture has no title, and its legend lies on the curves: pictures.py must see both
    gnuplot -e 'set terminal svg; plot sin(x), cos(x)' >plain.svg
    run -1 readable plain.svg
    [[ $output == *"the legend's 'sin(x)' lies on the data"*"no title"* ]]
}
