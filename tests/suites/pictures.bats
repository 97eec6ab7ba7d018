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
