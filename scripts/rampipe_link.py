"""rampipe_link - how rampipe_batch talks to runtasks: the service, and the connection of one client to it.

A connection has two threads. One sends records, and puts all records that came during a write into the
next write. The other one reads the records that say how tasks ended.
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

PREFIX = ""  # prefix of the tools' names; `make install` sets it
HERE = os.path.dirname(os.path.abspath(__file__))


class BatchError(Exception):
    """An error that is not an exception of a task's own code."""


class ServiceError(BatchError):
    """runtasks could not be started, refused a record, or has ended."""


# Where a service is: all that another process needs to become a client.
Place = collections.namedtuple("Place", "socket spool folder jobs resumed")


# ---- the service --------------------------------------------------------------------------

# runtasks runs under a shell, which can remove the spool if this process is killed. The standard input of
# the shell is a pipe from this process: it reads a line if this process is alive and removes the spool
# itself (_say_alive), and the end of the pipe if this process was killed. Its standard output is the
# locked file of the spool, so the lock is held as long as either process lives (rampipe_store.make_folder).
_SERVICE = ('trap : HUP INT TERM; spool=$1 ended=$2; shift 2; "$@" </dev/null >&2; status=$?; echo >"$ended"; '
            'read -r lives || [ -z "$spool" ] || rm -rf -- "$spool"; exit $status')


def find_runtasks(path=None):
    """The program: the one given, or RAMPIPE_RUNTASKS, or the one installed with this file, or one on the
    PATH or built in this tree."""
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
    """The last bytes of a file, as text: the end of an error log says why a program ended."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - most))
            return file.read().decode(errors="replace").strip()
    except OSError:
        return ""


class Service:
    """The process of runtasks --listen, a child of this process, and its spool: the folder with calls,
    results and output. With log= the spool stays; without it, it is temporary."""

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
            if len(os.fsencode(at)) > 107:  # struct sockaddr_un has room for 107 bytes and a NUL
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
        """The spool of a run that is kept. Without resume= a spool of an earlier run is an error."""
        spool = os.path.join(os.path.abspath(log), "spool")
        if os.path.exists(spool) and not resume:
            raise FileExistsError(errno.EEXIST, "there is a run already; resume=True goes on with it", os.fspath(log))
        os.makedirs(os.path.dirname(spool), exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(spool, 0o700)
        return spool

    def _connect(self, at):
        """Connects to the service as soon as it listens. This is its first client, and it stays until the
        end: the service ends when clients have come and all have gone."""
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
        """The message for a service that has ended: its exit status and its last words."""
        _say_alive(self.__dict__)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        status = self.process.returncode
        how = "" if status is None else f" (exit status {status})"
        return f"runtasks has gone{how}: {_tail(self.errors) or 'it said nothing'}"

    def signal(self):
        """Asks the service to end its tasks and itself."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)

    def wait(self, timeout=None):
        """Waits for the end of the service. The shell waits for the line of _say_alive before it ends."""
        _say_alive(self.__dict__)
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"the service has not ended within {timeout} s: its clients have not "
                               "all closed") from None

    def end(self):
        """Ends the service and its tasks, and removes a temporary spool. It may be called again."""
        self._end()


def _say_alive(service):
    """Tells the shell of the service that this process is alive and will remove the spool itself. This and
    _finish() take the __dict__ of a Service: a finalizer must not hold the object that it waits for."""
    lives = service.pop("lives", None)
    if lives is not None:
        with contextlib.suppress(BrokenPipeError):
            os.write(lives, b"yes\n")
        os.close(lives)


def _finish(service, creator):
    """The finalizer of a Service: ends the process, and removes what is temporary. It does nothing in a
    fork of the process that made the service, because the service is not a child of the fork."""
    if creator != os.getpid():
        return
    process = service["process"]
    if process is not None and process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
    _say_alive(service)
    if process is not None:
        for more in (signal.SIGTERM, signal.SIGKILL):  # if the first signal was not enough
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
    """A socket that is connected to the service at this path."""
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
    """Closes the inherited sockets: a copy in the child would keep the parent's connection open after
    the parent has ended."""
    for link in list(_links):
        link.socket.close()


