"""rampipe_env - the decision process of PAC-ML as a Gymnasium environment.

    import rampipe_env
    env = rampipe_env.RampipeEnv(interarrival="exponential:1000", jobs=1000)
    observation, info = env.reset(seed=7)
    ended = False
    while not ended:                                # the largest degree up to 8 that is valid
        action = max(a for a, valid in enumerate(info["action_mask"][:9]) if valid)
        observation, reward, ended, _, info = env.step(action)
    env.close()

When a job arrives, the action decides how far the job is partitioned: 0 refuses the job, a > 0
takes its alternative of degree a. With a list of n heuristics it decides where the job
goes, too: action (a - 1) n + i takes the alternative of degree a, placed by heuristic i of the list (1 to n).
In a list, free-block:1-9 are nine heuristics.
An episode is a stream of jobs:

    pd2graph | tracegen jobs --seed N | partition --policy all | ramp-alloc --agent fd:..

With `source`, a file or a command gives the graphs and jobs in place of the first two tools. An
action is chosen from what ramp-alloc offers and asks (see AGENTS in ramp-alloc(1)). The tools are
looked for on the PATH and in ../build/bin. The standard library is enough. If numpy is installed,
observations are arrays (arrays that describe a graph are read-only), otherwise lists. If gymnasium
is installed, the environment and its spaces are subclasses of Gymnasium's; otherwise this module
has spaces that do the same. Arguments of RampipeEnv, all by keyword:

    networks            files with PipeDream profiles; the default is the samples alexnet and vgg16
    interarrival, deadline_fraction, steps, sampling, jobs
                        options of tracegen jobs; a number N stands for fixed:N.
                        reset(options={...}) sets any of them for one episode
    time_unit, quantum  options of pd2graph and partition. The defaults "s" and 0.01 are the
                        published ones, which read the profiles' milliseconds as seconds
    source              the name of a file; or a list of a command and its arguments, in which {seed}
                        is replaced by the seed of the episode. The arguments above, but for quantum, and
                        options of reset() would change nothing, and are refused
    shape               the shape of the cluster, a RAMP
    cluster             the cluster, of any kind, as in --cluster of alloc(1), in the place of shape and
                        heuristic: "island:8,300GB/s,2us,80GB"
    max_degree          the largest degree, so that actions are 0 to max_degree (times n)
    heuristic           option of ramp-alloc, such as "compact" or "compact,compact-2"
    partition_options, alloc_options
                        lists of more options of partition and ramp-alloc (not --queue and --whole-actions,
                        which are for rampipe_cluster)
    observation         "published", "graph" (the same without padding), or "features"
    max_nodes           the number of ops to which the published observation is padded
    scale               the ranges of min-max normalisation. "episode" (published) takes them from all
                        jobs of the episode: this looks ahead, because most have not arrived yet.
                        {name: (low, high)} gives a fixed range to each name in SCALED; a value
                        outside its range counts as the nearer end. env.scale has the ranges in use,
                        so scale=env.scale keeps the ranges of an episode
    mask                "published": valid are 0 and each degree that has a block on an empty cluster
                        and is not larger than the number of free servers; such an alternative may
                        still be blocked. "startable": valid are 0 and each alternative that can
                        start now and meets the deadline
    reward              a name in REWARDS, or a function of info
    reward_options      keyword arguments of the reward. job_acceptance: none;
                        lookahead_job_completion_time: fail_factor, normalise, inverse, log, sign;
                        multi_objective_jct_blocking: weight; mean_compute_throughput,
                        mean_cluster_throughput and mean_demand_total_throughput: none, and they are
                        not normalised
    output              a file for the output of ramp-alloc, which sim and metrics can read

reset() starts another episode at any time. reset(seed=N) starts the one of tracegen's seed N; without
seed=, the seed is drawn from a generator that the last given N has seeded. info has "action_mask" and
"seed"; of the job that waits for a decision "job", "model", "time", "steps", "sequential" (seconds of
all its steps on one server), "deadline" (seconds, inf: none), "free" (servers), "running" (jobs) and
"offers", a dictionary from actions to Offers; and after a step "decision", which says what became of
the last job: "job", "action", "placed", "cause" (of a block; "invalid": the job has no alternative of
this degree, and was refused), "servers", "completion_time" (seconds; inf if it was not placed),
"sequential".

Observations. "published" describes the unpartitioned graph:
    node_features  max_nodes x 5: compute / largest, 1 if this is the (first) op with the largest,
                   the same two of memory, depth / largest (depth: fewest deps from a source)
    edge_features  max_nodes (max_nodes-1)/2 x 2: size / largest, 1 if this is the (first) dep with it
    edges_src, edges_dst   the numbers of the two ops that each dep joins
    node_split, edge_split the numbers of ops and deps without the padding
    graph_features 17 numbers, then the mask. Min-max normalised (see scale): ops, deps, sequential
                   time, deadline, deadline fraction. The deadline fraction, at most 1. Min-max
                   normalised: memory, size of deps, steps. Mean and median of each of: ops' compute,
                   ops' memory, deps' size, as shares of the largest. Used servers / servers; running
                   jobs / servers
"features" has a row for each action, with the features of its alternative if that can start, and zeros if
not. env.feature_names has their names; ramp-alloc(1) says what they mean.

Vector environments of Gymnasium take all three. "published" and "features" have a fixed size. "graph"
has none: a batch holds each of its arrays of varying length as a tuple with one array for each
environment, and AsyncVectorEnv needs shared_memory=False, as it does for Gymnasium's own spaces
without a fixed size.

An episode ends at its last decision, or by close(), reset(), an exception, or the garbage collection
of the environment. Each of them ends and reaps the ramp-alloc of the episode. If a tool fails,
PipelineError has its message.
"""

