"""rampipe_spool - the files of calls and results, for rampipe_batch and its workers.

The spool is a folder with a few files that only grow. Each client and each worker appends to a file of
its own, so they need no locks between processes. A text, the place, says where bytes are:

    =BASE64                         in the place itself, if they are few
    FILE:OFFSET:LENGTH:DIGEST       in a file; the digest is that of the bytes

A call is `FUNCTION ARGUMENTS`, two places. A result is `VALUE` or `VALUE STDOUT STDERR`; the places of
the output are FILE:OFFSET:LENGTH.
"""

import base64
import binascii
import collections
import hashlib
import os
import pickle
import struct
import threading

try:
    import cloudpickle
except ImportError:
    cloudpickle = None

SHORT = 300  # bytes up to which data stand in the place itself
_HEADER = struct.Struct("<Q16s")  # in front of each piece of data: its length, the digest in hexadecimal


# ---- bytes --------------------------------------------------------------------------------


class Writer:
    """Appends to a file of its own. The bytes that put() was given are in the file after flush().
    known=True finds the data of an earlier run, so that a resumed run stores the same call once."""

    def __init__(self, folder, name, known=True):
        self.name = name
        self.fd = os.open(os.path.join(folder, name), os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._places, self._pending, self._lock = {}, [], threading.Lock()
        self._end = self._find() if known else os.fstat(self.fd).st_size

    def _find(self):
        """Notes the places of the data that the file has from an earlier run, and returns its end. If a
        crash has left the last piece incomplete, that piece is cut off."""
        size, at = os.fstat(self.fd).st_size, 0
        while at + _HEADER.size <= size:
            length, digest = _HEADER.unpack(os.pread(self.fd, _HEADER.size, at))
            if at + _HEADER.size + length > size:
                break
            digest = digest.decode("ascii", "replace")
            self._places[digest] = f"{self.name}:{at + _HEADER.size}:{length}:{digest}"
            at += _HEADER.size + length
        if at < size:
            os.ftruncate(self.fd, at)
        return at

    def put(self, data):
        """Returns the place of the bytes. Equal bytes are stored once, so equal calls have equal places:
        that is how runtasks recognises a task of a resumed run."""
        if len(data) <= SHORT:
            return "=" + binascii.b2a_base64(data, newline=False).decode()
        digest = hashlib.blake2b(data, digest_size=8).hexdigest()
        with self._lock:
            place = self._places.get(digest)
            if place is None:
                at = self._end + _HEADER.size
                place = self._places[digest] = f"{self.name}:{at}:{len(data)}:{digest}"
                self._pending += (_HEADER.pack(len(data), digest.encode()), data)
                self._end = at + len(data)
        return place

    def flush(self):
        with self._lock:
            pending, self._pending = self._pending, []
            if pending:
                write(self.fd, pending)

    def close(self):
        os.close(self.fd)


def write(fd, parts):
    """Writes all parts: os.write() may write less than it was given."""
    data = memoryview(b"".join(parts))
    while data:
        data = data[os.write(fd, data):]


class Reader:
    """Reads data of the spool by their places. It keeps the 32 files open that were used last."""

    def __init__(self, folder):
        self.folder = folder
        self._fds, self._lock = collections.OrderedDict(), threading.Lock()

    def get(self, text):
        if text[0] == "=":
            return base64.b64decode(text[1:])
        name, offset, length = text.split(":")[:3]
        with self._lock:
            fd = self._fds.get(name)
            if fd is None:
                fd = os.open(os.path.join(self.folder, name), os.O_RDONLY | os.O_CLOEXEC)
                self._fds[name] = fd
                if len(self._fds) > 32:
                    os.close(self._fds.popitem(last=False)[1])
            else:
                self._fds.move_to_end(name)
            offset, length, parts = int(offset), int(length), []
            while length > 0:
                parts.append(os.pread(fd, length, offset))
                if not parts[-1]:
                    raise EOFError(f"{os.path.join(self.folder, name)}: {length} bytes at {offset} are missing")
                offset, length = offset + len(parts[-1]), length - len(parts[-1])
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self):
        with self._lock:
            while self._fds:
                os.close(self._fds.popitem()[1])


# ---- pickles ------------------------------------------------------------------------------


def dump(value):
    """The pickle of a value. pickle is fast, but refers to objects of __main__ by name, and the __main__ of
    a worker is another one. If the pickle has such a name, and cloudpickle is there, it stores the code."""
    if cloudpickle is None:
        return pickle.dumps(value, protocol=5)
    try:
        data = pickle.dumps(value, protocol=5)
        if b"__main__" not in data and b"__mp_main__" not in data:
            return data
    except Exception:  # cloudpickle takes more kinds of objects; if it fails, too, its error says more
        pass
    return cloudpickle.dumps(value, protocol=5)


# The state of pickling in this thread. In a client, `reads` is the list of the tasks whose handles are in
# the arguments that are being pickled. In a worker, `given` is the function that loads the value of such a
# task, and `preparing` is true while the worker imports the client's main module, then false (a client has
# no `preparing`).
call = threading.local()


def take(task, stream, place=None):
    """A pickle of arguments has a call of this function in place of each handle: it loads the result or
    the output of that task. `place` is the file with the output of a process."""
    given = getattr(call, "given", None)
    if given is None:
        raise pickle.UnpicklingError(f"the {stream} of task {task!r} is for the tasks of its batch only")
    return given(task, stream, place)
