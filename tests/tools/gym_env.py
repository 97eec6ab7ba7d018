"""What Gymnasium's checker checks, and what else rampipe_env promises. usage: gym_env.py TEST
WITHOUT=numpy hides that module."""
import copy
import gc
import math
import os
import pickle
import random
import signal
import subprocess
import sys
import time

from raises import raises

if os.environ.get("WITHOUT"):
    sys.modules[os.environ["WITHOUT"]] = None
sys.path.insert(0, os.path.join(os.environ["ROOT"], "scripts"))
if sys.argv[1] == "vector":
    try:
        import gymnasium  # noqa: F401
    except ImportError:
        import gymnasium_stand_in
        gymnasium_stand_in.install()
import rampipe_env  # noqa: E402
from rampipe_env import PipelineError, RampipeEnv, numpy  # noqa: E402


def lists(x):
    """Without arrays, to compare."""
    if isinstance(x, dict):
        return {key: lists(y) for key, y in x.items()}
    return x.tolist() if hasattr(x, "tolist") else x


def none_left(fds):
    try:
        raise AssertionError(f"a child is left: {os.waitpid(-1, os.WNOHANG)}")
    except ChildProcessError:
        pass
    assert len(os.listdir("/proc/self/fd")) == fds, "descriptors are left open"


def episode(env, seed, choose):
    """All that comes of one."""
    observation, info = env.reset(seed=seed)
    seen, ended = [(lists(observation), None, lists(info))], False
    while not ended:
        observation, reward, ended, truncated, info = env.step(choose(info))
        assert isinstance(reward, float) and ended in (True, False) and truncated is False
        seen.append((lists(observation), reward, lists(info)))
    return seen


def any_valid(seed):
    draw = random.Random(seed)
    return lambda info: draw.choice([a for a, valid in enumerate(info["action_mask"]) if valid])


def contract():
    for options in ({"max_nodes": 80}, {"observation": "graph"}, {"observation": "features", "mask": "startable"}):
        options = {"jobs": 12, "networks": rampipe_env.SAMPLES[:1], **options}
        env, other = RampipeEnv(**options), RampipeEnv(**options)
        one = episode(env, 3, any_valid(1))
        assert len(one) == 13 and one == episode(other, 3, any_valid(1)), "a seed does not reproduce"
        drawn, _ = env.reset()
        assert lists(drawn) == lists(other.reset()[0]), "nor what is drawn after it"
        assert one[0][0] != lists(drawn) or one[0][2] != env.reset(seed=4)[1], "another is the same"
        for o in (drawn, env.step(1)[0], env.step(0)[0], env.observation_space.sample()):
            assert o in env.observation_space
        assert [] not in env.observation_space and 17 not in env.action_space
        bad = lists(env.step(0)[0])
        if isinstance(bad, dict):
            bad["graph_features"][0] = 2.0
        else:
            bad.pop()
        assert bad not in env.observation_space
        assert all(env.action_space.sample() in env.action_space for _ in range(20))
        mask = env.reset(options={"jobs": 1})[1]["action_mask"]
        if options.get("mask") is None:
            assert list(mask) == [int(a in (0, 1, 2, 4, 6, 8, 16)) for a in range(17)]
        if numpy:
            assert mask.dtype == numpy.int8
        _, reward, ended, _, info = env.step(3)
        assert ended and reward == -1 and info["decision"]["cause"] == "invalid"
        raises(RuntimeError, "has no episode", env.step, 0)
        env.reset()
        raises(ValueError, "an action is 0 to 16, got 17", env.step, 17)
        raises(TypeError, "", env.step, 1.5)
        env.step(0)
        env.close()
        env.close()
        raises(RuntimeError, "has no episode", env.step, 0)
    if rampipe_env.gymnasium:
        from gymnasium.utils.env_checker import check_env
        check_env(RampipeEnv(jobs=12), skip_render_check=True)


