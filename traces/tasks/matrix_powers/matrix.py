"""Matrices for the three programs beside this file: numpy arrays if numpy is installed, otherwise lists."""

try:
    import numpy
except ImportError:
    numpy = None

PRIME = 1000003  # all numbers are taken modulo this prime, so that they are exact with numpy and without


def vandermonde(n):
    rows = [[pow(i, n - 1 - j, PRIME) for j in range(n)] for i in range(n)]
    return numpy.array(rows) if numpy else rows


def multiply(a, b):
    if numpy:
        return a @ b % PRIME
    columns = list(zip(*b))
    return [[sum(x * y for x, y in zip(row, column)) % PRIME for column in columns] for row in a]


def trace(a):
    return int(sum(a[i][i] for i in range(len(a))) % PRIME)


def trace_of_power(a, n):
    """The result that all programs must find, computed without tasks."""
    power = a
    for _ in range(n - 1):
        power = multiply(power, a)
    return trace(power)
