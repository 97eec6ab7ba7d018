"""Computes powers of a matrix; tasks pass them on as arguments. usage: arguments.py [POWERS [SIZE]]

The result of a task is an argument of later ones. Power n is the product of two powers of about n/2, so
many powers can be computed in parallel."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "..", "scripts")]
import matrix  # noqa: E402
from rampipe_batch import Batch  # noqa: E402


def main(n=20, size=20):
    m = matrix.vandermonde(size)
    with Batch() as batch:
        powers = [None, m]
        for i in range(2, n + 1):
            powers.append(batch.function(matrix.multiply, powers[i // 2], powers[i - i // 2], name=f"power-{i}").result)
        traces = [batch.function(matrix.trace, power).result for power in powers[1:]]
        found = [trace.get(timeout=60) for trace in traces]
    for i in (1, 2, n):
        assert found[i - 1] == matrix.trace_of_power(m, i), f"power {i} is wrong"
    print(f"trace of power {n}: {found[-1]}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
