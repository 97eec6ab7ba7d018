"""Calls of a function that does nothing, a second: rampipe_batch, multiprocessing.Pool.apply_async and
concurrent.futures.ProcessPoolExecutor.submit, with as many processes. usage: batch.py CALLS PROCESSES

A line a front: name, calls a second of processor time of all processes, without what their start and their end take.
It is the median of three rounds, in which the fronts take turns."""
import concurrent.futures
import multiprocessing
import os
import resource
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts"))
from batch_noop import noop  # noqa: E402
from rampipe_batch import Batch  # noqa: E402


def batch(n, processes):
    with Batch(jobs=processes) as b:
        tasks = [b.function(noop, i) for i in range(100)]
        assert [task.result.get() for task in tasks] == list(range(100))  # the workers are there now
        tasks = [b.function(noop, i) for i in range(n)]
        given = [task.result.get() for task in tasks]
    assert given == list(range(n))


def pool(n, processes):
    with multiprocessing.Pool(processes) as p:
        for call in [p.apply_async(noop, (i,)) for i in range(100)]:
            call.get()
        calls = [p.apply_async(noop, (i,)) for i in range(n)]
        assert [call.get() for call in calls] == list(range(n))
        p.close()
        p.join()


def futures(n, processes):
    with concurrent.futures.ProcessPoolExecutor(processes) as p:
        list(p.map(noop, range(100)))
        calls = [p.submit(noop, i) for i in range(n)]
        assert [call.result() for call in calls] == list(range(n))


def spent():
    """The processor time so far of this process and of those that it has waited for, seconds."""
    own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


if __name__ == "__main__":
    many, workers = int(sys.argv[1]), int(sys.argv[2])
    times = {batch: [], pool: [], futures: []}
    for _ in range(3):
        for front, taken in times.items():
            marks = [spent()]
            for n in (0, many):
                front(n, workers)
                marks.append(spent())
            taken.append(max(marks[2] - marks[1] - (marks[1] - marks[0]), 1e-3))
    for front, taken in times.items():
        print(f"{front.__name__}\t{many / statistics.median(taken):.0f}")
