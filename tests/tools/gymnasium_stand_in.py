"""Stands in for Gymnasium where it is not installed: its spaces and vector environments, as far as
they ask something of an environment and of a space of its own. After gymnasium/vector and
gymnasium/spaces of Gymnasium 1.x, in our own words: what is checked, copied, pickled, seeded, and what
is refused is theirs. Arrays are lists if there is no numpy."""
import copy
import functools
import multiprocessing
import random
import sys
import types

try:
    import numpy
except ImportError:
    numpy = None


class Generator(random.Random):
    def integers(self, low, high, n):
        return [self.randrange(low, high) for _ in range(n)]


class Space:
    def __init__(self, shape=None, dtype=None, seed=None):
        self._shape = None if shape is None else tuple(shape)
        self.dtype = dtype if dtype is None or not numpy else numpy.dtype(dtype)
        self._np_random = None
        if seed is not None:
            self.seed(seed)

    @property
    def shape(self):
        return self._shape

    @property
    def np_random(self):
        if self._np_random is None:
            self.seed()
        return self._np_random

    def seed(self, seed=None):
        self._np_random = Generator(seed)
        return seed

    def __contains__(self, x):
        return self.contains(x)


def shape_of(x):
    if hasattr(x, "shape"):
        return x.shape
    return (len(x), *(shape_of(x[0]) if len(x) else ())) if isinstance(x, (list, tuple)) else ()


class Box(Space):
    def __init__(self, low, high, shape, dtype="float32", seed=None):
        self.low, self.high = low, high
        super().__init__(shape, dtype, seed)

    def contains(self, x):
        return shape_of(x) == self.shape

    def __eq__(self, other):
        return isinstance(other, Box) and (self.shape, self.dtype, self.low, self.high) == (
            other.shape, other.dtype, other.low, other.high)


class Discrete(Space):
    def __init__(self, n, seed=None):
        self.n = n
        super().__init__((), "int64", seed)

    def contains(self, x):
        return 0 <= x < self.n

    def __eq__(self, other):
        return isinstance(other, Discrete) and self.n == other.n


class Dict(Space):
    def __init__(self, spaces, seed=None):
        self.spaces = spaces
        super().__init__(None, None, seed)

    def contains(self, x):
        return isinstance(x, dict) and x.keys() == self.spaces.keys() and all(
            x[key] in space for key, space in self.spaces.items())

    def __eq__(self, other):
        return isinstance(other, Dict) and self.spaces == other.spaces


class Tuple(Space):
    def __init__(self, spaces, seed=None):
        self.spaces = tuple(spaces)
        assert all(isinstance(space, Space) for space in self.spaces)
        super().__init__(None, None, None)

    def seed(self, seed=None):
        for space, one in zip(self.spaces, seed or [None] * len(self.spaces)):
            space.seed(one)
        return seed

    def contains(self, x):
        return isinstance(x, tuple) and len(x) == len(self.spaces) and all(
            y in space for y, space in zip(x, self.spaces))


class Env:
    spec = None

    def reset(self, *, seed=None, options=None):
        del options
        self.np_random_seed = seed


@functools.singledispatch
def batch_space(space, n):
    """Of a space that is nobody's own: copies, with seeds of their own."""
    assert isinstance(space, Space)
    batched = Tuple(copy.deepcopy(space) for _ in range(n))
    batched.seed(copy.deepcopy(space.np_random).integers(0, 10 ** 8, n))
    return batched


batch_space.register(Box)(lambda space, n: Box(space.low, space.high, (n,) + space.shape, space.dtype))
batch_space.register(Discrete)(lambda space, n: Box(0, space.n - 1, (n,), "int64"))
batch_space.register(Dict)(lambda space, n: Dict({k: batch_space(s, n) for k, s in space.spaces.items()}))


def concatenate(space, items):
    if isinstance(space, Dict):
        return {key: concatenate(one, [item[key] for item in items]) for key, one in space.spaces.items()}
    if isinstance(space, Box):
        return numpy.stack(items) if numpy else list(items)
    return tuple(items)


