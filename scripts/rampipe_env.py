"""rampipe_env - the decision process of PAC-ML as a Gymnasium environment.

    import rampipe_env
    env = rampipe_env.RampipeEnv(interarrival="exponential:1000", jobs=1000)
    observation, info = env.reset(seed=7)
    ended = False
    while not ended:                                # the largest degree up to 8 that is valid
        action = max(a for a, valid in enumerate(info["action_mask"][:9]) if valid)
        observation, reward, ended, _, info = env.step(action)
    env.close()

At each arrival an action decides how much the job is partitioned: 0 refuses it, a > 0 takes
the alternative of degree a. An episode is a stream of jobs:

    pd2graph | tracegen jobs --seed N | partition --policy all | ramp-alloc --agent fd:..

or, with `source`, graphs and jobs of a file or of a command in the place of the first two. What
is decided from is what ramp-alloc(1), AGENTS, offers and asks. The tools are looked for on the
PATH and in ../build/bin. Nothing but the standard library is needed; with numpy observations
are arrays (those of a graph are read-only), without it lists; with gymnasium the environment and
its spaces are Gymnasium's, without it they do the same. Arguments of RampipeEnv, by keyword:

    networks            PipeDream profiles (the samples alexnet and vgg16)
    interarrival, deadline_fraction, steps, sampling, jobs
                        as of tracegen jobs; a number is fixed:NUMBER. reset(options={...}) takes
                        each of these for one episode
    time_unit, quantum  of pd2graph, partition: "s" and 0.01, published, take milliseconds for seconds
    source              a file, or a list, a command and its arguments ({seed} is put in)
    shape, max_degree, heuristic
                        of the cluster, of the actions, of ramp-alloc
    partition_options, alloc_options
                        more options of the two, a list (--queue is none of them)
    observation         "published", "graph" (the same without padding), "features"
    max_nodes           to which the published one is padded
    scale               what is min-max normalised is so over "episode" (published), all jobs of the
                        episode: this looks ahead, for they have not come yet. Or over fixed ranges,
                        {name: (low, high)} of SCALED; a value beyond them counts as the nearer end.
                        env.scale has those in use: scale=env.scale keeps what an episode had
    mask                "published": 0, and the degrees with a block on an empty cluster and no more
                        than the free servers; such a one may still be blocked. "startable": 0, and
                        what can start and meets the deadline
    reward              a name in REWARDS, or a function of info
    reward_options      its keywords. job_acceptance: none; lookahead_job_completion_time:
                        fail_factor, normalise, inverse, log, sign; multi_objective_jct_blocking:
                        weight; mean_compute_throughput, mean_cluster_throughput and
                        mean_demand_total_throughput: none, and they are not normalised
    output              a file for what ramp-alloc writes, to put into sim and metrics

reset() starts another episode, at any time: with seed=N the one of seed N of tracegen, without
it one of a seed drawn after the last N given. info has "action_mask"; "seed"; of the job at hand
"job", "model", "time", "steps", "sequential" (seconds, all its steps on one server),
"deadline" (inf: none), "free", "running" (servers, jobs) and "offers", degree to Offer; and
after a step, "decision" with what became of the last job: "job", "action", "placed", "cause"
(of a block; "invalid": it has no such alternative, and is refused), "servers",
"completion_time" (inf), "sequential".

Observations. "published" has of the unpartitioned graph
    node_features  max_nodes x 5: compute and memory, each against the largest and 1 if it is the
                   (first) largest; depth (fewest deps from a source) against the largest
    edge_features  max_nodes (max_nodes-1)/2 x 2: size against the largest, 1 if it is the (first) largest
    edges_src, edges_dst   the ops that a dep joins, by number
    node_split, edge_split how many ops and deps are real
    graph_features 17, then the mask: over all jobs of the episode, or `scale`, min-max normalised ops, deps,
                   sequential time, deadline, deadline fraction; the fraction (at most 1); min-max
                   normalised memory, size of deps, steps; mean and median of ops' compute, ops'
                   memory, deps' size against the largest; used servers and running jobs per server
and "features" a row for each action: that of degree a has the features of its alternative (those
that ramp-alloc(1) offers; env.feature_names) if it can start, else zeros.

Vector environments of Gymnasium take all three. "published" and "features" have a fixed size. "graph" has
not: of its four arrays a batch has a tuple, one an environment, and AsyncVectorEnv must be given
shared_memory=False, as for Gymnasium's own spaces that have no fixed size.

Whatever ends an episode, close(), reset(), an exception or that nobody holds the environment any
more, ends and reaps its process. If the tools fail, PipelineError says how.
"""

