"""rampipe_cluster - a cluster that is asked about each job, for agents with whole actions.

    from rampipe_cluster import Action, RampClusterEnv
    cluster = RampClusterEnv(jobs=100, interarrival="exponential:3000")
    cluster.reset(seed=7)
    while not cluster.done:              # as many parts as the deadline needs, and the longest ops first
        job, graph = cluster.job, cluster.job.graph
        needs = math.ceil(graph.sequential * job.steps / job.deadline)
        op_partition = dict.fromkeys(graph.forward(), needs + needs % 2)
        parts = graph.split(op_partition)                             # the ops that will run
        op_schedule = {name: op.compute for name, op in parts.ops.items()}
        cluster.step(Action(op_partition=op_partition, op_schedule=op_schedule))
    print(cluster.figures()["blocking_rate"], cluster.figures()["causes"])

It is for environments of your own: what is observed, what is rewarded, and what an action means is for
you to say. traces/agents/custom.py wraps a cluster in this way, and rampipe_env.RampipeEnv is the published
environment, in which an action is the degree alone.

A job can start in any way. An Action says any part of it, and what it leaves out is decided by ramp-alloc:

    op_partition    {op: parts}      forward ops get so many parts; their twins get as many
    op_placement    {op: server}     in the order of placing; a twin that is left out follows its op. Either
                                     all ops have a server, or none has: then the heuristic places them
    op_schedule     {op: priority}   higher runs first on its server, and before all that have none
    dep_placement   {(src, dst): channel}    a channel sends one dep at a time
    dep_schedule    {(src, dst): priority}   higher goes first on its channel. A dep that has no channel in
                                     dep_placement gets channel 0, the only one of the published cluster
    alternative     the graph that is meant, of job.alternatives; the default is the first one

step(None) refuses the job, and step(WAIT) refuses it for now: with queue=N it waits. After op_partition, ops
are the parts: `graph.split(op_partition)` is the graph of the parts, with their names. An action that
breaks a rule of the cluster blocks the job; the cause names the rule (CAUSES in ramp-alloc(1)). An action
that names an op, a dep or a server that does not exist raises PipelineError, and ends the episode.

The state of the cluster, which step() and reset() bring to the next job that waits for a decision:

    time            seconds
    job             the Job that is to be decided; None: the episode is over (done is True)
    free            names of free servers, in order; `servers` has those of all servers in service
    running         {job: Run}, jobs that run now
    completed       {job: Run}, jobs that have ended
    queue           {job: Job}, other jobs that wait
    blocked         {job: Block}, with the cause, and the op and server that broke a rule
    offers          {graph: Offer}, what ramp-alloc would make of each alternative, with features (of
                    several heuristics, the first with which it can start)
    jobs, graphs    all that have come so far, by name
    outcome         what became of the last decision: a Run, a Block, or None (the job waits)
    figures()       of the episode so far

Arguments of RampClusterEnv are those of RampipeEnv that make jobs and clusters (networks, interarrival,
steps, jobs, deadline_fraction, sampling, time_unit, source, shape, heuristic, cluster, alloc_options, output),
and

    policy          a policy of partition, as "all" or "sip-ml:8": its degrees are alternatives, beside
                    what an action can do; with quantum, max_degree and partition_options as RampipeEnv has
                    them. None: the alternative is the whole graph on one server
    queue           how many jobs may wait
"""
import collections
import dataclasses
import math
import operator
import random
import tempfile

import rampipe_env
from rampipe_env import PipelineError  # noqa: F401: what step() and reset() raise

WAIT = "wait"
MOST_PARTS = 65536  # of an op
# The arguments of RampipeEnv that are taken: those of jobs and clusters, and those of alternatives.
OPTIONS = {"networks", "interarrival", "steps", "jobs", "deadline_fraction", "sampling", "time_unit", "source",
           "shape", "heuristic", "cluster", "alloc_options", "output"}
OF_POLICY = {"quantum", "max_degree", "partition_options"}

Op = collections.namedtuple("Op", "id forward compute memory twin of part parts")
Op.__doc__ = ("An op: compute in seconds, memory in bytes, its twin in the other pass (None: none); part number "
              "`part` (from 0) of `parts` of the op `of` (itself if it is whole).")
Job = collections.namedtuple("Job", "id graph alternatives arrival steps deadline")
Job.__doc__ = ("graph is the first alternative, a Graph; `alternatives` has the names of all. Times are seconds, "
               "the deadline (inf: none) counts from arrival.")
