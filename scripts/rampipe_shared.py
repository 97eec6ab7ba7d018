"""rampipe_shared - a dictionary and a queue that many processes share.

    from rampipe_shared import DDict, Queue

    d = DDict("results.sqlite")             # a file: the processes of one machine
    d["loss", 3] = 0.25
    d["loss", 3], ("loss", 4) in d, len(d)
    d.setdefault("best", 1.0)               # atomic, as are pop() and popitem()
    d.update_with("best", lambda old: min(old, 0.25))

    reader = DDict("results.sqlite", wait_for_keys=True, timeout=60)
    reader["loss", 3]                       # waits until the key is there

    q = Queue("redis://node1:6379/0")       # a Redis server: the processes of many machines
    q.put({"learning_rate": 0.1})
    q.get(timeout=5)                        # queue.Empty if nothing comes in 5 s

Processes that give the same file or server, and the same name, share the same dictionary or queue. Both
can be pickled and passed to other processes, used by many threads, and used on both sides of a
fork. close() closes the connection, and so does the end of a with block.

WHERE THE DATA ARE
    PATH                     a SQLite file, which is made with mode 0600 if it is not there. All its
                             readers and writers must be on one machine: a file on a network file
                             system (NFS, Lustre, ...) is refused if /proc/self/mountinfo lists it as
                             one. While the file is used, PATH-wal and PATH-shm beside it are parts of
                             it; the last close() removes them.
    nothing                  a temporary file in $TMPDIR. Its creator removes it in close() or when
                             it ends. If the creator is killed, the next process that makes a
                             temporary file removes it.
    redis://[USER:PASSWORD@]HOST:PORT/DB, rediss://... (TLS)
                             a Redis server. This needs the package python3-redis.
    redis+unix:///PATH?db=DB, or the path of a Unix socket
                             a Redis server on this machine.
Data in a file that you named or in a Redis server stay after close(). Values are pickles: anybody who
can write to the file or the server can run code in its readers, so do not give others access to them.

DDict(path_or_url=None, wait_for_keys=False, timeout=None, max_bytes=None, *, name="main", store_timeout=10)
    is a MutableMapping. Keys are str, bytes, int, and tuples of these: types whose spelling is the
    same in every process. True is the key 1, as in a dict. A value is any object that pickle takes, or
    cloudpickle if it is installed. Other objects raise TypeError. A value that a reader cannot load
    raises UnpicklingError, which has the pickle as `data`. A value that you get is a copy:
    d[k].append(x) changes nothing in the dictionary, d.update_with(k, f) does.
    wait_for_keys  d[key] waits until the key is there, for `timeout` seconds (None: for ever), and
                   then raises KeyTimeout, a KeyError and a TimeoutError. get(), pop() and `in`
                   never wait.
    max_bytes      a write through this object that makes the dictionary larger, and larger than
                   max_bytes, raises SizeError and changes nothing. The size is that of the encoded
                   keys and the pickled values.
    update_with(key, f, default)
                   stores f(old value) and returns it. It is atomic: f is called again if another
                   process changed the value in the meantime. If the key is not there, f gets
                   `default`; without a default KeyError is raised.
    bytes_used()   the size that is compared with max_bytes.
    object(key)    the name of a key as an object of task hazards, such as @ddict:8f2c6d90a1b3e457/s:loss.
                   It is the same in every process, however the file or server is spelled.
    Iteration is in the order of insertion, over a snapshot that is taken at its beginning. clear()
    is atomic; update() is one write after the other.

Queue(path_or_url=None, maxsize=0, *, name="main", store_timeout=10)
    has put, get, put_nowait, get_nowait, qsize, empty and full of queue.Queue, and raises its Empty
    and Full. It has no task_done() and join(). Items come out in the order in which the puts were
    committed. maxsize limits puts through this object only. get() removes an item from the queue also
    when it cannot load it; the UnpicklingError then has the pickle.

WHAT IS PROMISED
    Every operation takes effect at one moment between its call and its return, for all processes
    (it is linearizable). If a process is killed in the middle of an operation, the operation is either
    done or not: no other item is lost or doubled. An item that get() had taken before its process was
    killed is lost with the process. With SQLite, written data survive a crash of any process, but a power
    failure may undo the last writes; with Redis it depends on how the server saves.

    A server that does not answer within store_timeout seconds, is gone, or has lost its data, raises
    ConnectionError with the address, also while an operation waits. No operation is tried twice, so after
    such an error, as after Ctrl-C, the operation may have taken effect or not. If another process locks
    a file for longer than store_timeout, TimeoutError is raised; if the file was removed,
    FileNotFoundError.

    A waiting operation asks again at intervals of a tenth of the time that it has waited, but of at least
    0.5 ms and at most 50 ms. So it ends at most 50 ms late, and costs about 20 short requests a second.
"""

