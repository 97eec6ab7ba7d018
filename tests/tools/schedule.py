#!/usr/bin/env python3
"""schedule.py TSV ID... - the pipelines of these rows of a golden schedule.tsv as records for sim.

Each stage is a server of a RAMP cluster with one server a rack; its lane compute runs in the order of
the schedule. The bytes of a message are chosen so that its way takes the time of the row. Writes one
stream, in which each row is a job. Behind it come comment lines with what the golden expects:
`# expect JOB MAKESPAN PEAK_OF_THE_FULLEST_STAGE`. F ops hold 1 byte until their B op.
"""
import csv
import sys


def orders(schedule, p, m, v):
    """The list of each stage: (backward, microbatch, part)."""
    lists = []
    for r in range(p):
        if v == 1:
            forward = [(0, i, r) for i in range(m)]
            backward = [(1, i, r) for i in range(m)]
        else:
            group = [(g * p + i, c) for g in range(m // p) for c in range(v) for i in range(p)]
            forward = [(0, i, c * p + r) for i, c in group]
            backward = [(1, i, (v - 1 - c) * p + r) for i, c in group]
        n = m * v
        w = n if schedule == "gpipe" else p - 1 - r if v == 1 else 2 * (p - 1 - r) + (v - 1) * p
        ops = forward[:w]
        for k in range(n):
            ops += forward[w + k : w + k + 1] + backward[k : k + 1]
        lists.append(ops)
    return lists


def numbers(text, p):
    values = [float(x) for x in text.split(",")]
    return values * p if len(values) == 1 else values


# A cluster of one server a rack, in which a message takes PROPAGATION + 2 IO + bytes / rate.
GROUPS, BANDWIDTH = 16, 1e12


def op(back, i, s):
    return f"{'FB'[back]}{i}.{s}"


def write(row):
    name, p, m, v = row["id"], int(row["stages"]), int(row["microbatches"]), int(row["chunks"])
    f, b, x = numbers(row["forward"], p), numbers(row["backward"], p), float(row["transfer"])
    parts = p * v
    rate = BANDWIDTH / GROUPS  # one transceiver of GROUPS; see reference/ramp.md
    print("graph", name, row["schedule"], sep="\t")
    for i in range(m):
        for s in range(parts):
            print("op", name, op(0, i, s), "task", repr(f[s % p] / v), 0, "hold=1", f"release={op(1, i, s)}", sep="\t")
            print("op", name, op(1, i, s), "task", repr(b[s % p] / v), 0, sep="\t")
    for i in range(m):
        for s in range(parts - 1):
            print("dep", name, op(0, i, s), op(0, i, s + 1), repr(x * rate), sep="\t")
            print("dep", name, op(1, i, s + 1), op(1, i, s), repr(x * rate), sep="\t")
        print("dep", name, op(0, i, parts - 1), op(1, i, parts - 1), 0, sep="\t")
    print("job", name, name, 0, 1, "inf", sep="\t")
    print("layout", f"L{name}", name, p, sep="\t")
    for r, ops in enumerate(orders(row["schedule"], p, m, v)):
        for k, one in enumerate(ops):
            print("place", f"L{name}", op(*one), r, f"order={k}", "lane=compute", sep="\t")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        rows = {row["id"]: row for row in csv.DictReader(file, delimiter="\t")}
    chosen = [rows[name] for name in sys.argv[2:]]
    print("cluster", "ramp", GROUPS, 1, 1, repr(BANDWIDTH), "1e9", "propagation=0", "io=0", sep="\t")
    first = 0
    for row in chosen:
        write(row)
        p = int(row["stages"])
        servers = ",".join(f"{c}-0-0" for c in range(first, first + p))
        print("alloc", row["id"], row["id"], f"L{row['id']}", 0, servers, sep="\t")
        first += p
    for row in chosen:
        print("# expect", row["id"], row["makespan"], max(int(n) for n in row["peak_inflight"].split(",")), sep="\t")


main()