def vector():
    """Many environments as one, in this process and in one each: spaces are equal, batched, copied, pickled;
    each observes what it does alone. By Gymnasium, or what stands in for it."""
    from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
    fds = len(os.listdir("/proc/self/fd"))
    for options in ({"max_nodes": 50}, {"observation": "graph"}, {"observation": "features"}):
        options = {"jobs": 3, "networks": rampipe_env.SAMPLES[:1], **options}
        graph = options.get("observation") == "graph"
        alone = RampipeEnv(**options)
        space = alone.observation_space
        assert space == RampipeEnv(**options).observation_space == copy.deepcopy(space)
        assert space == pickle.loads(pickle.dumps(space)), "a space changes on its way through a pipe"
        assert space != RampipeEnv(**{**options, "max_degree": 8}).observation_space
        seen = [alone.reset(seed=7 + i)[0] for i in range(2)]
        for kind, keywords in ((SyncVectorEnv, {}), (AsyncVectorEnv, {"shared_memory": not graph})):
            envs = kind([lambda options=options: RampipeEnv(**options)] * 2, **keywords)
            batch, _ = envs.reset(seed=7)
            for i in range(2):
                one = {k: v[i] for k, v in batch.items()} if isinstance(batch, dict) else batch[i]
                assert lists(one) == lists(seen[i]), f"{kind.__name__} observes something else"
            for _ in range(5):  # an end, and what comes after
                assert batch in envs.observation_space
                batch = envs.step([1, 0])[0]
            envs.close()
        if graph:
            raises(ValueError, "shared_memory=False", AsyncVectorEnv, [lambda: RampipeEnv(**options)] * 2)
        alone.close()
        wrong = [lambda n=n: RampipeEnv(**{**options, "max_degree": n}) for n in (8, 16)]
        raises(RuntimeError, "observation space", SyncVectorEnv, wrong)
    gc.collect()
    none_left(fds)


def arguments():
    raises(ValueError, "observation must be one of published, graph, features, got 'x'", RampipeEnv, observation="x")
    raises(ValueError, "mask must be one of", RampipeEnv, mask="x")
    raises(ValueError, "networks is empty", RampipeEnv, networks=[])
    raises(ValueError, "reward must be one of job_acceptance", RampipeEnv, reward="x")
    raises(ValueError, "options of reset may be", RampipeEnv().reset, options={"job": 3})
    env = RampipeEnv(max_nodes=20)
    raises(ValueError, "give a larger max_nodes", env.reset)
    raises(RuntimeError, "has no episode", env.step, 0)
    raises(PipelineError, "--heuristic must be", RampipeEnv(heuristic="x").reset)
    raises(ValueError, "leave them out, or cluster", RampipeEnv, shape="2x2x2", cluster="island:4,8,1,9")
    raises(PipelineError, "must be one of ramp, island", RampipeEnv, cluster="ring:4")
    for words in ["--queue=3"], ["--memory=1e9", "--que", "3"]:  # jobs would wait, and not be seen
        raises(ValueError, "--queue is for rampipe_cluster, got '--que", RampipeEnv, alloc_options=words)
    raises(ValueError, "--whole-actions is for rampipe_cluster, got '--w'", RampipeEnv, alloc_options=["--w"])
    RampipeEnv(alloc_options=["--quiet", "-q"])
    env = RampipeEnv(jobs=3, max_degree=4, max_nodes=150, cluster="island:3,300GB/s,2us,80GB")
    _, info = env.reset(seed=1)
    assert (info["free"], sorted(info["offers"])) == (3, [1, 2]), info
    env.step(2)
    env.close()
    raises(PipelineError, "no.txt", RampipeEnv(networks=["no.txt"]).reset)
    raises(PipelineError, "exit status 3", RampipeEnv(source=["sh", "-c", "exit 3"]).reset)
    raises(PipelineError, "no jobs came", RampipeEnv(source=["echo", "# none"]).reset)
    env = RampipeEnv(source=["tracegen", "jobs", "--jobs=2", "--seed={seed}", "--prefix=x{seed}-", "graphs.rec"])
    assert env.reset(seed=5)[1]["job"] == "x5-0"
    own = "a source has graphs and jobs of its own"  # what draws others would change nothing
    raises(ValueError, f"options of reset: {own}", env.reset, options={"jobs": 3})
    for idle in {"interarrival": 3}, {"steps": 2, "jobs": 9}, {"deadline_fraction": None}, {"networks": ["no.txt"]}:
        raises(ValueError, f"{', '.join(idle)}: {own}", RampipeEnv, source="jobs.rec", **idle)
    rampipe_env.PREFIX = "no-"
    raises(PipelineError, "no-ramp-alloc: there is no such program", RampipeEnv, observation="features")
    raises(PipelineError, "no-partition: there is no such program", RampipeEnv(source=["true"]).reset)


