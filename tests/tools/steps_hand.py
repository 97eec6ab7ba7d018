"""steps_hand.py GOLDEN STACKS ROWS FAMILY... - errors of measured steps of GPT by formulas written by hand.

The formulas are those of ../shared/reference/parallel.md, sections 1 to 7, for GPT with unfused attention, on nodes of
8 A100; the constants are those of the stack records. Nothing here is shared with the library. Each row's time must be
that of ROWS (scripts/accuracy --rows) within 4 %, and a family's mean error within 1.5 points. Prints both.
"""
import csv
import math
import sys

PEAK, MEMORY, PROCESSORS = 312e12, 2.039e12, 108
ISLAND, ADAPTER = 0.78 * 300e9, 25e9  # section 6.1: 229 to 235 of 300 GB/s
LATENCY = 2e-5  # a message between nodes
LAUNCH, BETWEEN = 1.5e-6, 7e-3  # sections 4.3 and 8: a kernel starts; the host between two steps


def table(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def read_stacks(path):
    for line in open(path, encoding="utf-8"):
        words = line.rstrip("\n").split("\t")
        if words[0] == "stack":
            keys = dict(word.partition("=")[::2] for word in words[8:])
            yield [float(x) for x in words[2:8]], keys


class Step:
    def __init__(self, row, numbers, reduces):
        self.share, self.memory, _, self.exposed, _, self.adapter = numbers
        self.reduces = reduces
        for name in ("layers", "hidden", "heads", "vocab", "seq", "tp", "pp", "vp", "dp", "mbs", "gbs", "gpus"):
            setattr(self, name, int(row[name]))
        self.sp, self.again = row["sp"] == "1", row["recompute"]
        self.overlap = row["overlap"].split(",")
        self.tokens = self.mbs * self.seq

    # section 4.1, 4.2
    def product(self, m, k, n, times=1, out=2):
        seconds = min(math.ceil(times * math.ceil(m / a) * math.ceil(n / b) / PROCESSORS) * PROCESSORS *
                      2 * a * b * (k + 140) / (PEAK * self.share * e)
                      for a, b, e in ((256, 128, 1), (128, 256, 1), (128, 128, 0.86), (64, 128, 0.7)))
        odd = max(2.1 if size % 8 else 1.4 if size % 64 else 1 for size in (m, k, n))
        return max(odd * seconds + LAUNCH, self.move(times * (2 * (m * k + k * n) + out * m * n)))

    def both(self, m, k, n):
        """Forward, and backward: the gradients of the input and, added in 32 bits, of the weight."""
        return self.product(m, k, n), self.product(m, n, k) + self.product(k, m, n, out=8)

    def move(self, size):
        return size / (MEMORY * self.memory) + LAUNCH

    # section 6.1: measured all-reduces of a node, straight lines in logarithms
    def reduce(self):
        size, n = 2 * self.tokens * self.hidden, self.tp
        if n == 1:
            return 0
        points = self.reduces[n]
        i = min(max(1, sum(size > s for s, _ in points)), len(points) - 1)
        (s, t), (u, v) = points[i - 1], points[i]
        if size > points[-1][0]:
            return size / points[-1][0] * points[-1][1]
        return math.exp(math.log(t) + math.log(v / t) * math.log(size / s) / math.log(u / s))

    # sections 1.1, 2.2
    def layer(self):
        t, h, rows = self.tp, self.hidden, self.tokens
        heads, d = self.heads / t, h / self.heads
        scores = self.mbs * heads
        pieces = [self.both(rows, h, 3 * h // t), self.both(rows, h // t, h), self.both(rows, h, 4 * h // t),
                  self.both(rows, 4 * h // t, h)]
        s = self.seq
        core = [self.product(s, d, s, scores) + self.product(s, s, d, scores) + self.move(9 * scores * s * s),
                2 * (self.product(s, d, s, scores) + self.product(s, s, d, scores)) + self.move(11 * scores * s * s)]
        own = rows / t if self.sp else rows
        small = [2 * self.move(4 * own * h) + self.move(2 * 2 * rows * 4 * h / t) + 2 * self.move(7 * own * h),
                 2 * self.move(6 * own * h) + self.move(3 * 2 * rows * 4 * h / t) + 2 * self.move(5 * own * h)]
        forward, backward = (sum(p[i] for p in pieces) + core[i] + small[i] + 2 * self.reduce() for i in (0, 1))
        return forward, backward + {"full": forward, "selective": core[0]}.get(self.again, 0)

    # sections 1.3, 2.3, 3: stages with ends, interleaved 1F1B; messages hold up both devices
    def seconds(self):
        f, b = self.layer()
        t, h, rows, p, v = self.tp, self.hidden, self.tokens, self.pp, self.vp
        words = 128 * math.ceil(self.vocab / (128 * t))
        head = sum(self.both(rows, h, words)) + self.move(36 * rows * self.vocab / t) + self.reduce()
        first = self.reduce() + self.move(9 * rows * h)
        m = self.gbs // (self.dp * self.mbs)
        layers = math.ceil(self.layers / p)
        message = 0 if p == 1 else LATENCY + 2 * rows * h / t / (ADAPTER * self.adapter)
        sends = 2 * v * (1 if p > 1 else 0)
        work = layers * (f + b) + message * sends
        ends = head + first if p == 1 else max(head, first)
        # of the bubble, one chunk of all other stages; the ends' chunks stand in it once
        step = m * (work + ends) + (p - 1) * work / v
        return step + self.once(layers)

    # sections 1.5, 2.4: gradients of 4 bytes in rings through all adapters of a replica's ranks in a node; they are
    # cleared
    def once(self, layers):
        h, t = self.hidden, self.tp
        params = layers * (12 * h * h / t + 7 * h / t + 6 * h) + self.vocab * h / t
        here = max(1, min(self.dp, 8 // t))
        bus = min(ISLAND, here * ADAPTER * self.adapter)
        exchange = 0
        if self.dp > 1:
            exchange = 2 * (self.dp - 1) / self.dp * 4 * params / bus + LATENCY * 2 * math.log2(self.dp / here)
        if "dp" in self.overlap:  # beside the last backward
            last = layers * self.layer()[1]
            exchange -= (1 - self.exposed) * min(exchange, last)
        return exchange + self.move(34 * params) + self.move(4 * params) + BETWEEN


def main(golden, stacks, rows, families):
    found = {row["id"]: row for row in table(rows) if row["table"] == "steps"}
    reduces, bad = {}, False
    for row in table(golden + "/parallel/collectives.tsv"):
        if row["system"] == "a100-nvlink" and row["collective"] == "all-reduce" and row["ranks"] == row["ranks_per_node"]:
            reduces.setdefault(int(row["ranks"]), []).append((float(row["bytes"]), float(row["time_s"])))
    reduces = {n: sorted(points) for n, points in reduces.items()}
    steps = table(golden + "/parallel/steps.tsv")
    for family in families:
        numbers = next(n for n, keys in read_stacks(stacks) if family in keys.get("families", "").split(","))
        mine, ours = [], []
        for row in steps:
            if row["family"] != family or row["grade"] == "D":
                continue
            hand, predicted = Step(row, numbers, reduces).seconds(), float(found[row["id"]]["shipped"])
            mine.append(abs(hand / float(row["step_s"]) - 1))
            ours.append(abs(predicted / float(row["step_s"]) - 1))
            if abs(hand / predicted - 1) > 0.04:
                print(f"{row['id']}: by hand {hand:.4g} s, steptime {predicted:.4g} s")
                bad = True
        hand, predicted = (100 * sum(e) / len(e) for e in (mine, ours))
        print(f"{family}: {len(mine)} rows, mean error by hand {hand:.2f} %, steptime {predicted:.2f} %")
        bad |= abs(hand - predicted) > 1.5 or len(mine) < 4
    return bad


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4], sys.argv[4:]))