Run = collections.namedtuple("Run", "job graph servers start finish step comm comp busy sequential")
Run.__doc__ = ("A job that has started: its Job, the name of the graph that runs, its servers. comm and comp are "
               "the parts of a step with something on its way and with an op running, seconds; busy is the share of "
               "the server-seconds in which ops run; sequential is a step on one server.")
Block = collections.namedtuple("Block", "job time cause graph op server")


@dataclasses.dataclass
class Action:
    """What is done with a job; see the module's text."""
    op_partition: dict = None
    op_placement: dict = None
    op_schedule: dict = None
    dep_placement: dict = None
    dep_schedule: dict = None
    alternative: str = None

    def lines(self, job):
        """The records for ramp-alloc (AGENTS in its manual)."""
        for op, parts in (self.op_partition or {}).items():
            yield f"split\t{job.id}\t{op}\t{parts}\n"
        priorities = self.op_schedule or {}
        servers = self.op_placement or {}
        for op in (*servers, *(op for op in priorities if op not in servers)):
            priority = f"\tpriority={float(priorities[op])!r}" if op in priorities else ""
            yield f"place\t{job.id}\t{op}\t{servers.get(op, '-')}{priority}\n"
        channels, priorities = self.dep_placement or {}, self.dep_schedule or {}
        for dep in (*channels, *(dep for dep in priorities if dep not in channels)):
            if not isinstance(dep, tuple) or len(dep) != 2:
                raise ValueError(f"a dep is a pair (src, dst), got {dep!r}")
            priority = f"\tpriority={float(priorities[dep])!r}" if dep in priorities else ""
            yield f"transfer\t{job.id}\t{dep[0]}\t{dep[1]}\t{channels.get(dep, 0)}{priority}\n"
        yield f"answer\t{job.id}\t{self.alternative or job.alternatives[0]}\n"


class Graph:
    """A graph: ops {id: Op} and deps {(src, dst): bytes}, both in the order of their records; `sync` has the
    deps by which the parts of a backward op exchange gradients, for which no op waits."""

    def __init__(self, name, model):
        self.id, self.model = name, model
        self.ops, self.deps, self.sync = {}, {}, set()
        self._parents = None

    def forward(self):
        """The ops that can be split."""
        return [op.id for op in self.ops.values() if op.forward]

    def parents(self, op):
        """The ops from which an op has deps, in the order of these, without those in `sync`."""
        if self._parents is None:
            self._parents = {name: [] for name in self.ops}
            for src, dst in self.deps:
                if (src, dst) not in self.sync:
                    self._parents[dst].append(src)
        return self._parents[op]

    @property
    def sequential(self):
        """Seconds of a step on one server."""
        return math.fsum(op.compute for op in self.ops.values())

    def split(self, op_partition):
        """The graph that ramp-alloc makes of an op_partition (None, or empty: this graph): the published rule
        of partition(1), its reference sizes included."""
        if not op_partition:
            return self
        self._check(op_partition)
        k = dict.fromkeys(self.ops, 1)
        rank = dict.fromkeys(self.ops, 0)
        order = [op for op in self.ops if op in op_partition]
        for at, op in enumerate(order):
            for turn, each in enumerate((op, self.ops[op].twin)):
                if each is not None:
                    k[each], rank[each] = op_partition[op], 2 * at + turn
        made = Graph(f"{self.id}/{max(op_partition.values())}", self.model)
        for op in self.ops.values():
            n = k[op.id]
            twins = self.parts(op.twin, n) if op.twin is not None else [None] * n
            for part, name in enumerate(self.parts(op.id, n)):
                made.ops[name] = Op(name, op.forward, op.compute / n, op.memory / n, twins[part], op.id, part, n)
        for u, v in self.deps:
            size = self._bytes(u, v, k, rank)
            for src in self.parts(u, k[u]):
                for dst in self.parts(v, k[v]):
                    made.deps[src, dst] = size
        for op in self.ops.values():
            if not op.forward and k[op.id] > 1:
                names = self.parts(op.id, k[op.id])
                pairs = [(a, b) for a in names for b in names if a != b]
                made.deps.update(dict.fromkeys(pairs, op.memory / k[op.id]))
                made.sync.update(pairs)
        return made

    def _check(self, op_partition):
        """As ramp-alloc checks it."""
        for op, parts in op_partition.items():
            if op not in self.ops or not self.ops[op].forward:
                raise ValueError(f"graph {self.id!r} has no forward op {op!r} to split")
            if not 1 <= operator.index(parts) <= MOST_PARTS:
                raise ValueError(f"parts of op {op!r} must be from 1 to {MOST_PARTS}, got {parts}")

    def _bytes(self, u, v, k, rank):
        """The reference size of a dep among parts: the end that is split first decides."""
        mu, mv = self.ops[u].memory, self.ops[v].memory
        if k[u] == 1:
            return mu / k[v]
        if k[v] == 1:
            return mv / k[u]
        return mu / k[u] / k[v] if rank[u] < rank[v] else mv / k[v] / k[u]

    @staticmethod
    def parts(op, n):
        """The names of n parts of an op: 3a, 3b, ... 3z, 3aa, ..."""
        return [op + letters(i) for i in range(n)] if n > 1 else [op]


