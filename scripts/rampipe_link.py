"""rampipe_link - how rampipe_batch talks to runtasks: the service, and one client's connection to it.

Two threads belong to a connection. One sends records; those that come while it writes go in one piece
after it. The other reads what became of tasks.
"""

import collections
import contextlib
import errno
import os
import shlex
import shutil
import signal
import socket
import subprocess
import threading
import time
import weakref

import rampipe_spool
import rampipe_store

PREFIX = ""  # what the tools were installed with
HERE = os.path.dirname(os.path.abspath(__file__))


class BatchError(Exception):
    """What went wrong outside of a task's own code."""


class ServiceError(BatchError):
    """runtasks could not be started, refused what it was given, or has gone."""


# Where a service is; what another process needs to become a client.
Place = collections.namedtuple("Place", "socket spool folder jobs resumed")


# ---- the service --------------------------------------------------------------------------

# The shell removes the spool if we were killed: its standard input is a pipe, from which a line comes if
# we live. Its standard output is the lock that tells others that the spool is in use.
_SERVICE = ('trap : HUP INT TERM; spool=$1 ended=$2; shift 2; "$@" </dev/null >&2; status=$?; echo >"$ended"; '
            'read -r lives || [ -z "$spool" ] || rm -rf -- "$spool"; exit $status')


def find_runtasks(path=None):
    name = PREFIX + "runtasks"
    path = path or os.environ.get("RAMPIPE_RUNTASKS")
    if path:
        return os.fspath(path)
    if HERE.endswith("/share/rampipe/scripts"):
        installed = os.path.join(HERE[:-len("/share/rampipe/scripts")], "bin", name)
        if os.access(installed, os.X_OK):
            return installed
    looked = os.environ.get("PATH", os.defpath) + os.pathsep + os.path.join(HERE, "..", "build", "bin")
    found = shutil.which(name, path=looked)
    if found is None:
        raise ServiceError(f"{name} is not on the PATH: install rampipe, or give runtasks=PATH or RAMPIPE_RUNTASKS")
    return found


def _tail(path, most=2000):
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - most))
            return file.read().decode(errors="replace").strip()
    except OSError:
        return ""