import collections
import collections.abc
import heapq
import inspect
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

PREFIX = ""  # prefix of the tools' names; `make install` sets it
HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLES = [os.path.join(HERE, "..", "traces", name + ".txt") for name in ("alexnet", "vgg16")]
DRAWN = ("jobs", "interarrival", "deadline_fraction", "steps", "sampling")
OWN_JOBS = "a source has graphs and jobs of its own"
# The quantities of a job that are min-max normalised: ops, deps, sequential time of all steps (seconds),
# deadline (seconds), deadline / that time, memory (bytes), size of all deps (bytes), training steps.
SCALED = ("ops", "deps", "time", "deadline", "fraction", "memory", "size", "steps")


class PipelineError(RuntimeError):
    """A tool failed, or was killed."""


# ---- spaces: Gymnasium's, or classes that do the same for lists --------------------------

if gymnasium:
    Space, Discrete, Box, Dict = (
        gymnasium.spaces.Space, gymnasium.spaces.Discrete, gymnasium.spaces.Box, gymnasium.spaces.Dict)
else:
    class Space:
        """A set of values, from which samples can be drawn."""

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
            """The attributes that two equal spaces have in common: all but the generator."""
            return {key: value for key, value in vars(self).items() if key != "np_random"}

    class Discrete(Space):
        """The whole numbers 0 to n - 1."""

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
        """Arrays of a given shape whose numbers are from low to high."""

        def __init__(self, low, high, shape, dtype="float32", seed=None):
            self.low, self.high = low, high
            super().__init__(shape, dtype, seed)

        def _draw(self, shape):
            if shape:
                return [self._draw(shape[1:]) for _ in range(shape[0])]
            low, high = max(self.low, -1e6), min(self.high, 1e6)  # infinite bounds cannot be drawn from
            return int(low + self.np_random.random() * (high - low)) if "int" in str(self.dtype) \
                else low + self.np_random.random() * (high - low)

        def sample(self):
            return array(self._draw(self.shape), self.dtype)

        def contains(self, x):
            return within(x, self.shape, self.low, self.high)

    class Dict(Space):
        """Dictionaries with one value of each named space."""

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
    """Arrays with any number of rows, each of `width` numbers from low to high. With width 0 they are
    one-dimensional. Gymnasium has no such space, so this one is used with it, too."""

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
    """True if x, a list or an array, has this shape and all its numbers are from low to high."""
    if numpy and isinstance(x, numpy.ndarray):
        return (x.shape == shape or not x.size) and bool(((x >= low) & (x <= high)).all())
    if not shape:
        return isinstance(x, (int, float)) and low <= x <= high
    return isinstance(x, (list, tuple)) and len(x) == shape[0] and all(
        within(y, shape[1:], low, high) for y in x)


