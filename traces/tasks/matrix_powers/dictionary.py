"""Computes powers of a matrix; tasks pass them on in a dictionary. usage: dictionary.py [POWERS [SIZE]]

Like files.py, but the powers are values of a dictionary that all tasks share. The template power.yml says
which function a task calls, and which keys it reads and writes."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "..", "scripts")]
import matrix  # noqa: E402
from rampipe_batch import Batch  # noqa: E402


def raise_power(m, powers, i):
    powers[i + 1] = matrix.multiply(powers[i], m)


def main(n=20, size=20):
    m = matrix.vandermonde(size)
    with Batch() as batch:
        powers = batch.ddict()
        powers[1] = m
        task = batch.import_func(os.path.join(HERE, "power.yml"), raise_power, m, powers)
        for i in range(1, n):
            task(i)
        batch.fence()
        found = [matrix.trace(powers[i]) for i in range(1, n + 1)]
    for i in (1, 2, n):
        assert found[i - 1] == matrix.trace_of_power(m, i), f"power {i} is wrong"
    print(f"trace of power {n}: {found[-1]}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
