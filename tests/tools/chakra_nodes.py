"""Lists the nodes of execution traces in Chakra's format that rampipe wrote: a witness that shares
no code with lib/chakra. Parents are shown by their names.

    chakra_nodes.py FILE...
"""
import sys

TYPES = {4: "comp", 5: "send", 6: "recv", 7: "coll"}


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            size, at = varint(data, at) if key & 7 == 2 else (8, at)
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def packed(data):
    at, out = 0, []
    while at < len(data):
        value, at = varint(data, at)
        out.append(value)
    return out


for path in sys.argv[1:]:
    data, at, names = open(path, "rb").read(), 0, {}
    first = True
    while at < len(data):
        size, at = varint(data, at)
        message, at = data[at:at + size], at + size
        if first:
            assert b"0.0.4" in message, "the version stands in the metadata"
            first = False
            continue
        node = {1: 0, 5: b"", 7: 0}
        attributes = {}
        for number, value in fields(message):
            if number == 10:
                pair = dict((n if n == 1 else 2, v) for n, v in fields(value))
                attributes[pair[1].decode()] = pair[2]
            else:
                node[number] = value
        said = [f"{k}={attributes[k] if isinstance(attributes[k], int) else attributes[k].decode()}"
                for k in ("comm_type", "comm_size", "comm_src", "comm_dst", "pg_name", "num_ops",
                          "tensor_size") if k in attributes]
        names[node[1]] = node[2].decode()
        parents = packed(node[5])
        assert len(set(parents)) == len(parents), "a parent once"
        print(TYPES[node[3]], names[node[1]], node[7], *said, "<-", *sorted(names[p] for p in parents))
