"""rampipe_worker - runs functions for rampipe_batch. runtasks starts it, and gives it one call after the other.

usage: rampipe_worker.py SPOOL PREPARATION
"""

import os
import pickle
import resource
import socket
import sys
import traceback

import rampipe_spool
from rampipe_spool import take  # noqa: F401  pickles name it

FUNCTIONS = 256  # so many are kept


class InputFailed(BaseException):
    """There is no result of a task: it failed, in front of a fence."""


class Worker:
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
        rampipe_spool.call.preparing = True  # Batch() says what is wrong then
        try:
            self.prepare(preparation)
        except BaseException as error:  # every call tells it
            self.wrong = error
        rampipe_spool.call.preparing = False

    def prepare(self, preparation):
        """Makes modules importable as they are in the client, and its __main__, if it must be."""
        with open(os.path.join(self.spool, preparation), "rb") as file:
            data = pickle.load(file)
        sys.path[:], sys.argv[:] = data["sys_path"], data["sys_argv"]
        if "init_main_from_name" in data or "init_main_from_path" in data:
            import multiprocessing.spawn
            multiprocessing.spawn.prepare(data)

    # -- one call --

    def load(self, text, results):
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
        """A result, or what was printed, of another task."""
        if place is not None:  # of a process
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
        """Exit status, and the pickle of the value, or of the exception and its traceback."""
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
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_globals is globals():
            frames = frames.tb_next  # what is ours says nothing to the user
        text = "".join(traceback.format_exception(type(error), error, frames))
        if not isinstance(error, Exception):  # SystemExit is not to end the client
            return pickle.dumps(("raised", f"raised {type(error).__name__}: {error}", text))
        try:
            data = rampipe_spool.dump((error, text))
            pickle.loads(data)
            return data
        except Exception as why:
            return self.dump_failure("exception", f"{type(error).__name__}: {error}", why, text)

    @staticmethod
    def dump_failure(what, said, why, text=""):
        return pickle.dumps((what, f"{what} that cannot be pickled ({said}): {type(why).__name__}: {why}", text))

    def range_of(self, fd):
        """Where in the spool is what the call printed; empty: it printed nothing."""
        begin, end = self.printed[fd - 1], os.fstat(fd).st_size
        self.printed[fd - 1] = end
        return f"{self.streams[fd - 1]}:{begin}:{end - begin}" if end > begin else ""

    def answer(self, line):
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
                pass  # closed, replaced, or the disk is full: what is missing is no result
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
    # Classes of this file are pickled by nobody, so that it is __main__ does no harm; a __main__ of
    # the client takes its place.
    worker = Worker(*sys.argv[1:])
    try:
        worker.serve()
    except ConnectionError:
        pass  # runtasks has gone
