"""What rampipe_shared promises, on both stores. usage: shared_random.py TEST sqlite|redis
SHARED_SECONDS says how long random operations last."""
import errno
import itertools
import json
import math
import multiprocessing
import os
import pickle
import queue
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.environ["ROOT"], "scripts"))
import rampipe_shared  # noqa: E402
import rampipe_store  # noqa: E402
from rampipe_shared import DDict, KeyTimeout, Queue, SizeError, UnpicklingError  # noqa: E402
from shared_history import Op, check_dictionary, check_queue, check_the_checks  # noqa: E402
from shared_stores import STORES, File, Server, descriptors, ended, in_fork, raises  # noqa: E402

SECONDS = float(os.environ.get("SHARED_SECONDS", "0.4"))


# ---- one process --------------------------------------------------------------------------


class Point:
    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return self.x == other.x


class Spiteful:
    """It can be pickled, but not be loaded."""

    def __reduce__(self):
        return int, ("no number",)


def dictionary(store):
    fds = descriptors()
    with store() as at, DDict(at.address) as d:
        keys = ["a", "", "ä\0 ,%.\t\n;()", "\ud800", b"a", b"\xff;)", 1, -12345678901234567890, (), ("a",), (("a",), b"", (1, ())),
                "a.stdout", "x" * 5000]
        for i, key in enumerate(keys):
            d[key] = [i, Point(key)]
        assert list(d) == keys and len(d) == len(keys), "keys are not those written, in the order of insertion"
        for i, key in enumerate(keys):
            assert d[key] == [i, Point(key)] and key in d
        names = [d.object(key) for key in keys]
        assert len(set(names)) == len(keys), "two keys have one object"
        for name in names:
            assert name.startswith("@ddict:") and len(name) < 4096 and set(name).isdisjoint("\t\r\n,%=.") and name[-1] != "/"
        assert all(name.isascii() and name.isprintable() for name in names)
        d["a"] = 5  # stays where it was
        assert next(iter(d.items())) == ("a", 5) and ("a", 5) in d.items() and ("a", 6) not in d.items()
        assert 5 in d.values() and "none" not in d.keys() and list(d.keys()) == keys
        assert d[True] == d[1] and (1, True) not in d and d.get("none") is None and d.get("none", 3) == 3
        for wrong in (1.5, None, ["a"], ("a", None), {"a"}):
            raises(TypeError, "a key must be a str, bytes, int, or a tuple of these, got", d.get, wrong)
        raises(KeyError, "'none'", lambda: d["none"])
        raises(KeyError, "'none'", d.__delitem__, "none")
        raises(KeyError, "'none'", d.pop, "none")
        raises(KeyError, "'none'", d.update_with, "none", len)
        assert d.pop("none", 4) == 4 and d.popitem() == ("x" * 5000, [12, Point("x" * 5000)])
        assert d.setdefault("a", 6) == 5 and d.setdefault("new", 7) == 7 == d.pop("new")
        assert d.update_with("a", lambda x: x + 1) == 6 == d["a"]
        assert d.update_with("count", lambda x: x + 1, 0) == 1 and d["count"] == 1

        def meddle(old):  # another has changed it while we compute: once more, with what is there now
            if old == 1:
                d["count"] = 10
            return old + 1
        assert d.update_with("count", meddle) == 11
        del d["a"]
        assert "a" not in d and list(d)[0] == ""
        d.update({"a": 1}, b=2)
        assert list(d)[-2:] == ["a", "b"]

        # values that cannot go, or cannot come
        raises(TypeError, "the value of key 'lock' cannot be pickled: TypeError", d.__setitem__, "lock", threading.Lock())
        assert "lock" not in d
        d["spite"] = Spiteful()
        error = raises(UnpicklingError, "the value of key 'spite' cannot be unpickled here: ValueError", lambda: d["spite"])
        raises(ValueError, "no number", pickle.loads, error.data)
        raises(UnpicklingError, "'spite'", pickle.loads(pickle.dumps(error)).__class__ and list, d.values())

        if rampipe_shared.cloudpickle:
            d["f"] = lambda x: x + 1
            assert d.pop("f")(1) == 2
        else:
            raises(TypeError, "key 'f' cannot be pickled", d.__setitem__, "f", lambda x: x + 1)

        # names and copies
        if store is Server:  # the path of its socket, which need not say that it is one
            with DDict(at.path) as same:
                assert same["b"] == 2 and same.object("b") == d.object("b")
        with DDict(at.address, name="other") as other, pickle.loads(pickle.dumps(d)) as copy:
            assert len(other) == 0 and copy["b"] == 2 and list(copy) == list(d)
            other["b"] = 3
            assert d["b"] == 2 and d.object("b") == copy.object("b") != other.object("b")
        d.clear()
        assert len(d) == 0 == d.bytes_used() and list(d.items()) == []
        raises(KeyError, "empty", d.popitem)
        error = raises(ValueError, "is closed", other.get, "b")
        d["closed"] = other  # to pass it on is all right
        assert d["closed"]["b"] == 3

        # the size
        small = DDict(at.address, max_bytes=1000, name="small")
        small["a"] = b"x" * 700
        used = small.bytes_used()
        error = raises(SizeError, f"key ('b', 1) needs {len(pickle.dumps(b'x' * 700, 5)) + 10} bytes more, but {used} of "
                       "max_bytes=1000 are used", small.__setitem__, ("b", 1), b"x" * 700)
        assert error.key == ("b", 1) and error.used == used and error.limit == 1000 and list(small) == ["a"]
        assert str(pickle.loads(pickle.dumps(error))) == str(error)
        raises(SizeError, "key 'a'", small.update_with, "a", lambda x: x * 2)
        raises(SizeError, "key 'b'", small.setdefault, "b", b"x" * 700)
        raises(SizeError, "key 'b'", pickle.loads(pickle.dumps(small)).__setitem__, "b", b"x" * 700)
        small["a"] = b"y"
        small["b"] = b"x" * 700
        del small["a"]
        with DDict(at.address, name="small") as wide:
            wide["c"] = b"x" * 1000
        raises(SizeError, "key 'd'", small.__setitem__, "d", 1)
        small["c"] = b""  # what becomes smaller fits
        assert small.pop("b") == b"x" * 700 and small.pop("c") == b"" and small.bytes_used() == 0
        small.close()
        for wrong in ({"timeout": -1}, {"max_bytes": -1}, {"name": ""}, {"store_timeout": 0}):
            raises(ValueError, next(iter(wrong)), DDict, at.address, **wrong)
        del copy, other
    d.close()
    del small, d, error
    assert descriptors() == fds, "descriptors are left open"