import collections
import collections.abc
import heapq
import math
import operator
import os
import random
import re
import shlex
import shutil
import statistics
import subprocess
import tempfile
import weakref

try:
    import numpy
except ImportError:
    numpy = None
try:
    import gymnasium
except ImportError:
    gymnasium = None

PREFIX = ""  # what the tools were installed with
HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLES = [os.path.join(HERE, "..", "traces", name + ".txt") for name in ("alexnet", "vgg16")]
DRAWN = ("jobs", "interarrival", "deadline_fraction", "steps", "sampling")
# What is min-max normalised, of a job: ops, deps, sequential time of all steps (seconds), deadline
# (seconds), deadline / that time, memory (bytes), size of all deps (bytes), training steps.
SCALED = ("ops", "deps", "time", "deadline", "fraction", "memory", "size", "steps")


class PipelineError(RuntimeError):
    """A tool failed, or was killed."""


# ---- spaces: Gymnasium's, or what does the same for lists -------------------------------

if gymnasium:
    Space, Discrete, Box, Dict = (
        gymnasium.spaces.Space, gymnasium.spaces.Discrete, gymnasium.spaces.Box, gymnasium.spaces.Dict)
else:
    class Space:
        """What can be sampled, and contains values."""

        def __init__(self, shape=None, dtype=None, seed=None):
            self.shape, self.dtype = shape, dtype
            self.seed(seed)

        def seed(self, seed=None):
            self.np_random = random.Random(seed)
            return [seed]

        def __contains__(self, x):
            return self.contains(x)

        def __eq__(self, other):
            return type(other) is type(self) and self._same() == other._same()

        def _same(self):
            """What two spaces that are equal have in common."""
            return {key: value for key, value in vars(self).items() if key != "np_random"}

    class Discrete(Space):
        """0 to n - 1."""

        def __init__(self, n, seed=None):
            self.n = n
            super().__init__((), "int64", seed)

        def sample(self, mask=None):
            return self.np_random.choice([i for i in range(self.n) if mask is None or mask[i]])

        def contains(self, x):
            try:
                return 0 <= operator.index(x) < self.n
            except TypeError:
                return False

    class Box(Space):
        """Arrays of a shape, of numbers from low to high."""

        def __init__(self, low, high, shape, dtype="float32", seed=None):
            self.low, self.high = low, high
            super().__init__(shape, dtype, seed)

        def _draw(self, shape):
            if shape:
                return [self._draw(shape[1:]) for _ in range(shape[0])]
            low, high = max(self.low, -1e6), min(self.high, 1e6)
            return int(low + self.np_random.random() * (high - low)) if "int" in str(self.dtype) \
                else low + self.np_random.random() * (high - low)

        def sample(self):
            return array(self._draw(self.shape), self.dtype)

        def contains(self, x):
            return within(x, self.shape, self.low, self.high)

    class Dict(Space):
        """Spaces by name."""

        def __init__(self, spaces):
            self.spaces = spaces
            super().__init__()

        def __getitem__(self, key):
            return self.spaces[key]

        def seed(self, seed=None):
            return [space.seed(seed) for space in self.spaces.values()]

        def sample(self):
            return {key: space.sample() for key, space in self.spaces.items()}

        def contains(self, x):
            return isinstance(x, dict) and x.keys() == self.spaces.keys() and all(
                x[key] in space for key, space in self.spaces.items())