def array(nested, dtype="float32", shared=False):
    """The nested lists as an array if numpy is installed. A shared one is returned by many
    observations, so it is read-only."""
    if not numpy:
        return nested
    made = numpy.array(nested, dtype)
    made.setflags(write=not shared)
    return made


# ---- the observed graphs and jobs ---------------------------------------------------------


def shares(values):
    """Each value as a share of the largest one, and the index of the first largest (-1: no values)."""
    most = max(values, default=0)
    return [v / most if most else 0.0 for v in values], values.index(most) if values else -1


class Graph:
    """An unpartitioned graph, and the part of an observation that describes it. Its numbers are worked
    out once, because many jobs of an episode have the same graph."""

    def __init__(self):
        self.op, self.compute, self.memory = {}, [], []  # op: from its id to its number
        self.named, self.sizes = [], []                  # of each dep: the ids of its two ops; bytes

    def end(self):
        """Works out the features after the last record: a dep may precede the ops that it joins."""
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
        """The fewest deps from a source to each op, by breadth-first search; 0 for an op that no
        source reaches."""
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
        """The arrays of an observation that describe the graph, padded to max_nodes (None: not padded).
        They are made once: an environment always gives the same max_nodes."""
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
    """The graphs of a stream by id. The records of a graph are contiguous (rampipe(5))."""
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
    """All jobs of an episode. Their amounts are normalised over the ranges of `scale`; without one, over
    the ranges of the episode, for which infinite values (no deadline) do not count."""

    def __init__(self, stream, graphs, scale=None):
        self.graph, columns = {}, []  # graph: from the id of a job to its Graph
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
        """The quantities of a job, in the order of SCALED."""
        time = graph.sequential * steps
        fraction = deadline / time if time else math.inf
        return (len(graph.nodes), len(graph.edges), time, deadline, fraction,
                graph.demand["memory"], graph.demand["deps"], steps)

    def normalise(self, column, value):
        low, high = self.ranges[column]
        return 1.0 if value == math.inf or low == high else \
            (min(max(value, low), high) - low) / (high - low)

    def features(self, info, servers):
        """The 17 graph_features of the module's text, in their order."""
        graph = self.graph[info["job"]]
        amounts = self.amounts(graph, info["steps"], info["deadline"])
        normal = [self.normalise(i, x) for i, x in enumerate(amounts)]
        return (normal[:5] + [min(amounts[4], 1.0)] + normal[5:] + graph.means +
                [(servers - info["free"]) / servers, min(info["running"] / servers, 1.0)])


# ---- the process of ramp-alloc ------------------------------------------------------------


def tool(name):
    """The path of a tool of the suite."""
    path = os.environ.get("PATH", os.defpath) + os.pathsep + os.path.join(HERE, "..", "build", "bin")
    return shutil.which(PREFIX + name, path=path) or PREFIX + name


def run(command, **streams):
    """Runs a tool to its end and returns its output. If it fails, PipelineError has its message."""
    try:
        done = subprocess.run(command, stderr=subprocess.PIPE, check=False, **streams)
    except FileNotFoundError as error:
        raise PipelineError(f"{command[0]}: there is no such program") from error
    if done.returncode:
        raise PipelineError(f"{shlex.join(command)}: {describe(done.returncode, done.stderr)}")
    return done.stdout


def describe(status, said):
    """The message of a tool that failed; if it left none (it was killed), how it ended."""
    return said.decode(errors="replace").strip() or (
        f"it was killed by signal {-status}" if status < 0 else f"it ended with exit status {status}")


def end(process, descriptors):
    """Ends and reaps a process. In a fork of its parent only the descriptors are closed."""
    for descriptor in descriptors:
        os.close(descriptor)
    process.kill()  # does nothing in a fork: Popen finds there that this is no child of it
    process.wait()


