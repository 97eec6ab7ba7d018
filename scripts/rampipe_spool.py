"""rampipe_spool - how calls and results are kept, for rampipe_batch and its workers.

The spool is a folder with a few files that only grow: each client and each worker has its own and
writes to no other. A text says where bytes are:

    =BASE64                         here: what is short needs no file
    FILE:OFFSET:LENGTH:DIGEST       there; the digest is that of the bytes

A call is `FUNCTION ARGUMENTS`, two such texts; a result is `VALUE` or `VALUE STDOUT STDERR`, of which
the last two are FILE:OFFSET:LENGTH.
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

SHORT = 300
_HEADER = struct.Struct("<Q16s")


# ---- bytes --------------------------------------------------------------------------------


class Writer:
    """Appends to its own file. What put() was given is in the file after flush()."""

    def __init__(self, folder, name, known=True):
        self.name = name
        self.fd = os.open(os.path.join(folder, name), os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._places, self._pending, self._lock = {}, [], threading.Lock()
        self._end = self._find() if known else os.fstat(self.fd).st_size

    def _find(self):
        """Notes what a file has from before; what a crash has cut is cut off."""
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
        """Where the bytes will be. Equal bytes are kept once, so equal calls have equal texts."""
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
    data = memoryview(b"".join(parts))
    while data:
        data = data[os.write(fd, data):]


class Reader:
    """Reads what is somewhere in the spool."""

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
    """pickle is fast, but takes what is in __main__ by name; cloudpickle takes it as it is."""
    if cloudpickle is None:
        return pickle.dumps(value, protocol=5)
    try:
        data = pickle.dumps(value, protocol=5)
        if b"__main__" not in data and b"__mp_main__" not in data:
            return data
    except Exception:  # cloudpickle may be able to; if not, its error is the better one
        pass
    return cloudpickle.dumps(value, protocol=5)


call = threading.local()  # in a client `reads`: what the arguments being pickled take; in a worker `given`


def take(task, stream, place=None):
    """What stands in a pickle for the result or output of another task: loads it."""
    given = getattr(call, "given", None)
    if given is None:
        raise pickle.UnpicklingError(f"the {stream} of task {task!r} is for the tasks of its batch only")
    return given(task, stream, place)