class Rows(Space):
    """Arrays of any number of rows of numbers from low to high; width 0: of numbers."""

    def __init__(self, width, low, high, dtype="float32"):
        self.width, self.low, self.high = width, low, high
        super().__init__(None, dtype if not numpy else numpy.dtype(dtype))

    def __eq__(self, other):
        return isinstance(other, Rows) and (self.width, self.low, self.high, self.dtype) == (
            other.width, other.low, other.high, other.dtype)

    def __repr__(self):
        return f"Rows({self.width}, {self.low}, {self.high}, {self.dtype})"

    def sample(self, mask=None, probability=None):
        rows = 1 + int(self.np_random.random() * 8)
        drawn = [[self._draw() for _ in range(self.width)] if self.width else self._draw() for _ in range(rows)]
        return array(drawn, self.dtype)

    def _draw(self):
        x = self.low + self.np_random.random() * (self.high - self.low)
        return int(x) if "int" in str(self.dtype) else x

    def contains(self, x):
        return hasattr(x, "__len__") and within(x, (len(x), self.width) if self.width and len(x) else (len(x),), self.low, self.high)


def within(x, shape, low, high):
    """Is x, a list or an array, of this shape, its numbers from low to high?"""
    if numpy and isinstance(x, numpy.ndarray):
        return (x.shape == shape or not x.size) and bool(((x >= low) & (x <= high)).all())
    if not shape:
        return isinstance(x, (int, float)) and low <= x <= high
    return isinstance(x, (list, tuple)) and len(x) == shape[0] and all(
        within(y, shape[1:], low, high) for y in x)


def array(nested, dtype="float32", shared=False):
    """An array if numpy is there; shared: it is given out many times."""
    if not numpy:
        return nested
    made = numpy.array(nested, dtype)
    made.setflags(write=not shared)
    return made


# ---- graphs and jobs, as observed ---------------------------------------------------------


def shares(values):
    """Each against the largest; and which is the first largest."""
    most = max(values, default=0)
    return [v / most if most else 0.0 for v in values], values.index(most) if values else -1


class Graph:
    """An unpartitioned graph: what its job's observation has of it."""

    def __init__(self):
        self.op, self.compute, self.memory = {}, [], []  # op: name to number
        self.named, self.sizes = [], []                  # deps: names of both ends

    def end(self):
        """All of it has come."""
        ops, deps = len(self.compute), len(self.sizes)
        self.src = [self.op[u] for u, _ in self.named]
        self.dst = [self.op[v] for _, v in self.named]
        compute, longest = shares(self.compute)
        memory, largest = shares(self.memory)
        size, biggest = shares(self.sizes)
        depth = shares(self.depths())[0]
        self.nodes = [[compute[i], float(i == longest), memory[i], float(i == largest), depth[i]]
                      for i in range(ops)]
        self.edges = [[size[i], float(i == biggest)] for i in range(deps)]
        self.means = [f(x) if x else 0.0 for x in (compute, memory, size)
                      for f in (statistics.fmean, statistics.median)]
        self.sequential = sum(self.compute)
        self.demand = {"memory": sum(self.memory), "deps": sum(self.sizes)}
        self.arrays = None

    def depths(self):
        depth, after = [None] * len(self.compute), collections.defaultdict(list)
        for u, v in zip(self.src, self.dst):
            after[u].append(v)
        at = sorted(set(range(len(depth))) - set(self.dst))
        distance = 0
        while at:
            for i in at:
                depth[i] = distance
            at = list(dict.fromkeys(j for i in at for j in after[i] if depth[j] is None))
            distance += 1
        return [d or 0 for d in depth]

    def observe(self, max_nodes):
        """The parts of the observation that are the graph's; max_nodes None: not padded."""
        if self.arrays:
            return self.arrays
        nodes, edges, src, dst = self.nodes, self.edges, self.src, self.dst
        n, m = len(nodes), len(edges)
        if max_nodes:
            most = max_nodes * (max_nodes - 1) // 2
            if n > max_nodes or m > most:
                raise ValueError(f"a graph has {n} ops and {m} deps, more than max_nodes={max_nodes} "
                                 f"and {most}: give a larger max_nodes, or observation='graph'")
            nodes = nodes + [[0.0] * 5] * (max_nodes - n)
            edges = edges + [[0.0] * 2] * (most - m)
            src, dst = (x + [0] * (most - m) for x in (src, dst))
        made = (("node_features", nodes, "float32"), ("edge_features", edges, "float32"),
                ("edges_src", src, "int32"), ("edges_dst", dst, "int32"),
                ("node_split", [n], "int32"), ("edge_split", [m], "int32"))
        self.arrays = {name: array(nested, dtype, shared=True) for name, nested, dtype in made}
        return self.arrays


