"""Reads every #include of lib/, include/ and tools/ below a folder and prints what breaks
the rules of the house (DESIGN section 1, HACKING.md), a line each; nothing if none does.

    python3 includes.py FOLDER
"""
import os
import re
import sys

FLOORS = [
    ["record"],
    ["csv", "json", "yaml", "linear", "random"],
    ["cli", "event", "graph", "device", "flow", "collective"],
    ["input", "net", "chakra", "spot", "database", "serve", "task", "timeline", "kernel"],
    ["sim", "place", "metrics", "onnx", "run", "parallel"],
    ["alloc", "train"],
    ["learn"],
]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
# What a file must use of a room whose header it includes.
PREFIX = {"record": r"rec_|REC_|rec\b", "random": r"rng_|rng\b", "parallel_step": r"parallel_"}
# Foreign headers, and the only room that may know them.
FOREIGN = {
    r"zlib\.h": "record",
    r"libdeflate\.h": "record",
    r"csv\.h": "csv",
    r"yajl/.*": "json",
    r"yaml\.h": "yaml",
    r"sqlite3\.h": "database",
    r"glpk\.h": "linear",
    r"proto/chakra\.pb-c\.h": "chakra",
    r"proto/onnx\.pb-c\.h": "onnx",
    r"gsl/gsl_(rng|randist|cdf)\.h": "random",
}

os.chdir(sys.argv[1])
wrong = []
# The one header that is a list for another: the table of records.
LISTS = {"record_table": "record"}
rooms = sorted(d for d in os.listdir("lib") if os.path.isdir("lib/" + d))
headers = sorted(f[:-2] for f in os.listdir("include/rampipe") if f[:-2] not in LISTS)
# A room may have a header more for a part of it: net_ramp.h is of lib/net.
HOME = {h: h if h in rooms else h.rsplit("_", 1)[0] for h in headers}
arrows = {room: {} for room in rooms}  # room -> {room it needs: file}


def includes(path):
    text = open(path).read()
    return text, re.findall(r'^#include\s+(["<])([^">]+)[">]', text, re.M)


def check_file(path, room):
    text, found = includes(path)
    body = re.sub(r"^#include.*$", "", text, flags=re.M)
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    for kind, name in found:
        if kind == "<":
            for pattern, home in FOREIGN.items():
                if re.fullmatch(pattern, name) and room != home and room != "tests":
                    wrong.append(f"{path}: <{name}> is for lib/{home} alone")
        elif name.startswith("rampipe/"):
            other = name[len("rampipe/"):-2]
            if LISTS.get(other) == room:
                continue
            if other not in headers:
                wrong.append(f"{path}: there is no room '{other}'")
            elif HOME[other] != room:
                if room:
                    arrows[room].setdefault(HOME[other], path)
                prefix = PREFIX.get(other, rf"{other}_|{other.upper()}_|struct {other}\b")
                if not re.search(rf"\b({prefix})", body):
                    wrong.append(f"{path}: needs nothing of {name}")
        elif room and not os.path.exists(os.path.join(os.path.dirname(path), name)):
            wrong.append(f"{path}: \"{name}\" is not of this room")


for room in rooms:
    if room not in FLOOR:
        wrong.append(f"lib/{room}: a room without a floor")
    if room not in headers:
        wrong.append(f"lib/{room}: a room without a header include/rampipe/{room}.h")
    for name in sorted(os.listdir("lib/" + room)):
        check_file(f"lib/{room}/{name}", room)
for name in headers:
    if HOME[name] not in rooms:
        wrong.append(f"include/rampipe/{name}.h: a header without a room lib/{name}")
    else:
        check_file(f"include/rampipe/{name}.h", HOME[name])
for name in sorted(os.listdir("tools")):
    if name.endswith((".c", ".h")):
        check_file("tools/" + name, "")

for room, needs in arrows.items():
    for other, path in needs.items():
        if FLOOR.get(other, 0) >= FLOOR.get(room, 9):
            way = "up" if FLOOR.get(other, 0) > FLOOR.get(room, 9) else "along a floor"
            wrong.append(f"{path}: an arrow from lib/{room} {way} to lib/{other}")


def circle(room, way):
    if room in way:
        return way[way.index(room):] + [room]
    for other in sorted(arrows.get(room, {})):
        found = circle(other, way + [room])
        if found:
            return found
    return None


for room in rooms:
    found = circle(room, [])
    if found and found[0] == room:
        wrong.append("a circle: " + " -> ".join(found))
print("\n".join(wrong), end="\n" if wrong else "")
