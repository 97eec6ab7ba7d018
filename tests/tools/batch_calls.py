"""What the tests of rampipe_batch call, and what they check with."""
import os
import signal
import sys
import time


class Own(Exception):
    def __init__(self, code, more):
        super().__init__(f"code {code}")
        self.code, self.more = code, more

    def __reduce__(self):
        return Own, (self.code, self.more)


class Awkward(Exception):
    """Pickled as other exceptions are, which loses an argument of its own."""

    def __init__(self, one, two):
        super().__init__(one)


class Unloadable:
    def __reduce__(self):
        return int, ("no number",)


def add(*numbers, extra=0):
    return sum(numbers) + extra


def say(out, err=""):
    print(out, flush=True)  # before what the child says
    print(err, end="", file=sys.stderr)
    os.system("echo from a child")
    return len(out)


def deep(n):
    if n == 0:
        raise Own(7, [1])
    deep(n - 1)


def raises(kind, *args):
    raise kind(*args)


def lock():
    import threading
    return threading.Lock()


def unloadable():
    return Unloadable()


def raise_lock():
    raise ValueError(lock())


def die(how):
    if isinstance(how, str):
        os.kill(os.getpid(), getattr(signal, how))
    os._exit(how)


def sleep(seconds):
    time.sleep(seconds)
    return seconds


def stubborn(path):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    touch(path)
    time.sleep(60)


def touch(path):
    with open(path, "w") as file:
        file.write(str(os.getpid()))


def where(key=None):
    return os.getcwd(), os.environ.get(key or "", None)


def reserved(name="none"):
    return name


def count(d, key):
    return d.update_with(key, lambda old: old + 1, 0)


def pass_on(q, item):
    q.put(item)


def give(batch):
    return batch.function(add, 1).result.get()


def meet(folder, me, other):
    """Returns when both run at one time."""
    touch(os.path.join(folder, me))
    end = time.monotonic() + 30
    while not os.path.exists(os.path.join(folder, other)):
        if time.monotonic() > end:
            raise TimeoutError(other)
        time.sleep(0.005)
    return me


def note(folder, what):
    """Says that it ran, in a file of this process."""
    with open(os.path.join(folder, f"ran-{os.getpid()}"), "a") as file:
        file.write(f"{what}\n")
    return what