def create_shared_memory(space):
    if isinstance(space, Dict):
        for one in space.spaces.values():
            create_shared_memory(one)
    elif not isinstance(space, (Box, Discrete)):
        raise ValueError("Using `shared_memory=True` in `AsyncVectorEnv` is incompatible with non-standard "
                         "Gymnasium observation spaces. Set `shared_memory=False`.")


class SyncVectorEnv:
    """One after the other, in this process. Whoever has ended is reset in the next step."""

    def __init__(self, env_fns):
        self.envs = [make() for make in env_fns]
        self._open(self.envs[0])
        for env in self.envs:
            self._check(env.observation_space, env.action_space)
        self.ended = [False] * self.num_envs

    def _open(self, env):
        self.metadata, self.render_mode, self.num_envs = env.metadata, env.render_mode, len(self.envs)
        self.single_observation_space, self.single_action_space = env.observation_space, env.action_space
        self.observation_space = batch_space(env.observation_space, self.num_envs)
        self.action_space = batch_space(env.action_space, self.num_envs)

    def _check(self, observation_space, action_space):
        if not observation_space == self.single_observation_space:
            raise RuntimeError(f"Some environments have an observation space different from "
                               f"`{self.single_observation_space}`. In order to batch observations, the "
                               "observation spaces from all environments must be equal.")
        if not action_space == self.single_action_space:
            raise RuntimeError("Some environments have an action space different from the first one's.")

    def _call(self, i, name, *args, **keywords):
        return getattr(self.envs[i], name)(*args, **keywords)

    def reset(self, *, seed=None, options=None):
        self.ended = [False] * self.num_envs
        seen = [self._call(i, "reset", seed=None if seed is None else seed + i, options=options)
                for i in range(self.num_envs)]
        return concatenate(self.single_observation_space, [s[0] for s in seen]), [s[1] for s in seen]

    def step(self, actions):
        seen = [(*self._call(i, "reset"), 0.0, False) if self.ended[i] else self._call(i, "step", action)
                for i, action in enumerate(actions)]
        seen = [(s[0], s[2], s[3], False, s[1]) if self.ended[i] else s for i, s in enumerate(seen)]
        observations, rewards, terminated, truncated, infos = zip(*seen)
        self.ended = [a or b for a, b in zip(terminated, truncated)]
        return concatenate(self.single_observation_space, observations), rewards, terminated, truncated, infos

    def close(self):
        for env in self.envs:
            env.close()


def serve(make, pipe, others):
    for other in others:
        other.close()
    env = make()
    while True:
        try:
            name, args, keywords = pipe.recv()
        except EOFError:
            break
        pipe.send((env.observation_space, env.action_space) if name == "spaces"
                  else getattr(env, name)(*args, **keywords))
    env.close()


class AsyncVectorEnv(SyncVectorEnv):
    """Each in a process, which is told and heard over a pipe, spaces and all."""

    def __init__(self, env_fns, shared_memory=True):
        context = multiprocessing.get_context("fork")
        self.envs = list(env_fns)
        first = env_fns[0]()
        self._open(first)
        first.close()
        if shared_memory:
            create_shared_memory(self.single_observation_space)
        self.pipes, self.processes, self.ended = [], [], [False] * self.num_envs
        for make in env_fns:
            ours, theirs = context.Pipe()
            self.pipes.append(ours)
            self.processes.append(context.Process(target=serve, args=(make, theirs, list(self.pipes)), daemon=True))
            self.processes[-1].start()
            theirs.close()
        for i in range(self.num_envs):
            self._check(*self._call(i, "spaces"))

    def _call(self, i, name, *args, **keywords):
        self.pipes[i].send((name, args, keywords))
        return self.pipes[i].recv()

    def close(self):
        for pipe, process in zip(self.pipes, self.processes):
            pipe.close()
            process.join()
            process.close()


def install():
    here = sys.modules[__name__]
    sys.modules["gymnasium"] = gymnasium = types.ModuleType("gymnasium")
    gymnasium.Env = Env
    gymnasium.spaces = gymnasium.vector = here
    sys.modules["gymnasium.vector"] = here
