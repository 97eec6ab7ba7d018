"""rampipe_store - the stores of rampipe_shared's dictionaries and queues: a SQLite file or a Redis server.

File and Server have the same methods, and tests/suites/shared.bats has the same tests for both. Keys are
texts and values bytes here. Each method takes effect at one moment, for all processes: it is one
transaction of SQLite, or one command or script of Redis.
"""

import contextlib
import errno
import fcntl
import os
import re
import shutil
import sqlite3
import stat
import tempfile
import threading
import time
import urllib.parse
import uuid
import weakref

MOUNTS = "/proc/self/mountinfo"
# File systems that several machines mount. The write-ahead log of SQLite needs memory that its processes
# share, so they must be on one machine (https://sqlite.org/wal.html).
NETWORK = frozenset("""9p afs beegfs ceph cifs coda fhgfs fuse.ceph fuse.glusterfs fuse.juicefs fuse.s3fs
    fuse.sshfs fuse.weed gfs2 glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2 orangefs panfs pvfs2 smb3 smbfs
    virtiofs wekafs""".split())


# ---- the store in a SQLite file -----------------------------------------------------------

# SQLite keeps one table of its locks for the whole process. A forked child inherits that table but
# not the locks, and would write to the file without any, even over a new connection. So no connection
# may be open at a fork: it is closed before, and both sides open their own when they need one. Every
# use of SQLite holds this lock, so that no other thread is in the middle of one.
_gate = threading.RLock()
_files = weakref.WeakSet()


def _before_fork():
    _gate.acquire()
    for store in list(_files):
        store.disconnect()


def _after_fork_in_child():
    global _gate
    _gate = threading.RLock()


os.register_at_fork(before=_before_fork, after_in_parent=lambda: _gate.release(),
                    after_in_child=_after_fork_in_child)

_APPLICATION = 0x72704444  # "rpDD" in ASCII: marks a database of this module
_TABLES = f"""
PRAGMA application_id = {_APPLICATION};
CREATE TABLE store (id TEXT NOT NULL);
CREATE TABLE ddict (position INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, key TEXT NOT NULL,
                    value BLOB NOT NULL, UNIQUE (name, key));
CREATE TABLE used (name TEXT PRIMARY KEY, bytes INTEGER NOT NULL);
CREATE TABLE queue (position INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, item BLOB NOT NULL);
CREATE INDEX queue_of ON queue (name, position);
INSERT INTO store VALUES (lower(hex(randomblob(16))))
"""


def file_system(path):
    """The type of the file system that a path is on; None if it is not known."""
    try:
        with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as mounts:
            lines = [line.split() for line in mounts]
    except OSError:
        return None
    best, kind = "", None
    for fields in lines:
        point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[4])
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):  # the last of two mounts on one point hides the first
            best, kind = point, fields[fields.index("-") + 1]
    return kind


