#!/usr/bin/env bats
# The use of the page of timeline --html: its program in Node.js, with stand-ins for the parts of a browser
# that it uses (page_drive.js), and the whole page in headless Chromium. cases/timeline/html tests its content.

bats_require_minimum_version 1.5.0
setup() { trap - DEBUG; cd "$BATS_TEST_TMPDIR" || return 1; }

# A page with a server that runs three ops one directly after another, a second server with one op, a send, a
# mark, and a block of 10000 short runs.
make_page() {
    printf 'run\tj\t%s\t%s\t%s\t%s\tpass=%s\n' alpha s-1 0 1 forward beta s-1 1 3 backward \
        gamma s-1 3 3.5 forward delta s-2 4 8 forward >in.rec
    printf 'send\tj\talpha\tdelta\ts-1\ts-2\t1\t4\t5000000\nblock\tj\t2\tno_block\n' >>in.rec
    awk 'BEGIN { for (i = 0; i < 10000; i++)
        printf "run\tj\tshort\ts-3\t%.4f\t%.5f\tpass=%s\n", 6 + i * 2e-4, 6.0001 + i * 2e-4,
            i % 4 ? "forward" : "backward" }' >>in.rec
    timeline --html -o page.html in.rec
}
long() { [ -n "${EVERY-}" ] || skip "it takes seconds: EVERY=1 runs it"; }
need_node() { command -v node >/dev/null || skip "node is not here (scripts/bootstrap page)"; }
drive() { node "$ROOT/tests/tools/page_drive.js" "$@"; }
# Compares the output of page_drive.js with standard input, and prints the differences.
prints() {
    cat >want
    drive "$@" >got || return
    diff -u want got
}

@test "page: zoom, move, fit; the address says what is shown, and shows it again" {
    long
    need_node
    make_page
    prints page.html broken legend status key w status key a status key 0 status wheel 695 200 -300 status <<'T'
whole
forward (7503), backward (2501), send (1)
10005 of 10005 spans, -80 ms to 8.08 s
4576 of 10005 spans, 1.086 s to 6.914 s
206 of 10005 spans, 211 ms to 6.04 s
10005 of 10005 spans, -80 ms to 8.08 s
4 of 10005 spans, 2.499 s to 5.501 s
T
    prints page.html hash '#from=2&to=2.5&find=beta&hide=send&theme=dark' status address <<'T'
1 of 10005 spans, 2 s to 2.5 s; 1 hit of "beta"
#from=2&to=2.5&find=beta&hide=send&theme=dark
T
    # a drag moves the view by its own length; zooming cannot go beyond the trace or below 10 ns
    prints page.html hash '#from=2&to=3.01' size 1200 700 drag 300 200 400 200 address <<'T'
#from=1.9&to=2.91&theme=light
T
    printf 'run\tj\tx\ts-%s\t0\t1\n' {0..99} | timeline --html -o tall.html
    drive tall.html names >top && drive tall.html $(printf 'key ArrowDown %.0s' {1..30}) names >bottom
    grep -qx '   s-0' top && grep -qx '   s-99' bottom
    run ! grep -x '   s-99' top
    run ! grep -x '   s-0' bottom
    prints page.html size 400 300 $(printf 'key s %.0s' {1..6}) status $(printf 'key + %.0s' {1..66}) status <<'T'
10005 of 10005 spans, -4 s to 12 s
2 of 10005 spans, 3.999999995 s to 4.000000005 s
T
}

@test "page: hover, selecting, keys of what is selected, arrows, marks, folding" {
    long
    need_node
    make_page
    # rows: process 26-48, two counters, s-1 128-150, s-2, s-3, send 194
    prints page.html hover 250 139 hover 900 205 hover 600 205 hover 1000 183 hover 250 60 hover 450 37 hover 5 5 <<'T'
alpha; forward; start 0 ns; length 1 s
(nothing)
alpha > delta; send; start 1 s; length 3 s; bytes 5000000 (5 MB)
short; forward; start 6.4642 s; length 100 µs; 161 more within 2 pixels: zoom in
busy servers; 1
j: no_block at 2 s
(nothing)
T
    prints page.html click 600 205 details key . key Escape details <<'T'
alpha > delta
kind
send
process
j
start
1 s
length
3 s
end
4 s
record
send
dst
delta
from
s-1
to
s-2
bytes
5000000
(nothing)
T
    drive page.html click 250 139 details key . details key . key , key f status >got
    diff -u - <(grep -E 'Then|delta|^beta|of 10005' got) <<'T'
Then
delta (send)
beta
4 of 10005 spans, 600 ms to 3.4 s
T
    drive page.html click 450 37 details | grep -xF 'j: no_block'
    drive page.html click 20 37 names | grep -q '^▸ j$'
    drive page.html click 20 37 names >folded
    run ! grep -q 's-1' folded
}

@test "page: search finds names and keys, dims the others, steps through hits; kinds are left out" {
    need_node
    make_page
    prints page.html type BETA status key n status type 'to=s-2' status type nothing status type pass=back status \
        key N status key n status key Escape status <<'T'
10005 of 10005 spans, -80 ms to 8.08 s; 1 hit of "BETA"
10005 of 10005 spans, -80 ms to 8.08 s; 1 hit of "BETA", at number 1
10005 of 10005 spans, -80 ms to 8.08 s; 1 hit of "to=s-2"
10005 of 10005 spans, -80 ms to 8.08 s; 0 hits of "nothing"
10005 of 10005 spans, -80 ms to 8.08 s; 2501 hits of "pass=back"
6 of 10005 spans, 7.99885 s to 7.99965 s; 2501 hits of "pass=back", at number 2501
4 of 10005 spans, 500 ms to 3.5 s; 2501 hits of "pass=back", at number 1
4 of 10005 spans, 500 ms to 3.5 s
T
}

