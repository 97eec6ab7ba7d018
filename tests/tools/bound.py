"""The bound on blocking against all choices of small streams: no choice of whole jobs starts
more than the bound, whose half jobs are worth less than one a server. (The rules of choosing,
with all heuristics, are held against it by unit/test_bound.)
"""
import random
import subprocess

random.seed(7)


def run(text, *command):
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines()]


def graph(name, parts, compute):
    """One op in so many parts: held alone as in any placement, `parts` servers for `compute`."""
    lines = [f"graph\t{name}\tm"]
    for i in range(1, parts + 1):
        part = f"\tof=o\tpart={i}/{parts}" if parts > 1 else ""
        lines.append(f"op\t{name}\tp{i}\tforward\t{compute}\t0{part}")
    return lines


def stream(jobs, shapes, servers):
    """A stream, and of each job its arrival and choices (servers, finish) in time."""
    alternatives = [(parts, random.randint(1, 12)) for parts in shapes]
    lines, what, at = ["#rampipe\t1"], [], 0
    for i, (parts, compute) in enumerate(alternatives):
        lines += graph(f"g{i}", parts, compute)
    for j in range(jobs):
        at += random.choice((0, 0, 1, 2, 5))
        among = random.sample(range(len(shapes)), random.randint(1, len(shapes)))
        steps, deadline = random.randint(1, 3), random.choice((4, 12, 40, "inf"))
        names = ",".join(f"g{i}" for i in among)
        lines.append(f"job\tj{j}\t{names}\t{at}\t{steps}\t{deadline}")
        in_time = [alternatives[i] for i in among if deadline == "inf" or
                   alternatives[i][1] * steps <= deadline]
        what.append((at, [(n, at + c * steps) for n, c in in_time if n <= servers]))
    return "\n".join(lines) + "\n#end\n", what


def most(jobs, servers, running=()):
    """The most jobs that can start, by trying all choices."""
    if not jobs:
        return 0
    (at, choices), rest = jobs[0], jobs[1:]
    running = tuple((n, end) for n, end in running if end > at)
    used = sum(n for n, _ in running)
    best = most(rest, servers, running)
    for n, end in choices:
        if used + n <= servers:
            best = max(best, 1 + most(rest, servers, running + ((n, end),)))
    return best


def bounds(streams, *options):
    return [float(r[2]) for r in run("".join(streams), "ramp-alloc", "bound", "--runs", *options)
            if r[0] == "bound"]


def brute():
    cases = [stream(8, (1, 2, 3), 4) for _ in range(60)]
    found = bounds([text for text, _ in cases], "--shape", "4x1x1")
    assert len(found) == len(cases)
    whole = [most(jobs, 4) for _, jobs in cases]
    for bound, best in zip(found, whole):
        assert best <= bound + 1e-6, f"{best} jobs start, and the bound is {bound}"
        assert bound < best + 4, f"{best} jobs start, and the bound is {bound}"
    tight = sum(bound < best + 1e-6 for bound, best in zip(found, whole))
    assert 0 < tight < len(cases), f"{tight} bounds of {len(cases)} are tight"


brute()
