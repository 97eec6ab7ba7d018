"""Compares the ends of flows on random links with exact fractions.

    flow_exact.py FLOW SEED CASES

FLOW is build/bench/flow. Each case has a few links and flows, among them flows that cross a
link twice, flows with a weight, and links whose capacity changes, also to 0 and back. The
exact ends come from plain progressive filling: all rates are raised together, a full link
keeps its flows, the others are raised further. All cases are one input to FLOW, beside each
other on links of their own.
"""
import random
import subprocess
import sys
from fractions import Fraction


def rates(capacity, flows):
    """The max-min fair rate of each flow; flows: name -> (weight, route)."""
    rate, left, load = {}, dict(capacity), dict.fromkeys(capacity, Fraction(0))
    riders = {link: [] for link in capacity}
    for name, (weight, route) in flows.items():
        for link in route:
            load[link] += weight
            riders[link].append(name)
    while len(rate) < len(flows):
        level, link = min((left[link] / load[link], link) for link in load if load[link] > 0)
        for name in riders[link]:
            if name not in rate:
                rate[name] = level
                weight, route = flows[name]
                for crossed in route:
                    left[crossed] -= weight * level
                    load[crossed] -= weight
    return rate


def ends(capacity, events):
    """Ends of all flows; events: (time, "flow", name, bytes, weight, route) or
    (time, "capacity", link, capacity), in order of time."""
    now, todo, end = Fraction(0), list(events), {}
    capacity, flows, left = dict(capacity), {}, {}
    while todo or flows:
        rate = rates(capacity, flows)
        finish = min((now + left[n] / r for n, r in rate.items() if r > 0), default=None)
        time = todo[0][0] if todo else finish
        if finish is not None and finish < time:
            time = finish
        if time is None:  # what is left stands still
            break
        for name, r in rate.items():
            left[name] -= r * (time - now)
        now = time
        for name in [n for n in flows if left[n] == 0]:
            end[name] = now
            del flows[name]
        while todo and todo[0][0] == now:
            event = todo.pop(0)
            if event[1] == "capacity":
                capacity[event[2]] = event[3]
            elif event[5] and event[3] > 0:
                flows[event[2]] = (event[4], event[5])
                left[event[2]] = event[3]
            else:
                end[event[2]] = now
    return end


def quarter(draw, most):
    return Fraction(draw.randint(1, 4 * most), 4)


def make(draw, case):
    links = ["%dl%d" % (case, i) for i in range(draw.randint(1, 8))]
    capacity = {link: quarter(draw, 12) for link in links}
    if draw.random() < 0.2:  # many ties
        capacity = dict.fromkeys(links, Fraction(draw.randint(1, 3)))
    events = []
    for i in range(draw.randint(1, 10)):
        route = [draw.choice(links) for _ in range(draw.choice((1, 1, 2, 2, 3, 3, 4, 5)))]
        weight = draw.choice((1, 1, 1, 1, 2, 3, Fraction(1, 2), 1000))
        start = draw.choice((Fraction(0), quarter(draw, 10)))
        events.append((start, "flow", "%df%d" % (case, i), Fraction(draw.randint(0, 60)),
                       Fraction(weight), route))
    for _ in range(draw.choice((0, 0, 1, 2, 3))):
        value = draw.choice((Fraction(0), quarter(draw, 12), quarter(draw, 12)))
        events.append((quarter(draw, 20), "capacity", draw.choice(links), value))
    return capacity, sorted(events, key=lambda event: event[0])


flow, seed, cases = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
draw, expected, lines, inputs = random.Random(seed), {}, [], []
for case in range(cases):
    capacity, events = make(draw, case)
    lines += ["link\t%s\t%r" % (link, float(c)) for link, c in capacity.items()]
    for event in events:
        if event[1] == "flow":
            expected[event[2]] = None
            inputs.append("flow\t%s\t%r\t%r\t%s\t\tweight=%r" % (
                event[2], float(event[0]), float(event[3]), ",".join(event[5]),
                float(event[4])))
        else:
            inputs.append("capacity\t%s\t%r\t%r" % (event[2], float(event[0]), float(event[3])))
    expected.update(ends(capacity, events))
run = subprocess.run([flow], input="\n".join(lines + inputs) + "\n", text=True,
                     capture_output=True)
if run.returncode != 0:
    sys.exit("flow: status %d: %s" % (run.returncode, run.stderr))
ours, wrong, still, worst = {}, 0, 0, 0
for line in run.stdout.splitlines():
    name, end = line.split("\t")
    if name in ours:
        sys.exit("flow %s ends twice" % name)
    ours[name] = float(end)
for name, end in expected.items():
    if name not in ours:
        sys.exit("flow %s does not end" % name)
    still += end is None
    if end is None:
        error = 0 if ours[name] == float("inf") else float("inf")
    else:
        error = abs(Fraction(ours[name]) - end) / max(end, 1) if ours[name] < float("inf") else 9
    worst = max(worst, error)
    if error > 1e-9:
        wrong += 1
        print("flow %s: %r, exactly %s" % (name, ours[name], end and float(end)))
print("%d cases, %d flows, %d of them stand still, %d wrong; the largest error is %.1e" % (
    cases, len(expected), still, wrong, worst))
sys.exit(wrong > 0 or still == 0)
