"""What rampipe_cluster promises. usage: actions.py TEST ARGUMENTS"""
import math
import os
import random
import subprocess
import sys

from raises import raises

ROOT = os.environ["ROOT"]
sys.path[:0] = [os.path.join(ROOT, "scripts"), os.path.join(ROOT, "traces", "agents")]
import heuristics  # noqa: E402
import rampipe_cluster  # noqa: E402
from rampipe_cluster import WAIT, Action, Block, PipelineError, RampClusterEnv, Run  # noqa: E402


def pipeline(command, stream):
    return subprocess.run(["sh", "-c", command], stdin=open(stream, "rb"), stdout=subprocess.PIPE, check=True).stdout.decode()


def as_heuristics(jobs, degree, output):
    """SiP-ML, first fit and shortest first. Where first fit finds no place, ramp-alloc is left to find none."""
    cluster = RampClusterEnv(source=jobs, output=output)
    place, known = heuristics.FirstFit(), {}
    cluster.reset(seed=1)
    while not cluster.done:
        graph = cluster.job.graph
        key = graph.id, *cluster.free
        if key not in known:
            action = known[key] = Action(op_partition=heuristics.sip_ml(graph, int(degree)))
            action.op_placement = place(graph, action.op_partition, cluster.free)
            if action.op_placement:
                action.op_schedule = heuristics.shortest_first(graph.split(action.op_partition), action.op_placement)
        cluster.step(known[key])


def draw_action(draw, cluster):
    """Anything that is well formed: parts, servers that may be taken, priorities, channels."""
    graph = cluster.job.graph
    action = Action()
    if draw.random() < 0.8:
        parts = draw.choice((2, 3, 4))
        action.op_partition = {op: parts for op in draw.sample(graph.forward(), draw.randrange(1, 4))}
    made = graph.split(action.op_partition)
    if draw.random() < 0.8:
        among = cluster.free if cluster.free and draw.random() < 0.9 else cluster.servers
        pool = draw.sample(among, min(4, len(among)))
        blocks = {k: [b for b in heuristics.FirstFit().blocks(k) if set(b) <= set(cluster.free)] for k in (2, 3, 4)}
        block = {k: draw.choice(b) if b else pool for k, b in blocks.items()}
        whole = draw.choice(pool)
        action.op_placement = {op.id: block[op.parts][op.part % len(block[op.parts])] if op.parts > 1 else whole
                               for op in made.ops.values() if op.forward or draw.random() < 0.2 and op.parts == 1}
    if draw.random() < 0.5:
        action.op_schedule = {op: draw.uniform(-1, 1) for op in draw.sample(list(made.ops), 5)}
    deps = draw.sample(list(made.deps), 5)
    if draw.random() < 0.5:
        action.dep_placement = {dep: draw.randrange(2) for dep in deps}
    if draw.random() < 0.5:
        action.dep_schedule = {dep: draw.random() for dep in deps}
    return action


def at_random(jobs):
    """sim accepts what is started, and reckons the same; figures are those of metrics."""
    draw = random.Random(1)
    cluster = RampClusterEnv(source=jobs, output="random.rec")
    cluster.reset(seed=1)
    asked = 0
    while not cluster.done:
        job, free, asked = cluster.job, set(cluster.free), asked + 1
        held = {server for run in cluster.running.values() for server in run.servers}
        assert free == set(cluster.servers) - held and len(cluster.servers) == 32
        outcome = cluster.step(draw_action(draw, cluster))
        if isinstance(outcome, Run):
            assert outcome.job is job and free.issuperset(outcome.servers) and outcome.start == job.arrival
        else:
            assert isinstance(outcome, Block) and cluster.blocked[job.id] is outcome
    figures = cluster.figures()
    assert asked == figures["arrived"] == figures["completed"] + figures["blocked"] == 300 and not cluster.running
    assert figures["started"] >= 50 and {"legal_block", "one_job_per_server"} <= set(figures["causes"]), figures
    ends = {}
    for line in pipeline("reccheck --pass - | sim", "random.rec").split("\n"):
        field = line.split("\t")
        if field[0] == "done":
            ends[field[1]] = float(field[5])
    assert ends == {name: run.finish for name, run in cluster.completed.items()}
    table = pipeline("sim | metrics --format tsv", "random.rec")
    row = {tuple(line.split("\t")[1:3]): float(line.split("\t")[3]) for line in table.strip().split("\n")[1:]}
    for name, figure in (("blocking rate", "blocking_rate"), ("completion time", "completion_time"),
                         ("speed-up", "speed_up")):
        value = next(v for (n, s), v in row.items() if n == name and s in ("mean", "value"))
        assert math.isclose(value, figures[figure], rel_tol=1e-6), (name, value, figures[figure])