import collections.abc
import hashlib
import operator
import os
import pickle
import queue
import re
import time
import weakref

import rampipe_store

try:
    import cloudpickle
except ImportError:
    cloudpickle = None

__all__ = ["DDict", "Queue", "KeyTimeout", "SizeError", "UnpicklingError"]

_MISSING = object()


class KeyTimeout(KeyError, TimeoutError):
    """No process wrote the key in time."""

    def __str__(self):
        return self.args[0]


class SizeError(Exception):
    """A value does not fit into max_bytes. Has the key, the bytes more that it needs, the bytes used and
    the limit."""

    def __init__(self, where, key, needed, used, limit):
        super().__init__(where, key, needed, used, limit)
        self.key, self.needed, self.used, self.limit = key, needed, used, limit

    def __str__(self):
        return (f"{self.args[0]}: key {self.key!r} needs {self.needed} bytes more, but {self.used} of "
                f"max_bytes={self.limit} are used")


class UnpicklingError(pickle.UnpicklingError):
    """A value or item cannot be loaded in this process. `data` is its pickle."""

    def __init__(self, message, data=b""):
        super().__init__(message, data)
        self.data = data

    def __str__(self):
        return self.args[0]


# ---- keys and values as bytes -------------------------------------------------------------


def _escape(raw):
    """Bytes as a text of the characters that a name of an object may have. A '.' is escaped, too, so the
    text never ends in .stdout, .stderr or .result, which stand for the output of a task."""
    return re.sub(rb"[^A-Za-z0-9_/-]", lambda match: b"~%02X" % match[0][0], raw).decode()


def _encode_key(key):
    """Equal keys have equal texts: s:TEXT, b:TEXT, i:NUMBER, (KEY;KEY;...)."""
    if isinstance(key, str):
        return "s:" + _escape(key.encode("utf-8", "surrogatepass"))
    if isinstance(key, bytes):
        return "b:" + _escape(key)
    if isinstance(key, tuple):
        return "(" + "".join(_encode_key(part) + ";" for part in key) + ")"
    try:
        return f"i:{int(operator.index(key))}"
    except TypeError:
        raise TypeError("a key must be a str, bytes, int, or a tuple of these, "
                        f"got {key!r} ({type(key).__name__})") from None


def _decode_at(text, at):
    """The key that begins at text[at], and the index behind its end."""
    if text[at] == "(":
        parts, at = [], at + 1
        while text[at] != ")":
            part, at = _decode_at(text, at)
            parts.append(part)
            at += 1
        return tuple(parts), at + 1
    end = re.compile("[;)]|$").search(text, at).start()
    kind, body = text[at], text[at + 2:end]
    if kind == "i":
        return int(body), end
    raw = re.sub(rb"~(..)", lambda match: bytes([int(match[1], 16)]), body.encode())
    return (raw if kind == "b" else raw.decode("utf-8", "surrogatepass")), end


def _decode_key(text):
    return _decode_at(text, 0)[0]


def _dump(value, what):
    """The pickle of a value. cloudpickle stores the code of functions and classes of __main__, which other
    processes do not have. It is slow, so values of the simplest types are left to pickle."""
    try:
        if cloudpickle and type(value) not in (str, bytes, int, float, bool, type(None)):
            return cloudpickle.dumps(value, protocol=5)
        return pickle.dumps(value, protocol=5)
    except Exception as error:
        raise TypeError(f"{what} cannot be pickled: {type(error).__name__}: {error}") from error


def _load(data, what):
    """The value of a pickle. `what` names it in the error."""
    try:
        return pickle.loads(data)
    except Exception as error:
        raise UnpicklingError(f"{what} cannot be unpickled here: {type(error).__name__}: {error}",
                              data) from error


# ---- the common part of dictionary and queue ----------------------------------------------


def _wait(attempt, timeout):
    """Calls attempt() until it returns something else than _MISSING, and returns that; after `timeout`
    seconds (None: never) returns _MISSING. The pauses grow with the time waited: short waits end soon,
    long ones cost little."""
    start, waited = time.monotonic(), 0.0
    while True:
        result = attempt()
        if result is not _MISSING or (timeout is not None and waited >= timeout):
            return result
        pause = min(max(waited / 10, 0.0005), 0.05)
        time.sleep(pause if timeout is None else min(pause, timeout - waited))
        waited = time.monotonic() - start


