"""rampipe_vector - the environment of rampipe_env, thousands of copies at once in this process.

    import rampipe_vector
    env = rampipe_vector.RampipeVector(1000, interarrival="exponential:1000", jobs=1000)
    features, mask = env.reset(seed=7)
    while env.decisions < 1e6:                      # in each copy the narrowest that can start
        actions = mask[:, 1:].argmax(1) + 1
        features, mask, rewards, ended = env.step(actions * mask[:, 1:].any(1))
    env.close()

The library librampipe.so decides: as ramp-alloc would, but without processes and text between, at some
hundred thousand decisions a second on one core. Use rampipe_env to look at single decisions and for
observations as published; what was learned here plays there and through ramp-alloc --agent, because features,
jobs and decisions are the same: copy 0 after reset(seed=N) plays the episode of rampipe_env's seed N. Arguments
of RampipeVector by keyword, where not said otherwise as those of RampipeEnv with observation="features" and
mask="startable":

    copies              how many, by position
    networks, time_unit, quantum, max_degree, partition_options
                        make the graphs, with the tools pd2graph and partition
    interarrival, deadline_fraction, steps, jobs
    source              a file or a list of a command that gives partitioned graphs and jobs; with
                        interarrival=None its jobs are each episode. Arguments that would then change
                        nothing are refused
    shape, heuristic, cluster
    library             the path of librampipe.so; the default is $RAMPIPE_LIBRARY, that of this
                        installation or of the tree whose tools are used, or the linker's

Actions. env.degrees has the degree of each action: [0, 1, 2, 4, ...]. 0 refuses. Unlike in RampipeEnv, the
actions are numbered without gaps: action a takes the alternative of degree env.degrees[a], and places it by
env.places[a]. With a list of heuristics each degree has an action for each of them.
Arrays. With numpy, otherwise lists of ctypes (env.features[i][a][k]):
    features  copies x actions x features, of each alternative that can start; zeros otherwise
    mask      copies x actions, 1 for 0 and for what can start
    rewards   copies, 1 if the job was placed, -1 if it was not
    ended     copies, 1 if that was the last job of an episode
    completion  copies, seconds from arrival to completion (inf: not placed)
    template  copies, the index in env.templates (alternatives, separated by commas) of the job that waits
The arrays belong to the environment, which overwrites them in the next step: copy what you keep. A copy that has
ended begins its next episode in the same step, so that features and mask are already those of its first job.
The seeds of copy i are seed + i, seed + i + copies, and so on; after 4294967295 comes 0.
"""
import ctypes
import glob
import operator
import os
import tempfile

import rampipe_env
from rampipe_env import numpy

LIBRARY = ""  # the library's path; `make install` sets it


class Options(ctypes.Structure):
    """struct learn_batch_options"""
    _fields_ = [(name, ctypes.c_char_p) for name in (
        "input", "cluster", "place", "interarrival", "fraction", "steps")] + [
            ("jobs", ctypes.c_uint64), ("copies", ctypes.c_uint32)]


class Arrays(ctypes.Structure):
    """struct learn_batch_arrays"""
    _fields_ = [(name, ctypes.c_void_p) for name in (
        "features", "mask", "template", "rewards", "ended", "completion")]


def load(path=None):
    """The library, with the types of its functions."""
    beside = os.path.dirname(os.path.dirname(os.path.realpath(rampipe_env.tool("partition"))))  # build, of bin
    found = sorted(glob.glob(os.path.join(beside, "librampipe.so.*")))
    path = path or os.environ.get("RAMPIPE_LIBRARY") or LIBRARY or (found[-1] if found else "librampipe.so.0")
    library = ctypes.CDLL(path)
    batch, word = ctypes.c_void_p, ctypes.c_uint32
    for name, result, arguments in (
            ("open", batch, (ctypes.POINTER(Options), ctypes.c_char_p, ctypes.c_size_t)),
            ("close", None, (batch,)), ("message", ctypes.c_char_p, (batch,)),
            ("actions", word, (batch,)), ("degree", word, (batch, word)),
            ("place", ctypes.c_char_p, (batch, word)),
            ("features", word, ()), ("feature", ctypes.c_char_p, (word,)),
            ("templates", word, (batch,)), ("template", ctypes.c_char_p, (batch, word)),
            ("reset", ctypes.c_bool, (batch, word, word)),
            ("use", None, (batch, ctypes.POINTER(Arrays))), ("step", ctypes.c_bool, (batch, ctypes.c_void_p)),
            ("record", ctypes.c_bool, (batch, word, ctypes.c_char_p))):
        function = getattr(library, "learn_batch_" + name)
        function.restype, function.argtypes = result, arguments
    return library


