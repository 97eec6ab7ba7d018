"""rampipe_batch - run functions, programs and parallel jobs as tasks: in parallel, as if one after another.

    from rampipe_batch import Batch

    def square(x):
        return x * x

    if __name__ == "__main__":
        with Batch() as batch:
            squares = [batch.function(square, i) for i in range(10)]
            total = batch.function(sum, [task.result for task in squares])
            print(total.result.get())       # 285

Tasks are given in the order in which a sequential program would run them. Each says which files, or keys of
a dictionary, it reads and writes. runtasks(1) works out which tasks must wait for which, and runs the
others in parallel; functions run in worker processes, each of which runs many. The standard library is
enough. If cloudpickle is installed, tasks may be functions of any kind; otherwise a function must be
defined at the top level of a file. A worker imports that file, so the program must make its Batch below
if __name__ == "__main__":

TASKS
    batch.function(f, *args, reads=, writes=, timeout=, name=, options=, **kwargs)
        a call of f. It is pickled at once, so the task does not see later changes of its arguments.
    batch.process(target, args, *, reads=, writes=, timeout=, name=, stdin=, stdout=, stderr=, ok=, OPTION=...)
        a program. Its result is its exit status; any status but 0 is a failure, unless ok="any".
    batch.job(target, num_procs, args, ...)
        a parallel job, mpiexec -n NUM_PROCS TARGET ARGS. It takes NUM_PROCS cores.
    Options are cores, memory (bytes), retries, cost (seconds, for the critical path), cwd and env. timeout is
    in seconds from the start of the task. The name appears in records and errors; no two tasks of a client
    may have the same one.

    task.result, task.stdout, task.stderr are handles. handle.get(timeout=) waits and returns the value, or
    raises the exception of the task; get(check=False) returns the output of a failed task, too. If an
    argument of another task is a handle, or contains one, that task waits for the value and gets it in
    place of the handle. stdin= takes the stdout or stderr of a process.

READS AND WRITES
    batch.read(base, *paths), batch.write(base, *paths)
        files below the folder base, or keys of base, a dictionary of batch.ddict(). Without paths it is the
        file base itself. A plain path may be given, too: reads="x". A name that ends in / stands for all
        files below it; @NAME stands for anything that is no file. A file that a task says it writes must
        exist when the task ends, unless check_outputs=False.
    batch.ddict(), batch.queue()
        a dictionary and a queue that all tasks and clients share (see rampipe_shared): in a SQLite file of
        the spool, or in a Redis server, batch.ddict("redis://..."). They are closed with the batch. When a
        run is resumed, an interrupted task is run again. It is refused if it both reads and writes a key
        that no earlier task writes, because the key may have been changed already, in part or as a whole.

WHEN TASKS START
    At once, in the order in which they were made. With Batch(background_batching=False) they wait for
    start(), and task.read() and task.write() can add to their objects before it:
    task.start(), task.wait(timeout)
    task.run(timeout)       start() and wait(), and returns the result
    batch.compile([...])    makes one task of a list of tasks. The order of the list is that of the
                            sequential program. The result is the list of results. The list may hold
                            compiled tasks.
    batch.fence(timeout)    starts all tasks that are not started, and waits until all tasks have ended.
                            Tasks after the fence do not depend on tasks before it, even on failed ones.

TEMPLATES
    task = batch.import_func("power.yml", multiply, m, d);  task(1)

    parameters: [function, m, d, i]       # names; or a map of names to default values (empty: none)
    type: function                        # or process, job
    name: "power-{i + 1}"
    executables:
      - target: "{function}"              # or MODULE.FUNCTION; a program for a process or job
        arguments: ["{m}", "{d}", "{i}"]  # more fields: keywords: {NAME: VALUE}; cwd, env; ranks (of a job)
    reads: {dictionary: "{d}", keys: "{i}"}       # or {base: FOLDER, paths: [...]}, or a list of files
    writes: {dictionary: "{d}", keys: "{i + 1}"}
    timeout: {minutes: 1, seconds: 30}
    More fields are cores, memory, retries and cost; for processes and jobs also ok, stdin, stdout and stderr.
    Values of parameters are given in their order, or by name, when the template is imported or when a task is
    made. If {NAME} is the whole text, it is replaced by the value itself; within a text, by the value's text.
    Braces may hold + - * // % of parameters and numbers. A name in braces that is no parameter is an
    error. Templates need the package python3-yaml.

ERRORS THAT get() RAISES
    the function's own exception. Its __cause__ is its traceback in the worker.
    TaskFailed      the task ended without a result: .status is its exit status, its signal, the error with
                    which it could not be started, or no_output (a file that it should write is missing)
    TaskTimeout     the task took longer than its timeout. It is a TimeoutError, and so is the exception of
                    get(timeout) when the time is over.
    InputFailed     the task was not run, because a task that it depends on failed: .failed is the name of
                    the first such task
    ResultError     a result or an exception cannot be pickled in the worker, or cannot be loaded here
    ServiceError    runtasks has ended. get() raises this, and does not wait for ever.
    Wrong arguments raise their error when the task is given. When a batch ends, a warning names the failed
    tasks for whose results the program did not ask.

CLIENTS
    A Batch can be passed to other processes and used on both sides of a fork. Each process is a client
    of its own: tasks of two clients share the cores, and do not wait for each other otherwise. close() says
    that no more tasks come; join() waits for those that were given, and in the process that made the batch
    for all clients, too. The end of a with block does both; if an exception leaves the block, all tasks are
    ended, as by terminate(). When a client is killed, its tasks are ended (with orphans="finish" they
    go on).
    batch.client(name) makes another client with this name. A task cannot give tasks to its own batch.

Batch(background_batching=True, jobs=None, engine="local", log=None, *, resume=False, orphans="cancel",
      grace=10, check_outputs=True, runtasks=None, name="main")
    jobs        the number of cores that the tasks share; None: all cores that this process may use
    engine      "slurm" runs all tasks in one allocation. All its nodes must then see the folder in which
                the batch is made.
    log         a folder. It gets a file NAME.log for each client (metrics(1) and timeline(1) read it), and
                keeps results in spool/.
    resume      continues the run in log: the same program gives the same tasks again, and gets the results
                of those that had finished. Two tasks are the same if their names, their pickled functions
                and arguments, and all their options are. A function that is pickled by name counts as the
                same if its name is; if its code has changed, remove the log. Tasks start when the program
                first waits for a result.
    grace       seconds between SIGTERM and SIGKILL when a task is ended
    runtasks    the program. By default it is the one that RAMPIPE_RUNTASKS names, the one that was installed
                with this file, or the first on the PATH.
"""

