"""rampipe_record - tasks as records, for rampipe_batch.

runtasks takes nothing more from a client after a record that it refuses. So values that it would refuse
are refused here, where only the one call fails and the error can name the argument.
"""

import math
import os
import re

from rampipe_task import Handle

_ESCAPED = re.compile(r"[,%\x00-\x1f\x7f]")
_OPTIONS = ("cores", "memory", "retries", "cost", "cwd", "env")


def text_of(value):
    """The value as a text that a record can hold."""
    value = value if isinstance(value, (int, float)) else os.fspath(value)
    text = os.fsdecode(value) if isinstance(value, bytes) else str(value)
    if "\0" in text or any("\ud800" <= c <= "\udfff" for c in text):
        raise ValueError(f"records hold UTF-8 without NUL, got {text!r}")
    return text


def file_of(path):
    """The absolute path: a client and the service may be in different folders."""
    text = os.path.join(os.getcwd(), text_of(path))
    if len(os.fsencode(text)) > 4096:
        raise ValueError(f"a name has at most 4096 bytes, got {text[:100]!r}...")
    return text


def object_of(name):
    """The name of an object that tasks read or write: the absolute path of a file, or @NAME of anything
    else. Names such as @ID.result are runtasks's own: they stand for the results and output of tasks."""
    text = text_of(name)
    if not text.startswith("@"):
        if not text:
            raise ValueError("a name of an object is empty")
        return file_of(text)
    if text == "@" or re.search(r"\.(stdout|stderr|result)$", text):
        raise ValueError(f"{text!r} is no name of an object: it stands for what a task gives")
    return text


def word_of(argument):
    """An argument of a program as text. A handle has no text: its value is not known yet."""
    if isinstance(argument, Handle):
        raise TypeError(f"{argument!r} is no argument of a program: write it to a file in a function, or give it as "
                        "stdin")
    return text_of(argument)


def called_of(f):
    """The name by which the tasks of a function are called; functools.partial has that of its function."""
    name = getattr(f, "__name__", None) or getattr(getattr(f, "func", None), "__name__", None) or type(f).__name__
    return re.sub(r"[^\w.<>-]", "_", name)


def client_name(name):
    """Checks the name of a client, which is also the name of its log."""
    if not (isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}", name)):
        raise ValueError(f"the name of a client has 1 to 64 of A-Z, a-z, 0-9, '.', '_', '-', no '.' first; got {name!r}")
    return name


def few(names):
    """The first five names, and the number of the others, for a message."""
    names = list(names)
    return ", ".join(map(repr, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def escape(text):
    """Writes what separates names (a comma) and fields (TAB, line end) as %XX."""
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)


class Record:
    """The fields of a task's record. reads and writes may grow until the task is started."""

    __slots__ = ("needs", "timeout", "reads", "writes", "command", "keys")

    def __init__(self, needs, timeout, reads, writes, command, keys):
        self.needs, self.timeout, self.reads, self.writes = needs, timeout, reads, writes
        self.command, self.keys = command, keys

    def write(self, name):
        """The record as a line. A needed task is read by its @ID.result."""
        reads = [escape(read) for read in self.reads] + [f"@{escape(task.id)}.result" for task in self.needs]
        writes = [escape(write) for write in self.writes]
        return (f"task\t{name}\t{self.timeout}\t{','.join(dict.fromkeys(reads)) or '-'}\t"
                f"{','.join(dict.fromkeys(writes)) or '-'}\t{self.command}{self.keys}\n")


def keys_of(place, options):
    """The options of a task as keys of its record."""
    wrong = sorted(set(options) - set(_OPTIONS))
    if wrong:
        raise TypeError(f"options are {', '.join(_OPTIONS)}, got {', '.join(map(repr, wrong))}")
    text, jobs = "", place.jobs
    cores = options.get("cores")
    if cores is not None and not (isinstance(cores, int) and cores >= 1 and cores <= (jobs or cores)):
        raise ValueError(f"cores must be 1 to {jobs or 'as many as there are'}, got {cores!r}")
    for key in ("cores", "memory", "retries", "cost"):
        value = options.get(key)
        if value is not None:
            if not (isinstance(value, (int, float)) and 0 <= value < math.inf):
                raise ValueError(f"{key} must be a number, 0 or more, got {value!r}")
            text += f"\t{key}={value}"
    cwd = file_of(options.get("cwd") or ".") if options.get("cwd") else os.getcwd()
    if cwd != place.folder:
        text += f"\tcwd={escape(cwd)}"
    env = options.get("env")
    if env:
        for key in env:
            if not key or "=" in key:
                raise ValueError(f"the name of a variable is a text without '=', got {key!r}")
        text += "\tenv=" + ",".join(f"{escape(key)}={escape(text_of(value))}" for key, value in env.items())
    return text
