#!/usr/bin/env python3
"""trivial.py MODEL LEFT_OUT TABLE [PREDICTIONS] - what a model that needs no thought misses on the rows of a table that
were left out, so that their difficulty is known. MODEL:
  size                  a straight line between the logarithms of the neighbours
  ranks                 the mean of the logarithms of the groups below and above
  neighbour             the time of the nearest group, by nodes, then by ranks
  relative:A=B,C=D      the time of B for A, and of D for C
  sheet                 latency + bytes / bandwidth of traces/fabrics.rec
LEFT_OUT: filter of the rows, or a fold. Prints mean |predicted / measured - 1|; with PREDICTIONS, of
predict-collectives, for each row the doublings between the neighbours that are left, and both errors."""
import importlib.machinery
import importlib.util
import math
import os
import sys

ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../..")
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("fit", os.path.join(ROOT, "scripts/fit-collectives"))
fit = importlib.util.module_from_spec(importlib.util.spec_from_loader("fit", loader))
loader.exec_module(fit)
ME = "trivial.py"
SYSTEM, KIND, RANKS, NODES = range(4)


def at_size(sizes, size):
    """On a straight line of logarithms; the nearest of all beyond the ends."""
    at = sorted(sizes)
    low = max([x for x in at if x <= size], default=at[0])
    high = min([x for x in at if x >= size], default=at[-1])
    low, high = min(low, high), max(low, high)
    share = 0.5 if low == high else math.log(size / low) / math.log(high / low)
    share = min(max(share, 0), 1)
    return sizes[low] ** (1 - share) * sizes[high] ** share


def groups(key, series):
    """The series of other groups: [(distance, ranks, sizes)]."""
    found = []
    for other, (_, sizes) in series.items():
        if other[:RANKS] == key[:RANKS] and other[NODES + 1:] == key[NODES + 1:]:
            ranks = math.log2(int(other[RANKS]) / int(key[RANKS]))
            nodes = math.log2(int(other[NODES]) / int(key[NODES]))
            found.append((abs(ranks) + 2 * abs(nodes), int(other[RANKS]), sizes))
    return sorted(found, key=lambda g: g[:2])


def by_sheet(row, size):
    ranks = int(row["ranks"])
    factor = {"all-reduce": 2 * (ranks - 1) / ranks, "send-recv": 1}.get(row["kind"], (ranks - 1) / ranks)
    best = ""
    with open(os.path.join(ROOT, "traces/fabrics.rec"), encoding="utf-8") as records:
        for words in (text.rstrip("\n").split("\t") for text in records):
            if words[0] == "fabric" and row["system"].startswith(words[1]) and len(words[1]) > len(best):
                best, sheet = words[1], words
    bandwidth = float(sheet[3])
    if sheet[2] == "pairs" and ranks > 2:
        bandwidth = next(float(w[5:]) for w in sheet if w.startswith("pcie="))
    return float(sheet[4]) + factor * size / bandwidth


def predict(model, row, series):
    key, size = fit.series_key(row), fit.row_size(ME, row)
    if model == "size":
        return at_size(series[key][1], size)
    if model == "sheet":
        return by_sheet(row, size)
    if model.startswith("relative:"):
        system = dict(pair.split("=") for pair in model[len("relative:"):].split(","))[row["system"]]
        others = [sizes for other, (_, sizes) in series.items()
                  if other[SYSTEM] == system and other[KIND] == key[KIND] and other[NODES:] == key[NODES:]]
        return at_size(others[0], size) if others else None
    near = groups(key, series)
    if model == "ranks":
        below = max((g for g in near if g[1] < int(key[RANKS])), key=lambda g: g[1])
        above = min((g for g in near if g[1] > int(key[RANKS])), key=lambda g: g[1])
        return math.sqrt(at_size(below[2], size) * at_size(above[2], size))
    return at_size(near[0][2], size)


def gap(row, series):
    """Doublings from the neighbour below to the one above; None: there is but one."""
    size = fit.row_size(ME, row)
    sizes = series[fit.series_key(row)][1]
    below, above = [x for x in sizes if x < size], [x for x in sizes if x > size]
    return round(math.log2(min(above) / max(below))) if below and above else None


def main():
    model, left_out, table = sys.argv[1:4]
    rows = list(fit.read_rows(ME, [table]))
    chosen = fit.fold(ME, left_out, rows) if "/" in left_out else fit.read_filter(ME, left_out)
    series = fit.pool([row for row in rows if not chosen(row)])
    rows = [row for row in rows if chosen(row) and not row.get("flag")]
    answers = [predict(model, row, series) for row in rows]
    errors = [abs(answer / float(row["seconds"]) - 1) if answer else None for row, answer in zip(rows, answers)]
    some = [error for error in errors if error is not None]
    if len(some) < len(errors):
        print(f"{ME}: {model} has no answer to {len(errors) - len(some)} of {len(errors)} rows", file=sys.stderr)
    if len(sys.argv) == 4:
        print(f"{sum(some) / len(some):.4f}")
        return
    with open(sys.argv[4], encoding="utf-8") as lines:
        ours = dict(line.split() for line in lines)
    for row, error in zip(rows, errors):
        print(gap(row, series), abs(float(ours[row["id"]]) / float(row["seconds"]) - 1), error)


main()
