"""rampipe_template - templates of tasks for rampipe_batch: Batch.import_func().

The text of rampipe_batch says what a template has. All of it is checked when it is loaded, also the parts
that the first call does not use: a wrong name must not come up after hours of a run.
"""

import ast
import importlib
import operator
import os
import re

import rampipe_shared

_FIELDS = ("parameters", "type", "name", "executables", "reads", "writes", "timeout", "cores", "memory", "retries",
           "cost", "ok", "stdin", "stdout", "stderr")
# The fields of an executable, by the type of the template; the seconds of each unit of a timeout; the
# operations that braces may hold. Anything else in braces is refused: a template runs no code of its own.
_OF = {"function": ("target", "arguments", "keywords", "cwd", "env"), "process": ("target", "arguments", "cwd", "env"),
       "job": ("target", "arguments", "cwd", "env", "ranks")}
_TIMES = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}
_DO = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
       ast.Mod: operator.mod}
_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


class TemplateError(ValueError):
    """An error in a template. The message says where it is, and what would be right."""


def load(batch, path, args, kwargs):
    """Reads a template, and returns its Maker with these parameters bound."""
    try:
        import yaml
    except ImportError as error:
        raise ImportError("import_func() reads YAML, and needs the package python3-yaml") from error

    class Loader(yaml.SafeLoader):
        """The safe loader, but a key that comes twice is an error (PyYAML takes the last one)."""

    def read_map(loader, node):
        keys = [loader.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise TemplateError(f"{path}:{node.start_mark.line + 1}: {key!r} comes twice")
        return {key: loader.construct_object(value, deep=True) for key, (_, value) in zip(keys, node.value)}

    Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, read_map)
    with open(path, encoding="utf-8") as file:
        try:
            said = yaml.load(file, Loader)
        except yaml.YAMLError as error:
            raise TemplateError(f"{path}: {error}") from error
    return Maker(batch, os.fspath(path), said).bind(args, kwargs)


