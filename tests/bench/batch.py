"""Calls of a function that does nothing, a second: rampipe_batch, multiprocessing.Pool.apply_async and
concurrent.futures.ProcessPoolExecutor.submit, with as many processes. usage: batch.py CALLS PROCESSES

A line a round and front: name, calls a second."""
import concurrent.futures
import multiprocessing
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts"))
from batch_noop import noop  # noqa: E402
from rampipe_batch import Batch  # noqa: E402


def batch(n, processes):
    with Batch(jobs=processes) as b:
        tasks = [b.function(noop, i) for i in range(100)]
        assert [task.result.get() for task in tasks] == list(range(100))  # the workers are there now
        start = time.perf_counter()
        tasks = [b.function(noop, i) for i in range(n)]
        given = [task.result.get() for task in tasks]
        took = time.perf_counter() - start
    assert given == list(range(n))
    return took


def pool(n, processes):
    with multiprocessing.Pool(processes) as p:
        for call in [p.apply_async(noop, (i,)) for i in range(100)]:
            call.get()
        start = time.perf_counter()
        calls = [p.apply_async(noop, (i,)) for i in range(n)]
        assert [call.get() for call in calls] == list(range(n))
        return time.perf_counter() - start


def futures(n, processes):
    with concurrent.futures.ProcessPoolExecutor(processes) as p:
        list(p.map(noop, range(100)))
        start = time.perf_counter()
        calls = [p.submit(noop, i) for i in range(n)]
        assert [call.result() for call in calls] == list(range(n))
        return time.perf_counter() - start


if __name__ == "__main__":
    many, workers = int(sys.argv[1]), int(sys.argv[2])
    for _ in range(3):
        for front in (batch, pool, futures):
            print(f"{front.__name__}\t{many / front(many, workers):.0f}", flush=True)