class File:
    """A store in a SQLite file. `id` is the random id of the store, or None before it was first opened: a
    file with another id has replaced the one that this object or its pickle was made for."""

    def __init__(self, path, timeout, identity=None):
        self.address, self.timeout, self.id = os.path.realpath(path), timeout, identity
        self.connection = self.inode = None
        self.busy = False
        kind = file_system(os.path.dirname(self.address))
        if kind in NETWORK:
            raise OSError(errno.ENOTSUP, f"{self.address}: SQLite's write-ahead log does not work on {kind}, "
                          "a network file system; give a file on a local disk, or a Redis server")
        _files.add(self)

    def open(self):
        """Connects now, so that a wrong path is noticed at once. The file is made if it is new."""
        with self.using():
            pass

    @contextlib.contextmanager
    def using(self):
        """Gives the connection, and turns errors of SQLite into those of the system. It checks that the
        file is still the one that was opened: SQLite would go on with a removed file without an error."""
        with _gate:
            if self.busy:
                raise RuntimeError(f"{self.address}: a signal handler came in the middle of another operation")
            self.busy = True
            try:
                if self.connection is None:
                    self.connect()
                elif self.find() != self.inode:
                    raise self.lost()
                yield self.connection
            except sqlite3.Error as error:
                raise self.explain(error) from error
            finally:
                self.busy = False

    def find(self):
        """Device and inode of the file at the path now; None: there is none."""
        try:
            found = os.stat(self.address)
            return found.st_dev, found.st_ino
        except FileNotFoundError:
            return None

    def lost(self):
        return FileNotFoundError(errno.ENOENT, f"{self.address}: the file was removed or replaced")

    def explain(self, error):
        """The error of the system for one of SQLite, with the path in its message."""
        text = str(error)
        if "locked" in text or "busy" in text:
            return TimeoutError(f"{self.address}: another process has locked the file for "
                                f"more than {self.timeout} s")
        if "full" in text:
            return OSError(errno.ENOSPC, f"{self.address}: {text}")
        if "not a database" in text:
            return ValueError(f"{self.address}: this is no SQLite file")
        return OSError(f"{self.address}: {text}")

    def connect(self):
        """Opens the file. A new one is made here, because SQLite would give it another mode than 0600."""
        if self.id is None:
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self.address, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
        elif self.find() is None:
            raise self.lost()
        connection = sqlite3.connect(f"file:{urllib.parse.quote(self.address)}?mode=rw", uri=True,
                                     timeout=self.timeout, isolation_level=None, check_same_thread=False)
        try:
            self.set_up(connection)
            identity = connection.execute("SELECT id FROM store").fetchone()[0]
            if self.id not in (None, identity):
                raise self.lost()
        except BaseException:
            connection.close()
            raise
        self.id, self.connection, self.inode = identity, connection, self.find()

    def set_up(self, connection):
        """Makes the tables, if no other process has made them. Several processes may try at the same time.
        SQLite's own timeout does not cover the switch to a write-ahead log, so this loop tries again."""
        until = time.monotonic() + self.timeout
        while not self.is_ours(connection):
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("BEGIN IMMEDIATE")
                if not self.is_ours(connection):
                    for statement in _TABLES.split(";"):
                        connection.execute(statement)
                connection.execute("COMMIT")
            except sqlite3.OperationalError as error:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if "locked" not in str(error) or time.monotonic() > until:
                    raise
                time.sleep(0.002)
        connection.execute("PRAGMA synchronous = NORMAL")

    def is_ours(self, connection):
        """True if this is a database of this module, False if it is empty; another one is an error."""
        # The tables are counted first: another process may commit tables and application_id between the
        # two queries. In the other order its tables would look like those of another program.
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        if application == _APPLICATION:
            return True
        if application or tables:
            raise ValueError(f"{self.address}: this is a database of another program")
        return False

    def disconnect(self):
        """Closes the connection; the next operation opens another one."""
        with _gate:
            connection, self.connection = self.connection, None
            if connection is not None:
                connection.close()

    def read(self, statement, *arguments):
        with self.using() as connection:
            return connection.execute(statement, arguments).fetchall()

    @contextlib.contextmanager
    def writing(self):
        """A transaction that may write. BEGIN IMMEDIATE takes the lock for writing at once, so that what
        the transaction reads cannot change before it writes."""
        with self.using() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection.execute
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    # -- a dictionary --

    def get(self, name, key):
        rows = self.read("SELECT value FROM ddict WHERE name = ? AND key = ?", name, key)
        return rows[0][0] if rows else None

    def put(self, name, key, value, limit, how, expected=b""):
        """Writes a value. how "set": always; "add": only if the key is not there; "swap": only if its value
        is `expected`. Returns (True, None) if it was written, (False, old value) if not, and
        (None, (more, used)) if the `more` bytes and the `used` ones together are over the limit."""
        with self.writing() as execute:
            row = execute("SELECT value FROM ddict WHERE name = ? AND key = ?", (name, key)).fetchone()
            old = row[0] if row else None
            if (how == "add" and old is not None) or (how == "swap" and old != expected):
                return False, old
            row = execute("SELECT bytes FROM used WHERE name = ?", (name,)).fetchone()
            used = row[0] if row else 0
            more = len(value) - (-len(key) if old is None else len(old))
            if limit is not None and more > 0 and used + more > limit:
                return None, (more, used)
            execute("INSERT INTO ddict (name, key, value) VALUES (?, ?, ?) "
                    "ON CONFLICT (name, key) DO UPDATE SET value = excluded.value", (name, key, value))
            execute("INSERT OR REPLACE INTO used VALUES (?, ?)", (name, used + more))
            return True, None

    def take(self, name, key):
        """Removes a key and returns its value; None: it is not there."""
        with self.writing() as execute:
            row = execute("SELECT value FROM ddict WHERE name = ? AND key = ?", (name, key)).fetchone()
            if row:
                execute("DELETE FROM ddict WHERE name = ? AND key = ?", (name, key))
                execute("UPDATE used SET bytes = bytes - ? WHERE name = ?", (len(key) + len(row[0]), name))
            return row[0] if row else None

    def keys(self, name):
        return [key for key, in self.read("SELECT key FROM ddict WHERE name = ? ORDER BY position", name)]

    def items(self, name):
        return self.read("SELECT key, value FROM ddict WHERE name = ? ORDER BY position", name)

    def count(self, name):
        return self.read("SELECT count(*) FROM ddict WHERE name = ?", name)[0][0]

    def used(self, name):
        return sum(used for used, in self.read("SELECT bytes FROM used WHERE name = ?", name))

    def clear(self, name):
        with self.writing() as execute:
            for table in ("ddict", "used"):
                execute(f"DELETE FROM {table} WHERE name = ?", (name,))

    # -- a queue --

    def push(self, name, item, maxsize):
        """Appends an item. False: the queue is full. That is looked at without a lock first, so that
        waiting processes, which ask again and again, do not hold up those that write."""
        if maxsize > 0 and self.length(name) >= maxsize:
            return False
        with self.writing() as execute:
            if maxsize > 0 and execute("SELECT count(*) FROM queue WHERE name = ?",
                                       (name,)).fetchone()[0] >= maxsize:
                return False
            execute("INSERT INTO queue (name, item) VALUES (?, ?)", (name, item))
            return True

    def shift(self, name):
        """Takes the oldest item. None: the queue is empty, which is looked at without a lock first (see
        push)."""
        oldest = "SELECT position, item FROM queue WHERE name = ? ORDER BY position LIMIT 1"
        if not self.read(oldest, name):
            return None
        with self.writing() as execute:
            row = execute(oldest, (name,)).fetchone()
            if row:
                execute("DELETE FROM queue WHERE position = ?", (row[0],))
            return row[1] if row else None

    def length(self, name):
        return self.read("SELECT count(*) FROM queue WHERE name = ?", name)[0][0]


