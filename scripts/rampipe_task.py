"""rampipe_task - the objects that rampipe_batch returns: tasks, the handles of their results, and errors."""

import os
import pickle

import rampipe_spool
from rampipe_link import BatchError, ServiceError


class TaskError(BatchError):
    """A task has no result. `task` is the name of the task."""

    def __init__(self, task, message):
        super().__init__(task, message)
        self.task = task

    def __str__(self):
        return f"task {self.task!r} {self.args[1]}"


class TaskFailed(TaskError):
    """A task ended without a result. `status` is its exit status, the signal that ended it (SIGSEGV), the
    error with which it could not be started (ENOENT), or no_output: a file that it writes is missing."""

    def __init__(self, task, message, status=""):
        super().__init__(task, message)
        self.status = status


class TaskTimeout(TaskError, TimeoutError):
    """A task took longer than its timeout, and was killed."""


class InputFailed(TaskError):
    """A task was not run, because a task that it depends on failed. `failed` is the name of the task that
    failed first; the exception of that task is __cause__."""

    def __init__(self, task, message, failed=""):
        super().__init__(task, message)
        self.failed = failed


class ResultError(TaskError):
    """A result or an exception cannot be pickled in the worker, or cannot be loaded in the client."""


class RemoteTraceback(Exception):
    """The traceback of an exception in the process where the task ran."""

    def __str__(self):
        return f'\n"""\n{self.args[0]}"""'


class Access:
    """Objects that a task reads or writes, as returned by Batch.read() and Batch.write()."""

    __slots__ = ("writes", "names")

    def __init__(self, writes, names):
        self.writes, self.names = writes, names


def names_of(accesses, writes, place):
    """The names of the objects in reads= or writes=. place() makes the name of a plain path."""
    if isinstance(accesses, (str, os.PathLike, Access)):
        accesses = (accesses,)
    names = []
    for access in accesses:
        if not isinstance(access, Access):
            names.append(place(access))
        elif access.writes != writes:
            raise ValueError("{}= was given what {}() returned".format(*(("writes", "read") if writes
                                                                        else ("reads", "write"))))
        else:
            names += access.names
    return names


# ---- handles ------------------------------------------------------------------------------


class Handle:
    """Stands for the result or the output of a task, which may not have ended. If an argument of another
    task is a handle or contains one, that task waits for the value and gets it in place of the handle."""

    __slots__ = ("task", "stream")

    def __init__(self, task, stream):
        self.task, self.stream = task, stream

    def __repr__(self):
        return f"<{self.stream} of {self.task!r}>"

    def get(self, timeout=None, check=True):
        """Waits for the value and returns it. If the task failed, raises its exception; but with
        check=False stdout and stderr return what the task printed before it failed."""
        return self.task._get(self.stream, timeout, check)

    def __reduce__(self):
        """Pickles a call that will load the value. Only Batch.function() allows it: it sets `reads`, to
        which the task of each handle in the arguments is added."""
        reads = getattr(rampipe_spool.call, "reads", None)
        if reads is None:
            raise TypeError(f"{self!r} can be passed to tasks of its batch only; pass on what get() returns")
        return self.task._stand_in(self.stream, reads)


# ---- tasks --------------------------------------------------------------------------------


class _Common:
    """What tasks and compiled tasks have in common."""

    __slots__ = ()

    @property
    def result(self):
        """A handle of what a function returned, of the exit status of a process, or of the list of the
        results of compiled tasks."""
        return Handle(self, "result")

    def run(self, timeout=None):
        """Starts the task, waits for it and returns its result."""
        self.start()
        return self._get("result", timeout, True)


