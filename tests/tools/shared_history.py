"""Is what processes saw of a shared dictionary and queue what one process could have seen?

An operation is Op(start, end, kind, key, argument, result); end is inf if its process was killed
in it, and it may then have taken effect or not. Each written value and each item is unique.
"""
import bisect
import collections
import math

Op = collections.namedtuple("Op", "start end kind key argument result")
IMPOSSIBLE = object()


def register(state, op):
    """The value of a key after an operation that saw `state`; None: it is not there."""
    known = op.end < math.inf
    if op.kind == "set":
        return op.argument
    if op.kind == "get":
        return state if op.result == state else IMPOSSIBLE
    if op.kind == "has":
        return state if op.result == (state is not None) else IMPOSSIBLE
    if op.kind == "pop":
        return None if not known or op.result == state else IMPOSSIBLE
    if op.kind == "setdefault":
        after = op.argument if state is None else state
        return after if not known or op.result == after else IMPOSSIBLE
    if op.kind == "update":  # its result is what was there before
        return op.argument if not known or op.result == state else IMPOSSIBLE
    raise AssertionError(op.kind)


def check_register(ops):
    """Of one key. After each event, the set of all states in which the key may be, each with the open
    operations that have taken effect in it (Wing and Gong's search, breadth first). An operation that
    has returned must have taken effect in all that are kept; if none is left, no order explains it."""
    ops = [op for op in ops if op.end < math.inf or op.kind not in ("get", "has")]
    events = sorted([(op.start, 0, i) for i, op in enumerate(ops)] +
                    [(op.end, 1, i) for i, op in enumerate(ops) if op.end < math.inf])
    pending, states = set(), {(None, frozenset())}
    for _, returns, i in events:
        if not returns:
            pending.add(i)
            continue
        todo, seen = list(states), set(states)
        while todo:
            state, done = todo.pop()
            if i in done:  # what comes after it can wait
                continue
            for j in pending - done:
                after = register(state, ops[j])
                if after is not IMPOSSIBLE and (after, done | {j}) not in seen:
                    seen.add((after, done | {j}))
                    todo.append((after, done | {j}))
        pending.remove(i)
        states = {(state, done - {i}) for state, done in seen if i in done}
        if not states:
            return f"no order of the operations explains {ops[i]}"
    return None


def check_dictionary(ops):
    by_key = collections.defaultdict(list)
    for op in ops:
        if op.kind == "items":  # all keys at one moment, so each of them at some moment
            for key in ("a", "b", "c"):
                by_key[key].append(op._replace(kind="get", result=op.result.get(key) if op.result is not None else None))
        else:
            by_key[op.key].append(op)
    return next(filter(None, map(check_register, by_key.values())), None)


def check_queue(ops):
    """Ends with an empty queue. The four ways in which a history of a queue with unique items can be
    wrong (Henzinger, Sezgin, Vafeiadis: Aspect-oriented linearizability proofs): an item that was
    never put; one that comes twice; two in the wrong order; empty while there is an item."""
    put = {op.argument: op for op in ops if op.kind == "put" and op.result != "full"}
    got, empty, cut = {}, [], 0
    for op in ops:
        if op.kind != "take":
            continue
        if op.end == math.inf:
            cut += 1
        elif op.result is None:
            empty.append(op)
        elif op.result not in put:
            return f"{op} took what was never put"
        elif op.result in got:
            return f"{op} took what {got[op.result]} had taken"
        else:
            got[op.result] = op
            if op.end < put[op.result].start:
                return f"{op} took what was not yet put: {put[op.result]}"
    lost = [op for item, op in put.items() if op.end < math.inf and item not in got]
    if len(lost) > cut:
        return f"{len(lost)} items are lost, and {cut} processes were killed while they took one: {lost[:3]}"
    # Items by when their put had ended; of those up to each, the last begin of taking one.
    ended = sorted((put[item].end, op.start, item) for item, op in got.items())
    latest, most = [], (-math.inf, None)
    for _, start, item in ended:
        most = max(most, (start, item))
        latest.append(most)
    for item, op in got.items():
        before = bisect.bisect_left(ended, (put[item].start,))
        if before and latest[before - 1][0] > op.end:
            return f"{item} came before {latest[before - 1][1]}, which had been put earlier"
    # Spans in which something is in the queue for certain, joined.
    spans = []
    for begin, end in sorted((put[item].end, op.start) for item, op in got.items()):
        if begin >= end:
            continue
        if spans and begin <= spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], end)
        else:
            spans.append([begin, end])
    for op in empty:
        at = bisect.bisect_left(spans, [op.start]) - 1
        if at >= 0 and spans[at][0] < op.start and op.end < spans[at][1]:
            return f"{op} found nothing, but the queue held something from {spans[at][0]} to {spans[at][1]}"
    return None