def waiting(store):
    with store() as at, DDict(at.address) as d, Queue(at.address, maxsize=2) as q:
        reader = DDict(at.address, wait_for_keys=True)
        child = in_fork(lambda: (time.sleep(0.05), d.__setitem__("k", 1), q.put("item")))
        assert reader["k"] == 1 and q.get() == "item" and ended(child) == 0
        assert reader.get("none") is None and "none" not in reader and reader.pop("none", 3) == 3
        hasty = DDict(at.address, True, timeout=0.03)
        error = raises(KeyTimeout, "key 'none' has not come within 0.03 s", lambda: hasty["none"])
        assert isinstance(error, KeyError) and isinstance(error, TimeoutError)
        for value in (1, "two"):
            q.put(value)
        assert q.full() and q.qsize() == 2 and not q.empty()
        raises(queue.Full, "", q.put_nowait, 3)
        raises(queue.Full, "", q.put, 3, timeout=0.03)
        raises(queue.Full, "", pickle.loads(pickle.dumps(q)).put, 3, False)
        child = in_fork(lambda: (time.sleep(0.05), q.get()))
        q.put(3)
        assert ended(child) == 0 and [q.get(), q.get_nowait()] == ["two", 3] and q.empty() and not q.full()
        raises(queue.Empty, "", q.get_nowait)
        raises(queue.Empty, "", q.get, timeout=0.03)
        raises(ValueError, "timeout", q.get, timeout=-1)
        raises(TypeError, "an item cannot be pickled", q.put, threading.Lock())
        q.put(Spiteful())
        raises(UnpicklingError, "an item cannot be unpickled here", q.get)
        # who waits sleeps
        before = time.process_time()
        raises(queue.Empty, "", q.get, timeout=0.3)
        assert time.process_time() - before < 0.15, "waiting takes the processor"
        # a signal handler's exception ends a wait, and what comes after it is right
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        for seconds in (0.02, 0.0201, 0.0202):
            raises(KeyboardInterrupt, "", lambda after: (signal.setitimer(signal.ITIMER_REAL, after), q.get()), seconds)
            d["k"] = seconds
            q.put("a")
            assert d["k"] == seconds and q.get() == "a" and "none" not in d
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        hasty.close()
        reader.close()


