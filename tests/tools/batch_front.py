"""What rampipe_batch promises. usage: batch_front.py TEST"""
import datetime
import functools
import gc
import multiprocessing
import operator
import os
import pickle
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings

sys.path[:0] = [os.path.join(os.environ["ROOT"], "scripts"), os.path.join(os.environ["ROOT"], "tests", "tools")]
import batch_calls as calls  # noqa: E402
import rampipe_spool  # noqa: E402
from rampipe_batch import (Batch, BatchError, InputFailed, RemoteTraceback, ResultError, ServiceError,  # noqa: E402
                           TaskError, TaskFailed, TaskTimeout)
from rampipe_link import Place  # noqa: E402
from shared_stores import descriptors  # noqa: E402

if __name__ == "__main__":
    signal.alarm(int(os.environ.get("BATCH_ALARM", "100")))


def raises(kind, pattern, call, *args, **keywords):
    try:
        call(*args, **keywords)
    except kind as error:
        assert re.search(pattern, str(error)), f"no '{pattern}' in '{error}'"
        return error
    raise AssertionError(f"no {kind.__name__} about '{pattern}'")


class InMain(Exception):
    pass


def in_main(x):
    if x < 0:
        raise InMain(x)
    return x + 1


# ---- results ------------------------------------------------------------------------------


def results():
    with tempfile.TemporaryDirectory() as folder, Batch(jobs=2) as b:
        f = b.function
        assert [f(calls.add, i, extra=2).result.get() for i in range(3)] == [2, 3, 4]
        big = f(operator.mul, "x", 100000)
        assert f(len, big.result).result.get() == 100000 == len(big.result.get())
        nested = f(max, {"a": [big.result, "y"]}["a"], key=len)
        assert nested.result.get() == big.result.get() and nested.result.get() is nested.result.get()
        assert f(functools.partial(calls.add, 1), extra=f(calls.add, 2).result).result.get() == 3
        assert f("a-b".split, "-").result.get() == ["a", "b"]
        assert f(in_main, 1).result.get() == 2, "a function of __main__"
        said = f(calls.say, "ä" * 500, "wrong")
        quiet = f(calls.add, 1)
        assert said.stdout.get() == "ä" * 500 + "\nfrom a child\n" and said.stderr.get() == "wrong"
        assert said.result.get() == 500 and quiet.stdout.get() == "" == quiet.stderr.get()
        assert f(str.upper, said.stderr).result.get() == "WRONG"
        assert f(calls.add, f(len, quiet.stdout).result).result.get() == 0
        # programs
        p = b.process("sh", ["-c", "echo \"$1\"; echo e >&2", "sh", "two\n\t'lines', 5%"])
        assert p.stdout.get() == "two\n\t'lines', 5%\n" and p.stderr.get() == "e\n" and p.result.get() == 0
        assert f(str.split, p.stdout).result.get() == ["two", "'lines',", "5%"]
        assert b.process("wc", ["-l"], stdin=p.stdout).stdout.get().strip() == "2"
        assert b.process("sh", ["-c", "exit 3"], ok="any").result.get() == 3
        assert b.process("sh", ["-c", "pwd; echo $A $RAMPIPE_COMMAND\n"], cwd=folder, env={"A": "1,2=%"}).stdout.get() == \
            f"{os.path.realpath(folder)}\n1,2=%\n"
        out = os.path.join(folder, "out")
        assert b.process("echo", ["kept"], stdout=out).stdout.get() == "kept\n" == open(out).read()
        # folders, environment, names
        options = {"cwd": folder, "env": {"KEY": "a\tb"}, "retries": 1, "cost": 2, "memory": 1000}
        task = f(calls.where, "KEY", options=options, name="a/b c%")
        assert task.result.get() == (os.path.realpath(folder), "a\tb") and task.name == "a/b c%"
        assert f(calls.add, task.result, name="x") and f(len, task.result).result.get() == 2
        # what has ended, but was not asked for, is there when the spool is gone
        late = [f(operator.mul, "z", 1000), b.process("echo", ["late"]), f(calls.say, "later")]
        assert f(calls.sleep, 0.01, timeout=datetime.timedelta(seconds=9)).run() == 0.01
        assert f(calls.sleep, 0).wait() is None
        slow = f(calls.sleep, 0.5)
        raises(TimeoutError, "task 'sleep-[0-9]*' has not ended within 0.01 s", slow.result.get, 0.01)
        handles = [late[0].result, late[1].stdout, late[2].stdout]
        raises(TypeError, "can be passed to tasks of its batch only", pickle.dumps, handles[0])
    assert late[0].result.get() == "z" * 1000 and late[1].stdout.get() == "late\n"
    assert handles[2].get().startswith("later") and slow.result.get() == 0.5
    raises(ValueError, "the batch is closed", b.function, len, [])