def read_graphs(lines):
    graphs, graph = {}, None
    for line in lines:
        field = line.split("\t")
        if field[0] == "graph":
            graph = graphs[field[1]] = Graph()
        elif field[0] == "op":
            graph.op[field[2]] = len(graph.op)
            graph.compute.append(float(field[4]))
            graph.memory.append(float(field[5]))
        elif field[0] == "dep":
            graph.named.append((field[2], field[3]))
            graph.sizes.append(float(field[4]))
    for graph in graphs.values():
        graph.end()
    return graphs


class Jobs:
    """All jobs of an episode, which are normalised over each other, or over a scale."""

    def __init__(self, stream, graphs, scale=None):
        self.graph, columns = {}, []  # graph: of a job
        for line in stream.split("\n"):
            if line.startswith("job\t"):
                _, job, name, _, steps, deadline = line.split("\t")[:6]
                graph = self.graph[job] = graphs[name]
                columns.append(self.amounts(graph, float(steps), float(deadline)))
        if scale:
            self.ranges = [scale[name] for name in SCALED]
        else:
            finite = [[x for x in column if x < math.inf] or [0.0] for column in zip(*columns)]
            self.ranges = [(min(column), max(column)) for column in finite]

    @staticmethod
    def amounts(graph, steps, deadline):
        time = graph.sequential * steps
        fraction = deadline / time if time else math.inf
        return (len(graph.nodes), len(graph.edges), time, deadline, fraction,
                graph.demand["memory"], graph.demand["deps"], steps)

    def normalise(self, column, value):
        low, high = self.ranges[column]
        return 1.0 if value == math.inf or low == high else \
            (min(max(value, low), high) - low) / (high - low)

    def features(self, info, servers):
        graph = self.graph[info["job"]]
        amounts = self.amounts(graph, info["steps"], info["deadline"])
        normal = [self.normalise(i, x) for i, x in enumerate(amounts)]
        return (normal[:5] + [min(amounts[4], 1.0)] + normal[5:] + graph.means +
                [(servers - info["free"]) / servers, min(info["running"] / servers, 1.0)])


# ---- the allocator, at work ---------------------------------------------------------------


def run(command, **streams):
    """What a tool writes; its errors are ours. It has ended, whatever happens."""
    try:
        done = subprocess.run(command, stderr=subprocess.PIPE, check=False, **streams)
    except FileNotFoundError as error:
        raise PipelineError(f"{command[0]}: there is no such program") from error
    if done.returncode:
        raise PipelineError(f"{shlex.join(command)}: {describe(done.returncode, done.stderr)}")
    return done.stdout


def describe(status, said):
    return said.decode(errors="replace").strip() or (
        f"it was killed by signal {-status}" if status < 0 else f"it ended with exit status {status}")


def end(process, descriptors):
    for descriptor in descriptors:
        os.close(descriptor)
    process.kill()  # in a fork, whose child it is not, these do nothing
    process.wait()