def read(text):
    """The graphs of a stream, as rampipe_cluster reads them."""
    reader = RampClusterEnv.__new__(RampClusterEnv)
    reader._forget()
    graph = None
    for line in text.split("\n"):
        field = line.split("\t")
        if field[0] == "graph":
            graph = reader.graphs[field[1]] = rampipe_cluster.Graph(field[1], field[2])
        elif field[0] in ("op", "dep"):
            rampipe_cluster.READ[field[0]](reader, graph, field, line)
    return reader.graphs


def split(graphs):
    """By the SiP-ML rule, and at random: names, times, memory, deps and their bytes."""
    draw = random.Random(1)
    text = open(graphs).read()
    wholes = read(text)
    for most in (1, 2, 28):
        made = read(pipeline(f"partition --degree {most} --quantum 0.01", graphs))
        for graph in wholes.values():
            compare(graph.split(heuristics.sip_ml(graph, most)), made[f"{graph.id}/{most}"])
    name = next(iter(wholes))
    records = "".join(line + "\n" for line in text.split("\n") if line.split("\t")[1:2] == [name])
    with open("one.rec", "w") as one:
        one.write(records)
    for _ in range(5):
        graph = wholes[name]
        parts = {op: draw.randrange(1, 5) for op in graph.forward()}
        some = {op: k for op, k in parts.items() if k > 1}
        made = read(pipeline("partition --split " + ",".join(f"{op}:{k}" for op, k in some.items()), "one.rec"))
        compare(graph.split(parts), next(iter(made.values())))


def compare(ours, theirs):
    assert ours.id == theirs.id
    assert list(ours.ops.values()) == list(theirs.ops.values())
    assert ours.deps == theirs.deps and ours.sync == theirs.sync
    assert all(ours.parents(op) == theirs.parents(op) for op in ours.ops)


class Number(float):
    """A number with the repr of numpy 2."""

    def __repr__(self):
        return f"np.float64({float(self)!r})"


