"""Computes powers of a matrix; tasks pass them on in files. usage: files.py [POWERS [SIZE]]

Each task of a chain reads the last power from a file, and writes the next one. More tasks compute the
traces of the powers. By the files that tasks read and write, the batch finds out which traces can be
computed while the chain still runs."""

import os
import pickle
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "..", "scripts")]
import matrix  # noqa: E402
from rampipe_batch import Batch  # noqa: E402


def store(folder, i, a):
    with open(os.path.join(folder, f"power-{i}"), "wb") as file:
        pickle.dump(a, file)


def load(folder, i):
    with open(os.path.join(folder, f"power-{i}"), "rb") as file:
        return pickle.load(file)


def raise_power(m, folder, i):
    store(folder, i + 1, matrix.multiply(load(folder, i), m))


def trace_of(folder, i):
    return matrix.trace(load(folder, i))


def main(powers=20, size=20):
    m = matrix.vandermonde(size)
    with tempfile.TemporaryDirectory() as folder, Batch(background_batching=False) as batch:
        store(folder, 1, m)
        tasks = []
        for i in range(1, powers):
            tasks.append(batch.function(raise_power, m, folder, i, reads=batch.read(folder, f"power-{i}"),
                                        writes=batch.write(folder, f"power-{i + 1}"), timeout=60))
        traces = [batch.function(trace_of, folder, i, reads=batch.read(folder, f"power-{i}"))
                  for i in range(1, powers + 1)]
        found = batch.compile(tasks + traces).run()[len(tasks):]
    for i in (1, 2, powers):
        assert found[i - 1] == matrix.trace_of_power(m, i), f"power {i} is wrong"
    print(f"trace of power {powers}: {found[-1]}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