class Allocator:
    """A ramp-alloc that asks this process for its decisions, over two pipes. close(), the garbage
    collection of this object and the end of Python end it."""

    def __init__(self, command, stream, output=None):
        self.said = tempfile.TemporaryFile()
        ours, theirs = [], []  # the ends of the two pipes: that of the asks, that of the answers
        try:
            for pipe, mine in ((os.pipe(), 0), (os.pipe(), 1)):
                ours.append(pipe[mine])
                theirs.append(pipe[1 - mine])
            # A new session, so that Ctrl-C reaches only this process, which then ends ramp-alloc.
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
        """Raises the PipelineError of a ramp-alloc that has closed its end of a pipe."""
        status = self.process.wait()
        self.said.seek(0)
        raise PipelineError("ramp-alloc: " + describe(status, self.said.read()))

    def hear(self):
        """The next offers and their ask, as text; None if all jobs are decided."""
        text, asked = self.hear_all()
        return text if asked else None

    def hear_all(self):
        """What ramp-alloc tells next, and True if that ends with an ask; False: all jobs are decided. It
        writes nothing behind an ask before it has the answer, so the text ends at an ask or at #end."""
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
                return heard.decode(), True
            if last.startswith(b"#end"):
                if self.process.wait():
                    self.fail()
                return heard.decode(), False

    def answer(self, job, graph, place=""):
        self.say(f"answer\t{job}\t{graph}\tplace={place}\n" if place else f"answer\t{job}\t{graph}\n")

    def say(self, text):
        rest = memoryview(text.encode())
        try:
            while rest:
                rest = rest[os.write(self.answers, rest):]
        except BrokenPipeError:
            self.fail()


Offer = collections.namedtuple("Offer", "graph degree servers step finish cause features place")
Offer.__doc__ = ("An alternative of a job. cause is '' if it can start. features is the text of the features, "
                 "name=value with TABs between; it is parsed only when it is observed. place is the heuristic "
                 "that places it, '' if there is only one.")
VALUES = re.compile(r"=([^\t]*)").findall


def read_offer(line):
    field = line.split("\t", 7)
    keys = field[7] if len(field) > 7 else ""
    place = ""
    if keys.startswith("place="):
        place, _, keys = keys[6:].partition("\t")
    cause = keys[6:].split("\t", 1)[0] if keys.startswith("cause=") else ""
    return Offer(field[2], int(field[3]), int(field[4]), float(field[5]), float(field[6]), cause, keys, place)


def read_ask(text, places=()):
    """The offers by action, or without `places` by degree (the first one of each), and the info of the job that
    is asked about."""
    lines = text.split("\n")
    offers = {}
    for line in lines[:-2]:
        if line.startswith("offer\t"):
            offer = read_offer(line)
            action = (offer.degree - 1) * len(places) + places.index(offer.place) + 1 if places else offer.degree
            offers.setdefault(action, offer)
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
    """x is the completion time of a placed job, and fail_factor * its sequential time if it was not
    placed. normalise divides x by the sequential time, inverse takes 1 / x. The reward is sign * x, and
    with log the logarithm of that: sgn(y) log10(1 + |y|)."""
    x = done["completion_time"] if done["placed"] else fail_factor * done["sequential"]
    if normalise:
        x = x / (done["sequential"] or 1)
    x = sign * (1 / x if inverse and x else x)
    return math.copysign(math.log10(1 + abs(x)), x) if log else x


def multi_objective_jct_blocking(env, done, weight=1.0):
    """-completion time / sequential time of a placed job; -weight * (1 + min-max normalised sequential
    time) of one that was not placed."""
    if done["placed"]:
        return -done["completion_time"] / (done["sequential"] or 1)
    return -weight * (1 + env._jobs.normalise(2, done["sequential"]))


class Throughput:
    """Bytes/s of the jobs that run. The bytes of a job count once, spread evenly over its running time."""

    def __init__(self):
        self.running, self.at = [], 0.0  # heap of (finish, bytes/s)

    def start(self, start, finish, amount):
        if finish > start:
            heapq.heappush(self.running, (finish, amount / (finish - start)))

    def until(self, time):
        """The mean of the rates in the spans between one completion and the next, from the time of the
        last call to `time`. Each span counts once, whatever its length. `time` may be inf: until the
        last completion."""
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
    """The mean rate until the next decision; after the last decision, until the last completion."""
    return env._throughput.until(env._info["time"] if env._allocator else math.inf)