class Maker:
    """Makes tasks from a template: each call, with the parameters that have no value yet, makes a task."""

    def __init__(self, batch, path, said):
        self._batch, self._path, self._said, self._values = batch, path, said, {}
        self._check(said, "the template", dict, "a map")
        self._only(said, _FIELDS, "a template")
        parameters = said.get("parameters") or {}
        if isinstance(parameters, list):
            parameters = dict.fromkeys(parameters)
        self._check(parameters, "parameters", dict, "a list of names, or a map of names to values")
        for name, value in parameters.items():
            if not (isinstance(name, str) and name.isidentifier()):
                self._fail(f"the name of a parameter has letters, digits and _, got {name!r}")
            if isinstance(value, (list, dict)):
                self._fail(f"parameter {name!r} has one value here, got {value!r}")
        self._parameters = parameters
        self._kind = said.get("type", "function")
        if self._kind not in _OF:
            self._fail(f"type is function, process or job, got {self._kind!r}")
        self._executables = said.get("executables")
        self._check(self._executables, "executables", list, "a list")
        if not self._executables or (len(self._executables) > 1 and self._kind != "job"):
            self._fail(f"a {self._kind} has one executable, got {len(self._executables)}")
        for executable in self._executables:
            self._check(executable, "an executable", dict, "a map")
            self._only(executable, _OF[self._kind], f"an executable of a {self._kind}")
            if "target" not in executable:
                self._fail("an executable needs a target")
            if executable is not self._executables[0] and not {"cwd", "env"}.isdisjoint(executable):
                self._fail("cwd and env of a job belong to its first executable")
        self._names_in(said)

    def _fail(self, message):
        raise TemplateError(f"{self._path}: {message}")

    def _check(self, value, what, kind, wanted):
        if not isinstance(value, kind):
            self._fail(f"{what} is {wanted}, got {value!r}")

    def _only(self, given, known, what):
        for key in given:
            if key not in known:
                self._fail(f"{what} has {', '.join(known)}; got {key!r}")

    def _names_in(self, value):
        """Checks that every name in braces is a parameter, in all texts of the template."""
        if isinstance(value, dict):
            for key, part in value.items():
                if value is not self._said or key != "parameters":
                    self._names_in(part)
        elif isinstance(value, list):
            for part in value:
                self._names_in(part)
        elif isinstance(value, str):
            for piece in _PIECE.finditer(value):
                if piece[0] in "{}":
                    self._fail(f"a brace stands alone in {value!r}: write {{{{ or }}}}")
                if piece[1] is not None:
                    self._evaluate(self._parse(piece[1]), None)

    # -- values --

    def _parse(self, text):
        """The syntax tree of what stands in braces. Python's own parser reads it, but nothing runs it."""
        try:
            return ast.parse(text.strip(), mode="eval").body
        except SyntaxError:
            self._fail(f"{{{text}}} is no parameter, and nothing that is computed of parameters")

    def _evaluate(self, node, values):
        """The value of a syntax tree. values=None only checks it: each part then counts as 1, because
        operations of unknown values cannot be done."""
        if isinstance(node, ast.Name):
            if node.id not in self._parameters:
                self._fail(f"{{{node.id}}} is no parameter: these are {', '.join(self._parameters) or 'none'}")
            return 1 if values is None else values[node.id]
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return node.value
        if isinstance(node, ast.BinOp) and type(node.op) in _DO:
            left, right = self._evaluate(node.left, values), self._evaluate(node.right, values)
            return 1 if values is None else _DO[type(node.op)](left, right)
        self._fail(f"{{{ast.unparse(node)}}}: names, numbers and + - * // % are known")

    def _fill(self, value, values):
        """A part of the template with the parameters' values in place of the braces."""
        if isinstance(value, dict):
            return {key: self._fill(part, values) for key, part in value.items()}
        if isinstance(value, list):
            return [self._fill(part, values) for part in value]
        if not isinstance(value, str):
            return value
        whole = _PIECE.fullmatch(value)
        if whole and whole[1] is not None:  # {NAME} is the whole text: keep the type of the value
            return self._evaluate(self._parse(whole[1]), values)
        return _PIECE.sub(lambda piece: piece[0][0] if piece[1] is None else
                          str(self._evaluate(self._parse(piece[1]), values)), value)

    def bind(self, args, kwargs):
        """A Maker of the same template that has values of more parameters."""
        made = object.__new__(Maker)
        vars(made).update(vars(self))
        made._values = values = dict(self._values)
        free = [name for name in self._parameters if name not in values]
        if len(args) > len(free):
            raise TypeError(f"{self._path}: takes {', '.join(free) or 'no parameters'}; got {len(args)} values")
        values.update(zip(free, args))
        for name, value in kwargs.items():
            if name not in self._parameters:
                raise TypeError(f"{self._path}: {name!r} is no parameter: these are "
                                f"{', '.join(self._parameters) or 'none'}")
            if name in values:
                raise TypeError(f"{self._path}: parameter {name!r} was given already")
            values[name] = value
        return made

    # -- a task --

    def __call__(self, *args, **kwargs):
        """Makes a task. A parameter without a value takes the default value of the template."""
        values = self.bind(args, kwargs)._values
        for name, value in self._parameters.items():
            if name not in values:
                if value is None:
                    raise TypeError(f"{self._path}: parameter {name!r} has no value")
                values[name] = value
        said = {key: self._fill(value, values) for key, value in self._said.items() if key != "parameters"}
        options = {key: said[key] for key in ("cores", "memory", "retries", "cost") if key in said}
        common = {"reads": self._accesses(said, "reads", self._batch.read),
                  "writes": self._accesses(said, "writes", self._batch.write),
                  "timeout": self._timeout(said.get("timeout")), "name": said.get("name")}
        first = said["executables"][0]
        options.update({key: first[key] for key in ("cwd", "env") if key in first})
        if self._kind == "function":
            arguments, keywords = first.get("arguments", []), first.get("keywords", {})
            for key in ("ok", "stdin", "stdout", "stderr"):
                if key in said:
                    self._fail(f"{key} is of processes and jobs")
            clash = set(keywords) & {*common, "options"}
            if clash:
                self._fail(f"keywords cannot be {', '.join(sorted(clash))}")
            return self._batch.function(self._function(first["target"]), *arguments, **keywords, **common,
                                        options=options)
        common.update({key: said[key] for key in ("ok", "stdin", "stdout", "stderr") if key in said})
        if self._kind == "process":
            return self._batch.process(first["target"], first.get("arguments", []), **common, **options)
        parts = [(part.get("ranks", 1), part["target"], part.get("arguments", [])) for part in said["executables"]]
        return self._batch._job(parts, **common, **options)

    def _function(self, target):
        """The function: a parameter's value, or the one named MODULE.FUNCTION."""
        if not isinstance(target, str):
            return target
        module, dot, name = target.rpartition(".")
        if not dot:
            self._fail(f"the target of a function is a parameter, or MODULE.FUNCTION, got {target!r}")
        return getattr(importlib.import_module(module), name)

    def _accesses(self, said, key, access):
        """The objects of reads: or writes:, each a path, or a map with a base and its paths or keys."""
        given = said.get(key) or []
        made = []
        for part in given if isinstance(given, list) else [given]:
            if isinstance(part, dict):
                base = "dictionary" if "dictionary" in part else "base"
                paths = "keys" if base == "dictionary" else "paths"
                self._only(part, (base, paths), f"a part of {key}")
                if base not in part:
                    self._fail(f"a part of {key} has base and paths, or dictionary and keys, got {part!r}")
                if base == "dictionary" and not isinstance(part[base], rampipe_shared.DDict):
                    self._fail(f"dictionary in {key} is what ddict() returned, got {part[base]!r}")
                names = part.get(paths, [])
                made.append(access(part[base], *(names if isinstance(names, list) else [names])))
            else:
                made.append(part)
        return made

    def _timeout(self, said):
        """The timeout in seconds: a number, or the sum of a map such as {minutes: 1, seconds: 30}."""
        if not isinstance(said, dict):
            return said
        self._only(said, _TIMES, "a timeout")
        return sum(value * _TIMES[key] for key, value in said.items())
