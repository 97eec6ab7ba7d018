"""An execution trace in Chakra's format from lines of text, for cases: a witness that shares no
code with lib/chakra.

    chakra_trace.py OUT <<LINES            ID TYPE DURATION NAME [data=1,2] [ctrl=3] [in=TEXT] [ATTR=VALUE]...
    chakra_trace.py <<LINES                several: a line > OUT stands before those of each

TYPE is comp, send, recv, coll, metadata or a number. A VALUE is a number (int64; int32 with an i
behind it; double with a point; N@FIELD: of the kind that has this field of AttributeProto), true, false, a list of
both (true,false) or text (%09: a TAB); in= is the values of the inputs. Metadata has version 0.0.4.
"""
import re
import struct
import sys

TYPES = {"metadata": 1, "comp": 4, "send": 5, "recv": 6, "coll": 7}


def varint(n):
    out = b""
    n &= (1 << 64) - 1
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value) if value else b""
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def attribute(name, text):
    if text in ("true", "false"):
        value = varint(27 << 3) + varint(text == "true")
    elif re.fullmatch(r"((true|false),)+(true|false)", text):
        value = field(28, field(1, bytes(word == "true" for word in text.split(","))))
    elif re.fullmatch(r"-?\d+", text):
        value = varint(9 << 3) + varint(int(text))
    elif re.fullmatch(r"\d+@\d+", text):
        number, kind = map(int, text.split("@"))
        form = {5: "<f", 19: "<I", 21: "<Q", 23: "<i", 25: "<q"}.get(kind)
        bits = form and struct.pack(form, number)
        value = (varint(kind << 3 | (5 if len(bits) == 4 else 1)) + bits if bits else
                 varint(kind << 3) + varint(2 * number if kind in (15, 17) else number))
    elif re.fullmatch(r"-?\d+i", text):
        value = varint(7 << 3) + varint(int(text[:-1]))
    elif re.fullmatch(r"-?\d+\.\d*", text):
        value = field(3, float(text))
    else:
        value = field(29, text.replace("%09", "\t").encode())
    return field(1, name.encode()) + value


def node(line):
    ident, kind, duration, name, *rest = line.split()
    out = field(1, int(ident)) + field(2, name.encode(errors="surrogateescape")) + field(3, int(TYPES.get(kind, kind)))
    for word in rest:
        key, value = word.split("=", 1)
        if key in ("data", "ctrl"):
            out += field({"ctrl": 4, "data": 5}[key],
                         b"".join(varint(int(i)) for i in value.split(",")))
        elif key == "in":
            out += field(8, field(1, value.encode()))
        else:
            out += field(10, attribute(key, value))
    return out + field(7, int(duration))


files = {sys.argv[1]: []} if len(sys.argv) > 1 else {}
for line in filter(str.strip, sys.stdin):
    if line.startswith("> "):
        files[line[2:].strip()] = []
    else:
        files[list(files)[-1]].append(node(line))
for path, nodes in files.items():
    with open(path, "wb") as out:
        out.write(b"".join(varint(len(m)) + m for m in [field(1, b"0.0.4")] + nodes))
