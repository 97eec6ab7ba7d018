"""The two stores of shared_random.py, one of them with a server of our own; and what tests are made of."""
import os
import signal
import socket
import subprocess
import tempfile
import time
import traceback


class File:
    """A folder for a store in a file, which has nothing but that file in the end."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.address = os.path.join(self.folder.name, "store")
        return self

    def __exit__(self, kind, *_):
        left = sorted(os.listdir(self.folder.name))
        self.folder.cleanup()
        assert kind or left in ([], ["store"]), f"files are left behind: {left}"


class Server:
    """A Redis server of our own. Its socket is in a folder with a short name, as sockets need one."""

    def __init__(self, tcp=False, *options):
        self.tcp, self.options = tcp, options

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(dir="/tmp")
        path = os.path.join(self.folder.name, "redis")
        self.address = f"redis+unix://{path}"
        self.port = 0
        if self.tcp:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.port = free.getsockname()[1]
            self.address = f"redis://127.0.0.1:{self.port}/3"
        self.path = path
        self.start()
        return self

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--unixsocket", self.path,
             "--save", "", "--dir", self.folder.name, *self.options],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        for _ in range(1000):
            try:
                with socket.socket(socket.AF_UNIX) as ours:
                    ours.connect(self.path)
                    return
            except OSError:
                assert self.process.poll() is None, "redis-server does not start"
                time.sleep(0.005)
        raise AssertionError("redis-server does not answer")

    def stop(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.process.wait()

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGCONT)
        self.stop()
        self.folder.cleanup()


STORES = {"sqlite": File, "redis": Server}


def raises(kind, text, call, *args, **keywords):
    try:
        call(*args, **keywords)
    except kind as error:
        assert text in str(error), f"no '{text}' in '{error}'"
        return error
    raise AssertionError(f"no {kind.__name__} about '{text}'")


def in_fork(call, *args):
    """Its process; exit status 1 if it raises."""
    child = os.fork()
    if child:
        return child
    try:
        call(*args)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def descriptors():
    return len(os.listdir("/proc/self/fd"))
