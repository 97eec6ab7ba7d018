"""Plays a graph network, saved as ONNX, that scores the alternatives of jobs.

    ramp-alloc --agent 'python3 traces/agents/graph_agent.py POLICY.onnx GRAPHS.rec' jobs.rec
    python3 traces/agents/graph_agent.py POLICY.onnx --play 20 [--interarrival exponential:30] [--jobs 300]

GRAPHS.rec has the unpartitioned graphs, as pd2graph writes them. The alternative with the highest score is taken,
or none if all are below 0. With --play, so many streams are played at the same time by as many ramp-allocs. Their
asks are gathered, and the network runs once for all jobs of a graph: a batch costs little more than one ask.
The blocking rate of each stream is printed.

The network has three inputs: `nodes` (ops x 7), `mean` (ops x ops), and `features` (alternatives x 47), of any
number of alternatives of jobs of one graph; and one output, `score` (alternatives x 1).
"""
import argparse
import os
import statistics
import sys

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "scripts")]
import rampipe_env  # noqa: E402
import small_onnx  # noqa: E402


def describe(graph):
    """The arrays of a graph: of each op what the published observation has, and the shares of the bytes that it
    gets and sends; and the matrix that takes the mean over the ops that a dep joins with it."""
    n = len(graph.nodes)
    nodes, mean = numpy.zeros((n, 7), "float32"), numpy.zeros((n, n), "float32")
    nodes[:, :5] = graph.nodes
    total = sum(graph.sizes) or 1
    for u, v, size in zip(graph.src, graph.dst, graph.sizes):
        nodes[v, 5] += size / total
        nodes[u, 6] += size / total
        mean[u, v] = mean[v, u] = 1
    return nodes, mean / numpy.maximum(mean.sum(1, keepdims=True), 1)


def read_graphs(text):
    """The arrays of each graph by its id."""
    return {name: describe(graph) for name, graph in rampipe_env.read_graphs(text.split("\n")).items()}


class Policy:
    """Answers asks. A partitioned graph is called GRAPH/DEGREE."""

    def __init__(self, path, graphs):
        self.model, self.graphs = small_onnx.load(path), graphs

    def answer(self, asks):
        """For each of these lists of (graph, features) the graph to take, or "-"."""
        rows = {}  # of each unpartitioned graph: (ask, alternative, features)
        for i, offers in enumerate(asks):
            for graph, features in offers:
                rows.setdefault(graph.rsplit("/", 1)[0], []).append((i, graph, features))
        best = [(0.0, "-")] * len(asks)
        for name, offered in rows.items():
            nodes, mean = self.graphs[name]
            features = numpy.array([row for _, _, row in offered], "float32")
            scores = self.model({"nodes": nodes, "mean": mean, "features": features})["score"]
            for (i, graph, _), score in zip(offered, scores[:, 0]):
                if score > best[i][0] or (score == best[i][0] and best[i][1] == "-"):
                    best[i] = (score, graph)
        return [graph for _, graph in best]


def startable(offers):
    """Of rampipe_env's offers those that can start, with their features."""
    return [(offer.graph, list(map(float, rampipe_env.VALUES(offer.features)))) for offer in offers if not offer.cause]


def serve(policy):
    """The agent of one ramp-alloc."""
    text = ""
    for line in sys.stdin:
        text += line
        if line.startswith("ask\t"):
            offers, info = rampipe_env.read_ask(text)
            print("answer", info["job"], policy.answer([startable(offers.values())])[0], sep="\t", flush=True)
            text = ""


def play(policy, graphs, seeds, interarrival, jobs, options=()):
    """The blocking rates of streams of these seeds, all played at once."""
    tool, run, pipe = rampipe_env.tool, rampipe_env.run, rampipe_env.subprocess.PIPE
    allocators, blocked = [], [0] * len(seeds)
    for seed in seeds:
        stream = run([tool("tracegen"), "jobs", f"--seed={seed}", f"--jobs={jobs}", f"--interarrival={interarrival}",
                      "--steps=fixed:50", "--deadline-fraction=uniform:0.1:1", "--sampling=remove-and-repeat"],
                     input=graphs, stdout=pipe)
        with rampipe_env.tempfile.TemporaryFile() as parts:
            run([tool("partition"), "--policy=all", "--quantum=0.01", "--max-degree=16"], input=stream, stdout=parts)
            parts.seek(0)
            allocators.append(rampipe_env.Allocator([tool("ramp-alloc"), *options], parts))
    going = list(range(len(seeds)))
    while going:
        heard = [(i, allocators[i].hear()) for i in going]
        going = [i for i, text in heard if text is not None]
        asked = [rampipe_env.read_ask(text) for _, text in heard if text is not None]
        answers = policy.answer([startable(offers.values()) for offers, _ in asked])
        for i, (_, info), graph in zip(going, asked, answers):
            blocked[i] += graph == "-"
            allocators[i].answer(info["job"], graph)
    for allocator in allocators:
        allocator.close()
    return [n / jobs for n in blocked]


def main():
    parser = argparse.ArgumentParser(description="Plays a graph network, saved as ONNX.")
    parser.add_argument("policy", metavar="POLICY.onnx")
    parser.add_argument("graphs", nargs="?", metavar="GRAPHS.rec", help="without it: those of the samples")
    parser.add_argument("--play", type=int, metavar="N", help="play streams of the seeds 1 to N at once")
    parser.add_argument("--interarrival", default="exponential:30")
    parser.add_argument("--jobs", type=int, default=300)
    args = parser.parse_args()
    if args.graphs:
        with open(args.graphs, "rb") as file:
            graphs = file.read()
    else:
        graphs = rampipe_env.run([rampipe_env.tool("pd2graph"), "--no-job", "--time-unit=s", *rampipe_env.SAMPLES],
                                 stdout=rampipe_env.subprocess.PIPE)
    policy = Policy(args.policy, read_graphs(graphs.decode()))
    if not args.play:
        return serve(policy)
    rates = play(policy, graphs, range(1, args.play + 1), args.interarrival, args.jobs)
    for seed, rate in enumerate(rates, 1):
        print(f"{seed}\t{rate:.4f}")
    print(f"mean\t{statistics.fmean(rates):.4f}")
    return None


if __name__ == "__main__":
    main()
