#!/usr/bin/env bats
# The report of runs: figures, plots and timelines on one page.

bats_require_minimum_version 1.5.0
setup() { trap - DEBUG; cd "$BATS_TEST_TMPDIR" || return 1; }

report() { "$ROOT/scripts/report" "$@"; }
step() { pd2graph "$ROOT/traces/alexnet.txt" | partition --degree "$1" | ramp-alloc | sim --timeline; }

@test "report: two runs beside each other, with their figures and timelines, the same each time" {
    step 2 >2.rec && step 4 | gzip >'4 & <b>"x".rec.gz'
    report --title 'A & <B>' -o page.html 2.rec '4 & <b>"x".rec.gz'
    report --title 'A & <B>' 2.rec '4 & <b>"x".rec.gz' | cmp - page.html
    for run in 2.rec '4 & <b>"x".rec.gz'; do
        timeline --html "$run" >"$run.html"
        metrics --format tsv "$run" >"$run.tsv"
    done
    python3 - page.html 2.rec '4 & <b>"x".rec.gz' <<'PYTHON'
import html.parser
import sys

page, *runs = sys.argv[1:]


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.rows, self.frames, self.titles, self.links = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        of = dict(attrs)
        assert not any(name.startswith("on") for name in of)
        assert of.get("href", "#").startswith("#") and of.get("src", "data:").startswith("data:")
        if tag not in ("meta", "img"):
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append(of.get("title", ""))
        if tag == "iframe":
            assert of["sandbox"] == "allow-scripts"
            self.frames.append(of["srcdoc"])
        assert tag != "script"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th") and not self.rows[-1][-1]:
            self.rows[-1][-1] = data
        if self.open and self.open[-1] in ("title", "h1", "h2"):
            self.titles.append(data)


seen = Page()
seen.feed(open(page).read())
seen.close()
assert seen.open == []
assert seen.titles == ["A & <B>"] * 2 + runs, seen.titles
assert seen.frames == [open(run + ".html").read() for run in runs]
figures = [[line.rstrip("\n").split("\t") for line in open(run + ".tsv")][1:] for run in runs]
want = [{(f[0], f[1]): f[3] for f in one if f[2] in ("value", "mean") and f[3] != "nan"} for one in figures]
assert len(want[0]) > 20
rows = {(row[0], row[1].removesuffix(", mean")): row[2:] for row in seen.rows if row[0] == "all"
        and len(row) == 4}
for key in want[0].keys() | want[1].keys():
    assert rows[key] == [one.get(key, "-") for one in want], (key, rows[key])
PYTHON
    grep -q '^sim --timeline$' page.html
    grep -q '<p id="broken"' page.html && grep -q '^<style>#broken { display: none; }' page.html
    report --no-timeline -o small.html 2.rec
    run ! grep -q '<iframe' small.html
}

@test "report: training and serving with their plots; standard input; without gnuplot it says so" {
    [ -n "${EVERY-}" ] || skip "it takes seconds: EVERY=1 runs it"
    command -v gnuplot >/dev/null || skip "gnuplot is not here"
    sim elastic --until 20000 "$ROOT/traces/spot.rec" >training.rec
    tracegen queries --rate 100 --queries 200 "$ROOT/traces/serving/image-driver.rec" | sim serve --trace |
        report --slo 0.25 -o page.html - training.rec
    for word in 'standard input' 'training.rec' 'SLO attainment' 'goodput, mean' 'latency, mean'; do grep -qF "$word" page.html; done
    [ "$(grep -c '^<figure><img alt="[^"]*" src="data:image/svg+xml;base64,[A-Za-z0-9+/=]*"></figure>$' page.html)" = 2 ]
    sed -n 's/^<figure>.*base64,\(.*\)"><.*/\1/p' page.html | head -n 1 | base64 -d | grep -q '</svg>'
    grep -c '^<iframe' page.html | grep -x 2
    mkdir bin
    ln -s /usr/bin/[a-fh-z]* /usr/bin/g[a-mo-z]* bin/ # all but gnuplot
    PATH=$BUILD/bin:$PWD/bin report training.rec >none.html
    grep -q '^<p>There are no plots: gnuplot was not there.</p>' none.html
    run ! grep -q '<figure>' none.html
}

@test "report: a cut run, one with nothing to report, a bad one, bad options: no page" {
    step 2 >2.rec
    head -n 40 2.rec >cut.rec
    echo older >page.html
    expect() { # status, message, arguments...
        run report -o page.html "${@:3}"
        echo "$output"
        [ "$status" = "$1" ] && [[ ${lines[0]} == "$2"* ]] && [ "$(cat page.html)" = older ]
    }
    expect 4 'reccheck: cut.rec: the stream is cut' 2.rec cut.rec
    expect 1 'report: spot.rec: nothing to report came' 2.rec "$ROOT/traces/spot.rec"
    printf 'run\tj\ta\ts\t2\t1\n' >bad.rec
    expect 3 'reccheck: bad.rec:1: END must not be' bad.rec
    expect 4 "report: cannot read 'missing.rec'" missing.rec
    expect 2 'report: which runs?'
    expect 2 "report: --slo must be a number of seconds, got '1s'" --slo 1s 2.rec
    expect 2 'report: unrecognized option' --colour 2.rec
}

@test "report: the examples of its help run" {
    mkdir build && ln -s "$ROOT/traces" traces
    "$ROOT/scripts/report" --help | sed -n '/^Examples:/,/^$/s/^  //p' | sed 's/; report /; "$ROOT\/scripts\/report" /; s/| report /| "$ROOT\/scripts\/report" /' >script
    [ "$(wc -l <script)" = 2 ]
    bash -euo pipefail script
    for page in build/*.html; do tail -n 1 "$page" | grep -qx '</html>'; done
    [ "$(grep -c '^<iframe' build/report.html)" = 2 ]
}
