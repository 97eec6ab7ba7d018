"""Branch coverage of the library, of tests that ran with sanitizers: make coverage.

    coverage.py BUILD FLOOR

Reads what the tests left in BUILD/profile (compiled by clang with -fprofile-instr-generate
-fcoverage-mapping), prints the branches of each room and of all that were taken, the functions
that were never called, and BUILD/uncovered, a line for each line with branches that were not
taken. Status 1: less than FLOOR percent of lib's branches were taken. A branch is what llvm-cov
counts: each way out of each condition, && and || too.
"""
import glob
import json
import os
import subprocess
import sys


def is_program(path):
    with open(path, "rb") as f:
        return f.read(4) == b"\x7fELF"


def report(build):
    """What llvm-cov says of lib."""
    profile = os.path.join(build, "profile.data")
    counts = glob.glob(os.path.join(build, "profile", "*.profraw"))
    if not counts:
        sys.exit(f"coverage: {build}/profile holds no counts: make check-asan and make check-faults-asan first")
    subprocess.run(["llvm-profdata", "merge", "-sparse", "-o", profile] + counts, check=True)
    programs = [p for folder in ("bin", "libexec/rampipe", "tests/unit")
                for p in sorted(glob.glob(os.path.join(build, folder, "*"))) if is_program(p)]
    out = subprocess.run(["llvm-cov", "export", "-instr-profile", profile, programs[0]] +
                         ["-object=" + p for p in programs[1:]] + [os.path.abspath("lib")],
                         check=True, stdout=subprocess.PIPE).stdout
    return json.loads(out)["data"][0]


def main(build, floor):
    taken, total, uncovered, found = {}, {}, [], report(build)
    for file in found["files"]:
        name = os.path.relpath(file["filename"])
        room, lines = name.split(os.sep)[1], {}
        for line, _, _, _, true, false, *_ in file["branches"]:
            lines.setdefault(line, []).extend((true, false))
        for line, counts in sorted(lines.items()):
            total[room] = total.get(room, 0) + len(counts)
            taken[room] = taken.get(room, 0) + sum(c > 0 for c in counts)
            if 0 in counts:
                uncovered.append(f"{name}:{line}: {counts.count(0)} of {len(counts)}\n")
    # found["functions"] is of all programs. Of a static function the name begins with its file.
    idle = sorted(f"{name}: {f['name'].split(':')[-1]}()" for f in found["functions"]
                  for name in [os.path.relpath(f["filenames"][0])]
                  if not f["count"] and name.startswith("lib/") and name.endswith(".c"))
    with open(os.path.join(build, "uncovered"), "w") as f:
        f.writelines(uncovered)
    for room in sorted(total):
        print(f"lib/{room:12} {taken[room]:6} of {total[room]:6} branches "
              f"{100 * taken[room] / total[room]:6.1f} %")
    share = 100 * sum(taken.values()) / sum(total.values())
    print(f"{'lib':16} {sum(taken.values()):6} of {sum(total.values()):6} branches {share:6.1f} %")
    print(*("never called: " + name for name in idle), sep="\n")
    print(f"what was not taken: {build}/uncovered")
    return share < float(floor)


sys.exit(main(*sys.argv[1:]))