import hashlib
import itertools
import os
import pickle
import re
import shlex
import subprocess
import sys
import threading
import time
import types
import warnings
import weakref
from array import array

import rampipe_link
import rampipe_shared
import rampipe_spool
from rampipe_link import BatchError, Link, Service, ServiceError
from rampipe_record import Record, called_of, client_name, escape, few, file_of, keys_of, object_of, word_of
from rampipe_task import (Access, Compiled, Handle, InputFailed, RemoteTraceback, ResultError, Task, TaskError,
                          TaskFailed, TaskTimeout, names_of)

__all__ = ["Batch", "Task", "Compiled", "Handle", "BatchError", "ServiceError", "TaskError", "TaskFailed",
           "TaskTimeout", "InputFailed", "ResultError", "RemoteTraceback"]

_HERE = os.path.dirname(os.path.abspath(__file__))
_numbers = itertools.count(1)


def _check_keywords(f, positional, **given):
    """Refuses a keyword that is a parameter of f and of function(), too: it is not clear which of the two
    the caller means. The first `positional` parameters of f have their values already."""
    code = getattr(f, "__code__", None)
    if code is not None:
        for name in code.co_varnames[positional:code.co_argcount + code.co_kwonlyargcount]:
            if given.get(name) not in (None, ()):
                raise TypeError(f"{called_of(f)}() has a parameter {name!r}, as function() has: bind it by "
                                "functools.partial")