def letters(i):
    """As columns of a spreadsheet: a, b, ..., z, aa, ..."""
    text, i = "", i + 1
    while i:
        i, digit = divmod(i - 1, 26)
        text = chr(97 + digit) + text
    return text


class Commands(rampipe_env.RampipeEnv):
    """The commands of RampipeEnv; here jobs may wait."""
    _refused = ()


class RampClusterEnv:
    """The cluster; see the module's text."""

    def __init__(self, *, policy=None, queue=0, **options):
        wrong = options.keys() - OPTIONS - OF_POLICY
        if wrong:
            raise TypeError(f"RampClusterEnv has no {', '.join(sorted(wrong))}")
        if policy is None and options.keys() & OF_POLICY:
            raise ValueError(f"{', '.join(sorted(options.keys() & OF_POLICY))}: only a policy takes them")
        options["alloc_options"] = [*options.get("alloc_options", ()), f"--queue={queue}", "--whole-actions"]
        made = Commands(observation="graph", **options)
        self._draw, self._drawn, self._source = made._draw, made._drawn, made._source
        self._partition = [word.replace("--policy=all", f"--policy={policy}") for word in made._partition] \
            if policy is not None else None
        self._alloc = made._alloc
        self._output = made._output
        self._random = random.Random()
        self._allocator = None
        self._forget()

    def _forget(self):
        self.time, self.done, self.job, self.outcome, self.seed = 0.0, True, None, None, None
        self.servers, self.free, self.offers = [], [], {}
        self.running, self.completed, self.queue, self.blocked = {}, {}, {}, {}
        self.jobs, self.graphs = {}, {}

    # -- episodes --

    def reset(self, *, seed=None, options=None):
        """Starts an episode; seed= and options= as of RampipeEnv. Returns the first job."""
        rampipe_env.check_drawn(options, self._source)
        self.close()
        self._forget()
        if seed is not None:
            self._random.seed(operator.index(seed))
        self.seed = self._random.getrandbits(31) if seed is None else operator.index(seed)
        try:
            self._start({**self._drawn, **(options or {})})
            self._hear()
        except BaseException:
            self.close()
            raise
        if self.done:
            self.close()
            raise PipelineError("no jobs came: an episode needs one at least")
        self.servers = list(self.free)
        return self.job

    def _start(self, drawn):
        stream = self._draw(self.seed, drawn)
        with tempfile.TemporaryFile() as jobs:
            if self._partition:
                rampipe_env.run(self._partition, input=stream, stdout=jobs)
            else:
                jobs.write(stream)
            jobs.seek(0)
            if self._output is None:
                self._allocator = rampipe_env.Allocator(self._alloc, jobs)
            else:
                with open(self._output, "wb") as output:
                    self._allocator = rampipe_env.Allocator(self._alloc, jobs, output)

    def step(self, action):
        """Decides cluster.job: an Action; None refuses it, WAIT lets it wait. Returns the outcome, once the
        cluster has come to the next job: a Run, a Block, or None, if the job waits."""
        if self._allocator is None:
            raise RuntimeError("step() has no episode: it has ended, or reset() was not called")
        job, self.outcome = self.job, None
        if isinstance(action, Action):
            text = "".join(action.lines(job))
        elif action is None or action == WAIT:
            text = f"answer\t{job.id}\t-" + ("\tcause=no_servers\n" if action == WAIT else "\n")
        else:
            raise TypeError(f"an action is an Action, None or WAIT, got {action!r}")
        try:
            self.queue[job.id] = job
            self._allocator.say(text)
            self._hear()
        except BaseException:  # also Ctrl-C: ramp-alloc and this object would be at different jobs
            self.close()
            raise
        self.outcome = self.running.get(job.id) or self.completed.get(job.id) or self.blocked.get(job.id)
        return self.outcome

    def close(self):
        """Ends the episode, if there is one. It may be called at any time, and more than once."""
        if self._allocator is not None:
            self._allocator.close()
            self._allocator = None
        self.done = True

    # -- what ramp-alloc tells --

    def _hear(self):
        """Reads until the next question, or to the end."""
        text, asked = self._allocator.hear_all()
        self.job, self.offers, graph = None, {}, None
        for line in text.split("\n"):
            field = line.split("\t")
            if field[0] == "graph":
                graph = self.graphs[field[1]] = Graph(field[1], field[2])
            elif field[0] in READ:
                READ[field[0]](self, graph, field, line)
        self.done = not asked
        if not asked:
            self.free = list(self.servers)
            self._pass(math.inf)
            self.close()

    def _pass(self, time):
        """Jobs that have ended by then are complete."""
        for job in [job for job, run in self.running.items() if run.finish <= time]:
            self.completed[job] = self.running.pop(job)
        ended = max((run.finish for run in self.completed.values()), default=self.time) \
            if time == math.inf else time
        self.time = max(self.time, ended)

    def _op(self, graph, field, _):
        key = keys_of(field[6:])
        part, parts = key.get("part", "1/1").split("/")
        graph.ops[field[2]] = Op(field[2], field[3] == "forward", float(field[4]), float(field[5]),
                                 key.get("pair"), key.get("of", field[2]), int(part) - 1, int(parts))

    def _dep(self, graph, field, _):
        graph.deps[field[2], field[3]] = float(field[4])
        if "kind=sync" in field[5:]:
            graph.sync.add((field[2], field[3]))

    def _job(self, _, field, __):
        names = field[2].split(",")
        self.jobs[field[1]] = self.queue[field[1]] = Job(
            field[1], self.graphs[names[0]], names, float(field[3]), int(field[4]), float(field[5]))

    def _started(self, _, field, __):
        key = keys_of(field[6:])
        self.queue.pop(field[1])
        self.running[field[1]] = Run(
            self.jobs[field[1]], field[2], field[5].split(","), float(field[3]), float(field[4]),
            *(float(key[name]) for name in Run._fields[5:]))

    def _blocked(self, _, field, __):
        key = keys_of(field[4:])
        self.queue.pop(field[1])
        self.blocked[field[1]] = Block(self.jobs[field[1]], float(field[2]), field[3], key.get("graph"),
                                       key.get("op"), key.get("server"))

    def _offer(self, _, __, line):
        offer = rampipe_env.read_offer(line)
        if offer.graph not in self.offers or (self.offers[offer.graph].cause and not offer.cause):
            self.offers[offer.graph] = offer

    def _ask(self, _, field, __):
        self.job = self.queue.pop(field[1])
        self.free = [name for name in keys_of(field[3:])["idle"].split(",") if name]
        self._pass(float(field[2]))

    def figures(self):
        """Figures of the episode so far. Means are over the jobs that have started; utilisation is that of the
        servers in service until now, by the jobs that hold them."""
        started = [*self.completed.values(), *self.running.values()]
        times = [run.finish - run.job.arrival for run in started]
        held = math.fsum(len(run.servers) * (min(run.finish, self.time) - run.start) for run in started)
        decided = len(started) + len(self.blocked)
        return {
            "arrived": len(self.jobs), "started": len(started), "completed": len(self.completed),
            "blocked": len(self.blocked), "waiting": len(self.queue), "running": len(self.running),
            "causes": dict(collections.Counter(block.cause for block in self.blocked.values())),
            "blocking_rate": len(self.blocked) / decided if decided else 0.0,
            "acceptance_rate": len(started) / decided if decided else 0.0,
            "completion_time": mean(times),
            "speed_up": mean([run.sequential * run.job.steps / time for run, time in zip(started, times) if time]),
            "servers": mean([len(run.servers) for run in started]),
            "utilisation": held / (self.time * len(self.servers)) if self.time else 0.0}


READ = {"op": RampClusterEnv._op, "dep": RampClusterEnv._dep, "job": RampClusterEnv._job,
        "start": RampClusterEnv._started, "block": RampClusterEnv._blocked, "offer": RampClusterEnv._offer,
        "ask": RampClusterEnv._ask}


def keys_of(fields):
    return dict(field.split("=", 1) for field in fields if "=" in field)


def mean(values):
    return math.fsum(values) / len(values) if values else 0.0