os.register_at_fork(after_in_child=_after_fork)


class Link:
    """The connection of one client: sends its records, and reads how its tasks end."""

    def __init__(self, place, name, service=None):
        self.place, self.name, self.service, self.pid = place, name, service, os.getpid()
        self.reader = rampipe_spool.Reader(place.spool)
        self.calls = rampipe_spool.Writer(place.spool, name + ".calls")
        try:
            self.socket = service.first if service else connect(place.socket)
        except OSError as error:
            self.calls.close()
            raise ServiceError(f"{place.socket}: the service is not there: {error.strerror}") from error
        self.lock = threading.Lock()                  # guards the fields below; both threads use them
        self.ended = threading.Condition(self.lock)   # tasks have ended, or the connection has
        self.filled = threading.Condition(self.lock)  # there are records to send, or the end has come
        self.out = [f"#rampipe\t1\nclient\t{name}\n"]  # records that are not sent yet
        self.tasks, self.attempts = {}, {}  # of tasks that have not ended: the task; its last attempt
        self.failed = {}                    # failed tasks by name
        self.kept = weakref.WeakSet()       # ended tasks whose results are in files of the spool
        # The number of tasks sent; whether close() was called; why nothing more comes (None: more may come);
        # the reason to give for an end that the program wanted.
        self.sent, self.closing, self.over, self.ending = 0, False, None, None
        self._sending = threading.Lock()    # keeps the order of records while one thread writes them
        _links.add(self)
        for work in (self._send_all, self._read_all):
            threading.Thread(target=work, name=f"rampipe {name}", daemon=True).start()

    # -- to the service --

    def send(self, text, task=None):
        """Queues a record, and notes the task that it starts."""
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
        """Sends the queued records now. The pickles to which they refer are written first, so that a
        worker never looks for bytes that are not there yet."""
        with self._sending:
            with self.lock:
                out, self.out = self.out, []
            if not out:
                return
            try:
                self.calls.flush()
                self.socket.sendall("".join(out).encode())
            except ConnectionError:
                pass  # the reading thread gets the end of the connection, and its reason
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
                # Collect records for a moment: one large write is cheaper than many small ones. This delays
                # nobody who waits for a result, because wait() calls flush() itself.
                time.sleep(0.001)
            self.flush()

    def close(self):
        """Says that no more tasks come."""
        with self.lock:
            if self.closing or self.over:
                return
            self.out.append("#end\n")
            self.closing = True
            self.filled.notify()

    # -- from the service --

    def _read_all(self):
        """The reading thread: takes records until the connection ends, and then says why it ended."""
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
        """Takes records. The attempt of a task comes before its done or block record. Returns the text of
        an error record, or "#end", or None."""
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
        """Marks the connection as over. Tasks that have not ended are lost: get() raises `why`."""
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
        """Waits until done() is true. Returns False if it is not true in time."""
        if os.getpid() != self.pid:
            raise BatchError("this task was given by another process: only its results can be passed on")
        if self.out:
            self.flush()
        with self.lock:
            return self.ended.wait_for(done, timeout)

    def wait_all(self, timeout=None):
        return self.wait(lambda: not self.tasks, timeout)

    def keep(self):
        """Fetches all results that are only in the spool into memory, before the spool is removed."""
        for task in list(self.kept):
            task.fetch()
        self.kept.clear()

    def hang_up(self):
        """Closes both directions of the connection; the reading thread then ends."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def disconnect(self):
        """Ends the connection, and closes its socket and the files of the spool."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        if self.pid == os.getpid():
            self.wait(lambda: self.over is not None, 10)
        self.socket.close()
        self.reader.close()
        self.calls.close()


def command_line(words):
    """The words as the COMMAND of a record, and the variables that its environment needs. A record
    cannot hold a TAB or a line end, but a value of env can (escaped), so a command line with one of
    these is passed in a variable."""
    line = shlex.join(words)
    if not any(c in line for c in "\t\r\n"):
        return line, {}
    return "sh -c " + shlex.quote('eval "unset RAMPIPE_COMMAND; exec $RAMPIPE_COMMAND"'), {"RAMPIPE_COMMAND": line}