@test "page: pixels show what share of the time is taken; dark, light, a kind that is left out" {
    long
    need_node
    # A pixel has 100 spans, which take half of its time; a quarter of the spans are backward. So of the 16 lines
    # of the row 6 have the colour of forward and 2 that of backward.
    awk 'BEGIN { for (i = 0; i < 100000; i++)
        printf "run\tj\tx\ts\t%.5f\t%.6f\tpass=%s\n", i * 1e-5, i * 1e-5 + 5e-6, i % 4 ? "forward" : "backward" }' |
        timeline --html -o page.html
    look() { drive page.html hash "#from=0&to=1&theme=$1" "${@:2}" colours; }
    look light >colours
    forward=$(sed -n 's/^#9ecae1 //p' colours) backward=$(sed -n 's/^#fdae6b //p' colours)
    [ "$forward" -gt $((1010 * 55 / 10)) ] && [ "$forward" -lt $((1010 * 65 / 10)) ]
    [ "$backward" -gt $((1010 * 18 / 10)) ] && [ "$backward" -lt $((1010 * 22 / 10)) ]
    look light tick backward >colours
    grep -q '^#9ecae1' colours
    run ! grep -q '^#fdae6b' colours
    look dark | grep -q '^#14171a'
    drive page.html dark status address | grep -q 'theme=dark'
    # A counter shows its maximum, even if that lasts only 1 us of 1 s: the row reaches from y = 51 to y = 85.
    # In a time range without the maximum, the counter is half as high.
    awk 'BEGIN { for (i = 0; i < 50000; i++)
        printf "run\tj\tx\ts\t%.5f\t%.6f\n", i * 2e-5, i * 2e-5 + 1e-5
        print "run\tj\tx\tt\t0.3\t0.300001" }' | timeline --html -o peak.html
    prints peak.html top <<<51
    prints peak.html hash '#from=0.4&to=0.9' top <<<68
    # a span is visible however short it is, also with length 0
    printf 'run\tj\t%s\ts\t%s\t%s\n' a 0 100 b 200 200 c 300 300.000000001 d 400 500 | timeline --html -o page.html
    drive page.html size 1200 400 colours | grep -q '^#9ecae1 [0-9]'
    drive page.html hash '#from=150&to=350' colours | grep -x '#9ecae1 2'
}

@test "page: one that is cut says so, wherever it was cut; hostile names are text" {
    need_node
    make_page
    size=$(stat -c %s page.html) data=$(grep -abo 'id="data"' page.html | tail -n 1 | cut -d: -f 1)
    for at in $((data - 1000)) $((data + 20)) $(((data + size) / 2)) $((size - 60)); do
        head -c $at page.html >cut.html
        [ "$(drive cut.html broken)" = broken ]
    done
    printf 'run\t%s\t%s\t%s\t0\t1\n' '<img/src/onerror>' '</script><script>throw 1</script>' '__proto__' >hostile.rec
    timeline --html -o hostile.html hostile.rec
    prints hostile.html hover 700 99 click 700 99 type '</SCRIPT>' status <<'T'
</script><script>throw 1</script>; op; start 0 ns; length 1 s
1 of 1 spans, -10 ms to 1.01 s; 1 hit of "</SCRIPT>"
T
}

need_chromium() {
    long
    browser=$(command -v chromium || command -v chromium-browser) ||
        skip "chromium is not here (scripts/bootstrap page)"
}
in_chromium() { python3 "$ROOT/tests/tools/page_chromium.py" "$browser" "$@"; }

@test "page: in Chromium, without a network: what stands in it after loading, zooming, searching" {
    need_chromium
    make_page
    in_chromium text page.html >page.dom
    grep -o '>10005 of 10005 spans, -80 ms to 8.08 s<' page.dom
    grep -q '<p id="broken"[^>]* hidden' page.dom
    grep -q 'forward (7503)' page.dom
    in_chromium text page.html '#from=2&to=2.5&find=beta' | grep -o '>2 of 10005 spans, 2 s to 2.5 s; 1 hit of "beta"<'
    head -c $(($(stat -c %s page.html) - 60)) page.html >cut.html
    in_chromium text cut.html | grep '<p id="broken"' >cut.dom
    run ! grep -q hidden cut.dom
    printf 'run\t%s\t%s\t%s\t0\t1\n' j '</script><script>document.body.remove()</script>' s | timeline --html -o hostile.html
    in_chromium text hostile.html >hostile.dom
    grep -q '<title>timeline: j</title>' hostile.dom
    grep -q '>1 of 1 spans' hostile.dom
}

@test "page: in Chromium: pictures of it, light, dark and zoomed" {
    need_chromium
    make_page
    in_chromium colours page.html '#theme=light' >light
    in_chromium colours page.html '#theme=dark' >dark
    in_chromium colours page.html '#theme=light&from=0.1&to=0.9' >zoomed
    [ "$(head -n 1 light | cut -d' ' -f 1)" = '#ffffff' ]
    [ "$(head -n 1 dark | cut -d' ' -f 1)" = '#14171a' ]
    for colour in 9ecae1 fdae6b 444444; do grep -q "^#$colour " light; done
    # the zoomed span is alone on its track, and as wide as the page
    [ "$(sed -n 's/^#9ecae1 //p' zoomed)" -gt 12000 ]
    [ "$(sed -n 's/^#fdae6b //p' zoomed)" -le 100 ] # the legend's square alone
}