def order():
    """Hazards, compiled tasks, fences; what is started when."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with Batch(jobs=2) as b:
            write = [b.function(calls.touch, "x", writes="x") for _ in range(3)]
            read = b.function(os.path.getsize, "x", reads=[b.read(folder, "x")])
            assert read.result.get() > 0 and all(task.outcome for task in write)
            meet = [b.function(calls.meet, folder, me, other, reads="x") for me, other in (("p", "q"), ("q", "p"))]
            assert [task.result.get() for task in meet] == ["p", "q"], "two that read may run at one time"
            both = b.compile([read] + meet)
            assert both.result.get() == [read.result.get(), "p", "q"]
            assert b.function(len, both.result).result.get() == 3
            raises(ValueError, "another order", b.compile, [b.function(len, "a"), b.function(len, "b")][::-1])
            raises(BatchError, "started already", read.read, "y")
            raises(ValueError, "compiled already", b.compile, meet)
            b.fence(timeout=50)
            assert not b._link.tasks
        with Batch(background_batching=False, jobs=2) as b:
            first, second, third = (b.function(calls.add, i) for i in range(3))
            last = b.function(calls.add, first.result)
            raises(BatchError, "task 'add-1' has not been started", first.result.get)
            raises(ValueError, "takes what task 'add-1' gives, which is not started", last.start)
            raises(ValueError, "takes what task 'add-1' gives", b.compile([last, first]).start)
            assert first.run() == 0 and first.start() is None
            inner = b.compile([second])
            outer = b.compile([inner, third])
            assert outer.run(50) == [[1], 2]
            # the list is the order, not that of making
            reader = b.function(os.path.exists, "new")
            writer = b.function(calls.touch, "new")
            reader.read("new")
            writer.write(folder, "new")
            assert b.compile([writer, reader]).run() == [None, True]
            made = [b.function(calls.add, i) for i in range(3)]
            b.fence()
            assert [task.result.get(0) for task in made] == [0, 1, 2]
            mixed = [b.function(calls.add, 1), b.function(calls.add, 2)]
            mixed[0].start()
            raises(ValueError, "started already, others of the list have not", b.compile, mixed)
            raises(ValueError, "comes twice", b.compile, [mixed[1], mixed[1]])
            mixed[1].start()
        with warnings.catch_warnings(record=True) as seen, Batch(background_batching=False) as b:
            warnings.simplefilter("always")
            b.function(len, "never", name="never")
            b.close()
            assert ["'never'" in str(one.message) for one in seen] == [True]


# ---- errors -------------------------------------------------------------------------------


def errors():
    with tempfile.TemporaryDirectory() as folder, Batch(jobs=2, grace=0.2) as b:
        f = b.function
        # what a function raises: its own class, with the traceback of where it was raised
        own = f(calls.deep, 3, name="own")
        for _ in range(2):
            error = raises(calls.Own, "code 7", own.result.get)
        assert error.code == 7 and error.more == [1]
        assert isinstance(error.__cause__, RemoteTraceback) and str(error.__cause__).count("in deep") == 4
        assert "rampipe_worker" not in str(error.__cause__)
        raises(InMain, "-1", f(in_main, -1).result.get)
        raises(KeyError, "'k'", f(calls.raises, KeyError, "k").result.get)
        raises(TaskError, "task 'raises-[0-9]*' raised SystemExit: 3", f(calls.raises, SystemExit, 3).result.get)
        raises(TaskError, "raised KeyboardInterrupt", f(calls.raises, KeyboardInterrupt).result.get)
        raises(MemoryError, "", f(calls.raises, MemoryError).result.get)
        # what takes its result is not run, and says who failed first
        second = f(calls.add, own.result)
        third = f(calls.add, second.result)
        error = raises(InputFailed, "was not run, because task 'own' failed", third.result.get)
        assert error.failed == "own" and isinstance(error.__cause__, calls.Own)
        raises(InputFailed, "task 'own' failed", third.stdout.get)
        assert third.stdout.get(check=False) == ""
        file = os.path.join(folder, "file")
        raises(InputFailed, "because task 'w' failed", [f(calls.raises, OSError, 5, "no", writes=file, name="w"),
                                                       f(open, file, reads=file)][1].result.get)
        group = b.compile([f(calls.add, 1), f(calls.raises, Own := calls.Own, 1, 2)])
        raises(Own, "code 1", group.result.get)
        # what cannot be pickled
        raises(TypeError, r"the arguments of add\(\) cannot be pickled", f, calls.add, calls.lock())
        raises(TypeError, "needs something that can be called, got 5", f, 5)
        raises(ResultError, "task 'lock-[0-9]*' has a result that cannot be pickled .lock.", f(calls.lock).result.get)
        raises(ResultError, "has an exception that cannot be pickled .ValueError",
               f(calls.raise_lock).result.get)
        error = raises(ResultError, "an exception that cannot be pickled .Awkward: 1.: TypeError",
                       f(calls.raises, calls.Awkward, 1, 2).result.get)
        assert "in raises" in str(error.__cause__)
        raises(ResultError, "a result that cannot be loaded here: ValueError", f(calls.unloadable).result.get)
        raises(ValueError, "no number", f(calls.add, calls.Unloadable()).result.get)
        # ends that are none of a function
        for how, status, text in (("SIGSEGV", "SIGSEGV", "was ended by SIGSEGV"), ("SIGKILL", "SIGKILL", "by SIGKILL"),
                                  (7, "7", "exited with status 7"), (0, None, "")):
            error = raises(TaskFailed, text, f(calls.die, how).result.get)
            assert status in (None, error.status), error.status
        error = raises(TaskTimeout, "task 'slow' took longer than its timeout",
                       f(calls.sleep, 60, timeout=0.1, name="slow").result.get)
        assert isinstance(error, TimeoutError)
        raises(TaskTimeout, "took longer", f(calls.stubborn, file, timeout=0.3).result.get)
        raises(TaskFailed, "has not made a file that it says it writes", f(len, "", writes="nowhere/x").result.get)
        # programs
        error = raises(TaskFailed, "exited with status 3: why", b.process("sh", ["-c", "echo why >&2; exit 3"]).result.get)
        assert error.status == "3"
        failed = b.process("sh", ["-c", "echo said; exit 1"])
        raises(TaskFailed, "exited with status 1", failed.stdout.get)
        assert failed.stdout.get(check=False) == "said\n"
        raises(TaskFailed, "could not be run: ENOENT", b.process("no-such-program").result.get)
        raises(TaskTimeout, "longer", b.process("sleep", [60], timeout=0.1).result.get)
        raises(TaskFailed, "SIGABRT", b.process("sh", ["-c", "kill -ABRT $$"]).result.get)
        # what is refused at once
        raises(TypeError, "is no argument of a program", b.process, "echo", [own.result])
        raises(TypeError, "stdin takes a file, or what a process or job printed", b.process, "cat", stdin=own.stdout)
        raises(TypeError, "may be any, is known to get", f, calls.add, b.process("true", ok="any").result)
        raises(ValueError, "there is a task 'own' already", f, calls.add, name="own")
        plain = f(calls.add, 1)
        raises(ValueError, f"there is a task {plain.name!r} already", f, calls.add, name=plain.name)
        # a tuple that the call returned is not taken for the exception of one that failed
        untidy = f(divmod, 7, 2, writes="never made")
        assert raises(TaskFailed, "has not made a file", untidy.result.get).status == "no_output"
        raises(ValueError, "the name of a task is", f, calls.add, name="a,b")
        raises(ValueError, "timeout must be more than 0", f, calls.add, timeout=0)
        raises(ValueError, "cores must be 1 to 2, got 3", f, calls.add, options={"cores": 3})
        raises(TypeError, "options are .*, got 'core'", f, calls.add, options={"core": 1})
        raises(ValueError, "retries must be a number", f, calls.add, options={"retries": -1})
        raises(ValueError, "ok must be 'any'", b.process, "true", ok="all")
        raises(ValueError, "num_procs must be", b.job, "true", 0)
        raises(ValueError, "records hold UTF-8 without NUL", b.process, "true", ["a\0b"])
        raises(ValueError, "is no name of an object", f, calls.add, reads="@a.result")
        raises(ValueError, r"reads= was given what write\(\) returned", f, calls.add, reads=b.write("x"))
        raises(ValueError, "of an object is empty", b.read, "")
        raises(TypeError, r"reserved\(\) has a parameter 'name'", f, calls.reserved, name="mine")
        assert f(functools.partial(calls.reserved, name="mine")).result.get() == "mine"
        raises(ValueError, "variable", b.process, "true", env={"": "x"})
        with Batch(jobs=1) as other:
            raises(ValueError, "was given to another batch", other.function, calls.add, own.result)
            raises(ValueError, "belongs to another batch", other.compile, [own])
        raises(BatchError, "a task cannot give tasks to its own batch", f(calls.give, b).result.get)
        # failures that nobody asks for are told in the end
        f(calls.raises, KeyError, "k", name="quiet")
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            b.close()
            b.join(50)
        assert [str(one.message) for one in seen] == ["tasks failed, and nobody asked for their results: 'quiet'"], seen
    for wrong, text in (({"engine": "cloud"}, "engine must be local or slurm"), ({"jobs": 0}, "jobs must be"),
                        ({"orphans": "x"}, "orphans must be"), ({"resume": True}, "needs log="),
                        ({"name": ".x"}, "the name of a client")):
        raises(ValueError, text, Batch, **wrong)
    raises(ServiceError, "runtasks has ended: .*no-such", Batch, runtasks="/no-such")
    raises(ServiceError, "runtasks has ended", Batch, runtasks="/bin/false")
    gone = Place("/nowhere/socket", tempfile.gettempdir(), os.getcwd(), 1, False)
    stranger = Batch.__reduce__(b)[0](gone, True)
    raises(ServiceError, "/nowhere/socket: the service is not there", stranger.function, len, "")


# ---- templates ----------------------------------------------------------------------------

POWER = """
parameters: {f: , base: , i: , more: 5}
name: "add-{i + 1}{{x}}"
executables:
  - target: "{f}"
    arguments: ["{i}", 2]
    keywords: {extra: "{more}"}
