"""Compares a page of timeline --html with the trace of the same records, or fails with what is not
the same; and checks that the page needs nothing that it does not have inside.

    timeline_page.py PAGE TRACE
"""
import collections
import html.parser
import json
import re
import sys

text = open(sys.argv[1], encoding="utf-8", newline="").read()
trace = json.load(open(sys.argv[2]))["traceEvents"]


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.scripts, self.ids = [], [], set()

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            assert name not in ("src", "href", "srcset", "data", "action"), (tag, name, value)
            assert not name.startswith("on"), (tag, name)
            if name == "id":
                assert value not in self.ids, value
                self.ids.add(value)
        if tag not in ("meta", "input"):
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data


page = Page()
page.feed(text)
page.close()
assert page.open == [], page.open
program, data, start = page.scripts
assert start == "start();"
assert text.endswith("</html>\n")
assert "default-src 'none'" in text
assert not re.search(r"https?:|@import|url\(|fetch\(|XMLHttp|WebSocket|eval\(|innerHTML", text.replace(data, ""))
assert "<" not in data, "a text of the data could end the script"
assert set(re.findall(r'byId\("(\w+)"\)', program)) <= page.ids

page = json.loads(data)
count = len(page["start"])
assert all(len(page[column]) == count for column in ("length", "name", "kind", "detail"))
assert len(set(page["names"])) == len(page["names"]) and len(set(page["details"])) == len(page["details"])

# Spans, as the trace has them; flights begin (b) and end (e).
ns = lambda microseconds: round(1000 * microseconds)
names = {e["pid"]: e["args"]["name"] for e in trace if e["name"] == "process_name"}
threads = {e["tid"]: e["args"]["name"] for e in trace if e["name"] == "thread_name"}
ends = {(e["pid"], e["id"]): e["ts"] for e in trace if e["ph"] == "e"}


def says(args):
    """What a record says, as far as the page writes it out: numbers as numbers."""
    return {key: str(value) for key, value in args.items()}


want = collections.Counter()
args = {}
for e in trace:
    if e["ph"] in "Xb":
        length = e["dur"] if e["ph"] == "X" else ends[e["pid"], e["id"]] - e["ts"]
        track = threads[e["tid"]] if e["ph"] == "X" else ""
        key = names[e["pid"]], track, e["name"], e["cat"], ns(e["ts"]), ns(length)
        want[key] += 1
        args.setdefault(key, []).append(says(e["args"]))
got = collections.Counter()
place = []  # of each span
at = 0
for process, name, flights, n in page["tracks"]:
    time = last = 0
    for k in range(at, at + n):
        time += page["start"][k]
        assert k == at or time >= last, "spans of a track overlap"
        last = time + page["length"][k]
        kind = page["kinds"][page["kind"][k]]
        key = (page["processes"][process], name, page["names"][page["name"][k]], kind["name"], time,
               page["length"][k])
        got[key] += 1
        place.append((time, page["length"][k]))
        detail = page["details"][page["detail"][k]]
        for line in detail.split("\n") if detail else []:
            field, value = line.split("=", 1)
            said = [a[field] for a in args[key] if field in a]
            assert any(value == s or float(value) == float(s) for s in said), (key, line, said)
    at += n
assert at == count
assert want == got, (want - got, got - want)

# Arrows lead between spans that last, forward in time; marks are those of the trace.
for source, target, _ in page["arrows"]:
    assert place[source][1] > 0 and place[target][1] > 0
    assert sum(place[source]) <= place[target][0]
assert len(page["arrows"]) == sum(e["ph"] == "s" for e in trace)
assert sorted((m[0], page["processes"][m[1]], m[2]) for m in page["marks"]) == \
    sorted((ns(e["ts"]), names[e["pid"]], e["name"]) for e in trace if e["ph"] == "i")
print(f"{count} spans on {len(page['tracks'])} tracks, {len(page['arrows'])} arrows,"
      f" {len(page['marks'])} marks, {len(page['names'])} names")