def ramp(shape):
    """The text of a RAMP of this shape, as ramp-alloc has it without other options."""
    return "ramp:" + shape.replace("x", ",") + ",1.6e12,80e9,propagation=50e-9,io=100e-9"


def encoded(text):
    return None if text is None else str(text).encode()


def whole(name, value, least, most):
    """A whole number. ctypes would wrap what is out of range."""
    value = operator.index(value)
    if not least <= value <= most:
        raise ValueError(f"{name} must be an integer from {least} to {most}, got {value}")
    return value


class RampipeVector:
    """Copies of an environment. The text of the module says what the arguments are."""

    def __init__(self, copies, *, networks=None, interarrival="exponential:1000", steps=50, jobs=1000,
                 deadline_fraction="uniform:0.1:1", time_unit="s", quantum=0.01, source=None, shape="4x4x2",
                 max_degree=16, heuristic="first-fit", partition_options=(), cluster=None, library=None):
        self._batch = None
        self._library = load(library)
        self.copies, self._next = whole("copies", copies, 1, 2 ** 32 - 1), None
        jobs = whole("jobs", jobs, 1, 2 ** 64 - 1)
        rampipe_env.check_cluster(cluster, shape, heuristic)
        if source:
            rampipe_env.check_idle(RampipeVector, "a source has graphs of its own", networks=networks,
                                   time_unit=time_unit, quantum=quantum, max_degree=max_degree,
                                   partition_options=tuple(partition_options))
        if interarrival is None:
            rampipe_env.check_idle(RampipeVector, "without interarrival no jobs are drawn", steps=steps,
                                   deadline_fraction=deadline_fraction, jobs=jobs)
        where = cluster or ramp(shape)
        with tempfile.NamedTemporaryFile(suffix=".rec") as file:
            if isinstance(source, (str, os.PathLike)):
                path = os.fspath(source)
            else:
                path = file.name
                stream = rampipe_env.run(source, stdout=rampipe_env.subprocess.PIPE) if source else rampipe_env.run(
                    [rampipe_env.tool("partition"), "--policy=all", f"--quantum={quantum}",
                     f"--max-degree={max_degree}", f"--cluster={where}", *partition_options],
                    input=rampipe_env.run([rampipe_env.tool("pd2graph"), f"--time-unit={time_unit}", "--",
                                           *map(os.fspath, rampipe_env.profiles(networks))],
                                          stdout=rampipe_env.subprocess.PIPE),
                    stdout=rampipe_env.subprocess.PIPE)
                file.write(stream)
                file.flush()
            distribution = rampipe_env.distribution
            drawn = [encoded(distribution(x)) for x in (interarrival, deadline_fraction, steps)]
            options = Options(path.encode(), encoded(where), None if cluster else heuristic.encode(), *drawn,
                              jobs=jobs, copies=copies)
            why = ctypes.create_string_buffer(2000)
            self._batch = self._library.learn_batch_open(ctypes.byref(options), why, len(why))
        if not self._batch:
            raise rampipe_env.PipelineError(why.value.decode(errors="replace"))
        of, actions = self._library, self._library.learn_batch_actions(self._batch)
        self.degrees = [of.learn_batch_degree(self._batch, a) for a in range(actions)]
        self.places = [of.learn_batch_place(self._batch, a).decode() for a in range(actions)]
        self.feature_names = [of.learn_batch_feature(i).decode() for i in range(of.learn_batch_features())]
        self.templates = [of.learn_batch_template(self._batch, i).decode()
                          for i in range(of.learn_batch_templates(self._batch))]
        self.features = self._array((copies, actions, len(self.feature_names)), "float32", ctypes.c_float)
        self.mask = self._array((copies, actions), "uint8", ctypes.c_uint8)
        self.template = self._array((copies,), "uint32", ctypes.c_uint32)
        self.rewards = self._array((copies,), "float32", ctypes.c_float)
        self.ended = self._array((copies,), "uint8", ctypes.c_uint8)
        self.completion = self._array((copies,), "float64", ctypes.c_double)
        self._arrays = Arrays(*(self._at(getattr(self, name)) for name, _ in Arrays._fields_))
        of.learn_batch_use(self._batch, ctypes.byref(self._arrays))
        self.decisions = 0

    @staticmethod
    def _array(shape, dtype, kind):
        if numpy:
            return numpy.zeros(shape, dtype)
        for n in reversed(shape):
            kind = kind * n
        return kind()

    @staticmethod
    def _at(array):
        return array.ctypes.data if numpy else ctypes.addressof(array)

    def _do(self, name, *arguments):
        if not self._batch:
            raise RuntimeError("the environment is closed")
        if not getattr(self._library, "learn_batch_" + name)(self._batch, *arguments):
            raise rampipe_env.PipelineError(self._library.learn_batch_message(self._batch).decode(errors="replace"))

    def reset(self, seed=0):
        """Begins an episode in each copy."""
        seed = whole("seed", seed, 0, 2 ** 32 - 1)
        self._next = [seed + i for i in range(self.copies)]
        for i in range(self.copies):
            self._begin(i)
        return self.features, self.mask

    def _begin(self, i):
        self._do("reset", i, self._next[i] & 0xffffffff)
        self._next[i] += self.copies

    def _whole(self, actions):
        """The actions as the library reads them. They are checked before the cast, which would make 2 of 2.9 and
        of 2**32 + 2."""
        chosen = numpy.asarray(actions) if numpy else actions
        if not numpy or chosen.dtype.kind not in "iu":  # also whole numbers that no type of numpy holds
            chosen = [operator.index(a) for a in actions]
        elif chosen.ndim != 1:
            raise ValueError(f"actions are a number for each copy, got an array of shape {chosen.shape}")
        if len(chosen) != self.copies:
            raise ValueError(f"there are {self.copies} copies, and {len(chosen)} actions")
        least, most = (min(chosen), max(chosen)) if isinstance(chosen, list) else (chosen.min(), chosen.max())
        if least < 0 or most >= len(self.degrees):
            i, a = next((i, a) for i, a in enumerate(chosen) if not 0 <= a < len(self.degrees))
            raise ValueError(f"an action is 0 to {len(self.degrees) - 1}, got {a} for copy {i}")
        return numpy.ascontiguousarray(chosen, "int32") if numpy else (ctypes.c_int32 * self.copies)(*chosen)

    def step(self, actions):
        """Decides the job that waits in each copy. Returns features, mask, rewards and ended."""
        if self._next is None:
            raise RuntimeError("step() has no episode: call reset() first")
        chosen = self._whole(actions)
        self._do("step", self._at(chosen))
        self.decisions += self.copies
        for i in numpy.flatnonzero(self.ended) if numpy else [i for i, e in enumerate(self.ended) if e]:
            self._begin(int(i))
        return self.features, self.mask, self.rewards, self.ended

    def record(self, copy, path):
        """Writes the alloc and block records of a copy into a file, from its next decision on; path None ends
        the file, which is not kept otherwise."""
        self._do("record", whole("copy", copy, 0, self.copies - 1), encoded(path))

    def close(self):
        """Frees the copies. It may be called more than once."""
        if self._batch:
            self._library.learn_batch_close(self._batch)
            self._batch = None

    def __del__(self):
        self.close()
