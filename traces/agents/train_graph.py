"""Trains a graph network by PPO in PyTorch, saves it as ONNX, and plays it through ramp-alloc.

    python3 traces/agents/train_graph.py [--seconds 60] [--output policy.onnx]

The network passes two rounds of messages over the graph of a job, takes the mean over its ops, and scores each
alternative from that and the alternative's features. Refusing has the score 0; what cannot start has none. PPO
(Schulman et al., "Proximal Policy Optimization Algorithms", 2017) learns it on 256 copies of the environment in this
process (scripts/rampipe_vector.py). Then graph_agent.py plays the file on streams that were not trained on, with all
asks of a moment in one batch. It prints blocking rates: of random choices, of the first that can start, and trained.
Without PyTorch it says so in one line and ends; graph_agent.py needs only numpy.
"""
import argparse
import os
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "scripts")]
try:
    import torch
    import numpy
except ImportError as missing:
    print(f"train_graph.py: skipped: {missing.name} is not installed (scripts/bootstrap torch)", file=sys.stderr)
    sys.exit(0)
import graph_agent  # noqa: E402
import rampipe_env  # noqa: E402
import small_onnx  # noqa: E402
from rampipe_vector import RampipeVector  # noqa: E402

COPIES, STEPS, EPOCHS, BATCH = 256, 64, 4, 2048
GAMMA, LAMBDA, CLIP, ENTROPY, RATE = 0.99, 0.95, 0.2, 0.005, 1e-3
WIDTH, HIDDEN = 16, 32


class Network(torch.nn.Module):
    """Scores of alternatives, and the value of a state for training."""

    def __init__(self, features):
        super().__init__()
        linear = torch.nn.Linear
        self.op, self.first, self.second = linear(7, WIDTH), linear(2 * WIDTH, WIDTH), linear(2 * WIDTH, WIDTH)
        self.graph, self.feature = linear(WIDTH, HIDDEN), linear(features, HIDDEN, bias=False)
        self.hidden, self.score = linear(HIDDEN, HIDDEN), linear(HIDDEN, 1)
        self.value = torch.nn.Sequential(linear(WIDTH + features, HIDDEN), torch.nn.Tanh(), linear(HIDDEN, 1))

    def embed(self, nodes, mean):
        """The graph as WIDTH numbers. A round: each op has itself and the mean of those around it."""
        x = torch.relu(self.op(nodes))
        for layer in (self.first, self.second):
            x = torch.relu(layer(torch.cat([x, mean @ x], 1)))
        return x.mean(0, keepdim=True)

    def forward(self, graphs, template, features, mask):
        """Log-probabilities of actions, and values."""
        embedded = torch.cat([self.embed(*graph) for graph in graphs])[template]
        x = torch.relu(self.graph(embedded)[:, None] + self.feature(features))
        logits = self.score(torch.relu(self.hidden(x)))[..., 0]
        logits = torch.cat([torch.zeros_like(logits[:, :1]), logits[:, 1:]], 1).masked_fill(mask == 0, -1e9)
        can = mask[:, 1:].sum(1, keepdim=True).clamp(min=1)
        value = self.value(torch.cat([embedded, features.sum(1) / can], 1))[:, 0]
        return torch.log_softmax(logits, 1), value

    def save(self, path):
        """Writes what scores as ONNX."""
        nodes, weights = [], {}

        def layer(name, of, to, relu=True, bias=True):
            own = getattr(self, name)
            weights["weight." + name] = own.weight.detach().numpy().T
            nodes.append(("MatMul", [of, "weight." + name], to + ".m", {}))
            if bias:
                weights["bias." + name] = own.bias.detach().numpy()
                nodes.append(("Add", [to + ".m", "bias." + name], to + ".a" if relu else to, {}))
            if relu:
                nodes.append(("Relu", [to + ".a"], to, {}))
        layer("op", "nodes", "x0")
        for i, name in enumerate(("first", "second")):
            nodes.append(("MatMul", ["mean", f"x{i}"], f"around{i}", {}))
            nodes.append(("Concat", [f"x{i}", f"around{i}"], f"both{i}", {"axis": 1}))
            layer(name, f"both{i}", f"x{i + 1}")
        nodes.append(("ReduceMean", ["x2"], "embedded", {"axes": [0], "keepdims": 1}))
        layer("graph", "embedded", "g", relu=False)
        layer("feature", "features", "f", relu=False, bias=False)
        nodes.append(("Add", ["g", "f.m"], "sum", {}))
        nodes.append(("Relu", ["sum"], "h", {}))
        layer("hidden", "h", "h2")
        layer("score", "h2", "score", relu=False)
        small_onnx.save(path, nodes, weights, {"nodes": ("ops", 7), "mean": ("ops", "ops"), "features": (
            "rows", self.feature.in_features)}, {"score": ("rows", 1)})