class Allocator:
    """A ramp-alloc that asks us. It ends with us, or when nobody holds it any more."""

    def __init__(self, command, stream, output=None):
        self.said = tempfile.TemporaryFile()
        ours, theirs = [], []
        try:
            for pipe, mine in ((os.pipe(), 0), (os.pipe(), 1)):
                ours.append(pipe[mine])
                theirs.append(pipe[1 - mine])
            # A session of its own, so that Ctrl-C is for us to handle.
            self.process = subprocess.Popen(
                command + [f"--agent=fd:{theirs[1]},{theirs[0]}", "--agent-timeout=inf"], stdin=stream,
                stdout=output or subprocess.DEVNULL, stderr=self.said, pass_fds=theirs,
                start_new_session=True)
        except BaseException as error:
            for descriptor in ours:
                os.close(descriptor)
            if isinstance(error, FileNotFoundError):
                raise PipelineError(f"{command[0]}: there is no such program") from error
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        self.asks, self.answers = ours
        self.close = weakref.finalize(self, end, self.process, ours)

    def fail(self):
        status = self.process.wait()
        self.said.seek(0)
        raise PipelineError("ramp-alloc: " + describe(status, self.said.read()))

    def hear(self):
        """The offers and the ask, as text; None: all is decided."""
        heard = b""
        while True:
            more = os.read(self.asks, 1 << 18)
            if not more:
                self.fail()
            heard = heard + more if heard else more
            if not heard.endswith(b"\n"):
                continue
            last = heard[heard.rfind(b"\n", 0, -1) + 1:]
            if last.startswith(b"ask\t"):
                return heard.decode()
            if last.startswith(b"#end"):
                if self.process.wait():
                    self.fail()
                return None

    def answer(self, job, graph):
        try:
            os.write(self.answers, f"answer\t{job}\t{graph}\n".encode())
        except BrokenPipeError:
            self.fail()


Offer = collections.namedtuple("Offer", "graph degree servers step finish cause features")
Offer.__doc__ = "An alternative: cause '' if it can start; features as text, name=value and TABs."
VALUES = re.compile(r"=([^\t]*)").findall


def read_offer(line):
    field = line.split("\t", 7)
    keys = field[7] if len(field) > 7 else ""
    cause = keys[6:].split("\t", 1)[0] if keys.startswith("cause=") else ""
    return Offer(field[2], int(field[3]), int(field[4]), float(field[5]), float(field[6]), cause, keys)


def read_ask(text):
    """Offers by degree, the first of each; and what is asked."""
    lines = text.split("\n")
    offers = {}
    for line in lines[:-2]:
        if line.startswith("offer\t"):
            offer = read_offer(line)
            offers.setdefault(offer.degree, offer)
    _, job, time, *keys = lines[-2].split("\t")
    key = dict(k.split("=", 1) for k in keys)
    steps = int(key["steps"])
    return offers, {
        "job": job, "model": key["model"], "time": float(time), "steps": steps,
        "arrival": float(key["arrival"]), "sequential": float(key["sequential"]) * steps,
        "deadline": float(key["deadline"]), "free": int(key["free"]),
        "running": int(key["running"]), "offers": offers}


# ---- rewards ------------------------------------------------------------------------------


def job_acceptance(_, done):
    """1 if the job was placed, else -1."""
    return 1.0 if done["placed"] else -1.0


def lookahead_job_completion_time(_, done, fail_factor=1.0, normalise=False, inverse=False,
                                  log=False, sign=-1.0):
    """sign times the completion time, or if blocked the sequential time times fail_factor; over the
    sequential time; one over that; sign(x) log10(1 + |x|)."""
    x = done["completion_time"] if done["placed"] else fail_factor * done["sequential"]
    if normalise:
        x = x / (done["sequential"] or 1)
    x = sign * (1 / x if inverse and x else x)
    return math.copysign(math.log10(1 + abs(x)), x) if log else x


def multi_objective_jct_blocking(env, done, weight=1.0):
    """-completion time / sequential time, or if blocked -weight (1 + min-max normalised sequential)."""
    if done["placed"]:
        return -done["completion_time"] / (done["sequential"] or 1)
    return -weight * (1 + env._jobs.normalise(2, done["sequential"]))


