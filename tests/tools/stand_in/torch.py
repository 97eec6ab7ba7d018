"""A stand-in for PyTorch on a machine with GPUS GPUs, whose kernels take times that are known, for the tests of
measure-kernels. A clock stands for the device: each kernel moves it on."""
import math
import os
import types

PEAK, SHARE, PROCESSORS, BANDWIDTH = 3e14, 0.62, 100, 1.5e12
clock = [0.0]
bfloat16 = "bfloat16"


class Tensor:
    def __init__(self, *shape):
        self.shape = shape

    def t(self):
        return Tensor(*self.shape[::-1])

    def elements(self):
        return math.prod(self.shape)

    def requires_grad_(self):
        return self

    def copy_(self, other):
        clock[0] += 2 * (self.elements() + other.elements()) / BANDWIDTH

    def add_(self, _):
        clock[0] += 4e-6  # nothing to compute: the host issues one in 4 us


def randn(*shape, dtype, device):
    assert dtype == bfloat16 and device.startswith("cuda:")
    return Tensor(*shape)


def matmul(x, y):
    """Tiles of 128 x 256 in waves, with a start of 140 elements of k."""
    (m, k), (inner, n) = x.shape, y.shape
    assert k == inner
    tiles = min(math.ceil(m / a) * math.ceil(n / b) for a, b in ((128, 256), (256, 128)))
    waves = math.ceil(tiles / PROCESSORS)
    clock[0] += waves * PROCESSORS * 2 * 128 * 256 * (k + 140) / (PEAK * SHARE)


def attend(q, k, v, is_causal):
    assert is_causal and q.shape == k.shape == v.shape
    batch, heads, seq, width = q.shape
    out = Tensor(*q.shape)
    out.work = 2 * batch * heads * seq * seq * width  # multiply-adds of scores and values, on the full square
    clock[0] += 2 * out.work / (0.5 * PEAK)
    return out


def backward(out, inputs, gradient):
    assert gradient.shape == out.shape and len(inputs) == 3
    clock[0] += 5 * out.work / (0.5 * PEAK)


def slow(passes):
    def run(x, *_):
        clock[0] += 2 * passes * x.elements() / (0.8 * BANDWIDTH)
    return run


add = slow(3)
autograd = types.SimpleNamespace(grad=backward)
nn = types.SimpleNamespace(functional=types.SimpleNamespace(
    scaled_dot_product_attention=attend, layer_norm=slow(2), gelu=slow(2)))


class Event:
    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        self.at = clock[0]

    def elapsed_time(self, end):
        return 1e3 * (end.at - self.at)


def all_reduce(parts):
    n = len(parts)
    clock[0] += 2e-5 + 2 * (n - 1) / n * 2 * parts[0].elements() / 2e11


cuda = types.SimpleNamespace(
    is_available=lambda: os.environ["GPUS"] != "0", device_count=lambda: int(os.environ["GPUS"]), Event=Event,
    synchronize=lambda: None, nccl=types.SimpleNamespace(all_reduce=all_reduce),
    get_device_properties=lambda _: types.SimpleNamespace(
        name="Stand-in", total_memory=80000000000, multi_processor_count=PROCESSORS))
