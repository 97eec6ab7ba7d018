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
