"""Models that tests/suites/torch.bats has torch2graph trace."""
import collections
import math

import torch
import torch.nn.functional as F
from torch import nn


class Gate(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


class Small(nn.Module):
    """A convolution, a residual sum in place, attention by hand, a tied head, two outputs."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(10, 6)
        self.norm = nn.LayerNorm(6)
        self.qkv = nn.Linear(6, 18)
        self.conv = nn.Conv1d(5, 5, 3, padding=1, groups=5)
        self.drop = nn.Dropout(0.1, inplace=True)
        self.head = nn.Linear(6, 10, bias=False)
        self.head.weight = self.words.weight

    def forward(self, x):
        e = self.words(x)
        parts = self.qkv(self.norm(e)).chunk(3, dim=-1)
        q, k, v = parts[0], parts[1], parts[2]
        p = torch.softmax(q @ k.transpose(1, 2) * 0.5, dim=-1)
        y = torch.matmul(p, v)
        y += e
        return self.head(self.drop(self.conv(y))), y.mean(1)


class Patches(nn.Module):
    """An image in patches, a class token, positions, a layer of attention: weights of many ranks and uses."""

    def __init__(self):
        super().__init__()
        self.token = nn.Parameter(torch.zeros(1, 1, 8))
        self.positions = nn.Parameter(torch.zeros(1, 5, 8))
        self.stem = nn.Conv2d(3, 8, 4, stride=4)
        self.norm = nn.BatchNorm2d(8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.scale = nn.Parameter(torch.ones(8))
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        e = self.norm(self.stem(x)).flatten(2).transpose(1, 2)
        h = torch.cat([self.token.expand(e.shape[0], -1, -1), e], 1) + self.positions
        return self.head(self.layer(h)[:, 0] * self.scale)


def encoder():
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)


class Block(nn.Module):
    """A layer of a GPT. Its attention is by hand, or one function, which PyTorch 1.13 has under another name."""

    def __init__(self, fused, width=8, heads=2, words=64):
        super().__init__()
        self.fused, self.heads = fused, heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.register_buffer("mask", torch.tril(torch.ones(words, words)).view(1, 1, words, words))

    def attention(self, q, k, v):
        if self.fused and hasattr(F, "scaled_dot_product_attention"):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        if self.fused:
            return F._scaled_dot_product_attention(q, k, v, None, 0.0, False, True)[0]
        scores = (q @ k.transpose(-2, -1)) * (1 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.mask[:, :, :q.size(2), :q.size(2)] == 0, float("-inf"))
        return F.softmax(scores, dim=-1) @ v

    def forward(self, x):
        samples, words, width = x.size()
        parts = self.qkv(self.norms[0](x)).split(width, dim=2)
        q, k, v = (part.view(samples, words, self.heads, width // self.heads).transpose(1, 2) for part in parts)
        y = self.attention(q, k, v).transpose(1, 2).contiguous().view(samples, words, width)
        x = x + self.out(y)
        return x + self.mlp(self.norms[1](x))


class GPT(nn.Module):
    """As it is written everywhere: sizes unpacked, looped over and asserted, a table that is the head, too."""

    def __init__(self, fused=False):
        super().__init__()
        self.words, self.positions = nn.Embedding(16, 8), nn.Embedding(64, 8)
        self.blocks = nn.ModuleList([Block(fused) for _ in range(2)])
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 16, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids):
        samples, words = ids.size()
        assert words <= 64, "too long"
        x = self.words(ids) + self.positions(torch.arange(0, words, dtype=torch.long, device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def fused_gpt():
    return GPT(True)


class Adapter(nn.Module):
    """A weight that each step makes of other weights."""

    def __init__(self):
        super().__init__()
        self.weight, self.a, self.b = (nn.Parameter(torch.zeros(*shape)) for shape in ((64, 64), (64, 8), (8, 64)))

    def forward(self, x):
        torch.cat([self.a[:0], self.b.t()[:0]])  # of no elements, which is no work
        return nn.functional.linear(x, self.weight + self.a @ self.b)


class Lookups(nn.Module):
    """A table and a row that indices of data choose, a gain in the shape of data, operands and outputs with names."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(20, 6))
        self.gain = nn.Parameter(torch.ones(6))
        self.weight = nn.Parameter(torch.zeros(4, 6))

    def forward(self, x):
        e = self.table[x]
        y = F.linear(input=e * self.gain.expand_as(e), weight=self.weight)
        return Named(y[torch.arange(y.shape[0]), x.argmax(-1)], y)


class Buffered(nn.Module):
    """Data choose from a buffer of three dimensions: (2, 5) of (9, 9, 6) are (2, 5, 9, 6)."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(9, 6)
        self.register_buffer("angles", torch.zeros(9, 9, 6))

    def forward(self, x):
        return self.words(x).unsqueeze(2) * self.angles[x]


Named = collections.namedtuple("Named", "last all")


class Pair(nn.Module):
    """Two inputs, one that may be left out, and a decision by what is in one of them."""

    def forward(self, x, y, mask=None):
        return x * y if mask is None else x * y.sum().item()


class Nested(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.block = nn.Sequential(nn.Linear(4, 4), inner)

    def forward(self, x):
        return self.block(x)


def gated():
    return Nested(Gate())


def recurrent():
    return Nested(nn.LSTM(4, 4))


def nothing():
    return 3
