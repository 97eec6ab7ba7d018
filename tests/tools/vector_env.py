"""rampipe_vector against rampipe_env, which asks ramp-alloc: the same choices give the same features, rewards and
records. usage: vector_env.py TEST. WITHOUT=numpy hides that module."""
import array
import math
import os
import pathlib
import sys

from raises import raises

if os.environ.get("WITHOUT"):
    sys.modules[os.environ["WITHOUT"]] = None
sys.path.insert(0, os.path.join(os.environ["ROOT"], "scripts"))
from rampipe_env import PipelineError, RampipeEnv, numpy  # noqa: E402
from rampipe_vector import RampipeVector  # noqa: E402

DRAWN = {"interarrival": "exponential:300", "deadline_fraction": "uniform:0.2:2"}
JOBS = 60


def choose(t, valid):
    """A choice that depends on the job's number and on what can start, and refuses now and then."""
    return valid[(7 * t + t // 5) % len(valid)]


def decisions(path):
    """The alloc and block records of a file; and without the names of layouts."""
    with open(path) as file:
        lines = [line.rstrip("\n").split("\t") for line in file]
    lines = [fields for fields in lines if fields[0] in ("alloc", "block")]
    return lines, [fields[:3] + fields[4:] if fields[0] == "alloc" else fields for fields in lines]


def single(seed, options):
    """An episode by ramp-alloc: per job the observation, the mask, and the reward; and its records."""
    env = RampipeEnv(jobs=JOBS, observation="features", mask="startable", output="single.rec", **DRAWN, **options)
    observation, info = env.reset(seed=seed)
    seen, ended, t = [], False, 0
    while not ended:
        valid = [a for a, can in enumerate(info["action_mask"]) if can]
        rows = {a: list(observation[a]) for a in valid if a}
        places = {a: offer.place for a, offer in info["offers"].items()}
        observation, reward, ended, _, info = env.step(choose(t, valid))
        done = info["decision"]
        seen.append((rows, reward, done["completion_time"], places))
        t += 1
    env.close()
    return seen, decisions("single.rec")


def rounded(numbers):
    """As 32-bit numbers."""
    return list(array.array("f", numbers))


def same(copies, seed, options):
    env = RampipeVector(copies, jobs=JOBS, **DRAWN, **options)
    features, mask = env.reset(seed=seed)
    for i in range(copies):
        env.record(i, f"copy{i}.rec")
    seen = [[] for _ in range(copies)]
    ways = len(set(env.places[1:]))
    number = [a and (env.degrees[a] - 1) * ways + (a - 1) % ways + 1 for a in range(len(env.degrees))]
    place = dict(zip(number, env.places))
    for t in range(JOBS):
        valid = [[a for a in range(len(env.degrees)) if mask[i][a]] for i in range(copies)]
        rows = [{number[a]: list(features[i][a]) for a in valid[i] if a} for i in range(copies)]
        for i in range(copies):
            for a in range(len(env.degrees)):
                assert mask[i][a] or not any(features[i][a]), "features of what cannot start"
        actions = [choose(t, v) for v in valid]
        features, mask, rewards, ended = env.step(actions)
        assert [bool(e) for e in ended] == [t + 1 == JOBS] * copies
        for i in range(copies):
            seen[i].append((rows[i], rewards[i], env.completion[i]))
    first = [[list(features[i][a]) for a in range(len(env.degrees))] for i in range(copies)]
    for i in range(copies):
        env.record(i, None)
    kinds = set()
    for i in range(copies):
        episode, (records, bare) = single(seed + i, options)
        for t, ((rows, reward, completion), (rows1, reward1, completion1, places)) in enumerate(zip(seen[i], episode)):
            assert ways == 1 or all(place[a] == name for a, name in places.items()), f"{places}, not {env.places}"
            assert rows.keys() == rows1.keys(), f"job {t} of copy {i}: {rows.keys()} can start, not {rows1.keys()}"
            for action in rows:
                assert rounded(rows[action]) == rounded(rows1[action]), f"features of job {t}, action {action}"
            assert reward == reward1 and math.isclose(completion, completion1, rel_tol=1e-12), f"job {t} of copy {i}"
        written, without = decisions(f"copy{i}.rec")
        assert len(written) == JOBS and without == bare, f"copy {i} decides otherwise than ramp-alloc"
        assert copies > 1 or written == records, "names of layouts differ"
        kinds |= {fields[0] if fields[0] == "alloc" else fields[3] for fields in written}
    env.reset(seed=seed + copies)  # what followed of itself is what begins here
    assert first == [[list(env.features[i][a]) for a in range(len(env.degrees))] for i in range(copies)]
    env.close()
    return kinds


def equal():
    kinds = same(1, 5, {}) | same(3, 1, {}) | same(2, 9, {"heuristic": "compact", "shape": "2x2x2"})
    same(2, 3, {"heuristic": "compact,compact-2,compact-back"})
    same(1, 4, {"heuristic": "Compact,free-block:1-2,free-block:7"})
    same(1, 2, {"cluster": "island:12,300GB/s,1us,80GB"})
    with open("cluster.rec", "w") as file:
        file.write("cluster\tisland\t12\t3e11\t1e-6\t8e10\n")
    RampipeVector(1, source="offered.rec", cluster=pathlib.Path("cluster.rec")).close()
    assert {"alloc", "policy", "no_servers"} <= kinds, kinds  # no trivial streams


def stream():
    """The jobs of a stream, by the first that can start: ramp-alloc's default."""
    env = RampipeVector(2, source="offered.rec", interarrival=None, shape="2x2x1")
    _, mask = env.reset()
    env.record(1, "copy1.rec")
    for t in range(100):
        actions = [next((a for a in range(1, len(env.degrees)) if mask[i][a]), 0) for i in range(2)]
        _, mask, rewards, ended = env.step(actions)
        assert rewards[0] == rewards[1]
    assert list(ended) == [1, 1] and len(env.templates) == 2
    env.record(1, None)
    assert decisions("copy1.rec")[1] == decisions("first.rec")[1]


def wrong():
    for copies in 0, -1, 2 ** 32 + 1:
        raises(ValueError, f"copies must be an integer from 1 to 4294967295, got {copies}", RampipeVector, copies)
    raises(TypeError, "integer", RampipeVector, 1.5)
    raises(ValueError, "jobs must be an integer from 1 to 18446744073709551615, got -1", RampipeVector, 1, jobs=-1)
    for of_ramp in {"shape": "2x2x2"}, {"heuristic": "compact"}:
        raises(ValueError, "leave them out, or cluster", RampipeVector, 1, cluster="island:4,8,1,9", **of_ramp)
    raises(ValueError, "networks is empty", RampipeVector, 1, networks=[])
    raises(PipelineError, "No such file", RampipeVector, 1, source="none.rec")
    raises(PipelineError, "there is no cluster record in offered.rec", RampipeVector, 1, source="offered.rec",
           cluster="offered.rec")
    raises(PipelineError, "island needs 4 fields", RampipeVector, 1, source="offered.rec", cluster="island:0")
    with open("graphs.rec", "w") as file:
        file.write("graph\tg\tg\nop\tg\t1\tforward\t1\t1\n")
    raises(PipelineError, "has no job records", RampipeVector, 1, source="graphs.rec")
    raises(PipelineError, "exponential", RampipeVector(1, interarrival="often:3").reset)
    raises(PipelineError, "need steps", RampipeVector, 1, steps=None, source="offered.rec")
    for idle in {"quantum": 3}, {"max_degree": 2}, {"networks": ["no.txt"]}, {"partition_options": ["--no"]}:
        raises(ValueError, f"{', '.join(idle)}: a source has", RampipeVector, 1, source="offered.rec", **idle)
    for idle in {"steps": 3}, {"jobs": 9}, {"deadline_fraction": None}:
        raises(ValueError, f"{', '.join(idle)}: without inter", RampipeVector, 1, interarrival=None, **idle)
    env = RampipeVector(2, jobs=2)
    raises(RuntimeError, "call reset() first", env.step, [0, 0])
    for seed in -1, 2 ** 32 + 5, 2 ** 64 + 5:
        raises(ValueError, f"seed must be an integer from 0 to 4294967295, got {seed}", env.reset, seed)
    raises(TypeError, "integer", env.reset, 1.0)
    raises(RuntimeError, "call reset() first", env.step, [0, 0])
    env.reset()
    raises(ValueError, "2 copies, and 3 actions", env.step, [0, 0, 0])
    for action in 7, -1, 2 ** 32 + 2, -2 ** 63, 2 ** 64 + 2:
        raises(ValueError, f"an action is 0 to 6, got {action} for copy 1", env.step, [0, action])
    for action in 2.9, -0.5, math.nan, "2", None:
        raises(TypeError, "integer", env.step, [0, action])
    raises((TypeError, ValueError), "", env.step, [[0, 1], [1, 0]])
    if numpy:
        raises(ValueError, "got an array of shape (2, 7)", env.step, env.mask)
        raises(TypeError, "integer", env.step, numpy.zeros(2))
        raises(ValueError, "got 4294967298 for copy 0", env.step, numpy.array([2 ** 32 + 2, 0]))
        env.step(numpy.array([1, 1], "uint8"))
        env.reset()
    for copy in 2, -1, 2 ** 32:
        raises(ValueError, f"copy must be an integer from 0 to 1, got {copy}", env.record, copy, "x.rec")
    env.step([1, 1])
    env.close()
    env.close()
    raises(RuntimeError, "is closed", env.step, [0, 0])


globals()[sys.argv[1]]()
