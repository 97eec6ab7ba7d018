"""One training step as the published simulator plays it, with its faults (../shared/reference/
ramp.md, 7.1 to 7.4, variant i): on a channel that several deps share, only the one that was
shortest at first decides when the clock stops, so the others may finish late; and a sync dep
that arrives counts as a parent's, so an op may start early. Among deps of equal time the
simulator took the order of a set of strings, which depended on hashes: here it is drawn.
"""
import random


class Placed:
    """A job of a stream that went through ramp-alloc, with the times of `sim --timeline`."""

    def __init__(self, allocated, timeline):
        self.compute, self.deps, self.order, self.server = {}, [], [], {}
        records = [line.split("\t") for line in allocated.split("\n")]
        graph, servers = next((r[2], r[5].split(",")) for r in records if r[0] == "alloc")
        for r in records:
            if r[0] == "op" and r[1] == graph:
                self.compute[r[2]] = float(r[4])
            elif r[0] == "dep" and r[1] == graph:
                self.deps.append((r[2], r[3], "kind=sync" in r[5:]))
            elif r[0] == "place":
                self.order.append(r[2])
                self.server[r[2]] = servers[int(r[3])]
        # A difference of two times has lost digits; equal deps must stay equal.
        send = {(r[2], r[3]): float(f"{float(r[7]) - float(r[6]):.9g}")
                for r in (line.split("\t") for line in timeline.split("\n"))
                if r[0] == "send"}
        self.times = [send.get(dep[:2], 0.0) for dep in self.deps]


def step_seconds(job, seed):
    rank = {op: (-job.compute[op], turn) for turn, op in enumerate(job.order)}
    tie = random.Random(seed).sample(range(len(job.deps)), len(job.deps))
    op_left, dep_left = dict(job.compute), list(job.times)
    leaves, parents, arrived = {op: [] for op in op_left}, dict.fromkeys(op_left, 0), {}
    for d, (u, v, sync) in enumerate(job.deps):
        leaves[u].append(d)
        parents[v] += not sync
    ready = {op for op in op_left if parents[op] == 0}
    moving, clock, left = set(), 0.0, len(op_left) + len(job.deps)
    while left > 0:
        runs, first = {}, {}
        for op in ready:
            server = job.server[op]
            if server not in runs or rank[op] > rank[runs[server]]:
                runs[server] = op
        for d in moving:
            channel = tuple(job.server[op] for op in job.deps[d][:2])
            first[channel] = min(first.get(channel, d), d, key=lambda d: (job.times[d], tie[d]))
        instant = [d for d in moving if job.times[d] == 0]
        tick = 0.0 if instant else min([op_left[op] for op in runs.values()] +
                                       [dep_left[d] for d in first.values()])
        ticked = instant or list(moving)
        for op in runs.values():
            op_left[op] -= min(tick, op_left[op])
            if op_left[op] == 0:
                ready.remove(op)
                moving.update(leaves[op])
                left -= 1
        for d in ticked:
            dep_left[d] -= min(tick, dep_left[d])
            if dep_left[d] == 0:
                moving.remove(d)
                left -= 1
                v = job.deps[d][1]
                arrived[v] = arrived.get(v, 0) + 1
                if arrived[v] == parents[v]:
                    ready.add(v)
        clock += tick
    return clock
