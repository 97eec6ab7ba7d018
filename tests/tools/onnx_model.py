"""An ONNX model from lines of text, for cases: a witness that shares no code with lib/onnx.

    onnx_model.py OUT <<LINES
    onnx_model.py <<LINES                several: a line > OUT stands before those of each
    onnx_model.py --bare OUT <<LINES     its initialisers of floating point are inputs behind the others instead,
                                         as torch.onnx.export(export_params=False) leaves them
    onnx_model.py --raw HEX OUT          the bytes as they are

input NAME SHAPE [TYPE]     likewise output, info; SHAPE is 1,3,n (a word is a symbol), - a scalar
init NAME SHAPE [TYPE] [VALUES]   TYPE float (1, the default), int64, int32 or bool, as raw bytes; int64v or
                            int32v, as a list; no values: only its shape
TYPE IN,IN -> OUT,OUT [ATTRIBUTE=VALUE]...   a node. VALUE: 3, [1,2], a word, int64:SHAPE:VALUES
                            also 0.5, [Relu,Tanh]
name= and domain= are of the node itself; an IN or OUT of - is left out.
"""
import re
import struct
import sys

TYPES = {"float": 1, "int64": 7, "int32": 6, "bool": 9}


def varint(n):
    out = b""
    n &= (1 << 64) - 1
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode(errors="surrogateescape")
    return varint(number << 3 | 2) + varint(len(value)) + value


def numbers(text):
    return [int(n) for n in text.split(",")] if text not in ("-", "") else []


def tensor(name, shape, kind="float", values=""):
    head = b"".join(field(1, n) for n in numbers(shape)) + field(2, TYPES[kind.rstrip("v")]) + field(8, name)
    if kind.endswith("v"):
        return head + field(7 if kind == "int64v" else 5, b"".join(varint(n) for n in numbers(values)))
    each = {"int32": "<i", "bool": "<b"}.get(kind, "<q")
    data = b"".join(struct.pack(each, n) for n in numbers(values))
    return head + (field(9, data) if data else b"")


def info(name, shape, kind="float"):
    dims = b"" if shape == "-" else b"".join(
        field(1, field(1, int(d)) if re.fullmatch(r"-?\d+", d) else field(2, d) if d != "?" else b"")
        for d in shape.split(","))
    return field(1, name) + field(2, field(1, field(1, TYPES[kind]) + field(2, dims)))


def attribute(name, value):
    if re.fullmatch(r"-?\d+", value):
        return field(1, name) + field(3, int(value))
    if re.fullmatch(r"-?\d+\.\d+", value):
        return field(1, name) + varint(2 << 3 | 5) + struct.pack("<f", float(value))
    if re.match(r"\[[A-Za-z]", value):
        return field(1, name) + b"".join(field(9, word) for word in value[1:-1].split(","))
    if value.startswith("["):
        return field(1, name) + b"".join(field(8, n) for n in numbers(value[1:-1]))
    if ":" in value:
        kind, shape, values = value.split(":")
        return field(1, name) + field(5, tensor("", shape, kind, values))
    return field(1, name) + field(4, value)


def node(words):
    kind, ins, arrow, outs, *rest = words
    assert arrow == "->", words
    out = b"".join(field(1, "" if i == "-" else i) for i in ins.split(",") if ins != ".")
    out += b"".join(field(2, "" if o == "-" else o) for o in outs.split(",") if o != ".") + field(4, kind)
    for word in rest:
        key, value = word.split("=", 1)
        own = {"name": 3, "domain": 7}.get(key)
        out += field(own, value) if own else field(5, attribute(key, value))
    return out


def is_weight(line):
    words = line.split()
    return words[0] == "init" and (len(words) < 4 or words[3] == "float")


def line_of(line, bare=False):
    words = line.split()
    kind = words[0]
    if bare and is_weight(line):
        return field(11, info(*words[1:]))
    if kind == "init":
        return field(5, tensor(*words[1:]))
    if kind in ("input", "output", "info"):
        return field({"input": 11, "output": 12, "info": 13}[kind], info(*words[1:]))
    return field(1, node(words))


def write(path, data):
    with open(path, "wb") as out:
        out.write(data)


if sys.argv[1:2] == ["--raw"]:
    write(sys.argv[3], bytes.fromhex(sys.argv[2]))
    sys.exit()
bare = sys.argv[1:2] == ["--bare"]
if bare:
    del sys.argv[1]
files = {sys.argv[1]: []} if len(sys.argv) > 1 else {}
for line in filter(str.strip, sys.stdin):
    if line.startswith("> "):
        files[line[2:].strip()] = []
    else:
        files[list(files)[-1]].append(line)
for path, lines in files.items():
    lines.sort(key=lambda line: bare and is_weight(line))
    write(path, field(1, 8) + field(7, b"".join(line_of(line, bare) for line in lines)))