reads: {base: "{base}", paths: ["in-{i}", "in-{i * 2 - 1}"]}
writes: ["{base}/out-{i}"]
timeout: {minutes: 1, seconds: 30}
"""


def templates():
    with tempfile.TemporaryDirectory() as folder, Batch(jobs=2, check_outputs=False, background_batching=False) as b:
        def template(text, *args, **kwargs):
            path = os.path.join(folder, "t.yml")
            with open(path, "w") as file:
                file.write(text)
            return b.import_func(path, *args, **kwargs)

        task = template(POWER, calls.add, base=folder)(3)
        assert task.name == "add-4{x}" and task.record.timeout == 90
        assert task.record.reads == [f"{folder}/in-3", f"{folder}/in-5"] and task.record.writes == [f"{folder}/out-3"]
        assert task.run() == 10 and template(POWER, calls.add, folder)(i=1, more=0).run() == 3
        assert template("executables: [{target: operator.add, arguments: [1, 2]}]")().run() == 3
        program = template("parameters: [word]\ntype: process\nexecutables:\n  - target: echo\n"
                           "    arguments: ['{word}', 'a {word}']\n    env: {X: y}", "w x")()
        program.start()
        assert program.stdout.get() == "w x a w x\n" and program.result.get() == 0
        job = template("type: job\nexecutables: [{target: a, ranks: 1}, {target: b, arguments: [x], ranks: 1}]")()
        assert job.record.command == "mpiexec -n 1 a : -n 1 b x" and "\tcores=2\t" in job.record.keys
        b._waiting.clear()
        d = b.ddict()
        keys = template("parameters: [d]\nexecutables: [{target: operator.not_, arguments: [1]}]\n"
                        "reads: {dictionary: '{d}', keys: [a, 2]}", d)()
        assert keys.record.reads == [d.object("a"), d.object(2)] and keys.run() is False
        # what is misspelt, missing or twice is named
        for old, new, text in (
                ("{i + 1}", "{j}", "{j} is no parameter: these are f, base, i, more"),
                ("{i + 1}", "{i.x}", "{i.x}: names, numbers and"),
                ("{i + 1}", "{i +}", "is no parameter, and nothing that is computed"),
                ("{{x}}", "{", "a brace stands alone"), ("timeout", "timeuot", "got 'timeuot'"),
                ("minutes", "minuets", "got 'minuets'"), ("target", "tagret", "got 'tagret'"),
                ("paths", "path", "got 'path'"), ("keywords", "ranks", "got 'ranks'"),
                ("more: 5", "more: [1, 2]", "has one value here"), ("more: 5", "m-e: 5", "letters, digits and _"),
                ("name:", "type: task\nname:", "type is function, process or job, got 'task'"),
                ("name:", "stdin: x\nname:", "stdin is of processes and jobs"),
                ("keywords: {extra", "keywords: {name: x, extra", "keywords cannot be name"),
                ('"{f}"', "alone", "MODULE.FUNCTION"), ("  - target", "  - {target: x}\n  - target", "has one executable"),
                ("name:", "timeout: 3\nname:", "'timeout' comes twice"), ("executables:", "more: [", "t.yml")):
            assert old in POWER
            made = functools.partial(template, POWER.replace(old, new), calls.add, folder)
            raises(ValueError, re.escape(text), lambda: made()(1))
        raises(TypeError, "'basis' is no parameter: these are f, base", template, POWER, basis=1)
        raises(TypeError, "parameter 'i' has no value", template(POWER, calls.add, folder))
        raises(TypeError, "parameter 'f' was given already", template(POWER, calls.add), f=1)
        raises(TypeError, "takes i, more; got 3 values", template(POWER, calls.add, folder), 1, 2, 3)
        raises(ValueError, "what ddict.. returned", template(
            "parameters: [d]\nexecutables: [{target: a.b}]\nreads: {dictionary: '{d}', keys: [a]}"), 5)
        raises(FileNotFoundError, "no.yml", b.import_func, "no.yml")


# ---- logs ---------------------------------------------------------------------------------


def log():
    """A log is that of any run; what is in it is not overwritten, and not run again."""
    with tempfile.TemporaryDirectory() as folder:
        at, ran = os.path.join(folder, "run"), os.path.join(folder, "ran")
        os.mkdir(ran)

        def program(resume, last):
            with Batch(log=at, resume=resume, jobs=2) as b:
                said = b.process("sh", ["-c", f"echo >>{ran}/program; echo said"])
                tasks = [b.function(calls.note, ran, i) for i in range(3)] + [b.function(calls.note, ran, last)]
                big = b.function(operator.mul, "x", 1000)
                client = b.client("other")
                with client:
                    other = client.function(calls.note, ran, "other")
                    assert other.result.get() == "other"
                assert b.function(len, big.result).result.get() == 1000 and said.stdout.get() == "said\n"
                assert [task.result.get() for task in tasks] == [0, 1, 2, last] and said.result.get() == 0

        def lines():
            return sorted(line for name in os.listdir(ran) for line in open(os.path.join(ran, name)))

        program(False, "last")
        assert lines() == ["\n", "0\n", "1\n", "2\n", "last\n", "other\n"]
        raises(FileExistsError, "there is a run already", program, False, "last")
        program(True, "last")
        assert len(lines()) == 6, "what had finished ran again"
        program(True, "changed")
        assert sorted(set(lines())) == ["\n", "0\n", "1\n", "2\n", "changed\n", "last\n", "other\n"] and len(lines()) == 7
        main = os.path.join(at, "main.log")
        names = ["note-2", "note-3", "note-4", "note-5", "sh-1"]
        drawn = subprocess.run(["timeline", main], check=True, stdout=subprocess.PIPE, text=True).stdout
        assert all(f'"name":"{name}"' in drawn for name in names), drawn
        counted = subprocess.run(["metrics", main], check=True, stdout=subprocess.PIPE, text=True).stdout
        assert "all\tdone\tvalue\t" in counted and "all\tfailed\tvalue\t0\n" in counted, counted
        assert sorted(os.listdir(at)) == ["main.log", "other.log", "spool"]


# ---- clients ------------------------------------------------------------------------------


def shared():
    """The dictionary and the queue in tasks, and as objects of hazards."""
    with Batch(jobs=2) as b:
        d, q = b.ddict(), b.queue()
        other = b.ddict()
        tasks = [b.function(calls.count, d, "n") for _ in range(5)]
        assert sorted(task.result.get() for task in tasks) == [1, 2, 3, 4, 5] and d["n"] == 5 and "n" not in other
        for i in range(5):
            b.function(operator.setitem, d, i, i, writes=b.write(d, i))
            b.function(calls.pass_on, q, i)
        total = b.function(calls.add, *[b.function(operator.getitem, d, i, reads=b.read(d, i)).result for i in range(5)])
        assert total.result.get() == 10 and {q.get(timeout=9) for _ in range(5)} == set(range(5))
        raises(queue.Empty, "", q.get_nowait)
        waits = b.ddict(name="w", wait_for_keys=True, timeout=30)
        late = b.function(operator.getitem, waits, "late")
        b.function(operator.setitem, b.ddict(name="w"), "late", 8)
        assert late.result.get() == 8
        small = b.ddict(max_bytes=100)
        raises(Exception, "max_bytes=100", b.function(operator.setitem, small, "k", "x" * 200).result.get)
        raises(ValueError, "name the keys", b.read, d)
    raises(ValueError, "is closed", d.get, "n")


def run_client(batch, number, many, folder):
    with batch:
        tasks = [batch.function(calls.note, folder, (number, i)) for i in range(many)]
        assert [task.result.get() for task in tasks] == [(number, i) for i in range(many)], "results of another"


def clients():
    """Processes of all kinds and threads, each with its own tasks."""
    workers, many = int(os.environ.get("BATCH_CLIENTS", "8")), int(os.environ.get("BATCH_TASKS", "160"))
    with tempfile.TemporaryDirectory() as folder, Batch(jobs=2) as b:
        running = []
        for i in range(workers):
            kind = multiprocessing.get_context("spawn") if i == 1 else multiprocessing.get_context("fork")
            kind = threading.Thread if i == 0 else kind.Process
            client = b.client(f"thread-{i}") if i == 0 else b
            running.append(kind(target=run_client, args=(client, i, many // workers, folder)))
            running[-1].start()
        mine = b.function(calls.add, 1)
        for one in running:
            one.join()
            assert getattr(one, "exitcode", 0) == 0
        assert mine.result.get() == 1
        ran = sorted(line for name in os.listdir(folder) for line in open(os.path.join(folder, name)))
        assert ran == sorted(f"({i}, {j})\n" for i in range(workers) for j in range(many // workers)), "lost or doubled"
        started = [name for name in os.listdir(b._place.spool) if name.endswith(".out")]
        assert len(started) <= 4, f"clients do not share workers: {started}"
        # a fork cannot wait for what its parent gave, and a client that goes without a word harms nobody
        slow = b.function(calls.sleep, 0.3)
        child = os.fork()
        if child == 0:
            try:
                raises(BatchError, "was given by another process", slow.result.get)
                b.function(calls.sleep, 50)
                b._link.flush()
                os._exit(0)
            except BaseException:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0 and slow.result.get() == 0.3


def gone():
    """The service is killed: everyone hears of it, at once and later, and what had ended is still there."""
    with tempfile.TemporaryDirectory() as folder:
        b = Batch(jobs=1)
        ended, early = b.function(operator.mul, "x", 1000), b.function(calls.add, 1)
        assert early.result.get() == 1
        file = os.path.join(folder, "begun")
        runs, waits = b.function(calls.stubborn, file), b.function(calls.add, 2)
        while not os.path.exists(file):
            time.sleep(0.01)
        os.kill(runtasks_of(b), signal.SIGKILL)
        for task in (runs, waits):
            raises(ServiceError, "has no result: runtasks has gone .exit status 137.: (it said nothing|Killed)", task.result.get)
        assert len(ended.result.get()) == 1000
        raises(ServiceError, "runtasks has gone", b.function, calls.add, 3)
        raises(ServiceError, "runtasks has gone", b.fence)
        os.killpg(int(open(file).read()), signal.SIGKILL)  # it lives until its call has ended
        b.close()
        b.join()


def runtasks_of(b):
    shell = b._service.process.pid
    return int(open(f"/proc/{shell}/task/{shell}/children").read().split()[0])


def slurm():
    """In an allocation; the spool is in this folder."""
    with Batch(engine="slurm", jobs=2) as b:
        assert os.path.dirname(b._place.spool) == os.getcwd()
        first = b.function(operator.mul, "x", 1000)
        assert b.function(len, first.result).result.get(60) == 1000
        assert b.function(os.getenv, "SLURM_JOB_ID").result.get(60), "not in an allocation"
        assert b.process("echo", ["said"]).stdout.get(60) == "said\n"
        d = b.ddict()
        assert b.function(calls.count, d, "n").result.get(60) == 1 == d["n"]
        raises(calls.Own, "code 7", b.function(calls.deep, 1).result.get, 60)
        raises(TaskTimeout, "took longer", b.function(calls.sleep, 60, timeout=0.2).result.get, 60)


# ---- what is left behind ------------------------------------------------------------------

ENDINGS = {"close": "b.close(); b.join()", "with": "with b: pass", "raise": "with b: raise KeyError('mine')",
           "exit": "sys.exit(3)", "end": "pass", "drop": "del b, tasks; gc.collect()", "_exit": "os._exit(0)",
           "terminate": "b.terminate()", "kill": "os.kill(os.getpid(), 9)", "term": "os.kill(os.getpid(), 15)",
           "interrupt": "os.kill(os.getpid(), 2); time.sleep(9)"}


def end_so(how, folder):
    """A batch with tasks that run and wait; its end."""
    b = Batch(jobs=2, grace=0.2)
    file = os.path.join(folder, "begun")
    seconds = 0 if how in ("close", "with") else 60
    tasks = [b.function(calls.sleep, seconds), b.process("sh", ["-c", f"sleep {seconds} & : >{file}; wait"]),
             b.function(calls.sleep, 0), b.function(len, "x" * 1000)]
    d = b.ddict()
    d["k"] = 1
    while not os.path.exists(file):
        time.sleep(0.005)
    os.unlink(file)
    exec(ENDINGS[how])


def left():
    fds, threads = descriptors(), threading.active_count()
    for how in ("close", "terminate"):
        with tempfile.TemporaryDirectory() as folder:
            end_so(how, folder)
        gc.collect()
        assert (descriptors(), threading.active_count()) == (fds, threads), "descriptors or threads are left"
    # with EVERY=1, as in CI, all
    endings = list(ENDINGS)[::1 if os.environ.get("EVERY") else 2]
    with tempfile.TemporaryDirectory(prefix="l") as top:
        started = {}
        for how in endings:
            os.mkdir(os.path.join(top, how))
            os.mkdir(os.path.join(top, how, "t"))
            started[how] = subprocess.Popen(
                [sys.executable, __file__, "end_so", how, os.path.join(top, how)], stderr=subprocess.PIPE, text=True,
                env={**os.environ, "TMPDIR": os.path.join(top, how, "t")})
        for how, process in started.items():
            said = process.communicate()[1]
            status = {"raise": 1, "exit": 3, "kill": -9, "term": -15, "interrupt": -2}.get(how, 0)
            assert process.returncode == status, f"{how}: {process.returncode} {said}"
            assert ("Traceback" in said) == (how in ("raise", "interrupt")), f"{how}: {said}"
        for how in endings:
            for _ in range(1000):
                files = os.listdir(os.path.join(top, how, "t"))
                running = processes_with(os.path.join(top, how))
                if not files and not running:
                    break
                time.sleep(0.01)
            assert not files and not running, f"{how}: {files} {running}"


def processes_with(text):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if text.encode() in file.read():
                    found.append(pid)
        except OSError:
            pass
    return found


def main():
    globals()[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    main()
