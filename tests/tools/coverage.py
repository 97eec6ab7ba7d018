"""Branch coverage of the library: make coverage.

    coverage.py BUILD FLOOR

Reads what the tests left in BUILD (compiled with --coverage, -O0), prints the branches of each
room and of all that were taken, the functions that were never called, and BUILD/uncovered, a
line for each branch that was not taken. Status 1: less than FLOOR percent of lib's branches
were taken. A branch is what gcov counts: each way out of each condition, && and || too.
"""
import json
import os
import subprocess
import sys


def main(build, floor):
    taken, total, idle, uncovered = {}, {}, [], []
    for folder, _, names in sorted(os.walk(os.path.join(build, "lib"))):
        notes = sorted(n for n in names if n.endswith(".gcno"))
        if not notes:
            continue
        room = os.path.basename(folder)
        out = subprocess.run(["gcov", "--branch-probabilities", "--json-format", "--stdout"] + notes,
                             cwd=folder, check=True, capture_output=True, text=True).stdout
        for report in map(json.loads, filter(None, out.split("\n"))):
            for source in report["files"]:
                if not source["file"].startswith("lib/"):
                    continue
                idle += [f"{source['file']}: {f['name']}()" for f in source["functions"]
                         if not f["execution_count"]]
                for line in source["lines"]:
                    counts = [b["count"] for b in line["branches"]]
                    total[room] = total.get(room, 0) + len(counts)
                    taken[room] = taken.get(room, 0) + sum(c > 0 for c in counts)
                    if 0 in counts:
                        uncovered.append(f"{source['file']}:{line['line_number']}: "
                                         f"{counts.count(0)} of {len(counts)}\n")
    with open(os.path.join(build, "uncovered"), "w") as f:
        f.writelines(uncovered)
    for room in total:
        print(f"lib/{room:12} {taken[room]:6} of {total[room]:6} branches "
              f"{100 * taken[room] / total[room]:6.1f} %")
    share = 100 * sum(taken.values()) / sum(total.values())
    print(f"{'lib':16} {sum(taken.values()):6} of {sum(total.values()):6} branches {share:6.1f} %")
    print(*("never called: " + name for name in idle), sep="\n")
    print(f"what was not taken: {build}/uncovered")
    return share < float(floor)


sys.exit(main(*sys.argv[1:]))