class Task(_Common):
    """A function, process or job that was given to a batch. `name` is its name in records and errors.

    record is there until the task is started. outcome is there when it has ended: the text of its last
    attempt record (None: none came) and of its block record (None: it succeeded). lost says why a task will
    never end. files has the paths of the output of a process; None for a function. value keeps what was
    fetched from the spool. asked is true once the program has asked for a result."""

    __slots__ = ("id", "number", "link", "record", "compiled", "outcome", "lost", "value", "files", "asked",
                 "batch", "__weakref__")

    def __init__(self, batch, link, name, number, record, files):
        self.batch, self.link, self.record, self.files = batch, link, record, files
        self.id, self.number = name, number
        self.compiled = self.outcome = self.lost = None
        self.value, self.asked = {}, False

    name = property(lambda self: self.id)

    def __repr__(self):
        return f"<task {self.id!r}>"

    stdout = property(lambda self: Handle(self, "stdout"), doc="What it printed.")
    stderr = property(lambda self: Handle(self, "stderr"), doc="What it printed on standard error.")

    # -- before the task is started --

    def read(self, base, *paths):
        """Adds objects that the task reads, given as to Batch.read(). The task must not be started."""
        self._change().reads += self.batch.read(base, *paths).names

    def write(self, base, *paths):
        """Adds objects that the task writes, given as to Batch.write(). The task must not be started."""
        self._change().writes += self.batch.write(base, *paths).names

    def _change(self):
        """The record, which can be changed until it is sent."""
        if self.record is None:
            raise BatchError(f"task {self.id!r} has been started already: give reads= and writes=, or make the "
                             "batch with background_batching=False")
        return self.record

    def start(self):
        """Gives the task to runtasks as the next one of the sequential program. A second call does
        nothing."""
        if self.record is not None:
            self.batch._start([self])

    # -- after it --

    def wait(self, timeout=None):
        """Waits until the task has ended, with success or without."""
        if self.outcome is None:
            self.batch._wait_for(self, timeout)

    def _attempt(self):
        """The status and the keys of the last attempt."""
        line = self.outcome[0]
        if line is None:
            return None, {}
        fields = line.split("\t")
        return fields[4], dict(field.split("=", 1) for field in fields[5:])

    def in_files(self):
        """True if the result or the output is in files of the spool. A result that begins with = stands in
        the record itself."""
        return self.files is not None or (self.outcome[0] is not None and "\tresult=" in self.outcome[0] and
                                          ("\tresult==" not in self.outcome[0] or "\tstd" in self.outcome[0]))

    def fetch(self):
        """Reads the result and the output from the spool into memory."""
        for stream in ("stdout", "stderr"):
            self._output(stream)
        self._bytes()

    def _bytes(self):
        """The pickle of the result or of the exception; None if the attempt has none."""
        if "bytes" not in self.value:
            said = self._attempt()[1].get("result")
            self.value["bytes"] = None if said is None else self._from_spool(said.split(" ")[0])
        return self.value["bytes"]

    def _from_spool(self, where):
        try:
            return self.link.reader.get(where)
        except (OSError, EOFError) as error:
            raise ServiceError(f"what task {self.id!r} gave is not in the spool: {error}") from error

    def _output(self, stream):
        """What the task printed: of a process its file, of a function its part of the worker's output."""
        if stream not in self.value:
            if self.files is not None:
                try:
                    with open(self.files[stream], errors="replace") as file:
                        self.value[stream] = file.read()
                except FileNotFoundError:
                    self.value[stream] = ""
            else:
                where = self._attempt()[1].get(stream)
                self.value[stream] = self._from_spool(where).decode(errors="replace") if where else ""
        return self.value[stream]

    def _get(self, stream, timeout, check):
        """Handle.get() for one of "result", "stdout", "stderr"."""
        self.wait(timeout)
        self.asked = True
        if check or stream == "result" or self.lost:
            error = self._error()
            if error is not None:
                raise error
        return self._output(stream) if stream != "result" else self._result()

    def _result(self):
        if self.files is not None:
            status = self._attempt()[0]
            return int(status) if status and status.isdigit() else status or 0
        if "result" not in self.value:
            try:
                self.value["result"] = pickle.loads(self._bytes())
            except Exception as error:
                raise ResultError(self.id, f"has a result that cannot be loaded here: {type(error).__name__}: "
                                  f"{error}") from error
            self.value["bytes"] = b""  # the value is loaded: its pickle is not needed any more
        return self.value["result"]

    def _error(self):
        """The exception of a task that failed; None if it has a result."""
        if self.lost:
            return ServiceError(f"task {self.id!r} has no result: {self.lost}")
        block = self.outcome[1]
        if block is None:
            return None
        cause, *keys = block.split("\t")[2:]
        keys = dict(key.split("=", 1) for key in keys)
        if cause == "input_failed":
            return self._input_failed(keys.get("task", ""))
        status, more = self._attempt()
        if status == "timeout":
            return TaskTimeout(self.id, "took longer than its timeout, and was killed")
        status = status or keys.get("status", cause)
        if "result" in more and status != "no_output":  # then the call returned, and its result is a value
            return self._raised()
        if cause != "failed":
            return TaskFailed(self.id, f"was not run: {cause}", cause)
        if status == "no_output":
            return TaskFailed(self.id, "has not made a file that it says it writes", status)
        how = (f"exited with status {status}" if status.isdigit() else f"was ended by {status}"
               if status.startswith("SIG") else f"could not be run: {status}")
        said = self._output("stderr")[-1000:].strip()
        return TaskFailed(self.id, f"{how}{': ' if said else ''}{said}", status)

    def _input_failed(self, name):
        error = InputFailed(self.id, f"was not run, because task {name!r} failed", name)
        failed = self.link.failed.get(name)
        if failed is not None:
            failed.asked = True
            error.__cause__ = failed._error()
        return error

    def _raised(self):
        """The exception in the pickle of a failed call. rampipe_worker writes (exception, traceback), or
        (kind, message, traceback) if the exception itself cannot be passed on."""
        try:
            loaded = pickle.loads(self._bytes())
            if len(loaded) == 3:
                what, message, text = loaded
                if what == "input":
                    return self._input_failed(message)
                error = (TaskError(self.id, message) if what == "raised" else
                         ResultError(self.id, f"has {'an' if what == 'exception' else 'a'} {message}"))
            else:
                error, text = loaded
        except ServiceError as error:
            return error
        except Exception as why:
            return ResultError(self.id, f"raised an exception that cannot be loaded here: {type(why).__name__}: {why}")
        if text:
            error.__cause__ = RemoteTraceback(text)
        return error

    def _stand_in(self, stream, reads):
        """What a pickle of arguments has in place of a handle: a function and its arguments."""
        reads.append(self)
        if self.files is None:
            return rampipe_spool.take, (self.id, stream)
        if stream == "result":
            if self.files["any"]:
                raise TypeError(f"the exit status of task {self.id!r}, which may be any, is known to get() only")
            return int, (0,)  # the other task runs only after exit status 0
        return rampipe_spool.take, (self.id, stream, self.files[stream])


class Compiled(_Common):
    """Several tasks as one. Its result is the list of their results."""

    __slots__ = ("tasks", "batch", "compiled")

    def __init__(self, batch, tasks):
        self.batch, self.tasks, self.compiled = batch, tasks, None

    def __repr__(self):
        return f"<{len(self.tasks)} compiled tasks>"

    def leaves(self):
        """The tasks in it, and in the compiled tasks in it, in order."""
        for task in self.tasks:
            yield from task.leaves() if isinstance(task, Compiled) else (task,)

    def start(self):
        """Gives all tasks to runtasks, in the order of the list."""
        self.batch._start([task for task in self.leaves() if task.record is not None])

    def wait(self, timeout=None):
        """Waits until all its tasks have ended."""
        self.batch._wait_for_all(list(self.leaves()), timeout)

    def _get(self, stream, timeout, check):
        self.wait(timeout)
        for task in self.leaves():
            task.asked = True
        return [task._get(stream, 0, check) for task in self.tasks]

    def _stand_in(self, stream, reads):
        return list, ([task.result for task in self.tasks],)