def processes():
    fds = len(os.listdir("/proc/self/fd"))
    few = {"jobs": 20, "networks": rampipe_env.SAMPLES[:1]}
    many = [RampipeEnv(observation="graph", **few) for _ in range(8)]
    seen = [env.reset(seed=i // 2)[1]["sequential"] for i, env in enumerate(many)]
    for _ in range(5):
        seen += [env.step(1)[1] for env in many]
    for env in many[:3]:
        env.close()
    del env, many
    gc.collect()
    none_left(fds)

    env = RampipeEnv(**few)
    env.reset(seed=1)
    for how, message in ((signal.SIGKILL, "killed by signal 9"), (signal.SIGTERM, "killed by signal 15")):
        env.reset()
        env.step(0)
        os.kill(env._allocator.process.pid, how)
        raises(PipelineError, f"ramp-alloc: it was {message}", lambda: [env.step(0) for _ in range(3)])
        none_left(fds)
    env.reset()
    if os.fork() == 0:  # a fork may end, or go on with an episode of its own
        env.reset()
        os._exit(0)
    assert os.wait()[1] == 0
    env.step(0)
    os.setpgid(0, 0)  # Ctrl-C is for us alone
    signal.signal(signal.SIGINT, lambda *_: None)
    env.reset()
    os.killpg(0, signal.SIGINT)
    env.step(0)

    def interrupt(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    os.kill(env._allocator.process.pid, signal.SIGSTOP)
    raises(KeyboardInterrupt, "", env.step, 0)
    none_left(fds)
    raises(RuntimeError, "has no episode", env.step, 0)
    env.reset()
    env.step(0)
    env.close()
    none_left(fds)


def endings():
    """However we end, in the middle of an episode, ramp-alloc does."""
    for last in ("pass", "import os; os.kill(os.getpid(), 9)"):
        code = ("import sys; sys.path.insert(0, sys.argv[1]); import rampipe_env; env = rampipe_env.RampipeEnv(); "
                f"env.reset(); print(env._allocator.process.pid, flush=True); {last}")
        done = subprocess.run([sys.executable, "-c", code, os.path.dirname(rampipe_env.__file__)],
                              stdout=subprocess.PIPE, check=False)
        pid, until = int(done.stdout), time.monotonic() + 5
        while os.path.exists(f"/proc/{pid}") and time.monotonic() < until:
            with open(f"/proc/{pid}/stat") as stat:
                if ") Z " in stat.read():  # whoever adopted it may be slow
                    break
            time.sleep(0.005)
        else:
            assert not os.path.exists(f"/proc/{pid}"), last


def near(got, expected):
    if isinstance(expected, dict):
        return got.keys() == expected.keys() and all(near(got[key], expected[key]) for key in expected)
    if isinstance(expected, list):
        return len(got) == len(expected) and all(map(near, got, expected))
    return abs(got - expected) < 1e-6


# golden.rec: of graph g the ops, in order, 1, 2 forward, 4, 3 backward, compute 1, 3, 2, 6 (12),
# memory 100, 300, 100, 300 (800), deps 1-2, 2-3, 3-4 of 40, 80, 80 (200); of graph h the ops 1, 2,
# compute 4, 8 (12), memory 200, 200 (400), a dep of 10.
# Jobs: a  g, at 0, 10 steps: 120 on one server, deadline  60, fraction .5
#       b  h, at 5, 20 steps: 240,                deadline 240, fraction 1
#       c  g, at 8, 15 steps: 180,                deadline 135, fraction .75
def golden():
    env = RampipeEnv(source="golden.rec", shape="2x2x2", max_degree=4, max_nodes=5)
    observation, info = env.reset()
    expected = {
        # compute/6, longest, memory/300, largest (the first), depth/3
        "node_features": [[1 / 6, 0, 1 / 3, 0, 0], [1 / 2, 0, 1, 1, 1 / 3], [1 / 3, 0, 1 / 3, 0, 1],
                          [1, 1, 1, 0, 2 / 3], [0] * 5],
        "edge_features": [[.5, 0], [1, 1], [1, 0]] + [[0, 0]] * 7,
        "edges_src": [0, 1, 3] + [0] * 7, "edges_dst": [1, 3, 2] + [0] * 7,
        "node_split": [4], "edge_split": [3],
        # of 2..4 ops, 1..3 deps, times 120..240, deadlines 60..240, fractions .5..1; .5;
        # memory 400..800, deps 10..200, steps 10..20;
        # compute 1/6 1/2 1/3 1, memory 1/3 1 1/3 1, deps 1/2 1 1: means and medians; nothing runs;
        # on 2x2x2 there are blocks of 1, 2, 4
        "graph_features": [1, 1, 0, 0, 0, .5, 1, 1, 0, .5, 5 / 12, 2 / 3, 2 / 3, 5 / 6, 1, 0, 0, 1, 1, 1, 0, 1]}
    assert near(lists(observation), expected), lists(observation)
    assert list(info["action_mask"]) == [1, 1, 1, 0, 1]
    info = env.step(4)[4]  # 3 s a step, and a little: in time, and there until 30
    assert info["decision"]["servers"] == 4 and 30 <= info["decision"]["completion_time"] < 30.1
    observation, reward, *_, info = env.step(2)
    assert reward == 1 and info["job"] == "c" and info["free"] == 2
    # times 180: 1/2; deadline 75/180; fraction 1/2; .75; steps 1/2; 6 of 8 servers, 2 jobs of 8
    expected["graph_features"] = [1, 1, .5, 75 / 180, .5, .75, 1, 1, .5, .5, 5 / 12, 2 / 3, 2 / 3, 5 / 6, 1,
                                  .75, .25, 1, 1, 1, 0, 0]
    assert near(lists(observation), expected), lists(observation)
    # masked: what cannot start says why
    assert env.step(4)[4]["decision"]["cause"] == "no_block"
    # a refusal has the cause that ramp-alloc writes: policy, if there was something to refuse
    for servers, cause in (("2x2x2", "policy"), ("1x1x1", "deadline")):
        env = RampipeEnv(source="golden.rec", shape=servers, max_degree=4, max_nodes=5, output="refused.rec")
        env.reset()
        assert env.step(0)[4]["decision"]["cause"] == cause
        while not env.step(0)[2]:
            pass
        with open("refused.rec") as written:
            assert f"block\ta\t0\t{cause}\t" in written.read(), cause
    # another graph of the same name
    env = RampipeEnv(source=["sed", "s/\t3\t300/\t{seed}\t300/", "golden.rec"], max_nodes=5)
    for compute in 3, 5:
        assert near(lists(env.reset(seed=compute)[0]["node_features"])[1][0], compute / 6)
    # and without padding
    observation, _ = RampipeEnv(source="golden.rec", shape="2x2x2", max_degree=4, observation="graph").reset()
    assert len(observation["node_features"]) == 4 and near(lists(observation["edges_dst"]), [1, 3, 2])


# The same jobs on a scale: an episode's own is the published one; a fixed one is the same whatever comes
# later, and what is beyond it is at its ends.
def scale():
    def first(**options):
        env = RampipeEnv(shape="2x2x2", max_degree=4, max_nodes=5, **options)
        seen = lists(env.reset()[0]["graph_features"])[:9]
        return env.scale, seen[:5] + seen[6:]

    ranges, seen = first(source="golden.rec")
    assert ranges == {"ops": (2, 4), "deps": (1, 3), "time": (120, 240), "deadline": (60, 240), "fraction": (.5, 1),
                      "memory": (400, 800), "size": (10, 200), "steps": (10, 20)}
    # job b is twice as long: what is seen of a, which comes before it, changes, unless the scale is fixed
    longer = ["sed", "s/\\tb\\th\\t5\\t20\\t240/\\tb\\th\\t5\\t40\\t480/", "golden.rec"]
    fixed = {**ranges, "time": (0, 480), "memory": (0, 400), "steps": (20, 30)}
    assert seen == first(source=longer)[1] == first(source="golden.rec", scale=ranges)[1]
    assert first(source=longer)[0]["time"] == (120, 480)
    for source in "golden.rec", longer:
        now, seen = first(source=source, scale=fixed)
        assert now == fixed and near(seen, [1, 1, .25, 0, 0, 1, 1, 0]), seen
    for wrong in ("job", {}, {**ranges, "time": (1, 0)}, {**ranges, "time": (0, math.inf)}, {**ranges, "x": (0, 1)}):
        raises(ValueError, "scale", RampipeEnv, scale=wrong)


def rewards():
    def of(reward, actions, **options):
        env = RampipeEnv(source="golden.rec", shape="2x2x2", max_degree=4, reward=reward, reward_options=options,
                         observation="features")
        env.reset()
        steps = [env.step(a) for a in actions]
        assert steps[-1][2]
        return [s[1] for s in steps], [s[4]["decision"]["completion_time"] for s in steps]

    assert of("job_acceptance", (4, 2, 0))[0] == [1, 1, -1]
    name = "lookahead_job_completion_time"
    got, (a, b, _) = of(name, (4, 2, 0))
    assert got == [-a, -b, -180]
    assert near(of(name, (4, 2, 0), fail_factor=2, normalise=True)[0], [-a / 120, -b / 240, -2])
    assert near(of(name, (4, 2, 0), inverse=True, sign=1)[0], [1 / a, 1 / b, 1 / 180])
    assert near(of(name, (4, 2, 0), log=True)[0], [-math.log10(1 + a), -math.log10(1 + b), -math.log10(181)])
    # b has the longest sequential time, c is half-way
    assert near(of("multi_objective_jct_blocking", (4, 0, 0), weight=3)[0], [-a / 120, -6, -4.5])
    # a from 0 to 30, b from 5 to 125; the last time has two spans
    assert a + 1 < 5 + b
    for name, x, y in (("mean_compute_throughput", 800, 400), ("mean_demand_total_throughput", 1000, 410)):
        assert near(of(name, (4, 2, 0))[0], [x / a, x / a + y / b, (x / a + 2 * y / b) / 2]), name
    # h in two: four deps of 50, two of 100 in the exchange of parts
    assert near(of("mean_cluster_throughput", (0, 2, 0))[0], [0, 800 / b, 800 / b])
    # h from 0 to 6, and nothing until 100
    env = RampipeEnv(source="idle.rec", reward="mean_compute_throughput")
    env.reset()
    _, reward, *_, info = env.step(2)
    assert near(reward, 400 / info["decision"]["completion_time"] / 2)
    env = RampipeEnv(source="golden.rec", reward=lambda info: info["decision"]["servers"] / 4)
    env.reset()
    assert env.step(4)[1] == 1 and env.step(0)[1] == 0


def heuristics():
    """Writes what ramp-alloc does if it is told to, for comparison with what it does by itself."""
    def first(info):
        return next((a for a, o in info["offers"].items() if not o.cause), 0) or max(info["offers"])

    def widest(info):
        return max(a for a, valid in enumerate(info["action_mask"]) if valid)

    for name, choose in (("first", first), ("widest", widest)):
        env = RampipeEnv(source="jobs.rec", shape="2x2x1", observation="features", output=f"{name}.rec")
        seen = episode(env, 1, choose)
        blocked = sum(not info["decision"]["placed"] for _, _, info in seen[1:])
        print(name, blocked)


def places():
    """The last of two heuristics decides as the same one alone, and an action is a degree with a heuristic."""
    def play(name, many):
        env = RampipeEnv(source="jobs.rec", shape="4x4x2", heuristic=name, output=f"{many}.rec")
        assert env.action_space.n == 1 + 16 * many
        assert env.observation_space["graph_features"].shape == (17 + env.action_space.n,)
        seen = episode(env, 1, lambda info: max(
            a for a, valid in enumerate(info["action_mask"]) if valid and a % many == 0 and a <= 8 * many))
        assert all(o.place == ("compact-back" if many > 1 and a % 2 == 0 else "compact" if many > 1 else "")
                   for _, _, info in seen for a, o in info["offers"].items())
        with open(f"{many}.rec") as file:
            return [line for line in file if line.startswith(("alloc", "block"))]
    assert play("compact-back", 1) == play("Compact,compact-back", 2)
    assert RampipeEnv(heuristic="free-block:1-3").action_space.n == 1 + 16 * 3
    assert RampipeEnv(heuristic="free-block:3").action_space.n == 17
    raises(ValueError, "name those", RampipeEnv, heuristic="any")


globals()[sys.argv[1]]()