# There is no reward of a throughput that is normalised by the cluster's maximum: no record has that
# maximum. Beside each throughput stand the bytes of a job that it counts.
REWARDS = {
    "job_acceptance": job_acceptance,
    "lookahead_job_completion_time": lookahead_job_completion_time,
    "multi_objective_jct_blocking": multi_objective_jct_blocking,
    "mean_compute_throughput": throughput,        # memory of ops
    "mean_cluster_throughput": throughput,        # memory of ops, size of the partitioned graph's deps
    "mean_demand_total_throughput": throughput,   # memory of ops, size of the unpartitioned graph's deps
}


# ---- the environment ----------------------------------------------------------------------


def check_scale(scale):
    """The ranges as tuples in the order of SCALED; None if they are those of the episode."""
    if isinstance(scale, str) and scale == "episode":
        return None
    if not isinstance(scale, collections.abc.Mapping) or set(scale) != set(SCALED):
        raise ValueError(f"scale must be 'episode', or have a range (low, high) of each of {', '.join(SCALED)}, "
                         f"got {scale!r}")
    for name, ends in scale.items():
        if len(ends) != 2 or not -math.inf < ends[0] <= ends[1] < math.inf:
            raise ValueError(f"scale: the range of {name} must be (low, high), finite, low <= high, got {ends!r}")
    return {name: tuple(scale[name]) for name in SCALED}


def check_cluster(cluster, shape, heuristic):
    if cluster is not None and (shape, heuristic) != ("4x4x2", "first-fit"):
        raise ValueError("shape and heuristic are of a RAMP: leave them out, or cluster")


def check_idle(kind, why, **given):
    """Arguments of a class that would change nothing must have their defaults."""
    known = inspect.signature(kind).parameters
    idle = [name for name, value in given.items() if value != known[name].default]
    if idle:
        raise ValueError(f"{', '.join(idle)}: {why}")


def profiles(networks):
    """The files of networks. An empty list, as of a pattern that nothing matches, does not mean the samples."""
    chosen = SAMPLES if networks is None else list(networks)
    if not chosen:
        raise ValueError("networks is empty: give a file at least, or leave it out for the samples")
    return chosen


def check_drawn(options, source):
    """The options of reset()."""
    wrong = sorted(set(options or ()) - set(DRAWN))
    if wrong:
        raise ValueError(f"options of reset may be {', '.join(DRAWN)}, got {', '.join(wrong)}")
    if options and source:
        raise ValueError(f"options of reset: {OWN_JOBS}")


def distribution(value):
    return f"fixed:{value}" if isinstance(value, (int, float)) else value


def check_options(words, refused):
    """ramp-alloc takes the beginning of an option for it, too."""
    for word in words:
        for option in refused:
            if len(word) > 2 and option.startswith(word.split("=")[0]):
                raise ValueError(f"alloc_options: {option} is for rampipe_cluster, got {word!r}")


# The smallest job.
SMALLEST = b"graph\tg\tg\nop\tg\t1\tforward\t1\t1\njob\tg\tg\t0\t1\tinf\n"