# ---- the store in a Redis server ----------------------------------------------------------

# Redis runs a script as one operation. KEYS are those of Server.parts(): the values (a hash), the order of
# insertion (a sorted set), the bytes used, and the last number of the order. _PUT does what File.put() does.
_PUT = """
local key, how, value, limit = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local old = redis.call('HGET', KEYS[1], key)
if (how == 'add' and old) or (how == 'swap' and old ~= ARGV[5]) then return {0, old} end
local used = tonumber(redis.call('GET', KEYS[3]) or '0')
local more = #value - (old and #old or -#key)
if limit >= 0 and more > 0 and used + more > limit then return {-1, {more, used}} end
if not old then redis.call('ZADD', KEYS[2], redis.call('INCR', KEYS[4]), key) end
redis.call('HSET', KEYS[1], key, value)
redis.call('INCRBY', KEYS[3], more)
return {1, false}
"""
_TAKE = """
local old = redis.call('HGET', KEYS[1], ARGV[1])
if old then
    redis.call('HDEL', KEYS[1], ARGV[1])
    redis.call('ZREM', KEYS[2], ARGV[1])
    redis.call('DECRBY', KEYS[3], #ARGV[1] + #old)
end
return old
"""
_ITEMS = """
local items = {}
for _, key in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
    items[#items + 1] = key
    items[#items + 1] = redis.call('HGET', KEYS[1], key)
end
return items
"""
_PUSH = """
if redis.call('LLEN', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('RPUSH', KEYS[1], ARGV[1])
return 1
"""


