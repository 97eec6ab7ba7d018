"""rampipe_worker - runs functions for rampipe_batch. runtasks starts it, and gives it one call after another.

usage: rampipe_worker.py SPOOL PREPARATION

PREPARATION is a file of the spool that says how modules are found (rampipe_batch._preparation). Calls come,
and answers go, over the socket whose descriptor is in RAMPIPE_WORKER.
"""

import os
import pickle
import resource
import socket
import sys
import traceback

import rampipe_spool
from rampipe_spool import take  # noqa: F401  pickles call it by this name

FUNCTIONS = 256  # functions that are kept unpickled


class InputFailed(BaseException):
    """A task whose value is an argument has no result, because it failed. Usually runtasks then does not
    start the call, but a call behind a fence does not depend on tasks before the fence."""


class Worker:
    """A worker process. Standard output and standard error go to two files of the spool, which all its
    calls share: the lengths before and after a call say which part is its own."""

    def __init__(self, spool, preparation):
        self.pid = os.getpid()
        self.socket = socket.socket(fileno=int(os.environ.pop("RAMPIPE_WORKER")))
        self.socket.set_inheritable(False)
        name = f"worker-{socket.gethostname()}-{self.pid}"
        self.spool, self.reader = spool, rampipe_spool.Reader(spool)
        self.results = rampipe_spool.Writer(spool, name, known=False)
        self.printed, self.streams = [0, 0], [name + ".out", name + ".err"]
        for fd, stream in zip((1, 2), self.streams):
            to = os.open(os.path.join(spool, stream), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(to, fd)
            os.close(to)
            self.printed[fd - 1] = os.fstat(fd).st_size
        self.functions, self.wrong = {}, None
        rampipe_spool.call.preparing = True  # a main module that makes its Batch on import gets an error
        try:
            self.prepare(preparation)
        except BaseException as error:  # nobody reads it yet: every call will fail with it
            self.wrong = error
        rampipe_spool.call.preparing = False

    def prepare(self, preparation):
        """Sets the module search path of the client, and imports the client's main module if pickles
        refer to it (without cloudpickle)."""
        with open(os.path.join(self.spool, preparation), "rb") as file:
            data = pickle.load(file)
        sys.path[:], sys.argv[:] = data["sys_path"], data["sys_argv"]
        if "init_main_from_name" in data or "init_main_from_path" in data:
            import multiprocessing.spawn
            multiprocessing.spawn.prepare(data)

    # -- one call --

    def load(self, text, results):
        """The function and the arguments of a call. `results` has the values of the tasks whose handles
        are in the arguments; unpickling asks give() for them."""
        function, arguments = text.split(" ")
        rampipe_spool.call.given = lambda task, stream, place: self.give(results, task, stream, place)
        try:
            f = self.functions.get(function)
            if f is None:
                f = pickle.loads(self.reader.get(function))
                if len(self.functions) >= FUNCTIONS:
                    self.functions.clear()
                self.functions[function] = f
            return f, *pickle.loads(self.reader.get(arguments))
        finally:
            rampipe_spool.call.given = None

    def give(self, results, task, stream, place):
        """The result or the output of another task."""
        if place is not None:  # the other task is a process: its output is a file
            with open(place, errors="replace") as file:
                return file.read()
        if task not in results:
            raise InputFailed(task)
        value, *printed = results[task].split(" ")
        if stream == "result":
            return pickle.loads(self.reader.get(value))
        where = dict(zip(("stdout", "stderr"), printed)).get(stream, "=")
        return self.reader.get(where).decode(errors="replace")

    def run(self, text, results):
        """Makes the call. Returns the exit status 0 and the pickle of the value, or 1 and the pickle of
        the exception and its traceback: a tuple, which Task._raised() reads."""
        try:
            if self.wrong is not None:
                raise self.wrong
            f, args, kwargs = self.load(text, results)
            value = f(*args, **kwargs)
        except InputFailed as error:
            return 1, pickle.dumps(("input", str(error), ""))
        except BaseException as error:
            return 1, self.fail(error)
        try:
            return 0, rampipe_spool.dump(value)
        except Exception as error:
            return 1, self.dump_failure("result", f"{type(value).__name__}", error)

    def fail(self, error):
        """The pickle of an exception and of its traceback."""
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_globals is globals():
            frames = frames.tb_next  # frames of this file say nothing to the user
        text = "".join(traceback.format_exception(type(error), error, frames))
        if not isinstance(error, Exception):  # SystemExit, raised by get(), would end the client
            return pickle.dumps(("raised", f"raised {type(error).__name__}: {error}", text))
        try:
            data = rampipe_spool.dump((error, text))
            pickle.loads(data)  # many exceptions can be pickled, but not loaded
            return data
        except Exception as why:
            return self.dump_failure("exception", f"{type(error).__name__}: {error}", why, text)

    @staticmethod
    def dump_failure(what, said, why, text=""):
        """The pickle that says in texts alone why a result or an exception cannot be pickled."""
        return pickle.dumps((what, f"{what} that cannot be pickled ({said}): {type(why).__name__}: {why}", text))

    def range_of(self, fd):
        """The place in the spool of what the call printed; empty if it printed nothing."""
        begin, end = self.printed[fd - 1], os.fstat(fd).st_size
        self.printed[fd - 1] = end
        return f"{self.streams[fd - 1]}:{begin}:{end - begin}" if end > begin else ""

    def answer(self, line):
        """Runs the call of a line, and returns the record of its end: exit status, places of the value
        and of the output, CPU times (seconds) and the largest memory of this process (bytes)."""
        _, task, text, *fields = line.split("\t")
        results = dict(field.split("=", 1) for field in fields)
        before = resource.getrusage(resource.RUSAGE_SELF)
        status, data = self.run(text, results)
        if os.getpid() != self.pid:
            os._exit(0)  # a fork that the function did not end
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):
                pass  # closed or replaced, or the disk is full: the value of the call is good all the same
        place = self.results.put(data)
        self.results.flush()
        said = f"end\t{task}\t{status}\tresult={place}"
        printed = [self.range_of(1), self.range_of(2)]
        if any(printed):
            said += " " + " ".join(where or "=" for where in printed)
            said += "".join(f"\t{key}={where}" for key, where in zip(("stdout", "stderr"), printed) if where)
        after = resource.getrusage(resource.RUSAGE_SELF)
        return (f"{said}\tuser={after.ru_utime - before.ru_utime:.6f}\tsystem={after.ru_stime - before.ru_stime:.6f}"
                f"\tmemory={after.ru_maxrss * 1024}\n")

    def serve(self):
        """Answers calls until runtasks closes the connection. Each call ends in a line end, and the next
        one comes after the answer."""
        rest = b""
        while True:
            data = self.socket.recv(65536)
            if not data:
                return
            rest += data
            if rest.endswith(b"\n"):
                for line in rest.decode().split("\n")[:-1]:
                    self.socket.sendall(self.answer(line).encode())
                rest = b""


if __name__ == "__main__":
    # This file is __main__ until prepare() puts the client's main module in its place. That does no harm,
    # because no pickle refers to a class of this file.
    worker = Worker(*sys.argv[1:])
    try:
        worker.serve()
    except ConnectionError:
        pass  # runtasks has ended