class _Shared:
    """The base of DDict and Queue: their store. It is pickled as address, options and the id of the store;
    by the id a process notices that another store has come in the place of the one that was pickled."""

    def __init__(self, path_or_url, options, name, store_timeout, identity=None):
        if not isinstance(name, str) or not name:
            raise ValueError(f"name must be a text that is not empty, got {name!r}")
        if not store_timeout > 0:
            raise ValueError(f"store_timeout must be more than 0 s, got {store_timeout!r}")
        self._closed, self._end = False, None
        if path_or_url is None:
            folder, lock = rampipe_store.make_folder()
            self._end = weakref.finalize(self, rampipe_store.remove_folder, folder, lock, os.getpid())
            path_or_url = os.path.join(folder, "store")
        self._address = rampipe_store.spell(path_or_url)
        self._options = (*options, name, store_timeout)
        self._name = name
        kind = rampipe_store.Server if "://" in self._address else rampipe_store.File
        self._store = kind(self._address, store_timeout, identity)
        if identity is None:
            try:
                self._store.open()
            except BaseException:
                self.close()
                raise

    def __reduce__(self):
        return _reopen, (type(self), self._address, self._options, self._store.id)

    @property
    def address(self):
        """The path or URL of the store. Give it to another DDict or Queue to put both into one store."""
        return self._address

    def __repr__(self):
        return f"{type(self).__name__}({self._store.address!r}, name={self._name!r})"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Closes the connection. A temporary file is removed if this object made it. It may be called
        again."""
        if getattr(self, "_closed", True):
            return
        self._closed = True
        if hasattr(self, "_store"):
            self._store.disconnect()
        if self._end is not None:
            self._end()

    def __del__(self):
        self.close()

    @property
    def _at(self):
        """The store, if this object is not closed."""
        if self._closed:
            raise ValueError(f"{self!r} is closed")
        return self._store


def _reopen(kind, address, options, identity):
    """Unpickles a DDict or Queue. It connects when it is first used."""
    made = kind.__new__(kind)
    made._set_up(address, *options, identity)
    return made


# ---- the dictionary -----------------------------------------------------------------------


class _Items(collections.abc.ItemsView):
    def __iter__(self):
        return iter(self._mapping._snapshot())

    def __contains__(self, item):
        key, value = item
        return self._mapping.get(key, _MISSING) == value


class _Values(collections.abc.ValuesView):
    def __iter__(self):
        return (value for _, value in self._mapping._snapshot())

    def __contains__(self, value):
        return any(value == other for other in self)


class DDict(_Shared, collections.abc.MutableMapping):
    """A dictionary that many processes share. The text of the module says what it promises."""

    def __init__(self, path_or_url=None, wait_for_keys=False, timeout=None, max_bytes=None, *,
                 name="main", store_timeout=10.0):
        self._set_up(path_or_url, wait_for_keys, timeout, max_bytes, name, store_timeout)

    def _set_up(self, path_or_url, wait_for_keys, timeout, max_bytes, name, store_timeout, identity=None):
        if timeout is not None and not timeout >= 0:
            raise ValueError(f"timeout must be None or at least 0 s, got {timeout!r}")
        if max_bytes is not None and operator.index(max_bytes) < 0:
            raise ValueError(f"max_bytes must be None or at least 0, got {max_bytes!r}")
        self._waits, self._timeout, self._limit = wait_for_keys, timeout, max_bytes
        super().__init__(path_or_url, (wait_for_keys, timeout, max_bytes), name, store_timeout, identity)

    def _value(self, key, data):
        return _load(data, f"{self!r}: the value of key {key!r}")

    def _put(self, key, data, how, expected=b""):
        """Writes a value (how: see rampipe_store.File.put); SizeError if it does not fit."""
        done, said = self._at.put(self._name, _encode_key(key), data, self._limit, how, expected)
        if done is None:
            raise SizeError(repr(self), key, *said, self._limit)
        return done, said

    def _data(self, key, value):
        return _dump(value, f"{self!r}: the value of key {key!r}")

    def _snapshot(self):
        """All items of one moment, in the order of insertion."""
        return [(key, self._value(key, data)) for key, data in
                ((_decode_key(text), data) for text, data in self._at.items(self._name))]

    def __getitem__(self, key):
        text = _encode_key(key)

        def attempt():
            data = self._at.get(self._name, text)
            return _MISSING if data is None else data
        data = _wait(attempt, self._timeout) if self._waits else attempt()
        if data is not _MISSING:
            return self._value(key, data)
        if self._waits:
            raise KeyTimeout(f"{self!r}: key {key!r} has not come within {self._timeout} s")
        raise KeyError(key)

    def __setitem__(self, key, value):
        self._put(key, self._data(key, value), "set")

    def __delitem__(self, key):
        if self._at.take(self._name, _encode_key(key)) is None:
            raise KeyError(key)

    def __contains__(self, key):
        return self._at.get(self._name, _encode_key(key)) is not None

    def __iter__(self):
        return iter([_decode_key(text) for text in self._at.keys(self._name)])

    def __len__(self):
        return self._at.count(self._name)

    def items(self):
        return _Items(self)

    def values(self):
        return _Values(self)

    def get(self, key, default=None):
        data = self._at.get(self._name, _encode_key(key))
        return default if data is None else self._value(key, data)

    def pop(self, key, default=_MISSING):
        data = self._at.take(self._name, _encode_key(key))
        if data is not None:
            return self._value(key, data)
        if default is _MISSING:
            raise KeyError(key)
        return default

    def popitem(self):
        """The last key that was inserted, and its value. If another process takes that key between the
        two requests, it looks again."""
        while True:
            texts = self._at.keys(self._name)
            if not texts:
                raise KeyError("popitem(): the dictionary is empty")
            data = self._at.take(self._name, texts[-1])
            if data is not None:
                key = _decode_key(texts[-1])
                return key, self._value(key, data)

    def setdefault(self, key, default=None):
        done, data = self._put(key, self._data(key, default), "add")
        return default if done else self._value(key, data)

    def update_with(self, key, f, default=_MISSING):
        """Stores f(old) and returns it. f is called again if another process has changed the value in the
        meantime (compare and swap): f runs without a lock, so it may take long or use this dictionary."""
        text = _encode_key(key)
        old = self._at.get(self._name, text)
        while True:
            if old is None and default is _MISSING:
                raise KeyError(key)
            value = f(default if old is None else self._value(key, old))
            done, old = self._put(key, self._data(key, value), "add" if old is None else "swap", old or b"")
            if done:
                return value

    def clear(self):
        self._at.clear(self._name)

    def bytes_used(self):
        """Bytes of all encoded keys and pickled values."""
        return self._at.used(self._name)

    def object(self, key):
        """The name under which the key is an object of task hazards."""
        text = _encode_key(key)
        if len(text) > 1000:  # a name of an object is limited in length
            text = "h:" + hashlib.sha256(text.encode()).hexdigest()
        where = hashlib.sha256(f"{self._at.id}/{self._name}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return f"@ddict:{where}/{text}"


# ---- the queue ----------------------------------------------------------------------------


class Queue(_Shared):
    """A queue that many processes share. The text of the module says what it promises."""

    def __init__(self, path_or_url=None, maxsize=0, *, name="main", store_timeout=10.0):
        self._set_up(path_or_url, maxsize, name, store_timeout)

    def _set_up(self, path_or_url, maxsize, name, store_timeout, identity=None):
        self.maxsize = operator.index(maxsize)
        super().__init__(path_or_url, (self.maxsize,), name, store_timeout, identity)

    @staticmethod
    def _patience(block, timeout):
        """The seconds that put() and get() wait (None: for ever), as in queue.Queue."""
        if not block:
            return 0
        if timeout is not None and not timeout >= 0:
            raise ValueError(f"timeout must be None or at least 0 s, got {timeout!r}")
        return timeout

    def put(self, item, block=True, timeout=None):
        """Appends an item. Raises queue.Full if there is no room in time."""
        data, patience = _dump(item, f"{self!r}: an item"), self._patience(block, timeout)
        if _wait(lambda: True if self._at.push(self._name, data, self.maxsize) else _MISSING,
                 patience) is _MISSING:
            raise queue.Full

    def get(self, block=True, timeout=None):
        """Takes the oldest item. Raises queue.Empty if there is none in time."""
        def attempt():
            data = self._at.shift(self._name)
            return _MISSING if data is None else data
        data = _wait(attempt, self._patience(block, timeout))
        if data is _MISSING:
            raise queue.Empty
        return _load(data, f"{self!r}: an item")

    def put_nowait(self, item):
        self.put(item, block=False)

    def get_nowait(self):
        return self.get(block=False)

    def qsize(self):
        return self._at.length(self._name)

    def empty(self):
        return self.qsize() == 0

    def full(self):
        return 0 < self.maxsize <= self.qsize()
