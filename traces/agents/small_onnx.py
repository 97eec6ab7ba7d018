"""Writes small networks as ONNX files, reads them and runs them, with numpy and no other package.

    save(path, nodes, weights, inputs, outputs)     nodes: (operator, names of inputs, name of output, attributes)
    model = load(path); model({"x": array})         the outputs by name

Known operators: MatMul, Add, Relu, Concat (axis), ReduceMean (one axis, kept). If onnxruntime is installed, it runs
the file instead, and then may have any operator.
"""
import struct

import numpy

try:
    import onnxruntime
except ImportError:
    onnxruntime = None

FLOAT, INT, INTS = 1, 2, 7  # AttributeProto.type; FLOAT is also TensorProto's data type


# ---- the wire format of Protocol Buffers: onnx.proto has the numbers of the fields ----------


def varint(n):
    made = b""
    while n > 127:
        made, n = made + bytes([n & 127 | 128]), n >> 7
    return made + bytes([n])


def field(number, value):
    """A number, or bytes with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def fields(data):
    """The fields of a message: (number, value)."""
    at = 0

    def read():
        nonlocal at
        n = shift = 0
        while True:
            byte = data[at]
            at += 1
            n, shift = n | (byte & 127) << shift, shift + 7
            if byte < 128:
                return n
    while at < len(data):
        key = read()
        kind = key & 7
        if kind == 0:
            yield key >> 3, read()
            continue
        size = {1: 8, 5: 4}[kind] if kind != 2 else read()
        yield key >> 3, data[at:at + size]
        at += size


def described(name, shape):
    """A ValueInfoProto of 32-bit numbers; sizes that are text have a name instead of a number."""
    sizes = b"".join(field(1, field(1, n) if isinstance(n, int) else field(2, n)) for n in shape)
    return field(1, name) + field(2, field(1, field(1, FLOAT) + field(2, sizes)))


def save(path, nodes, weights, inputs, outputs):
    """weights: arrays by name. inputs, outputs: shapes by name."""
    graph = b""
    for operator, of, to, attributes in nodes:
        node = b"".join(field(1, name) for name in of) + field(2, to) + field(4, operator)
        for name, value in attributes.items():
            many = isinstance(value, list)
            node += field(5, field(1, name) + (b"".join(field(8, n) for n in value) if many else field(3, value)) +
                          field(20, INTS if many else INT))
        graph += field(1, node)
    graph += field(2, "policy")
    for name, array in weights.items():
        array = numpy.ascontiguousarray(array, "<f4")
        graph += field(5, b"".join(field(1, n) for n in array.shape) + field(2, FLOAT) + field(8, name) +
                       field(9, array.tobytes()))
    graph += b"".join(field(11, described(*x)) for x in inputs.items())
    graph += b"".join(field(12, described(*x)) for x in outputs.items())
    with open(path, "wb") as file:
        file.write(field(1, 8) + field(2, "rampipe") + field(7, graph) + field(8, field(1, "") + field(2, 13)))


def read_tensor(data):
    shape, name, values, raw = [], "", b"", None
    for number, value in fields(data):
        if number == 1:
            shape.append(value)
        elif number == 8:
            name = value.decode()
        elif number == 9:
            raw = value
        elif number == 4:
            values += value
    return name, numpy.frombuffer(raw if raw is not None else values, "<f4").reshape(shape)


def read_node(data):
    of, to, operator, attributes = [], [], "", {}
    for number, value in fields(data):
        if number == 5:
            attribute = list(fields(value))
            name = next(v for n, v in attribute if n == 1).decode()
            attributes[name] = [struct.unpack("<q", v)[0] if isinstance(v, bytes) else v
                                for n, v in attribute if n in (3, 8)]
        elif number in (1, 2, 4):
            text = value.decode()
            of += [text] * (number == 1)
            to += [text] * (number == 2)
            operator = text if number == 4 else operator
    return operator, of, to[0], attributes


def mean(x, axes, keepdims=(1,)):
    return x.mean(tuple(axes), keepdims=bool(keepdims[0]))


RULES = {
    "MatMul": lambda x, y: x @ y,
    "Add": lambda x, y: x + y,
    "Relu": lambda x: numpy.maximum(x, 0),
    "Concat": lambda *x, axis: numpy.concatenate(x, axis[0]),
    "ReduceMean": mean,
}


class Model:
    """A network that numpy runs."""

    def __init__(self, path):
        with open(path, "rb") as file:
            graph = next(value for number, value in fields(file.read()) if number == 7)
        parts = list(fields(graph))
        self.weights = dict(read_tensor(value) for number, value in parts if number == 5)
        self.nodes = [read_node(value) for number, value in parts if number == 1]
        self.outputs = [next(v for n, v in fields(value) if n == 1).decode() for number, value in parts if number == 12]
        unknown = {operator for operator, *_ in self.nodes} - RULES.keys()
        if unknown:
            raise ValueError(f"{path}: operators {', '.join(sorted(unknown))} need onnxruntime, which is not installed")

    def __call__(self, inputs):
        values = {**self.weights, **inputs}
        for operator, of, to, attributes in self.nodes:
            values[to] = RULES[operator](*(values[name] for name in of), **attributes)
        return {name: values[name] for name in self.outputs}


def load(path):
    """The model, as a function from arrays by name to arrays by name."""
    if not onnxruntime:
        return Model(path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(names, inputs)))