def _join(place, background):
    """Unpickles a Batch: a client of the batch of another process. It connects when it is first used."""
    made = Batch.__new__(Batch)
    made._set_up(place, background, None)
    return made


def _preparation():
    """The data with which a worker makes itself able to load the functions of this process: the search
    path, and without cloudpickle the main module (as multiprocessing does for a spawned process)."""
    import multiprocessing.spawn
    data = multiprocessing.spawn.get_preparation_data("worker")
    wanted = {"sys_path"}
    if rampipe_spool.cloudpickle is None:
        wanted |= {"init_main_from_name", "init_main_from_path"}
    made = {key: value for key, value in data.items() if key in wanted}
    if not os.path.exists(made.get("init_main_from_path", "/")):  # the program came from standard input
        del made["init_main_from_path"]
    # Clients with equal data share workers, and so does a resumed run. So a path that a program adds again
    # whenever it is imported is kept once, and of sys.argv only the name of the program.
    return {**made, "sys_path": list(dict.fromkeys(made["sys_path"])), "sys_argv": data.get("sys_argv", [""])[:1]}


class Batch:
    """Runs tasks. The text of the module says how to use it."""

    def __init__(self, background_batching=True, jobs=None, engine="local", log=None, *, resume=False,
                 orphans="cancel", grace=10, check_outputs=True, runtasks=None, name="main"):
        if getattr(rampipe_spool.call, "preparing", False):
            raise RuntimeError("a worker imports the main module, which makes a Batch: it belongs behind "
                               "if __name__ == '__main__':")
        if engine not in ("local", "slurm"):
            raise ValueError(f"engine must be local or slurm, got {engine!r}")
        if orphans not in ("cancel", "finish"):
            raise ValueError(f"orphans must be cancel or finish, got {orphans!r}")
        if resume and log is None:
            raise ValueError("resume=True needs log=, the folder of the run")
        if jobs is None and engine == "local":
            jobs = len(os.sched_getaffinity(0))
        if jobs is not None and not (isinstance(jobs, int) and jobs >= 1):
            raise ValueError(f"jobs must be a whole number, 1 or more, got {jobs!r}")
        options = ["--orphans", orphans, "--grace", str(grace)]
        if not check_outputs:
            options.append("--no-check-outputs")
        self._set_up(None, background_batching, client_name(name))
        self._service = Service(jobs, engine, log, resume, grace, options, runtasks)
        weakref.finalize(self, Service.end, self._service)
        self._place = self._service.place
        self._link = Link(self._place, self._name, self._service)

    def _set_up(self, place, background, name):
        """Makes the state of a client without a connection. A Batch that is unpickled or forked has no
        other constructor."""
        self._place, self._background, self._name = place, background, name
        self._service, self._link, self._closed, self._left = None, None, False, False
        self._pid, self._lock = os.getpid(), threading.RLock()
        self._reset()

    def _reset(self):
        self._number = self._programs = self._fences = self._shared = self._sent = 0
        self._names, self._numbers, self._waiting, self._functions = set(), {}, {}, {}
        self._worker = self._main = None
        self._stores = []

    def __reduce__(self):
        return _join, (self._place, self._background)

    def client(self, name):
        """Another client of the same service, for this process or for one to which it is passed. Its log
        has this name, by which a resumed run finds it."""
        made = _join(self._place, self._background)
        made._name = client_name(name)
        return made

    # -- the connection --

    def _connected(self):
        """The link to the service. It is opened when the client is first used, and once more in a fork."""
        if self._link is not None and self._pid == os.getpid() and not self._closed:
            return self._link
        if getattr(rampipe_spool.call, "given", None) is not None or hasattr(rampipe_spool.call, "preparing"):
            raise BatchError("a task cannot give tasks to its own batch: it would wait for the cores that it holds")
        if self._pid != os.getpid():  # a fork becomes a client of its own
            self._set_up(self._place, self._background, None)
        if self._closed:
            raise ValueError("the batch is closed")
        if self._name is None:
            self._name = f"client-{os.getpid()}-{next(_numbers)}"
        self._link = Link(self._place, self._name)
        return self._link

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None and self._is_primary():
            self.terminate()
        else:
            self.close()
            self.join()

    def _is_primary(self):
        return self._service is not None and self._pid == os.getpid()

    def close(self):
        """Says that this client gives no more tasks. Results can still be waited for."""
        with self._lock:
            if self._closed or self._pid != os.getpid():
                return
            self._closed = True
        if self._waiting:
            warnings.warn(f"tasks that were never started: {few(self._waiting)}", RuntimeWarning, stacklevel=2)
        if self._link is not None:
            self._link.close()

    def join(self, timeout=None):
        """Waits until all tasks of this client have ended. In the process that made the batch it also
        waits until all clients have closed and the service has ended. close() must come before it."""
        if not self._closed:
            raise ValueError("join() comes after close()")
        link = self._link
        if link is None or link.pid != os.getpid() or self._left:
            return
        if not link.wait(lambda: link.over is not None, timeout):
            raise TimeoutError(f"{len(link.tasks)} tasks have not ended within {timeout} s")
        if self._is_primary():
            self._service.wait(timeout)
        self._leave()
        quiet = [task.id for task in link.failed.values() if not task.asked and task.outcome[1] and
                 "\tinput_failed" not in task.outcome[1]]
        link.failed.clear()
        if quiet:
            warnings.warn(f"tasks failed, and nobody asked for their results: {few(quiet)}", RuntimeWarning,
                          stacklevel=2)

    def terminate(self):
        """Ends everything now: the tasks of all clients, and the service."""
        if not self._is_primary():
            raise ValueError("terminate() is for the process that made the batch")
        if self._left:
            return
        self._closed, self._link.ending = True, "the batch was ended by terminate()"
        self._service.signal()
        self._link.hang_up()
        self._link.wait(lambda: self._link.over is not None, 60)
        self._leave()

    def _leave(self):
        """Ends the connection for good. Results that are still in the spool are fetched first, because
        the end of the service removes the spool."""
        self._left = True
        self._link.keep()
        self._link.disconnect()
        for store in self._stores:
            store = store()
            if store is not None:
                store.close()
        if self._is_primary():
            self._service.end()

    # -- objects --

    def read(self, base, *paths):
        """The objects that a task reads: files below the folder base, or keys of base, a dictionary of
        ddict(). Without paths it is the file base itself. A name that ends in / stands for all files
        below it."""
        return Access(False, self._objects(base, paths))

    def write(self, base, *paths):
        """The objects that a task writes, given as to read()."""
        return Access(True, self._objects(base, paths))

    def _objects(self, base, paths):
        if isinstance(base, rampipe_shared.DDict):
            if not paths:
                raise ValueError("name the keys of the dictionary")
            return [base.object(key) for key in paths]
        return [object_of(os.path.join(base, path)) for path in paths] if paths else [object_of(base)]

    def ddict(self, path_or_url=None, wait_for_keys=False, timeout=None, max_bytes=None, *, name=None):
        """A dictionary that tasks and clients share (rampipe_shared.DDict), in the spool or in a Redis
        server. Each call without a name makes a new one."""
        return self._share(rampipe_shared.DDict, path_or_url, wait_for_keys, timeout, max_bytes, name=name)

    def queue(self, path_or_url=None, maxsize=0, *, name=None):
        """A queue that tasks and clients share (rampipe_shared.Queue)."""
        return self._share(rampipe_shared.Queue, path_or_url, maxsize, name=name)

    def _share(self, kind, path_or_url, *options, name):
        client = self._connected().name
        with self._lock:
            self._shared += 1  # a resumed run gives the same calls, and so finds its data by these names
            name = name or f"{client}-{self._shared}"
            made = kind(path_or_url or os.path.join(self._place.spool, "shared.sqlite"), *options, name=name)
            self._stores.append(weakref.ref(made))
        return made

    # -- tasks --

    def function(self, f, *args, reads=(), writes=(), timeout=None, name=None, options=None, **kwargs):
        """A task that calls f(*args, **kwargs)."""
        link = self._connected()
        if reads or writes or timeout is not None or name is not None or options is not None:
            _check_keywords(f, len(args), reads=reads, writes=writes, timeout=timeout, name=name, options=options)
        where = self._functions.get(f) if type(f) is types.FunctionType else None
        if where is None:
            where = self._put_function(link, f)
        needs = []  # filled while the arguments are pickled: each handle in them adds its task
        rampipe_spool.call.reads = needs
        try:
            arguments = rampipe_spool.dump((args, kwargs))
        except Exception as error:
            raise TypeError(f"the arguments of {called_of(f)}() cannot be pickled: {type(error).__name__}: "
                            f"{error}") from error
        finally:
            rampipe_spool.call.reads = None
        if b"__main__" in arguments:
            self._check_main(f"an argument of {called_of(f)}()")
        command = self._worker or self._set_worker(link)
        keys = f"\tcall={where} {link.calls.put(arguments)}{keys_of(self._place, options or {})}"
        return self._add(called_of(f), name, needs, timeout, reads, writes, command, keys)

    def process(self, target, args=(), *, reads=(), writes=(), timeout=None, name=None, stdin=None, stdout=None,
                stderr=None, ok=None, **options):
        """A task that runs a program. The result is the exit status of the program."""
        return self._program([os.fspath(target), *map(word_of, args)], os.path.basename(os.fspath(target)), reads,
                             writes, timeout, name, stdin, stdout, stderr, ok, options)

    def job(self, target, num_procs, args=(), **more):
        """A parallel job: mpiexec -n NUM_PROCS TARGET ARGS. It takes NUM_PROCS cores."""
        return self._job([(num_procs, target, args)], **more)

    def _job(self, parts, *, reads=(), writes=(), timeout=None, name=None, stdin=None, stdout=None, stderr=None,
             ok=None, **options):
        """A job of several programs, as mpiexec -n N A : -n M B. A part is (ranks, program, arguments)."""
        words = ["mpiexec"]
        for ranks, target, args in parts:
            if not (isinstance(ranks, int) and ranks >= 1):
                raise ValueError(f"num_procs must be a whole number, 1 or more, got {ranks!r}")
            words += [":"] * (len(words) > 1) + ["-n", str(ranks), os.fspath(target), *map(word_of, args)]
        options.setdefault("cores", sum(part[0] for part in parts))
        return self._program(words, os.path.basename(os.fspath(parts[0][1])), reads, writes, timeout, name, stdin,
                             stdout, stderr, ok, options)

    def _program(self, words, called, reads, writes, timeout, name, stdin, stdout, stderr, ok, options):
        """A task that runs a command line. Its output goes to files of the spool, if none are given."""
        link = self._connected()
        if ok not in (None, "any"):
            raise ValueError(f"ok must be 'any', for any exit status, or None, got {ok!r}")
        command, env = rampipe_link.command_line(words)
        if env:
            options["env"] = {**(options.get("env") or {}), **env}
        needs, keys = [], keys_of(self._place, options)
        if isinstance(stdin, Handle):
            if not isinstance(stdin.task, Task) or stdin.task.files is None or stdin.stream == "result":
                raise TypeError("stdin takes a file, or what a process or job printed")
            needs.append(stdin.task)
            stdin = stdin.task.files[stdin.stream]
        if stdin is not None:
            keys += f"\tstdin={escape(file_of(stdin))}"
        with self._lock:
            self._programs += 1
            files = {stream: file_of(path) if path is not None else
                     os.path.join(self._place.spool, f"{link.name}-{self._programs}.{stream}")
                     for stream, path in (("stdout", stdout), ("stderr", stderr))}
        keys += "".join(f"\t{stream}={escape(path)}" for stream, path in files.items())
        keys += "\tok=any" if ok else ""
        return self._add(called, name, needs, timeout, reads, writes, command, keys,
                         {**files, "any": ok is not None})

    def import_func(self, path, *args, **kwargs):
        """Loads a template of tasks, a YAML file (see TEMPLATES). Returns a function of the parameters
        that are not given here; each call of it makes a task."""
        import rampipe_template
        return rampipe_template.load(self, path, args, kwargs)

    def compile(self, tasks):
        """Makes one task of a list of tasks. Its result is the list of their results. The order of the
        list is that of the sequential program."""
        made = Compiled(self, list(tasks))
        with self._lock:
            leaves = list(made.leaves())
            for task in made.tasks:
                if task.batch is not self:
                    raise ValueError(f"{task!r} belongs to another batch")
                if task.compiled is not None:
                    raise ValueError(f"{task!r} is compiled already")
            if len(set(map(id, leaves))) < len(leaves):
                raise ValueError("a task comes twice in the list")
            started = [task for task in leaves if task.record is None]
            if started and len(started) < len(leaves):
                raise ValueError(f"task {started[0].id!r} has been started already, others of the list have not")
            order = [task.number for task in started]
            if order != sorted(order):
                raise ValueError("the list has another order than the one in which its tasks were started: make the "
                                 "batch with background_batching=False")
            for task in made.tasks:
                task.compiled = made
        return made

    def fence(self, timeout=None):
        """Starts all tasks that have not been started, in the order in which they were made, and waits
        until all tasks of this client have ended."""
        link = self._connected()
        with self._lock:
            while self._waiting:
                task = next(iter(self._waiting.values()))
                while task.compiled is not None:  # a compiled task starts as a whole, in its own order
                    task = task.compiled
                task.start()
        self._put_fence(link)
        if not link.wait_all(timeout):
            raise TimeoutError(f"{len(link.tasks)} tasks have not ended within {timeout} s")

    def _put_fence(self, link):
        """Sends a fence, unless no task was sent since the last one."""
        with self._lock:
            if link.sent > self._sent:
                self._sent = link.sent
                self._fences += 1
                link.send(f"fence\tfence-{self._fences}\n")

    # -- the parts of a task --

    def _put_function(self, link, f):
        """Writes the pickle of a function to the spool and returns its place there. The place is kept
        for the next call only if the pickle holds just the function's name: any other pickle may have
        values that change between two calls (those of a closure, for instance)."""
        if not callable(f):
            raise TypeError(f"function() needs something that can be called, got {f!r}")
        try:
            data = rampipe_spool.dump(f)
        except Exception as error:
            raise TypeError(f"{called_of(f)} cannot be pickled: {type(error).__name__}: {error}; put it at the top "
                            "level of a file, or install cloudpickle") from error
        if b"__main__" in data:
            self._check_main(called_of(f))
        where = link.calls.put(data)
        if type(f) is types.FunctionType and len(data) < 1000 and pickle.dumps(f, protocol=5) == data:
            self._functions[f] = where
        return where

    def _check_main(self, what):
        """Refuses what is defined in __main__ if a worker can neither import that module (the program
        came from standard input or -c) nor get its code from cloudpickle."""
        if self._main is None:
            self._main = rampipe_spool.cloudpickle is not None or not {
                "init_main_from_name", "init_main_from_path"}.isdisjoint(_preparation())
        if not self._main:
            raise TypeError(f"{what} is defined in a program that is in no file: put it into a file, or install "
                            "cloudpickle")

    def _set_worker(self, link):
        """The command that starts a worker for this client. runtasks gives the calls with one command to
        the same workers. The file of the preparation is named by its digest, so equal clients have equal
        commands; os.replace() makes it whole for a client that looks for it at the same time."""
        data = pickle.dumps(_preparation(), protocol=5)
        name = f"prepare-{hashlib.blake2b(data, digest_size=8).hexdigest()}"
        path = os.path.join(self._place.spool, name)
        if not os.path.exists(path):
            part = f"{path}.{os.getpid()}-{threading.get_ident()}"
            with open(part, "wb") as file:
                file.write(data)
            os.replace(part, path)
        words = [sys.executable, *subprocess._args_from_interpreter_flags(),
                 os.path.join(_HERE, "rampipe_worker.py"), self._place.spool, name]
        self._worker = shlex.join(words)
        if any(c in self._worker for c in "\t\r\n"):
            raise ValueError(f"a path has a TAB or a line end: {self._worker!r}")
        return self._worker

    def _add(self, called, name, needs, timeout, reads, writes, command, keys, files=None):
        """Makes the task, and starts it if tasks start at once. Without a name it is CALLED-NUMBER."""
        if name is not None and not (isinstance(name, str) and re.fullmatch(r"[^\x00-\x1f\x7f,=]{1,200}", name)):
            raise ValueError(f"the name of a task is a text without comma, '=' and TAB, got {name!r}")
        if timeout is None:
            timeout = "inf"
        else:
            timeout = timeout.total_seconds() if hasattr(timeout, "total_seconds") else timeout
            if not timeout > 0:
                raise ValueError(f"timeout must be more than 0 s, got {timeout!r}")
        record = Record(needs, timeout, names_of(reads, False, object_of) if reads else [],
                         names_of(writes, True, object_of) if writes else [], command, keys)
        link = self._link
        for task in needs:
            if task.link is not link:
                raise ValueError(f"{task!r} was given to another batch: pass on what its result.get() returns")
        with self._lock:
            self._number += 1
            if name is None:
                name = f"{called}-{self._number}"
                while name in self._names:
                    self._number += 1
                    name = f"{called}-{self._number}"
                self._numbers.setdefault(called, array("Q")).append(self._number)
            else:
                if name in self._names or self._is_automatic(name):
                    raise ValueError(f"there is a task {name!r} already")
                self._names.add(name)
            task = Task(self, link, name, self._number, record, files)
            if self._background:
                self._start([task])
            else:
                self._waiting[name] = task
        return task

    def _is_automatic(self, name):
        """Whether a task without a name of its own was given this one. Only the numbers are kept, 8 bytes a task."""
        called, _, number = name.rpartition("-")
        return re.fullmatch("[1-9][0-9]*", number) and int(number) in self._numbers.get(called, ())

    def _start(self, tasks):
        """Sends tasks as the next ones of the sequential program. Either all are sent or, if one of them
        takes the result of a task that was neither sent before nor stands before it here, none."""
        with self._lock:
            before = set()
            for task in tasks:
                for need in task.record.needs:
                    if need.record is not None and need.id not in before:
                        raise ValueError(f"task {task.id!r} takes what task {need.id!r} gives, which is not started "
                                         "before it")
                before.add(task.id)
            for task in tasks:
                task.link.send(task.record.write(task.id), task)
                task.record = None
                self._waiting.pop(task.id, None)

    def _wait_for(self, task, timeout):
        if task.record is not None:
            raise BatchError(f"task {task.id!r} has not been started: call start() or fence(), or start what it was "
                             "compiled into")
        if self._place.resumed and not self._closed:
            self._put_fence(task.link)  # a resumed run starts no task before it has read a fence or the end
        if not task.link.wait(lambda: task.outcome is not None, timeout):
            raise TimeoutError(f"task {task.id!r} has not ended within {timeout} s")

    def _wait_for_all(self, tasks, timeout):
        end = None if timeout is None else time.monotonic() + timeout
        for task in tasks:
            self._wait_for(task, None if end is None else max(0, end - time.monotonic()))