def collect(env, network, graphs, state):
    """Plays STEPS decisions in each copy. Returns what was seen, done and got."""
    seen = []
    for _ in range(STEPS):
        features, mask, template = state
        with torch.no_grad():
            log, value = network(graphs, template, features, mask)
            action = torch.multinomial(log.exp(), 1)[:, 0]
        _, _, rewards, ended = env.step(action.numpy())
        seen.append((features, mask, template, action, log.gather(1, action[:, None])[:, 0], value,
                     torch.tensor(rewards), torch.tensor(ended, dtype=torch.float32)))
        state = look(env)
    return [torch.stack(column) for column in zip(*seen)], state


def look(env):
    """A copy of what waits for a decision: the environment overwrites its arrays."""
    return torch.tensor(env.features), torch.tensor(env.mask), torch.tensor(env.template.astype("int64"))


def advantages(rewards, ended, values, choice, last):
    """Generalised advantage estimation (Schulman et al., 2016), per step and copy. Where there is no choice, as no
    alternative can start, a state is worth what is got there and what the next one is worth."""
    found, running = torch.zeros_like(rewards), torch.zeros_like(last)
    for t in reversed(range(len(rewards))):
        going = GAMMA * (1 - ended[t])
        follows, running = rewards[t] + going * last, going * running
        found[t] = follows - values[t] + LAMBDA * running
        last = torch.where(choice[t], values[t], follows)
        running = torch.where(choice[t], found[t], running)
    return found


def improve(network, optimiser, graphs, seen, state):
    """The epochs of PPO over what was collected."""
    features, mask, template, action, old, values, rewards, ended = seen
    with torch.no_grad():
        last = network(graphs, state[2], state[0], state[1])[1]
    choice = mask[:, :, 1:].sum(2) > 0
    gain = advantages(rewards, ended, values, choice, last)
    flat = [x[choice] for x in (features, mask, template, action, old, gain, gain + values)]
    for _ in range(EPOCHS):
        for index in torch.randperm(len(flat[0])).split(BATCH):
            features, mask, template, action, old, gain, aim = (x[index] for x in flat)
            log, value = network(graphs, template, features, mask)
            ratio = (log.gather(1, action[:, None])[:, 0] - old).exp()
            gain = (gain - gain.mean()) / (gain.std() + 1e-6)
            won = torch.minimum(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
            entropy = -(log.exp() * log.clamp(min=-30)).sum(1).mean()
            loss = -won + 0.5 * (value - aim).square().mean() - ENTROPY * entropy
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 0.5)
            optimiser.step()


def starts(mask):
    """The mask without action 0."""
    return mask * (numpy.arange(mask.shape[1]) > 0)


def rule(copies, seed, choose, interarrival, jobs):
    """The mean blocking rate of a rule, on streams of the seeds `seed` and on."""
    env = RampipeVector(copies, interarrival=interarrival, jobs=jobs)
    _, mask = env.reset(seed=seed)
    blocked = 0
    for _ in range(jobs):
        _, mask, rewards, _ = env.step(choose(mask))
        blocked += int((rewards < 0).sum())
    env.close()
    return blocked / jobs / copies


def main():
    parser = argparse.ArgumentParser(description="Trains a graph network by PPO, and plays it as ONNX.")
    parser.add_argument("--seconds", type=float, default=60, help="seconds of training (default 60)")
    parser.add_argument("--iterations", type=float, default=float("inf"), help="limit of rounds of PPO")
    parser.add_argument("--interarrival", default="exponential:30")
    parser.add_argument("--jobs", type=int, default=300, help="jobs of an episode (default 300)")
    parser.add_argument("--streams", type=int, default=5, help="streams that it is tested on, from seed 1 (default 5)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the training (default 1)")
    parser.add_argument("--output", default="policy.onnx", help="the file (default policy.onnx)")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    draw = numpy.random.default_rng(1)
    for name, choose in (("random", lambda mask: (draw.random(mask.shape) * starts(mask)).argmax(1)),
                         ("first", lambda mask: starts(mask).argmax(1))):
        print(f"{name}\t{rule(args.streams, 1, choose, args.interarrival, args.jobs):.4f}", flush=True)
    text = rampipe_env.run([rampipe_env.tool("pd2graph"), "--no-job", "--time-unit=s", *rampipe_env.SAMPLES],
                           stdout=rampipe_env.subprocess.PIPE)
    known = graph_agent.read_graphs(text.decode())
    env = RampipeVector(COPIES, interarrival=args.interarrival, jobs=args.jobs)
    graphs = [tuple(map(torch.tensor, known[alternatives.split("/")[0]])) for alternatives in env.templates]
    network = Network(len(env.feature_names))
    optimiser = torch.optim.Adam(network.parameters(), RATE)
    env.reset(seed=1000 + args.seed)
    state, until, done = look(env), time.monotonic() + args.seconds, 0
    while done < args.iterations and time.monotonic() < until:
        seen, state = collect(env, network, graphs, state)
        improve(network, optimiser, graphs, seen, state)
        done += 1
    decisions = env.decisions
    env.close()
    network.save(args.output)
    policy = graph_agent.Policy(args.output, known)
    rates = graph_agent.play(policy, text, range(1, args.streams + 1), args.interarrival, args.jobs)
    print(f"trained\t{statistics.fmean(rates):.4f}\t{done} rounds, {decisions} decisions")


main()