class Throughput:
    """Bytes that training passes through in a second. A job's bytes count once, spread over its time."""

    def __init__(self):
        self.running, self.at = [], 0.0  # heap of (finish, bytes/s)

    def start(self, start, finish, amount):
        if finish > start:
            heapq.heappush(self.running, (finish, amount / (finish - start)))

    def until(self, time):
        """The mean over the spans from one completion to the next, since the last call."""
        means = []
        while self.at < time and self.running:
            finish = min(time, self.running[0][0])
            if finish > self.at:
                means.append(math.fsum(rate for _, rate in self.running))
                self.at = finish
            if self.running[0][0] <= finish:
                heapq.heappop(self.running)
        if self.at < time < math.inf:
            means.append(0.0)
            self.at = time
        return statistics.fmean(means) if means else 0.0


def throughput(env, _):
    return env._throughput.until(env._info["time"] if env._allocator else math.inf)


# Throughputs normalised by the most that the cluster could do are not there: no record says that.
REWARDS = {
    "job_acceptance": job_acceptance,
    "lookahead_job_completion_time": lookahead_job_completion_time,
    "multi_objective_jct_blocking": multi_objective_jct_blocking,
    "mean_compute_throughput": throughput,        # memory of ops
    "mean_cluster_throughput": throughput,        # and size of deps, partitioned
    "mean_demand_total_throughput": throughput,   # and size of deps, unpartitioned
}


# ---- the environment ----------------------------------------------------------------------


def check_scale(scale):
    """None: that of the episode."""
    if isinstance(scale, str) and scale == "episode":
        return None
    if not isinstance(scale, collections.abc.Mapping) or set(scale) != set(SCALED):
        raise ValueError(f"scale must be 'episode', or have a range (low, high) of each of {', '.join(SCALED)}, "
                         f"got {scale!r}")
    for name, ends in scale.items():
        if len(ends) != 2 or not -math.inf < ends[0] <= ends[1] < math.inf:
            raise ValueError(f"scale: the range of {name} must be (low, high), finite, low <= high, got {ends!r}")
    return {name: tuple(scale[name]) for name in SCALED}


def distribution(value):
    return f"fixed:{value}" if isinstance(value, (int, float)) else value


