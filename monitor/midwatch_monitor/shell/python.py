"""The files that a Python program writes, determined from its text; it is never run."""

import ast
import posixpath
import re
from collections.abc import Sequence
from itertools import product

from midwatch_monitor.shell.syntax import UNKNOWN
from midwatch_monitor.shell.target import MAX_TARGETS, WriteTarget, into

MAX_TEXT = 200_000
"""Longest program that is read, in characters."""

_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_KEPT = frozenset("\\'\"\nabfnrtvxuUN")
_OPENERS = frozenset({"io", "codecs", "builtins", "tokenize", "gzip"})
_RUNNERS = frozenset({"run", "call", "check_call", "check_output", "Popen", "system"})
_COPIES = frozenset({"copy", "copy2", "copyfile", "copytree"})
_MOVES = frozenset({"rename", "replace", "renames", "move"})
_REMOVES = frozenset({"remove", "unlink", "rmtree"})
_SAME = frozenset(
    [
        *("str", "Path", "PurePath", "PosixPath", "abspath", "fspath", "realpath", "normpath"),
        *("resolve", "absolute", "expanduser", "as_posix", "strip"),
    ]
)
"""Calls that return the same file as their argument."""
_MODE = re.compile(r"[rwaxbtU+]{1,4}")


def program(text: str) -> tuple[tuple[WriteTarget, ...], tuple[str, ...]]:
    """Return what a Python program does to files, and the shell commands it runs.

    Empty if the text is not a Python program.
    """
    text = text.replace(UNKNOWN, "$")
    if len(text) > MAX_TEXT:
        return (), ()
    try:
        tree = ast.parse(_ESCAPE.sub(_unescape, text))
        arguments = _Reader({})
        arguments.visit(tree)
        reader = _Reader(arguments.arguments, known=arguments.values)
        reader.visit(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return (), ()  # the interpreter would refuse it, too
    targets = tuple(dict.fromkeys(reader.targets))[:MAX_TARGETS]
    return targets, tuple(reader.commands[:MAX_TARGETS])


def _unescape(found: re.Match[str]) -> str:
    # An unknown escape would cause a warning; no path contains one.
    return found[0] if found[1] in _KEPT else found[1]


class _Reader(ast.NodeVisitor):
    """Walks a program once from top to bottom and tracks the possible values of names."""

    def __init__(
        self, arguments: dict[str, list[str]], known: dict[str, list[str]] | None = None
    ) -> None:
        self.values: dict[str, list[str]] = {}
        self.arguments: dict[str, list[str]] = {}
        self.targets: list[WriteTarget] = []
        self.commands: list[str] = []
        self._given = arguments
        self._known = known or {}
        self._functions: dict[str, list[str]] = {}
        self._directory = ""

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
        self._functions[node.name] = names
        before = dict(self.values)
        for name in names:
            self.values[name] = self._given.get(f"{node.name}.{name}", [])
        self.generic_visit(node)
        self.values = before

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Assign(self, node: ast.Assign | ast.AnnAssign) -> None:
        self.generic_visit(node)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Name) and node.value is not None:
                self.values[target.id] = self._texts(node.value)

    visit_AnnAssign = visit_Assign

    def visit_For(self, node: ast.For) -> None:
        if isinstance(node.target, ast.Name):
            self.values[node.target.id] = self._item_texts(node.iter)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        function = node.func
        if isinstance(function, ast.Name):
            self._read_plain_call(function.id, node)
        elif isinstance(function, ast.Attribute):
            self._read_method_call(function, node)

    def _read_plain_call(self, name: str, node: ast.Call) -> None:
        if name == "open":
            self._read_open_call(node.args, node.keywords)
        elif name in self._functions:
            for parameter, argument in zip(self._functions[name], node.args, strict=False):
                known = self.arguments.setdefault(f"{name}.{parameter}", [])
                known.extend(self._texts(argument))
                del known[MAX_TARGETS:]
        elif name in _COPIES | _MOVES | _REMOVES:
            self._take_change(name, node.args)

    def _read_method_call(self, function: ast.Attribute, node: ast.Call) -> None:
        name, owner = function.attr, function.value
        module = owner.id if isinstance(owner, ast.Name) else ""
        if module in {"os", "shutil", "subprocess"}:
            self._read_module_call(name, node.args)
        elif name == "open" and module in _OPENERS:
            self._read_open_call(node.args, node.keywords)
        elif name == "open":
            self._read_open_call([owner, *node.args], node.keywords)
        elif name in {"write_text", "write_bytes"}:
            self._add_targets(owner)
        elif name == "unlink":
            self._add_targets(owner, deleted=True)
        elif name == "rename" and len(node.args) == 1:
            self._take_change(name, [owner, *node.args])
        elif node.args and any(keyword.arg == "inplace" for keyword in node.keywords):
            self._add_targets(node.args[0])  # fileinput's

    def _read_module_call(self, name: str, arguments: Sequence[ast.expr]) -> None:
        if name in _RUNNERS and arguments:
            self._add_command(arguments[0])
        elif name == "chdir" and arguments:
            self._directory = next(iter(self._texts(arguments[0])), UNKNOWN)
        else:
            self._take_change(name, arguments)

    def _take_change(self, name: str, arguments: Sequence[ast.expr]) -> None:
        if name in _REMOVES and arguments:
            self._add_targets(arguments[0], deleted=True)
        elif name in _MOVES | _COPIES and len(arguments) > 1:
            for source, place in product(self._texts(arguments[0]), self._texts(arguments[1])):
                if name in _MOVES:
                    self._add_target(source, deleted=True)
                self._add_target(place if name == "copyfile" else into(source, place))

    def _read_open_call(
        self, arguments: Sequence[ast.expr], keywords: Sequence[ast.keyword]
    ) -> None:
        given = [keyword.value for keyword in keywords if keyword.arg == "mode"]
        mode = (given or list(arguments[1:2]) or [None])[0]
        if not arguments or not isinstance(mode, ast.Constant) or not isinstance(mode.value, str):
            return
        if _MODE.fullmatch(mode.value) and set(mode.value) & set("wax+"):
            self._add_targets(arguments[0])

    def _add_targets(self, node: ast.expr, *, deleted: bool = False) -> None:
        for path in self._item_texts(node):
            self._add_target(path, deleted=deleted)

    def _add_target(self, path: str, *, deleted: bool = False) -> None:
        if len(self.targets) < 4 * MAX_TARGETS:
            self.targets.append(
                WriteTarget(path=posixpath.join(self._directory, path), deleted=deleted)
            )

    def _add_command(self, node: ast.expr) -> None:
        if isinstance(node, ast.List | ast.Tuple):
            words = [self._texts(item)[:1] or [UNKNOWN] for item in node.elts]
            self.commands.append(" ".join(_quote(word[0]) for word in words))
        else:
            self.commands.extend(self._texts(node))

    def _item_texts(self, node: ast.expr) -> list[str]:
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return [text for item in node.elts for text in self._texts(item)][:MAX_TARGETS]
        return self._texts(node)

    def _texts(self, node: ast.expr) -> list[str]:
        """Return the possible string values of an expression; empty if unknown."""
        if isinstance(node, ast.Constant):
            return [node.value] if isinstance(node.value, str) else []
        if isinstance(node, ast.Name):
            return self.values.get(node.id) or self._known.get(node.id, [])
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return self._item_texts(node)
        if isinstance(node, ast.JoinedStr):
            return self._join_parts([self._texts(value) for value in node.values], "")
        if isinstance(node, ast.FormattedValue):
            return self._texts(node.value)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Div):
            between = "/" if isinstance(node.op, ast.Div) else ""
            return self._join_parts([self._texts(node.left), self._texts(node.right)], between)
        if isinstance(node, ast.Subscript):
            return self._script_argument(node)
        return self._read_call(node) if isinstance(node, ast.Call) else []

    def _read_call(self, node: ast.Call) -> list[str]:
        function = node.func
        name = function.id if isinstance(function, ast.Name) else ""
        if isinstance(function, ast.Attribute):
            name = function.attr
        if name in {"join", "joinpath", "Path"} and len(node.args) > 1:
            return self._join_parts([self._texts(argument) for argument in node.args], "/")
        if name == "joinpath" and isinstance(function, ast.Attribute) and node.args:
            return self._join_parts([self._texts(function.value), self._texts(node.args[0])], "/")
        if name in _SAME and node.args:
            return self._texts(node.args[0])
        if name in _SAME and isinstance(function, ast.Attribute):
            return self._texts(function.value)
        return ["."] if name in {"getcwd", "cwd"} else []

    def _script_argument(self, node: ast.Subscript) -> list[str]:
        """Return `sys.argv[1]` as `$1`, as in a shell script."""
        which = node.slice
        whose = node.value
        if not isinstance(whose, ast.Attribute) or whose.attr != "argv":
            return []
        return [f"${which.value}"] if isinstance(which, ast.Constant) else []

    def _join_parts(self, parts: Sequence[list[str]], between: str) -> list[str]:
        made = [""]
        for at, part in enumerate(parts):
            join = between if at and between else ""
            made = [posixpath.join(a, b) if join else a + b for a, b in product(made, part)][
                :MAX_TARGETS
            ]
        return made


def _quote(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"
