"""The policy of traces/agents/graph_agent.py without PyTorch: weights that are drawn, written as ONNX, read back and
played in batches, through --agent, and here by the same arithmetic on rampipe_vector. usage: graph_policy.py FILE"""
import os
import sys

import numpy

sys.path[:0] = [os.path.join(os.environ["ROOT"], folder) for folder in ("traces/agents", "scripts")]
import graph_agent  # noqa: E402
import rampipe_env  # noqa: E402
import small_onnx  # noqa: E402
from rampipe_vector import RampipeVector  # noqa: E402

JOBS, SEEDS, INTERARRIVAL = 60, (1, 2, 3), "exponential:100"
draw = numpy.random.default_rng(5)
shapes = {"v": (7, 4), "w": (8, 4), "g": (4, 6), "f": (47, 6), "b": (6,), "s": (6, 1)}
weights = {name: draw.normal(size=shape).astype("float32") for name, shape in shapes.items()}
small_onnx.save(
    sys.argv[1],
    [("MatMul", ["nodes", "v"], "x0", {}), ("MatMul", ["mean", "x0"], "around", {}),
     ("Concat", ["x0", "around"], "both", {"axis": 1}), ("MatMul", ["both", "w"], "x1", {}),
     ("Relu", ["x1"], "x2", {}), ("ReduceMean", ["x2"], "embedded", {"axes": [0], "keepdims": 1}),
     ("MatMul", ["embedded", "g"], "y", {}), ("MatMul", ["features", "f"], "z", {}), ("Add", ["y", "z"], "yz", {}),
     ("Add", ["yz", "b"], "yzb", {}), ("Relu", ["yzb"], "h", {}), ("MatMul", ["h", "s"], "score", {})],
    weights, {"nodes": ("ops", 7), "mean": ("ops", "ops"), "features": ("rows", 47)}, {"score": ("rows", 1)})

text = rampipe_env.run([rampipe_env.tool("pd2graph"), "--no-job", "--time-unit=s", *rampipe_env.SAMPLES],
                       stdout=rampipe_env.subprocess.PIPE)
with open("graphs.rec", "wb") as file:
    file.write(text)
graphs = graph_agent.read_graphs(text.decode())


def score(name, features):
    """The network by hand."""
    nodes, mean = graphs[name]
    x = nodes @ weights["v"]
    x = numpy.maximum(numpy.concatenate([x, mean @ x], 1) @ weights["w"], 0).mean(0)
    h = numpy.maximum(x @ weights["g"] + features @ weights["f"] + weights["b"], 0)
    return (h @ weights["s"])[:, 0]


read = small_onnx.Model(sys.argv[1])
for name, (nodes, mean) in graphs.items():  # what was written is what is read
    rows = draw.normal(size=(5, 47)).astype("float32")
    out = read({"nodes": nodes, "mean": mean, "features": rows})["score"][:, 0]
    assert numpy.allclose(out, score(name, rows), rtol=1e-4, atol=1e-5)

policy = graph_agent.Policy(sys.argv[1], graphs)
batched = graph_agent.play(policy, text, SEEDS, INTERARRIVAL, JOBS)
env = RampipeVector(len(SEEDS), interarrival=INTERARRIVAL, jobs=JOBS)
features, mask = env.reset(seed=SEEDS[0])
blocked = numpy.zeros(len(SEEDS))
for _ in range(JOBS):
    actions = []
    for i in range(len(SEEDS)):
        scores = score(env.templates[env.template[i]].split("/")[0], features[i])
        scores = numpy.where(mask[i], scores, -numpy.inf)
        scores[0] = -1e-30
        actions.append(int(scores.argmax()) if scores.max() >= 0 else 0)
    features, mask, rewards, _ = env.step(actions)
    blocked += rewards < 0
assert list(blocked / JOBS) == batched, f"{blocked / JOBS} is not {batched}"
assert 0.1 < min(batched) and max(batched) < 0.95, batched
print(round(batched[0] * JOBS))
