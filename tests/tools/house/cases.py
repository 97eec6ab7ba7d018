"""Reads every case TOOL/NAME below a folder and prints what nobody could learn from it, a
line each: a command that does not open with a comment, a command on inputs that another
case has too, a file that the command itself writes, nothing that is expected.

    python3 cases.py FOLDER
"""
import os
import re
import sys

EXPECTED = {"expout", "experr", "exit"}

os.chdir(sys.argv[1])
seen = {}  # command without comments, inputs -> case


def contents(path):
    with open(path, "rb") as f:
        return f.read()


for case in sorted(os.path.join(tool, name) for tool in os.listdir(".")
                   for name in os.listdir(tool)):
    lines = contents(f"{case}/cmd").splitlines()
    if not lines or not lines[0].startswith(b"# "):
        print(f"{case}: the first line of cmd does not say what the case shows (# ...)")
    if not EXPECTED & set(os.listdir(case)):
        print(f"{case}: nothing is expected (expout, experr or exit)")
    files = sorted(os.path.join(folder, file) for folder, _, files in os.walk(case)
                   for file in files)
    inputs = tuple((os.path.relpath(f, case), contents(f)) for f in files
                   if os.path.basename(f) not in EXPECTED | {"cmd"})
    for name, _ in inputs:  # > FILE, -o FILE: left behind by a run in this folder
        if re.search(rb"(>|-o) *" + re.escape(name.encode()) + rb"(\s|$)", b"\n".join(lines)):
            print(f"{case}: cmd writes {name}, which is no input")
    command = tuple(line for line in lines if not line.startswith(b"#"))
    other = seen.setdefault((command, inputs), case)
    if other != case:
        print(f"{case}: the same command on the same inputs as {other}")
