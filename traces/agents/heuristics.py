"""The published heuristics as parts of an Action, for scripts/rampipe_cluster.py.

Each function decides one part of a whole action. ramp-alloc has the first three built in, so an agent that
puts them together decides as it does, to the byte (tests/suites/actions.bats):

    sip_ml          op partition: how many parts each op gets, by its time (SiP-ML)
    FirstFit        op placement: on the servers of a parent, else on the first free block of a legal shape
    shortest_first  op schedule: the shortest op of a server goes first, of equal ones that placed last
    one_channel     dep placement: all deps between two servers on the one channel that they have
    smallest_first  dep schedule: the smallest dep of a channel goes first
"""
import collections
import math


def sip_ml(graph, most, quantum=0.01):
    """The parts of each forward op: no part takes less than the quantum (seconds), and at most `most`."""
    def parts(compute):
        return max(1, min(2 * math.ceil(math.ceil(compute / quantum) / 2), most))
    return {op: parts(graph.ops[op].compute) for op in graph.forward()}


def order(graph):
    """The forward ops in Kahn's order, first in first out."""
    parents = {op: [p for p in graph.parents(op) if graph.ops[p].forward] for op in graph.forward()}
    children = collections.defaultdict(list)
    for op, above in parents.items():
        for parent in above:
            children[parent].append(op)
    for parent, below in children.items():  # in the order of the deps
        below.sort(key=list(dict.fromkeys(v for u, v in graph.deps if u == parent)).index)
    left = {op: len(above) for op, above in parents.items()}
    ready = collections.deque(op for op in parents if not left[op])
    while ready:
        op = ready.popleft()
        yield op, parents[op]
        for child in children[op]:
            left[child] -= 1
            if not left[child]:
                ready.append(child)


def shapes(k, shape):
    """The legal shapes of a block of k servers, in the order in which they are tried; (k, k, 0) is a diagonal,
    of k servers in k groups and racks."""
    groups, racks, positions = shape
    for i in range(1, min(k, positions) + 1):
        if k % i:
            continue
        p = k // i
        q = math.isqrt(p)
        if q * q == p and q <= groups and q <= racks:
            yield q, q, i
        if p <= groups and p <= racks:
            yield p, 1, i
            yield p, i, 1
    yield k, k, 0
    yield k, 1, 1


def blocks(k, shape):
    """All blocks of k servers in the order in which they are tried: lists of (group, rack, position)."""
    groups, racks, positions = shape
    for c, r, s in shapes(k, shape):
        length = s or 1
        for i in range(groups - c + 1):
            for j in range(racks - r + 1):
                for n in range(positions - length + 1):
                    yield [(i + t, j + t, n) for t in range(k)] if s == 0 else \
                        [(i + a, j + b, n + d) for a in range(c) for b in range(r) for d in range(s)]


class FirstFit:
    """Op placement on a RAMP of this shape whose servers have `memory` bytes. With `backwards`, the blocks are
    tried from the last to the first."""

    def __init__(self, shape=(4, 4, 2), memory=80e9, backwards=False):
        self.shape, self.memory, self.backwards = shape, memory * (1 + 1e-12), backwards
        self.found = {}  # of a number of parts: its blocks, by the names of the servers

    def blocks(self, k):
        if k not in self.found:
            named = [[f"{c}-{r}-{s}" for c, r, s in block] for block in blocks(k, self.shape)]
            self.found[k] = named[::-1] if self.backwards else named
        return self.found[k]

    def __call__(self, graph, op_partition, free):
        """{op: server} for the parts of a graph, or None: it does not fit on the free servers."""
        free, used, on, placement = set(free), collections.Counter(), {}, {}
        for op, parents in order(graph):
            k, whole = op_partition.get(op, 1), graph.ops[op]
            need = max(whole.memory, graph.ops[whole.twin].memory) / k
            room = (block for block in (*(on[parent] for parent in parents), *self.blocks(k))
                    if len(block) == k and free.issuperset(block) and
                    all(used[server] + need <= self.memory for server in block))
            on[op] = next(room, None)
            if on[op] is None:
                return None
            for server, part, twin in zip(on[op], graph.parts(op, k), graph.parts(whole.twin, k)):
                used[server] += need
                placement[part] = placement[twin] = server
        return placement


def shortest_first(graph, placement):
    """{op: priority} of a placed graph: the position on its server when that is sorted from the longest op to
    the shortest."""
    of_server = collections.defaultdict(list)
    for op, server in placement.items():
        of_server[server].append(op)
    priority = {}
    for ops in of_server.values():
        ops.sort(key=lambda op: -graph.ops[op].compute)
        priority.update((op, position) for position, op in enumerate(ops))
    return priority


def one_channel(graph, placement):
    """{dep: channel} of the deps that leave their server."""
    return {(u, v): 0 for u, v in graph.deps if placement[u] != placement[v]}


def smallest_first(graph, channels):
    """{dep: priority}: the position when the deps are sorted from the largest to the smallest."""
    deps = sorted(channels, key=lambda dep: -graph.deps[dep])
    return {dep: position for position, dep in enumerate(deps)}