class RampipeEnv(gymnasium.Env if gymnasium else object):
    """See the module."""

    metadata = {"render_modes": []}
    render_mode = None

    def __init__(self, *, networks=None, interarrival="exponential:1000", steps=50, jobs=1000,
                 deadline_fraction="uniform:0.1:1", sampling="remove-and-repeat", time_unit="s",
                 quantum=0.01, source=None, shape="4x4x2", max_degree=16, heuristic="first-fit",
                 partition_options=(), alloc_options=(), observation="published", max_nodes=150,
                 scale="episode", mask="published", reward="job_acceptance", reward_options=None, output=None):
        self._allocator = None
        for name, value, known in (("observation", observation, ("published", "graph", "features")),
                                   ("mask", mask, ("published", "startable")),
                                   ("reward", reward, REWARDS)):
            if not callable(value) and value not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")
        self._scale = check_scale(scale)
        self._networks, self._unit = networks or SAMPLES, time_unit
        self._drawn = {"jobs": jobs, "interarrival": interarrival, "steps": steps,
                       "deadline_fraction": deadline_fraction, "sampling": sampling}
        self._source = source
        self._partition = [self._tool("partition"), "--policy=all", f"--quantum={quantum}",
                           f"--max-degree={max_degree}", f"--shape={shape}", *partition_options]
        self._alloc = [self._tool("ramp-alloc"), f"--shape={shape}", f"--heuristic={heuristic}",
                       *alloc_options]
        self._observe, self._max_nodes = observation, max_nodes if observation == "published" else None
        self._startable, self._output = mask == "startable", output
        self._reward, self._reward_options = reward, reward_options or {}
        self._weighs = str(reward).endswith("_throughput")
        self._servers = math.prod(int(n) for n in shape.split("x"))
        self._degrees = max_degree
        self._random = random.Random()
        self._text = self._head = self._graphs = self._jobs = self._info = None
        self._weights = {}
        self.action_space = Discrete(max_degree + 1)
        self.observation_space = self._make_space()

    def _tool(self, name):
        path = os.environ.get("PATH", os.defpath) + os.pathsep + os.path.join(HERE, "..", "build", "bin")
        return shutil.which(PREFIX + name, path=path) or PREFIX + name

    def _make_space(self):
        if self._observe == "features":
            self.feature_names = self._probe()
            self._zeros = [0.0] * len(self.feature_names)
            return Box(-math.inf, math.inf, (self._degrees + 1, len(self.feature_names)), "float32")
        n = self._max_nodes
        m = n * (n - 1) // 2 if n else 0
        many = 2 ** 31 - 1
        space = {"node_features": Box(0, 1, (n, 5), "float32"), "edge_features": Box(0, 1, (m, 2), "float32"),
                 "edges_src": Box(0, n, (m,), "int32"), "edges_dst": Box(0, n, (m,), "int32")} if n else {
                     "node_features": Rows(5, 0, 1), "edge_features": Rows(2, 0, 1),
                     "edges_src": Rows(0, 0, many, "int32"), "edges_dst": Rows(0, 0, many, "int32")}
        space.update(node_split=Box(0, n or many, (1,), "int32"), edge_split=Box(0, m or many, (1,), "int32"),
                     graph_features=Box(0, 1, (17 + self._degrees + 1,), "float32"))
        return Dict(space)

    def _probe(self):
        """The names of the features, by asking for those of the smallest job."""
        with tempfile.TemporaryFile() as stream:
            stream.write(b"graph\tg\tg\nop\tg\t1\tforward\t1\t1\njob\tg\tg\t0\t1\tinf\n")
            stream.seek(0)
            allocator = Allocator([self._tool("ramp-alloc")], stream)
            try:
                offers, _ = read_ask(allocator.hear())
            finally:
                allocator.close()
        return [key.split("=")[0] for key in offers[1].features.split("\t")]

    # -- an episode's stream --

    def _draw(self, seed, drawn):
        if isinstance(self._source, (str, os.PathLike)):
            return run([self._tool("reccheck"), "--pass", os.fspath(self._source)], stdout=subprocess.PIPE)
        if self._source:
            return run([word.replace("{seed}", str(seed)) for word in self._source],
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        if self._text is None:
            self._text = run([self._tool("pd2graph"), "--no-job", f"--time-unit={self._unit}", "--",
                              *map(os.fspath, self._networks)], stdout=subprocess.PIPE)
        options = [f"--{name.replace('_', '-')}={value if name == 'jobs' else distribution(value)}"
                   for name, value in drawn.items() if value is not None]
        return run([self._tool("tracegen"), "jobs", f"--seed={seed}", *options],
                   input=self._text, stdout=subprocess.PIPE)

    def _look_at(self, stream, parts):
        """Reads what observations and rewards need of the graphs, those of the last episode excepted."""
        if self._observe == "features" and not self._weighs and \
                self._reward != "multi_objective_jct_blocking":
            return
        text = "\n" + stream.decode()
        at = text.find("\njob\t")
        head = text[text.find("\ngraph\t"):at]
        if head != self._head or text.find("\ngraph\t", at) >= 0:
            self._graphs = read_graphs(text.split("\n"))
            self._weights = weigh(parts) if self._reward == "mean_cluster_throughput" else {}
            self._head = head
        self._jobs = Jobs(text, self._graphs, self._scale)

    def _start(self, seed, drawn):
        stream = self._draw(seed, drawn)
        with tempfile.TemporaryFile() as parts:
            run(self._partition, input=stream, stdout=parts)
            parts.seek(0)
            self._look_at(stream, parts)
            parts.seek(0)
            if self._output is None:
                self._allocator = Allocator(self._alloc, parts)
            else:
                with open(self._output, "wb") as output:
                    self._allocator = Allocator(self._alloc, parts, output)

    @property
    def scale(self):
        """The ranges that are normalised over now; None: none is known yet, or needed."""
        return self._scale or (dict(zip(SCALED, self._jobs.ranges)) if self._jobs else None)

    # -- Gymnasium's methods --

    def reset(self, *, seed=None, options=None):
        wrong = set(options or ()) - set(DRAWN)
        if wrong:
            raise ValueError(f"options of reset may be {', '.join(DRAWN)}, got {', '.join(sorted(wrong))}")
        self.close()
        if gymnasium:
            super().reset(seed=seed)
        if seed is None:
            seed = self._random.getrandbits(31)
        else:
            seed = operator.index(seed)
            self._random.seed(seed)
        self._throughput = Throughput()
        try:
            self._start(seed, {**self._drawn, **(options or {})})
            text = self._allocator.hear()
        except BaseException:
            self.close()
            raise
        if text is None:
            self.close()
            raise PipelineError("no jobs came: an episode needs one at least")
        self._seed = seed
        return self._take(text, None)

    def step(self, action):
        if self._allocator is None:
            raise RuntimeError("step() has no episode: it has ended, or reset() was not called")
        action = operator.index(action)
        if not 0 <= action <= self._degrees:
            raise ValueError(f"an action is 0 to {self._degrees}, got {action}")
        info = self._info
        offer = info["offers"].get(action)
        placed = bool(offer) and not offer.cause
        # as ramp-alloc has it: what kept the last one from starting, if none could be refused
        causes = [o.cause for o in info["offers"].values()]
        refused = "policy" if "" in causes else causes[-1]
        done = {"job": info["job"], "action": action, "placed": placed,
                "cause": "" if placed else offer.cause if offer else "invalid" if action else refused,
                "servers": offer.servers if placed else 0,
                "completion_time": offer.finish - info["arrival"] if placed else math.inf,
                "sequential": info["sequential"]}
        try:
            self._allocator.answer(info["job"], offer.graph if offer else "-")
            text = self._allocator.hear()
            if placed and self._weighs:
                self._throughput.start(info["time"], offer.finish, self._amount(offer, info))
            if text is not None:
                observation, info = self._take(text, done)
        except BaseException:  # Ctrl-C, too, would leave the two of us at different jobs
            self.close()
            raise
        if text is None:  # nothing is left to decide
            self.close()
            observation, info = self._show({**info, "offers": {}}, (), done)
        if callable(self._reward):
            reward = self._reward(info, **self._reward_options)
        else:
            reward = REWARDS[self._reward](self, done, **self._reward_options)
        return observation, float(reward), text is None, False, info

    def close(self):
        """Ends the episode, if there is one. May be called at any time, and again."""
        if self._allocator is not None:
            self._allocator.close()
            self._allocator = None

    # -- what is seen --

    def _take(self, text, done):
        offers, info = read_ask(text)
        free = info["free"]
        if self._startable:
            valid = {a for a, offer in offers.items() if not offer.cause}
        else:
            valid = {a for a in offers if a <= free}
        return self._show(info, valid, done)

    def _show(self, info, valid, done):
        mask = [1] + [int(a in valid) for a in range(1, self._degrees + 1)]
        info["action_mask"] = numpy.array(mask, "int8") if numpy else mask
        info["seed"] = self._seed
        if done:
            info["decision"] = done
        self._info = info
        if self._observe == "features":
            return self._matrix(info["offers"]), info
        observation = dict(self._jobs.graph[info["job"]].observe(self._max_nodes))
        observation["graph_features"] = array(self._jobs.features(info, self._servers) + mask)
        return observation, info

    def _matrix(self, offers):
        rows = [self._zeros] * (self._degrees + 1)
        for a, offer in offers.items():
            if not offer.cause:
                rows[a] = list(map(float, VALUES(offer.features)))
        return array(rows)

    def _amount(self, offer, info):
        """What a job weighs, for throughputs."""
        demand = self._jobs.graph[info["job"]].demand
        deps = {"mean_cluster_throughput": self._weights.get(offer.graph, 0.0),
                "mean_demand_total_throughput": demand["deps"]}
        return demand["memory"] + deps.get(self._reward, 0.0)


def weigh(parts):
    """Bytes of all deps of each partitioned graph."""
    total = collections.defaultdict(float)
    for line in parts:
        if line.startswith(b"dep\t"):
            field = line.split(b"\t", 5)
            total[field[1].decode()] += float(field[4])
    return total

