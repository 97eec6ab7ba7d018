"""Random programs of functions on files, keys and handles: in parallel they give what they give one after
the other. usage: batch_random.py FIRST LAST [kill]

With kill, the service is killed with SIGKILL at random moments, and the run is resumed until it ends."""
import contextlib
import os
import random
import signal
import sys
import tempfile
import threading
import time
import zlib

sys.path[:0] = [os.path.join(os.environ["ROOT"], "scripts"), os.path.join(os.environ["ROOT"], "tests", "tools")]
from rampipe_batch import Batch, InputFailed, ServiceError  # noqa: E402


class Wrong(Exception):
    pass


def step(number, d, reads, writes, values, fails, naps):
    """What a task does: a number made of all that it reads, which it writes."""
    total = number
    for kind, name in reads:
        if kind == "key":
            total = zlib.crc32(f"{total} {d.get(name)}".encode())
        else:
            with contextlib.suppress(FileNotFoundError), open(name) as file:
                total = zlib.crc32(f"{total} {file.read()}".encode())
    for value in values:
        total = zlib.crc32(f"{total} {value}".encode())
    time.sleep(naps)
    if fails:
        raise Wrong(number)
    for kind, name in writes:
        if kind == "key":
            d[name] = total
        else:
            with open(name, "w") as file:
                file.write(f"{total}" + "x" * (number % 3 * 1000))
    return total if number % 4 else [total] * 500


def make(seed, kill):
    """Steps: what each reads and writes, whose results it takes, whether it fails, what it sleeps."""
    draw = random.Random(seed)
    objects = [("file", f"f{i}") for i in range(draw.randint(1, 5))] + [("key", f"k{i}") for i in range(draw.randint(0, 4))]
    steps = []
    for i in range(draw.randint(2, 25)):
        reads = draw.sample(objects, min(len(objects), draw.randint(0, 3)))
        writes = draw.sample(objects, min(len(objects), draw.randint(0, 2)))
        if kill:  # what begins again must find what it found
            writes = [one for one in writes if one not in reads]
        takes = draw.sample(range(i), min(i, draw.choice([0, 0, 1, 2])))
        steps.append((reads, writes, takes, not kill and draw.random() < 0.05, draw.choice([0, 0, 0.002, 0.01])))
    return steps, draw


def sequentially(steps, fences):
    """Results, or why there is none; files and keys in the end. Behind a fence a file is read as it is."""
    d, given, bad = {}, [], set()
    for i, (reads, writes, takes, fails, _) in enumerate(steps):
        bad = set() if i in fences else bad
        if any(one in bad for one in reads) or any(given[j] in ("failed", "skipped") for j in takes):
            given.append("skipped")
        elif fails:
            given.append("failed")
        else:
            given.append(step(i, d, reads, writes, [given[j] for j in takes], False, 0))
        bad = bad.union(writes) if given[i] in ("failed", "skipped") else bad.difference(writes)
    return given, look(), d


def look():
    files = {}
    for name in filter(lambda name: name[0] == "f", os.listdir()):
        with open(name) as file:
            files[name] = file.read()
    return files


def got(task):
    try:
        return task.result.get(timeout=60)
    except Wrong:
        return "failed"
    except InputFailed:
        return "skipped"


def give(b, d, steps, fences):
    tasks = []
    for i, (reads, writes, takes, fails, naps) in enumerate(steps):
        if i in fences:
            b.fence()
        tasks.append(b.function(
            step, i, d, reads, writes, [tasks[j].result for j in takes], fails, naps,
            reads=[b.read(d, name) if kind == "key" else name for kind, name in reads],
            writes=[b.write(d, name) if kind == "key" else name for kind, name in writes]))
    return tasks


def in_parallel(steps, fences, background):
    with Batch(jobs=3, background_batching=background) as b:
        d = b.ddict()
        tasks = give(b, d, steps, fences)
        if not background:
            b.compile([task for task in tasks if task.record is not None]).start()
        return [got(task) for task in tasks], look(), dict(d.items())


def killed(steps, draw, log):
    """Until it has ended; the number of kills."""
    for kills in range(100):
        b = Batch(jobs=3, log=log, resume=kills > 0, grace=0.2)
        ends = threading.Event()
        if kills < 4:
            shell = b._service.process.pid
            with open(f"/proc/{shell}/task/{shell}/children") as file:
                runtasks = int(file.read().split()[0])
            killer = threading.Thread(target=kill_later, args=(runtasks, ends, draw.uniform(0, 0.25)))
            killer.start()
        try:
            with b:
                d = b.ddict()
                tasks = give(b, d, steps, ())
                result = [got(task) for task in tasks], look(), dict(d.items())
                ends.set()
                return (*result, kills)
        except ServiceError:
            pass
        finally:
            ends.set()
            if kills < 4:
                killer.join()
    raise AssertionError("it never ends")


def kill_later(runtasks, ends, seconds):
    if not ends.wait(seconds):
        with contextlib.suppress(ProcessLookupError):
            os.kill(runtasks, signal.SIGKILL)


def main(first, last, kill=""):
    kills = 0
    for seed in range(int(first), int(last) + 1):
        with tempfile.TemporaryDirectory() as folder:
            steps, draw = make(seed, bool(kill))
            for name in ("right", "got"):
                os.mkdir(os.path.join(folder, name))
            os.chdir(os.path.join(folder, "right"))
            fences = [] if kill else draw.sample(range(len(steps)), draw.choice([0, 0, 1]))
            right = sequentially(steps, fences)
            os.chdir(os.path.join(folder, "got"))
            if kill:
                *found, n = killed(steps, draw, os.path.join(folder, "log"))
                kills += n
            else:
                found = in_parallel(steps, fences, seed % 3 > 0)
            for what, want, have in zip(("results", "files", "keys"), right, found):
                assert want == have, f"seed {seed}: {what}: {want} are right, {have} came"
            os.chdir("/")
    print(f"{int(last) - int(first) + 1} programs, {kills} kills")


if __name__ == "__main__":
    signal.alarm(int(os.environ.get("BATCH_ALARM", "100")))
    main(*sys.argv[1:])