class Service:
    """runtasks --listen, a child of this process, and its spool."""

    def __init__(self, jobs, engine, log, resume, grace, options, runtasks):
        self.process, self.grace = None, grace
        self.kept = log is not None
        self.folder = os.getcwd()
        command = [find_runtasks(runtasks)]
        if self.kept:
            spool, lock = self._open_log(log, resume), None
        else:
            spool, lock = rampipe_store.make_folder(
                *("rampipe-batch-", None) if engine == "local" else (".rampipe-batch-", self.folder))
        self._lock, self.spool, self._short = lock, spool, None
        self._end = weakref.finalize(self, _finish, self.__dict__, os.getpid())
        try:
            at = os.path.join(spool, "socket")
            if len(os.fsencode(at)) > 107:  # more does not fit into the address of a socket
                self._short = rampipe_store.make_folder("rampipe-batch-", "/tmp")
                at = os.path.join(self._short[0], "socket")
            command += ["--listen", at, *options]
            if jobs is not None:
                command += ["-j", str(jobs)]
            if engine != "local":
                command += ["--engine", engine]
            if self.kept:
                command += ["--resume" if resume else "--log", os.path.abspath(log)]
            self.errors = os.path.join(spool, "service.err")
            ended = os.path.join(spool, "ended")
            with contextlib.suppress(FileNotFoundError):
                os.unlink(ended)
            pipe, self.lives = os.pipe()
            with open(self.errors, "wb") as errors, open(pipe, "rb") as pipe:
                self.process = subprocess.Popen(
                    ["sh", "-c", _SERVICE, "sh", "" if self.kept else spool, ended, *command],
                    stdin=pipe, stdout=subprocess.DEVNULL if lock is None else lock, stderr=errors, start_new_session=True)
            self.place = Place(at, spool, self.folder, jobs, resume)
            self.first = self._connect(at)
        except BaseException:
            self.end()
            raise

    @staticmethod
    def _open_log(log, resume):
        spool = os.path.join(os.path.abspath(log), "spool")
        if os.path.exists(spool) and not resume:
            raise FileExistsError(errno.EEXIST, "there is a run already; resume=True goes on with it", os.fspath(log))
        os.makedirs(os.path.dirname(spool), exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(spool, 0o700)
        return spool

    def _connect(self, at):
        """The service ends when its first client has gone, so we are the first."""
        refused = None
        while True:
            with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
                return connect(at)
            if os.path.exists(os.path.join(self.spool, "ended")):
                _say_alive(self.__dict__)
                status = self.process.wait()
                raise ServiceError(f"runtasks has ended: {_tail(self.errors) or status}")
            if os.path.exists(at):
                refused = refused or time.monotonic()
                if time.monotonic() - refused > 10:
                    raise ServiceError(f"{at}: nobody listens there; runtasks runs on another machine?")
            time.sleep(0.002)

    def why(self):
        """Why it is not there any more."""
        _say_alive(self.__dict__)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        status = self.process.returncode
        how = "" if status is None else f" (exit status {status})"
        return f"runtasks has gone{how}: {_tail(self.errors) or 'it said nothing'}"

    def signal(self):
        """Ends the tasks that run, and it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)

    def wait(self, timeout=None):
        _say_alive(self.__dict__)
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"the service has not ended within {timeout} s: its clients have not "
                               "all closed") from None

    def end(self):
        """Ends what runs, and removes the spool. May be called again."""
        self._end()


def _say_alive(service):
    """From now on it is for us to remove the spool."""
    lives = service.pop("lives", None)
    if lives is not None:
        with contextlib.suppress(BrokenPipeError):
            os.write(lives, b"yes\n")
        os.close(lives)


def _finish(service, creator):
    """In a fork, whose it is not, it does nothing."""
    if creator != os.getpid():
        return
    process = service["process"]
    if process is not None and process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
    _say_alive(service)
    if process is not None:
        for more in (signal.SIGTERM, signal.SIGKILL):  # for one that heeds no first signal
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(service["grace"] + 3)
                break
            os.killpg(process.pid, more)
        process.wait()
    if service["_short"] is not None:
        rampipe_store.remove_folder(*service["_short"], creator)
    if service["_lock"] is not None:
        rampipe_store.remove_folder(service["spool"], service["_lock"], creator)


def connect(at):
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        link.connect(at)
    except BaseException:
        link.close()
        raise
    return link


# ---- a client's connection ----------------------------------------------------------------

_links = weakref.WeakSet()


def _after_fork():
    for link in list(_links):  # the connection is the parent's
        link.socket.close()


os.register_at_fork(after_in_child=_after_fork)


class Link:
    """Sends records of one client, and hears what became of its tasks."""

    def __init__(self, place, name, service=None):
        self.place, self.name, self.service, self.pid = place, name, service, os.getpid()
        self.reader = rampipe_spool.Reader(place.spool)
        self.calls = rampipe_spool.Writer(place.spool, name + ".calls")
        try:
            self.socket = service.first if service else connect(place.socket)
        except OSError as error:
            self.calls.close()
            raise ServiceError(f"{place.socket}: the service is not there: {error.strerror}") from error
        self.lock = threading.Lock()  # of what is below
        self.ended = threading.Condition(self.lock)
        self.filled = threading.Condition(self.lock)
        self.out = [f"#rampipe\t1\nclient\t{name}\n"]
        self.tasks, self.attempts = {}, {}  # those that have not ended
        self.failed = {}
        self.kept = weakref.WeakSet()  # those that have ended, with results that are in files
        self.sent, self.closing, self.over, self.ending = 0, False, None, None
        self._sending = threading.Lock()
        _links.add(self)
        for work in (self._send_all, self._read_all):
            threading.Thread(target=work, name=f"rampipe {name}", daemon=True).start()

    # -- to the service --

    def send(self, text, task=None):
        with self.lock:
            if self.over:
                raise ServiceError(self.over)
            if self.closing:
                raise ValueError("the batch is closed")
            if task is not None:
                self.tasks[task.id] = task
                self.sent += 1
            self.out.append(text)
            if len(self.out) == 1:
                self.filled.notify()

    def flush(self):
        with self._sending:
            with self.lock:
                out, self.out = self.out, []
            if not out:
                return
            try:
                self.calls.flush()
                self.socket.sendall("".join(out).encode())
            except ConnectionError:
                pass  # of which the other thread hears
            except OSError as error:
                self._stop(f"{self.place.spool}: {error.strerror or error}")

    def _send_all(self):
        while True:
            with self.lock:
                while not self.out:
                    if self.closing or self.over:
                        return
                    self.filled.wait()
            if not self.closing:
                time.sleep(0.001)  # more may come; who waits for a result sends at once
            self.flush()

    def close(self):
        """No more tasks come."""
        with self.lock:
            if self.closing or self.over:
                return
            self.out.append("#end\n")
            self.closing = True
            self.filled.notify()

    # -- from the service --

    def _read_all(self):
        rest, said, why = b"", None, None
        try:
            while True:
                data = self.socket.recv(1 << 18)
                if not data:
                    break
                data = rest + data
                cut = data.rfind(b"\n") + 1
                rest = data[cut:]
                said = self._take(data[:cut].decode().split("\n")) or said
        except OSError as error:
            why = f"the connection to runtasks broke: {error.strerror}"
        if self.ending:
            self._stop(self.ending)
        elif said == "#end":
            self._stop("the batch has ended")
        elif said is not None:
            self._stop(f"runtasks refused what came: {said}")
        else:
            self._stop(self.service.why() if self.service else why or "runtasks has gone")

    def _take(self, lines):
        said, ended = None, []
        for line in lines:
            kind, _, more = line.partition("\t")
            if kind == "attempt":
                self.attempts[more.partition("\t")[0]] = more
            elif kind == "done" or kind == "block":
                task = self.tasks.get(more.partition("\t")[0])
                if task is not None:
                    task.outcome = (self.attempts.pop(task.id, None), None if kind == "done" else more)
                    ended.append(task)
            elif kind == "error":
                said = more
            elif kind == "#end":
                said = kind
        if ended:
            with self.lock:
                for task in ended:
                    del self.tasks[task.id]
                    if task.outcome[1] is not None:
                        self.failed[task.id] = task
                    if task.in_files():
                        self.kept.add(task)
                self.ended.notify_all()
        return said

    def _stop(self, why):
        """Nothing more will come: what has not ended never will."""
        with self.lock:
            if self.over:
                return
            self.over = why
            for task in self.tasks.values():
                task.outcome = (None, None)
                task.lost = why
            self.tasks.clear()
            self.filled.notify_all()
            self.ended.notify_all()
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    # -- waiting --

    def wait(self, done, timeout=None):
        """Until done() is true; False: not in time."""
        if os.getpid() != self.pid:
            raise BatchError("this task was given by another process: only its results can be passed on")
        if self.out:
            self.flush()
        with self.lock:
            return self.ended.wait_for(done, timeout)

    def wait_all(self, timeout=None):
        return self.wait(lambda: not self.tasks, timeout)

    def keep(self):
        """Brings what is not fetched yet from the spool into memory, before it is removed."""
        for task in list(self.kept):
            task.fetch()
        self.kept.clear()

    def hang_up(self):
        """Hears no more."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def disconnect(self):
        """Gives back what the operating system has lent."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        if self.pid == os.getpid():
            self.wait(lambda: self.over is not None, 10)
        self.socket.close()
        self.reader.close()
        self.calls.close()


def command_line(words):
    """The words as COMMAND of a record, and what its environment must have. A record holds no line
    end and no TAB, a value of env does."""
    line = shlex.join(words)
    if not any(c in line for c in "\t\r\n"):
        return line, {}
    return "sh -c " + shlex.quote('eval "unset RAMPIPE_COMMAND; exec $RAMPIPE_COMMAND"'), {"RAMPIPE_COMMAND": line}