def state(small):
    descriptors = len(os.listdir("/proc/self/fd"))
    with open("three.rec", "w") as three:
        three.write(open(small).read() + "job\tb\tg\t1\t10\tinf\njob\tc\tg\t2\t10\tinf\njob\td\tg\t130\t10\t5\n")
    cluster = RampClusterEnv(source="three.rec", shape="2x1x1", queue=3)
    assert cluster.done and cluster.job is None
    raises(RuntimeError, "step() has no episode", cluster.step, None)
    job = cluster.reset(seed=1)
    assert job is cluster.job and job.id == "a" and job.alternatives == ["g"] and not cluster.done
    assert cluster.servers == cluster.free == ["0-0-0", "1-0-0"] and cluster.time == 0
    assert cluster.offers["g"].step == 12 and job.graph.sequential == 12 and job.graph.forward() == ["1", "2"]
    for op in "9", "3":
        raises(ValueError, f"graph 'g' has no forward op '{op}' to split", job.graph.split, {op: 2})
    for parts in 0, -1, 65537:
        raises(ValueError, f"parts of op '1' must be from 1 to 65536, got {parts}", job.graph.split, {"1": parts})
    raises(TypeError, "integer", job.graph.split, {"1": 2.5})
    assert job.graph.parents("3") == ["2"] and job.graph.deps == {("1", "2"): 0, ("2", "3"): 0, ("3", "4"): 0}
    outcome = cluster.step(Action(op_placement={"1": "1-0-0", "2": "1-0-0"}))
    assert outcome.servers == ["1-0-0"] and outcome.finish == 120 and cluster.running == {"a": outcome}
    assert cluster.job.id == "b" and cluster.free == ["0-0-0"] and cluster.time == 1
    # c arrives behind b, so b is asked about again; and once a has ended. c waits
    for time in (2, 120):
        assert cluster.step(WAIT) is None and cluster.outcome is None
        assert cluster.job.id == "b" and cluster.time == time and list(cluster.queue) == ["c"]
    assert list(cluster.completed) == ["a"]
    outcome = cluster.step(Action(op_placement={"1": "0-0-0", "2": "0-0-0"}, op_schedule={"1": 1}))
    assert (outcome.start, outcome.finish) == (120, 240) and cluster.job.id == "c"
    outcome = cluster.step(Action(op_placement={"1": "0-0-0", "2": "0-0-0"}))
    assert (outcome.cause, outcome.op, outcome.server, outcome.time) == ("one_job_per_server", "1", "0-0-0", 120)
    assert cluster.job.id == "d" and cluster.step(Action()).cause == "deadline" and cluster.done
    assert cluster.time == 240 and not cluster.running and not cluster.queue and cluster.job is None
    figures = cluster.figures()
    assert figures["causes"] == {"one_job_per_server": 1, "deadline": 1} and figures["blocking_rate"] == 0.5
    assert figures["completion_time"] == (120 + 239) / 2 and figures["servers"] == 1
    assert figures["utilisation"] == 240 / (2 * 240) and figures["waiting"] == 0
    # the partition, a split of the job's graph
    cluster.reset(seed=1)
    outcome = cluster.step(Action(op_partition={"2": 2}, dep_schedule={("1", "2b"): 1}))
    assert outcome.graph == "g/2" and outcome.servers == ["0-0-0", "1-0-0"] and 0 < outcome.step - 8 < 1e-5
    raises(PipelineError, "it places op '9', which graph 'g' lacks", cluster.step, Action(op_placement={"9": "0-0-0"}))
    assert cluster.done
    cluster.reset(seed=1)
    raises(TypeError, "an action is an Action, None or WAIT, got 3", cluster.step, 3)
    for dep in "12", ("1", "2", "3"):
        raises(ValueError, "a dep is a pair (src, dst), got", cluster.step, Action(dep_placement={dep: 1}))
        raises(ValueError, "a dep is a pair (src, dst), got", cluster.step, Action(dep_schedule={dep: 1}))
    assert cluster.step(Action(op_schedule={"1": Number(1.5)}, dep_schedule={("1", "2"): Number(2)})).graph == "g"
    raises(ValueError, "options of reset may be", cluster.reset, options={"x": 1})
    raises(ValueError, "options of reset: a source has", cluster.reset, options={"jobs": 1})
    raises(ValueError, "steps: a source has graphs and jobs of its own", RampClusterEnv, source=small, steps=3)
    cluster.reset(seed=1)
    assert cluster.step(None).cause == "policy"
    cluster.close()
    cluster.close()
    for option in "mask", "max_nodes", "observation":
        raises(TypeError, f"RampClusterEnv has no {option}", RampClusterEnv, source=small, **{option: 3})
    raises(ValueError, "max_degree, partition_options: only a policy takes them", RampClusterEnv, source=small,
           partition_options=["--x"], max_degree=2)
    # alternatives of a policy
    cluster = RampClusterEnv(source=small, policy="all", max_degree=2, shape="2x2x1")
    assert cluster.reset(seed=1).alternatives == ["g/1", "g/2"] and cluster.offers["g/2"].servers == 2
    assert cluster.step(Action(alternative="g/2")).graph == "g/2"
    cluster.close()
    # jobs wait in another order than they come, also where several heuristics place them
    cluster = RampClusterEnv(source=small, queue=3, shape="2x2x1", heuristic="compact,compact-back",
                             alloc_options=["--order=shortest"])
    assert cluster.reset(seed=1).id == "a" and cluster.step(Action()).servers == ["0-0-0"]
    cluster.close()
    # a cluster of another kind
    cluster = RampClusterEnv(source=small, cluster="island:3,1e9,1e-6,80e9")
    cluster.reset(seed=1)
    assert cluster.free == ["0", "1", "2"]
    assert cluster.step(Action(op_placement={"1": "2", "2": "1"})).servers == ["2", "1"]
    del cluster
    assert len(os.listdir("/proc/self/fd")) == descriptors
    text = rampipe_cluster.__doc__
    example = text[text.index("    from rampipe_cluster"):text.index("It is for")].replace("\n    ", "\n").strip()
    exec(example, {"math": math})


def channels():
    """All five parts of an action by the published heuristics. On a slow network a step takes longer if deps
    between two servers wait for each other; sim finds the same."""
    cluster = RampClusterEnv(jobs=4, interarrival=1e9, deadline_fraction=100, sampling=None, output="channels.rec",
                             alloc_options=["--bandwidth", "1e9"])
    cluster.reset(seed=1)
    place, steps = heuristics.FirstFit(), {}
    while not cluster.done:
        graph = cluster.job.graph
        ops = graph.forward()
        parts = {**dict.fromkeys(ops, 4), ops[0]: 2, ops[3]: 2}  # so that several deps join two servers
        placement, made = place(graph, parts, cluster.free), graph.split(parts)
        action = Action(parts, placement, heuristics.shortest_first(made, placement))
        if graph.id in steps:
            action.dep_placement = heuristics.one_channel(made, placement)
            action.dep_schedule = heuristics.smallest_first(made, action.dep_placement)
        steps.setdefault(graph.id, []).append(cluster.step(action).step)
    for without, shared in steps.values():
        assert without * 1.01 < shared, steps
    found = [line.split("step=")[1].split("\t")[0] for line in pipeline("sim", "channels.rec").split("\n") if "\tstep=" in line]
    assert sorted(map(float, found)) == sorted(step for pair in steps.values() for step in pair)


{"channels": channels, "heuristics": as_heuristics, "random": at_random, "split": split, "state": state}[sys.argv[1]](*sys.argv[2:])