class Server:
    """A store in a Redis server. Each thread of each process has a connection of its own."""

    def __init__(self, url, timeout, identity=None):
        try:  # imported here, because it takes longer than all other imports, and few need it
            import redis
        except ImportError as error:
            raise ImportError(f"{hide_password(url)}: this needs the package python3-redis") from error
        self.redis = redis
        self.address, self.timeout, self.id = hide_password(url), timeout, identity
        options = {"socket_timeout": timeout}
        if url.startswith("redis+unix:"):
            url = url[len("redis+"):]
        else:
            options["socket_connect_timeout"] = timeout
        self.pool = redis.ConnectionPool.from_url(url, **options)
        self.mine, self.all, self.process = threading.local(), weakref.WeakSet(), os.getpid()

    def open(self):
        self.command("PING")

    def connect(self):
        """A new connection for this thread. A server that has lost its data has also lost the random id
        that the first client stored in it (SETNX lets one of two first clients win)."""
        connection = self.pool.make_connection()
        try:
            identity = self.ask(connection, "GET", "rampipe:id")
            if identity is None and self.id is None:
                self.ask(connection, "SETNX", "rampipe:id", uuid.uuid4().hex)
                identity = self.ask(connection, "GET", "rampipe:id")
            identity = (identity or b"").decode()
            if not identity or self.id not in (None, identity):
                raise ConnectionError(f"{self.address}: the server has lost its data: it was restarted or emptied")
            self.check_eviction(connection)
        except BaseException:
            connection.disconnect()
            raise
        self.id = identity
        self.mine.connection = connection
        self.all.add(connection)
        return connection

    def check_eviction(self, connection):
        """Refuses a server that drops keys when its memory is full: data would be lost without an error."""
        try:
            said = self.ask(connection, "INFO", "memory")
        except OSError as error:
            if isinstance(error, ConnectionError):
                raise
            return  # this user may not call INFO
        said = said.decode() if isinstance(said, bytes) else str(said)
        policy = re.search(r"maxmemory_policy:(allkeys\S*)", said)
        if policy and not re.search(r"maxmemory:0\b", said):
            raise ValueError(f"{self.address}: the server drops keys when its memory is full "
                             f"(maxmemory-policy {policy[1]}); set maxmemory-policy noeviction")

    def ask(self, connection, *words):
        """Sends a command and returns its answer; errors of Redis become those of the system."""
        try:
            connection.send_command(*words)
            return connection.read_response()
        except self.redis.ResponseError as error:  # the answer is complete: the connection can be used on
            raise OSError(f"{self.address}: {error}") from error
        except BaseException as error:
            # The answer may still come, and must not be taken for the answer to the next command.
            connection.disconnect()
            self.mine.connection = None
            if isinstance(error, self.redis.TimeoutError):
                raise ConnectionError(f"{self.address}: the server has not answered within "
                                      f"{self.timeout} s") from error
            if isinstance(error, (self.redis.RedisError, OSError)):
                raise ConnectionError(f"{self.address}: the server cannot be reached: {error}") from error
            raise

    def command(self, *words):
        if self.process != os.getpid():  # in a fork the inherited connections belong to the parent
            self.mine, self.all, self.process = threading.local(), weakref.WeakSet(), os.getpid()
        return self.ask(getattr(self.mine, "connection", None) or self.connect(), *words)

    def disconnect(self):
        if self.process == os.getpid():
            for connection in list(self.all):
                connection.disconnect()
        self.mine, self.all = threading.local(), weakref.WeakSet()

    @staticmethod
    def parts(name):
        return [f"rampipe:ddict:{name}:{part}" for part in ("values", "order", "used", "last")]

    def script(self, text, name, *arguments):
        """Runs a script on the keys of a dictionary."""
        return self.command("EVAL", text, 4, *self.parts(name), *arguments)

    # -- a dictionary: see File --

    def get(self, name, key):
        return self.command("HGET", self.parts(name)[0], key)

    def put(self, name, key, value, limit, how, expected=b""):
        done, said = self.script(_PUT, name, key, how, value, -1 if limit is None else limit, expected)
        return (None if done < 0 else bool(done)), said

    def take(self, name, key):
        return self.script(_TAKE, name, key)

    def keys(self, name):
        return [key.decode() for key in self.command("ZRANGE", self.parts(name)[1], 0, -1)]

    def items(self, name):
        flat = self.script(_ITEMS, name)
        return [(key.decode(), value) for key, value in zip(flat[::2], flat[1::2])]

    def count(self, name):
        return self.command("HLEN", self.parts(name)[0])

    def used(self, name):
        return int(self.command("GET", self.parts(name)[2]) or 0)

    def clear(self, name):
        self.command("DEL", *self.parts(name))

    # -- a queue --

    # A reader that waits asks again and again (rampipe_shared._wait) instead of calling BLPOP: the server
    # would give an item also to a waiting reader whose machine or network has failed, and it would be lost.
    def push(self, name, item, maxsize):
        if maxsize <= 0:
            return bool(self.command("RPUSH", f"rampipe:queue:{name}", item))
        return bool(self.command("EVAL", _PUSH, 1, f"rampipe:queue:{name}", item, maxsize))

    def shift(self, name):
        return self.command("LPOP", f"rampipe:queue:{name}")

    def length(self, name):
        return self.command("LLEN", f"rampipe:queue:{name}")