def check_the_checks():
    """Each wrong history is found, and the right ones beside them are not."""
    def ops(*rows):
        return [Op(start, end, *rest, *[None] * (4 - len(rest))) for start, end, *rest in rows]
    inf = math.inf
    right = [
        ops((0, 3, "set", "a", 1), (1, 2, "get", "a", None, 1)),
        ops((0, 3, "set", "a", 1), (1, 2, "get", "a", None, None)),
        ops((0, inf, "set", "a", 1), (5, 6, "get", "a", None, None), (7, 8, "get", "a", None, 1)),
        ops((0, 1, "set", "a", 1), (2, 5, "update", "a", 2, 1), (3, 4, "setdefault", "a", 3, 2)),
        ops((0, 1, "setdefault", "a", 1, 1), (2, 3, "pop", "a", None, 1), (4, 5, "has", "a", None, False)),
        ops((0, 1, "set", "a", 1), (2, 3, "items", None, None, {"a": 1})),
    ]
    wrong = [
        ops((0, 1, "set", "a", 1), (2, 3, "get", "a", None, None)),
        ops((0, 1, "set", "a", 1), (2, 3, "set", "a", 2), (4, 5, "get", "a", None, 1)),
        ops((0, 9, "set", "a", 1), (1, 2, "get", "a", None, 1), (3, 4, "get", "a", None, None)),
        ops((0, 1, "set", "a", 1), (2, 6, "update", "a", 2, 1), (2, 6, "update", "a", 3, 1)),
        ops((0, 1, "set", "a", 1), (2, 6, "pop", "a", None, 1), (2, 6, "pop", "a", None, 1)),
        ops((0, 1, "set", "a", 1), (2, 3, "setdefault", "a", 2, 2)),
        ops((0, 1, "set", "a", 1), (2, 3, "has", "a", None, False)),
        ops((0, 1, "set", "a", 1), (2, 3, "items", None, None, {})),
        ops((0, inf, "set", "a", 1), (5, 6, "get", "a", None, 1), (7, 8, "get", "a", None, None)),
    ]
    for history in right:
        assert check_dictionary(history) is None, history
    for history in wrong:
        assert check_dictionary(history), history
    both = ((0, 1, "put", None, 1), (2, 3, "put", None, 2))
    right = [
        ops(*both, (4, 5, "take", None, None, 1), (6, 7, "take", None, None, 2), (8, 9, "take")),
        ops(*both, (4, 9, "take", None, None, 2), (5, 8, "take", None, None, 1)),
        ops(*both, (4, inf, "take"), (5, 8, "take", None, None, 2)),
        ops((0, 4, "put", None, 1), (2, 3, "take"), (5, 6, "take", None, None, 1)),
        ops((0, inf, "put", None, 1)),
        ops((0, inf, "put", None, 1), (5, 6, "take", None, None, 1)),
    ]
    wrong = [
        ops(*both, (4, 5, "take", None, None, 2), (6, 7, "take", None, None, 1)),
        ops(*both, (4, 5, "take", None, None, 1)),
        ops(*both, (4, 5, "take", None, None, 1), (6, 7, "take", None, None, 2), (8, 9, "take", None, None, 2)),
        ops(*both, (4, 5, "take", None, None, 3)),
        ops((4, 5, "put", None, 1), (2, 3, "take", None, None, 1)),
        ops((0, 1, "put", None, 1), (2, 3, "take"), (4, 5, "take", None, None, 1)),
        ops((0, 1, "put", None, 1, "full"), (4, 5, "take", None, None, 1)),
        # each item alone leaves a moment in which the queue may be empty, both together do not
        ops((0, 1, "put", None, 1), (3, 4, "put", None, 2), (2, 9, "take"), (5, 12, "take", None, None, 1),
            (10, 11, "take", None, None, 2)),
    ]
    for history in right:
        assert check_queue(history) is None, (history, check_queue(history))
    for history in wrong:
        assert check_queue(history), history
