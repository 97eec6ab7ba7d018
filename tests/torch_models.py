"""Models that tests/torch.bats has torch2graph trace."""
import torch
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