def hide_password(url):
    return re.sub(r"[?&]password=[^&]*", "", re.sub(r"//[^/]*@", "//", url))


# ---- addresses and temporary folders ------------------------------------------------------


def spell(path_or_url):
    """The address of a store: an absolute path, or the URL of a Redis server. A path of a Unix socket
    becomes a URL."""
    text = os.fsdecode(path_or_url)
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", text)
    if scheme:
        if scheme[1] not in ("redis", "rediss", "redis+unix"):
            raise ValueError(f"the address must be a path, redis://, rediss:// or redis+unix://, got {text!r}")
        return text
    text = os.path.abspath(text)
    try:
        if stat.S_ISSOCK(os.stat(text).st_mode):
            return "redis+unix://" + urllib.parse.quote(text)
    except FileNotFoundError:
        pass
    return text


def remove_folder(folder, lock, process):
    """Removes a temporary store. It does nothing in a fork of the process that made it: the parent may
    still use the store."""
    if process == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def make_folder(prefix="rampipe-shared-", top=None):
    """Makes a folder for a temporary store. Returns it and a descriptor of its locked file: the lock is
    held as long as the creator or a fork of it lives. Folders whose lock nobody holds were left behind by
    killed creators, and are removed."""
    top = top or tempfile.gettempdir()
    for entry in os.listdir(top):
        if entry.startswith(prefix):
            with contextlib.suppress(OSError):
                left = os.path.join(top, entry)
                lock = os.open(os.path.join(left, "lock"), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(left, ignore_errors=True)
                finally:
                    os.close(lock)
    folder = tempfile.mkdtemp(prefix=prefix, dir=top)
    # The file is locked before it gets the name that others look for: they never see it unlocked.
    lock = os.open(os.path.join(folder, "new"), os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.rename(os.path.join(folder, "new"), os.path.join(folder, "lock"))
    return folder, lock