# ---- many processes -----------------------------------------------------------------------


def work(address, folder, number, writes, seed):
    """Random operations, until there is a file `stop`. Each is in a file before it begins and when it
    has ended, so that a killed process leaves what it did."""
    draw, serial = random.Random(seed), itertools.count(number * 10 ** 7)
    d, q = DDict(address), Queue(address, maxsize=20)
    file = os.open(os.path.join(folder, str(number)), os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    def do(kind, key, argument, call):
        os.write(file, json.dumps([time.monotonic_ns(), kind, key, argument]).encode() + b"\n")
        result = call()
        os.write(file, json.dumps([time.monotonic_ns(), result]).encode() + b"\n")

    def put(value):
        try:
            q.put(value, timeout=draw.choice((0, 0.005)))
        except queue.Full:
            return "full"

    def take():
        try:
            return q.get(timeout=draw.choice((0, 0, 0.005)))
        except queue.Empty:
            return None

    def update(key, value):
        seen = []
        d.update_with(key, lambda old: (seen.append(old), value)[1], None)
        return seen[-1]

    while not os.path.exists(os.path.join(folder, "stop")):
        key, value = draw.choice("abc"), next(serial)
        chance = draw.random()
        if chance < 0.4:
            do("put" if writes else "take", None, value, (lambda: put(value)) if writes else take)
        elif not writes and chance < 0.5:
            do("items", None, None, lambda: dict(d.items()))
        elif not writes:
            do(*(("get", key, None, lambda: d.get(key)) if chance < 0.9 else ("has", key, None, lambda: key in d)))
        elif chance < 0.7:
            do("set", key, value, lambda: d.__setitem__(key, value))
        elif chance < 0.8:
            do("pop", key, None, lambda: d.pop(key, None))
        elif chance < 0.9:
            do("setdefault", key, value, lambda: d.setdefault(key, value))
        else:
            do("update", key, value, lambda: update(key, value))
        time.sleep(draw.random() * 0.002)


def read_history(path):
    if not os.path.exists(path):  # it was killed before it did anything
        return
    with open(path, encoding="ascii") as lines:
        rows = [json.loads(line) for line in lines if line.endswith("\n")]
    for begin, end in zip(rows[::2], rows[1::2] + [[math.inf, None]]):
        yield Op(begin[0], end[0], *begin[1:], end[1])


def random_operations(store, kills, seconds):
    """Two writers and four readers; with `kills`, one after the other is killed and replaced."""
    check_the_checks()
    if store is Server:
        import redis  # noqa: F401, before the forks, each of which would take long to import it
    seed = random.SystemRandom().getrandbits(32)
    draw = random.Random(seed)
    with store() as at, tempfile.TemporaryDirectory() as folder:
        begin, number, workers, killed = time.monotonic(), 0, {}, 0

        def start(writes):
            nonlocal number
            number += 1
            workers[in_fork(work, at.address, folder, number, writes, seed + number)] = writes
        for writes in (True, True, False, False, False, False):
            start(writes)

        def enough():  # on a machine with much else to do, too
            size = sum(os.path.getsize(os.path.join(folder, file)) for file in os.listdir(folder))
            return time.monotonic() - begin >= seconds and size > 30000 and (killed > 5 or not kills)
        while not enough():
            time.sleep(0.01 + draw.random() * seconds / 40)
            if not kills or killed == 60:
                continue
            child = draw.choice(list(workers))
            writes = workers.pop(child)
            os.kill(child, signal.SIGKILL)
            if ended(child) == -signal.SIGKILL:
                killed += 1
            start(writes)
        open(os.path.join(folder, "stop"), "w", encoding="ascii").close()
        for child in workers:
            assert ended(child) == 0, f"a worker has failed (seed {seed})"
        ops = [op for i in range(1, number + 1) for op in read_history(os.path.join(folder, str(i)))]
        now = time.monotonic_ns
        with DDict(at.address) as d, Queue(at.address) as q:
            for key in "abc":
                ops.append(Op(now(), now(), "get", key, None, d.get(key))._replace(end=now()))
            while not q.empty():
                begin = now()
                item = q.get()
                ops.append(Op(begin, now(), "take", None, None, item))
            sizes = sum(len(rampipe_shared._encode_key(key)) + len(pickle.dumps(value, 5)) for key, value in d.items())
            assert d.bytes_used() == sizes, "the bytes of what is there are counted wrong"
        in_queue = [op for op in ops if op.kind in ("put", "take")]
        wrong = check_dictionary([op for op in ops if op.kind not in ("put", "take")]) or check_queue(in_queue)
        cut = sum(op.end == math.inf for op in ops)
        print(f"{len(ops)} operations, {killed} processes killed, {cut} of them in the middle of one")
        if wrong:
            for file in sorted(os.listdir(folder)):
                with open(os.path.join(folder, file), encoding="ascii") as said:
                    print(file, *said.readlines()[-50:])
        assert not wrong, f"{wrong} (seed {seed})"


def forks(store):
    """Forks while threads are at work: parent and children go on, each with a connection of its own."""
    with store() as at, DDict(at.address) as d:
        d["n"] = 0
        stop = threading.Event()

        def count():
            while not stop.is_set():
                d.update_with("n", lambda n: n + 1)
                done.append(1)
        done = []
        threads = [threading.Thread(target=count) for _ in range(2)]
        for thread in threads:
            thread.start()

        def child(i):
            for _ in range(10):
                d.update_with("n", lambda n: n + 1)
            if i == 0:  # a fork of a fork
                assert ended(in_fork(d.__setitem__, "grandchild", 1)) == 0
        children = [in_fork(child, i) for i in range(8)]
        assert [ended(child) for child in children] == [0] * 8
        stop.set()
        for thread in threads:
            thread.join()
        assert d["n"] == 80 + len(done) and d["grandchild"] == 1

        # The parent closes last but the child goes on: what it writes is not lost.
        ready, go = os.pipe()
        other = DDict(at.address)
        other["open"] = 1
        orphan = in_fork(lambda: (os.read(ready, 1), other.__setitem__("late", 2), other.close()))
        other.close()
        d.close()
        os.write(go, b"x")
        assert ended(orphan) == 0
        with DDict(at.address) as again:
            assert again["late"] == 2 and again["n"] == 80 + len(done)
        # by pickle to an interpreter of its own, too
        d = DDict(at.address)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert pool.apply(d.__class__.get, (d, "late")) == 2
            assert pool.apply(d.object, ("late",)) == d.object("late")
        d.close()
        os.close(ready)
        os.close(go)


# ---- what goes wrong ----------------------------------------------------------------------


def gone(store):
    {"sqlite": gone_file, "redis": gone_server}["sqlite" if store is File else "redis"]()


def gone_file():
    with File() as at, DDict(at.address, store_timeout=0.1) as d, Queue(at.address) as q:
        ready, begin = os.pipe()

        def hold():
            held = DDict(at.address)
            with held._store.writing():
                os.write(begin, b"x")
                time.sleep(60)
        with d._store.using():  # as a signal handler would
            raises(RuntimeError, "a signal handler came in the middle of another operation", d.get, "k")
        child = in_fork(hold)
        os.read(ready, 1)
        raises(TimeoutError, f"{at.address}: another process has locked the file for more than 0.1 s", d.__setitem__, "k", 1)
        assert "k" not in d
        os.kill(child, signal.SIGKILL)
        ended(child)
        d["k"] = 1
        waits = in_fork(raises, FileNotFoundError, f"{at.address}: the file was removed or replaced", q.get)
        copy = pickle.dumps(d)
        time.sleep(0.05)
        for file in os.listdir(at.folder.name):
            os.unlink(os.path.join(at.folder.name, file))
        raises(FileNotFoundError, at.address, d.get, "k")
        raises(FileNotFoundError, at.address, pickle.loads(copy).get, "k")
        assert not os.path.exists(at.address), "the reader of a removed file has made another"
        assert ended(waits) == 0
        with DDict(at.address) as other:
            assert "k" not in other
            raises(FileNotFoundError, "removed or replaced", d.get, "k")
            raises(FileNotFoundError, "removed or replaced", pickle.loads(copy).get, "k")
        q.close()
        d.close()
        os.close(ready)
        os.close(begin)


def gone_server():
    with Server(True) as at:
        def lost(call, text):
            begin = time.monotonic()
            raises(ConnectionError, f"{at.address}: the server {text}", call)
            assert time.monotonic() - begin < 5
        d, q = DDict(at.address, wait_for_keys=True, store_timeout=4), Queue(at.address, store_timeout=4)
        d["k"] = 1
        ready, begin = os.pipe()

        def reader(call):
            os.write(begin, b"x")
            lost(call, "")
        children = [in_fork(reader, q.get), in_fork(reader, lambda: d["none"])]
        assert os.read(ready, 1) and os.read(ready, 1)
        time.sleep(0.03)
        copy = pickle.dumps(d)
        at.stop()
        assert [ended(child) for child in children] == [0, 0]
        lost(lambda: d["k"], "cannot be reached")
        lost(lambda: DDict(at.address), "cannot be reached")
        at.start()
        lost(lambda: d["k"], "has lost its data")  # and must not say that the key is not there
        lost(lambda: pickle.loads(copy)["k"], "has lost its data")
        with DDict(at.address, store_timeout=0.5) as other:
            other["k"] = 2
            lost(lambda: d["k"], "has lost its data")
            os.kill(at.process.pid, signal.SIGSTOP)
            lost(lambda: other["k"], "has not answered within 0.5 s")
            os.kill(at.process.pid, signal.SIGCONT)
            assert other.get("none") is None and other["k"] == 2, "an answer that came late was taken for another"
        with DDict(at.address) as other:
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            os.kill(at.process.pid, signal.SIGSTOP)
            raises(KeyboardInterrupt, "", lambda: (signal.setitimer(signal.ITIMER_REAL, 0.05), other["k"]))
            os.kill(at.process.pid, signal.SIGCONT)
            assert other.get("none") is None and other["k"] == 2, "the answer to what was interrupted was taken for another"
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
        d.close()
        q.close()
        os.close(ready)
        os.close(begin)


def refused(store):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "store")
        for wrong in ("http://host/", "redis+http://host", "sqlite://x"):
            raises(ValueError, f"the address must be a path, redis://, rediss:// or redis+unix://, got {wrong!r}", DDict, wrong)
        if store is File:
            with open(path, "w", encoding="ascii") as text:
                text.write("no database " * 100)
            raises(ValueError, f"{path}: this is no SQLite file", DDict, path)
            os.unlink(path)
            import sqlite3
            sqlite3.connect(path).execute("CREATE TABLE theirs (x)").connection.close()
            raises(ValueError, f"{path}: this is a database of another program", Queue, path)
            raises(FileNotFoundError, "none/store", DDict, os.path.join(folder, "none", "store"))
            os.unlink(path)
            with DDict(path) as d:
                d["a"] = 1
                with d._store.using() as connection:
                    connection.execute("PRAGMA max_page_count = 20")  # as a full disk does
                error = raises(OSError, f"{path}: database or disk is full", d.__setitem__, "b", b"x" * 100000)
                assert error.errno == errno.ENOSPC and list(d) == ["a"]
                d["a"] = 2
            mounts = os.path.join(folder, "mounts")
            with open(mounts, "w", encoding="ascii") as text:
                text.write("1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 0:9 / /net\\040work rw shared:1 - nfs4 s:/ rw\n"
                           f"3 1 0:8 / {folder}/scratch rw - lustre s:/ rw\n4 3 8:2 / {folder}/scratch/local rw - xfs /dev/b rw\n")
            rampipe_store.MOUNTS = mounts
            assert [rampipe_store.file_system(p) for p in ("/net work/a", "/network/a", "/a")] == ["nfs4", "ext4", "ext4"]
            os.makedirs(os.path.join(folder, "scratch/local"))
            DDict(os.path.join(folder, "scratch/local/store")).close()
            raises(OSError, "does not work on lustre, a network file system; give a file on a local disk, or a Redis server",
                   DDict, os.path.join(folder, "scratch/store"))
            assert os.listdir(os.path.join(folder, "scratch")) == ["local"]
            sys.modules["redis"] = None
            raises(ImportError, "redis://host:1/2: this needs the package python3-redis", DDict, "redis://me:secret@host:1/2")
            assert os.stat(os.path.join(folder, "scratch/local/store")).st_mode & 0o777 == 0o600
            return
    with Server(False, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru") as at:
        raises(ValueError, "drops keys when its memory is full (maxmemory-policy allkeys-lru)", DDict, at.address)
    with Server(False, "--maxmemory", "3mb", "--requirepass", "secret") as at:
        raises(ConnectionError, "the server cannot be reached", DDict, at.address)
        d = DDict(at.address + "?password=secret")
        assert "secret" not in repr(d)
        error = raises(OSError, "maxmemory", lambda: [d.__setitem__(i, b"x" * 100000) for i in range(100)])
        assert not isinstance(error, ConnectionError) and "secret" not in str(error)
        assert d[len(d) - 1] == b"x" * 100000
        with DDict(f"redis+unix://:secret@{at.path}") as same:
            assert len(same) == len(d) and same.object(1) == d.object(1) and "secret" not in repr(same)
        d.close()


def left(store):
    """Temporary files go with close, an exception, the end of the process; a killed one's with the next."""
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        fds = descriptors()
        with DDict() as d, Queue(d.address) as q:
            d["k"] = 1
            q.put(2)
            assert ended(in_fork(lambda: (d["k"], q.get(), d.close(), q.close()))) == 0
            assert d["k"] == 1 and len(os.listdir(folder)) == 1, "a fork removes what is its parent's"
        assert os.listdir(folder) == [] and descriptors() == fds
        raises(ZeroDivisionError, "", lambda: DDict().update_with("k", lambda x: 1 // x, 0))
        raises(ValueError, "", DDict, None, name="")
        assert os.listdir(folder) == [] and descriptors() == fds, "an exception leaves something behind"
        code = "import sys, rampipe_shared as r; d = r.DDict(); d[1] = 2; %s"
        env = {**os.environ, "TMPDIR": folder, "PYTHONPATH": os.path.join(os.environ["ROOT"], "scripts")}
        for last, status in (("sys.exit(5)", 5), ("import os; os.kill(os.getpid(), 9)", -9)):
            done = subprocess.run([sys.executable, "-c", code % last], env=env, stderr=subprocess.PIPE, check=False)
            assert (done.returncode, done.stderr) == (status, b"")
        assert len(os.listdir(folder)) == 1  # that of the killed one
        with DDict() as first, DDict() as second:
            assert len(os.listdir(folder)) == 2, "that of a killed process stays, or that of a living one does not"
            first[1], second[1] = 1, 2
            assert first[1] == 1
        assert os.listdir(folder) == []
        tempfile.tempdir = None


def objects(store):
    """Tasks whose hazards are keys, for task2graph."""
    with store() as at, DDict(at.address) as d:
        one, two = d.object("a,b.stdout"), d.object(("a", 1))
    with DDict(at.address) if store is not File else DDict() as again:
        again["x"] = 1
    print(f"task\tw\tinf\t-\t{one}\ttrue\ntask\tr\tinf\t{one}\t{two}\ttrue\ntask\to\tinf\t-\t{two}x\ttrue")


def main():
    test, store = sys.argv[1], STORES[sys.argv[2]]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("it took too long"))  # and stop the server
    if test in ("random", "kills"):
        random_operations(store, test == "kills", SECONDS)
    else:
        globals()[test](store)


if __name__ == "__main__":  # not in a process of a pool, which imports this, too
    main()