class RampipeEnv(gymnasium.Env if gymnasium else object):
    """The environment. The text of the module says what its arguments are."""

    metadata = {"render_modes": []}
    render_mode = None
    _refused = ("--queue", "--whole-actions")  # options with which there is not one question about each job

    def __init__(self, *, networks=None, interarrival="exponential:1000", steps=50, jobs=1000,
                 deadline_fraction="uniform:0.1:1", sampling="remove-and-repeat", time_unit="s",
                 quantum=0.01, source=None, shape="4x4x2", max_degree=16, heuristic="first-fit",
                 partition_options=(), alloc_options=(), observation="published", max_nodes=150,
                 scale="episode", mask="published", reward="job_acceptance", reward_options=None, output=None,
                 cluster=None):
        self._allocator = None
        check_cluster(cluster, shape, heuristic)
        check_options(alloc_options, self._refused)
        if source:
            check_idle(RampipeEnv, OWN_JOBS, networks=networks, time_unit=time_unit, interarrival=interarrival,
                       steps=steps, jobs=jobs, deadline_fraction=deadline_fraction, sampling=sampling)
        if heuristic.lower() == "any":
            raise ValueError("heuristic: name those that are meant, any does not say how many they are")
        for name, value, known in (("observation", observation, ("published", "graph", "features")),
                                   ("mask", mask, ("published", "startable")),
                                   ("reward", reward, REWARDS)):
            if not callable(value) and value not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")
        self._scale = check_scale(scale)
        self._networks, self._unit = profiles(networks), time_unit
        self._drawn = {"jobs": jobs, "interarrival": interarrival, "steps": steps,
                       "deadline_fraction": deadline_fraction, "sampling": sampling}
        self._source = source
        self._partition = [tool("partition"), "--policy=all", f"--quantum={quantum}",
                           f"--max-degree={max_degree}",
                           f"--cluster={cluster}" if cluster else f"--shape={shape}", *partition_options]
        self._alloc = [*([tool("alloc"), f"--cluster={cluster}"] if cluster else
                         [tool("ramp-alloc"), f"--shape={shape}", f"--heuristic={heuristic}"]), *alloc_options]
        self._observe, self._max_nodes = observation, max_nodes if observation == "published" else None
        self._startable, self._output = mask == "startable", output
        self._reward, self._reward_options = reward, reward_options or {}
        self._weighs = str(reward).endswith("_throughput")
        self._servers = self._count(cluster) if cluster else math.prod(int(n) for n in shape.split("x"))
        several = "," in heuristic or ":" in heuristic  # a range, as free-block:1-9, is several, too
        places = [offer.place for offer in self._probe(self._alloc)] if several else ()
        self._places = places if len(places) > 1 else ()
        self._actions = max_degree * max(1, len(self._places))
        self._random = random.Random()
        self._text = self._head = self._graphs = self._jobs = self._info = None
        self._weights = {}
        self.action_space = Discrete(self._actions + 1)
        self.observation_space = self._make_space()

    def _make_space(self):
        if self._observe == "features":
            features = self._probe([tool("ramp-alloc")])[0].features
            self.feature_names = [key.split("=")[0] for key in features.split("\t")]
            self._zeros = [0.0] * len(self.feature_names)
            return Box(-math.inf, math.inf, (self._actions + 1, len(self.feature_names)), "float32")
        n = self._max_nodes
        m = n * (n - 1) // 2 if n else 0
        many = 2 ** 31 - 1
        space = {"node_features": Box(0, 1, (n, 5), "float32"), "edge_features": Box(0, 1, (m, 2), "float32"),
                 "edges_src": Box(0, n, (m,), "int32"), "edges_dst": Box(0, n, (m,), "int32")} if n else {
                     "node_features": Rows(5, 0, 1), "edge_features": Rows(2, 0, 1),
                     "edges_src": Rows(0, 0, many, "int32"), "edges_dst": Rows(0, 0, many, "int32")}
        space.update(node_split=Box(0, n or many, (1,), "int32"), edge_split=Box(0, m or many, (1,), "int32"),
                     graph_features=Box(0, 1, (17 + self._actions + 1,), "float32"))
        return Dict(space)

    def _count(self, cluster):
        """The servers of a cluster: a bound says how many there are."""
        bound = run([tool("ramp-alloc"), "bound", f"--cluster={cluster}"], input=SMALLEST,
                    stdout=subprocess.PIPE)
        return int(bound.split(b"servers=")[1].split()[0])

    @staticmethod
    def _probe(command):
        """What an allocator offers the smallest job: one alternative in each way of placing."""
        with tempfile.TemporaryFile() as stream:
            stream.write(SMALLEST)
            stream.seek(0)
            allocator = Allocator(command, stream)
            try:
                text = allocator.hear()
            finally:
                allocator.close()
        return [read_offer(line) for line in text.split("\n") if line.startswith("offer\t")]

    # -- the stream of an episode --

    def _draw(self, seed, drawn):
        """The stream of the unpartitioned graphs and jobs. Graphs of profiles are made only once."""
        if isinstance(self._source, (str, os.PathLike)):
            return run([tool("reccheck"), "--pass", os.fspath(self._source)], stdout=subprocess.PIPE)
        if self._source:
            return run([word.replace("{seed}", str(seed)) for word in self._source],
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        if self._text is None:
            self._text = run([tool("pd2graph"), "--no-job", f"--time-unit={self._unit}", "--",
                              *map(os.fspath, self._networks)], stdout=subprocess.PIPE)
        options = [f"--{name.replace('_', '-')}={value if name == 'jobs' else distribution(value)}"
                   for name, value in drawn.items() if value is not None]
        return run([tool("tracegen"), "jobs", f"--seed={seed}", *options],
                   input=self._text, stdout=subprocess.PIPE)

    def _look_at(self, stream, parts):
        """Reads what observations and rewards need of the graphs and jobs. The graphs are read again only
        if their text differs from that of the last episode."""
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
        """Makes the stream of an episode and starts its ramp-alloc. The partitioned graphs are put in a
        file, which is read twice: for the weights of rewards, and by ramp-alloc."""
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
        """The ranges of min-max normalisation in use. None: no episode has begun, or none is needed."""
        return self._scale or (dict(zip(SCALED, self._jobs.ranges)) if self._jobs else None)

    # -- Gymnasium's methods --

    def reset(self, *, seed=None, options=None):
        check_drawn(options, self._source)
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
            if text is None:
                raise PipelineError("no jobs came: an episode needs one at least")
            self._seed = seed
            return self._take(text, None)
        except BaseException:
            self.close()
            raise

    def step(self, action):
        if self._allocator is None:
            raise RuntimeError("step() has no episode: it has ended, or reset() was not called")
        action = operator.index(action)
        if not 0 <= action <= self._actions:
            raise ValueError(f"an action is 0 to {self._actions}, got {action}")
        info = self._info
        offer = info["offers"].get(action)
        placed = bool(offer) and not offer.cause
        # ramp-alloc's rule (AGENTS in its manual): if no alternative could start, the agent had no choice,
        # and the cause is that of the last alternative.
        causes = [o.cause for o in info["offers"].values()]
        refused = "policy" if "" in causes else causes[-1]
        done = {"job": info["job"], "action": action, "placed": placed,
                "cause": "" if placed else offer.cause if offer else "invalid" if action else refused,
                "servers": offer.servers if placed else 0,
                "completion_time": offer.finish - info["arrival"] if placed else math.inf,
                "sequential": info["sequential"]}
        try:
            self._allocator.answer(info["job"], offer.graph if offer else "-", offer.place if offer else "")
            text = self._allocator.hear()
            if placed and self._weighs:
                self._throughput.start(info["time"], offer.finish, self._amount(offer, info))
            if text is not None:
                observation, info = self._take(text, done)
        except BaseException:  # also Ctrl-C: ramp-alloc and this object would be at different jobs
            self.close()
            raise
        if text is None:  # this was the last decision: show the last job once more, without offers
            self.close()
            observation, info = self._show({**info, "offers": {}}, (), done)
        if callable(self._reward):
            reward = self._reward(info, **self._reward_options)
        else:
            reward = REWARDS[self._reward](self, done, **self._reward_options)
        return observation, float(reward), text is None, False, info

    def close(self):
        """Ends the episode, if there is one. It may be called at any time, and more than once."""
        if self._allocator is not None:
            self._allocator.close()
            self._allocator = None

    # -- observations and info --

    def _take(self, text, done):
        """Observation and info of the job that ramp-alloc asks about. done: the last decision, or None."""
        offers, info = read_ask(text, self._places)
        free = info["free"]
        if self._startable:
            valid = {a for a, offer in offers.items() if not offer.cause}
        else:
            valid = {a for a, offer in offers.items() if offer.degree <= free}
        return self._show(info, valid, done)

    def _show(self, info, valid, done):
        mask = [1] + [int(a in valid) for a in range(1, self._actions + 1)]
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
        rows = [self._zeros] * (self._actions + 1)
        for a, offer in offers.items():
            if not offer.cause:
                rows[a] = list(map(float, VALUES(offer.features)))
        return array(rows)

    def _amount(self, offer, info):
        """The bytes of a job that its throughput counts (see REWARDS)."""
        demand = self._jobs.graph[info["job"]].demand
        deps = {"mean_cluster_throughput": self._weights.get(offer.graph, 0.0),
                "mean_demand_total_throughput": demand["deps"]}
        return demand["memory"] + deps.get(self._reward, 0.0)


def weigh(parts):
    """The bytes of all deps of each partitioned graph, by the graph's id."""
    total = collections.defaultdict(float)
    for line in parts:
        if line.startswith(b"dep\t"):
            field = line.split(b"\t", 5)
            total[field[1].decode()] += float(field[4])
    return total

