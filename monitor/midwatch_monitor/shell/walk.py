"""What a command line writes, following it in the order in which a shell runs it."""

import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from midwatch_monitor.records import Edit
from midwatch_monitor.shell.claimed_edits import digest
from midwatch_monitor.shell.normal import unwrap
from midwatch_monitor.shell.syntax import (
    UNKNOWN,
    Bracket,
    Command,
    Redirect,
    expand,
    expand_document,
    parse,
)
from midwatch_monitor.shell.target import (
    CRAFTING,
    EMPTY,
    EVERYTHING,
    MAX_TARGETS,
    WRITERS,
    Stream,
    WriteTarget,
    echo,
    git_targets,
    option_value,
    pairs,
    patch_blocks,
    patched_files,
    place_path,
    positional,
    printf,
    without_components,
)
from midwatch_monitor.shell.written import (
    Scripts,
    WrittenFiles,
    WrittenScript,
    python_script,
    script_of,
)

_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh"})
_DRY = frozenset({"--check", "--stat", "--numstat", "--summary", "--cached", "--dry-run"})


class ProgramCalls:
    """Simulates the programs of one command line; `nested` follows a text with its arguments."""

    def __init__(self, written: WrittenFiles, nested: Callable[[str, Sequence[str]], None]) -> None:
        self._written = written
        self._walk_nested = nested
        self._special: dict[str, Callable[[Sequence[str], Stream], Stream | None]] = {
            "cd": self._cd,
            "pushd": self._cd,
            "popd": self._popd,
            "cat": self._cat,
            "echo": echo,
            "printf": printf,
            "tee": self._tee,
            "sponge": self._tee,
            "mv": self._mv,
            "cp": self._cp,
            "patch": self._patch,
            "git": self._git,
            "apply_patch": self._apply_patch,
            "applypatch": self._apply_patch,
            "eval": self._eval,
            "source": self._source,
            ".": self._source,
        }

    def call(self, words: Sequence[str], stdin: Stream) -> Stream:
        """Note what a program writes; return its output."""
        if not words:
            return EMPTY
        name, arguments = posixpath.basename(words[0]), words[1:]
        crafted = stdin.crafted and name in CRAFTING
        if special := self._special.get(name):
            out = special(arguments, stdin) or Stream()
            return replace(out, crafted=out.crafted or crafted)
        if name in WRITERS:
            self._written.add_all(WRITERS[name](arguments))
        elif _PYTHON.fullmatch(name):
            self._python(arguments, stdin)
        elif name in _SHELLS:
            self._shell(arguments, stdin)
        elif "/" in words[0]:
            self._run_file(words[0], arguments)
        return Stream(crafted=crafted)

    def _cd(self, arguments: Sequence[str], stdin: Stream) -> None:
        left = [each for each in arguments if each == "-" or not each.startswith("-")]
        self._written.go(left[0] if left else "~")

    def _popd(self, arguments: Sequence[str], stdin: Stream) -> None:
        self._written.go("-")

    def _cat(self, arguments: Sequence[str], stdin: Stream) -> Stream | None:
        if list(arguments) in ([], ["-"]):
            return stdin
        left = positional(arguments)
        if len(left) == len(arguments) == 1:
            return Stream(crafted=True, source=self._written.place_path(left[0]))
        return None

    def _tee(self, arguments: Sequence[str], stdin: Stream) -> Stream:
        if stdin.crafted:
            appended = bool({"-a", "--append"} & set(arguments))
            for path in positional(arguments):
                self._written.add(WriteTarget(path=path, text=stdin.text, appended=appended))
        return stdin

    def _cp(self, arguments: Sequence[str], stdin: Stream) -> None:
        for source, place in pairs(arguments):
            self._written.copy(source, place)

    def _mv(self, arguments: Sequence[str], stdin: Stream) -> None:
        for source, place in pairs(arguments):
            self._written.copy(source, place)
            self._written.add(WriteTarget(path=source, deleted=True))

    def _git(self, arguments: Sequence[str], stdin: Stream) -> Stream | None:
        self._written.add_all(git_targets(arguments))
        left = positional(arguments, "Cc")
        if left[:1] in (["apply"], ["am"]) and not _DRY & set(arguments):
            self._apply(left[1:], arguments, stdin)
        return Stream(crafted=True) if left[:1] in (["show"], ["cat-file"]) else None

    def _patch(self, arguments: Sequence[str], stdin: Stream) -> None:
        left = positional(arguments, "idopFBrzYDgVx", "input directory output strip fuzz")
        if _DRY & set(arguments):
            return
        if left:
            self._written.add(WriteTarget(path=left[0]))
        else:
            given = option_value(arguments, "-i", "--input")
            self._apply([given] if given else [], arguments, stdin)

    def _apply(self, files: Sequence[str], arguments: Sequence[str], stdin: Stream) -> None:
        folder = option_value(arguments, "-d", "--directory")
        strip = option_value(arguments, "-p", "--strip")
        components = int(strip) if re.fullmatch(r"[0-9]{1,2}", strip) else None
        targets = list(patched_files(stdin.text or ""))
        for path in [self._written.place_path(file) for file in files] or [stdin.source]:
            script = self._written.scripts.get(path)
            targets += script.targets if script and script.patch else ()
        for target in targets:
            path = posixpath.join(folder, without_components(target.path, components))
            self._written.add(replace(target, path=path))

    def _apply_patch(self, arguments: Sequence[str], stdin: Stream) -> None:
        self._written.add_all(patch_blocks("\n".join(arguments) + "\n" + (stdin.text or "")))

    def _eval(self, arguments: Sequence[str], stdin: Stream) -> None:
        self._walk_nested(" ".join(arguments), ())

    def _source(self, arguments: Sequence[str], stdin: Stream) -> None:
        if arguments:
            self._run_file(arguments[0], arguments[1:])

    def _shell(self, arguments: Sequence[str], stdin: Stream) -> None:
        code = any(re.fullmatch(r"-[a-z]*c[a-z]*", each) for each in arguments)
        left = positional(arguments, "oO", "rcfile init-file")
        if code and left:
            self._walk_nested(left[0], left[2:])
        elif left and not code:
            self._run_file(left[0], left[1:])
        elif stdin.text is not None:
            self._walk_nested(stdin.text, ())
        else:
            self._run_script(self._written.scripts.get(stdin.source), ())

    def _python(self, arguments: Sequence[str], stdin: Stream) -> None:
        rest = list(arguments)
        while rest and rest[0].startswith("-") and rest[0] != "-":
            option = rest.pop(0)
            if option.endswith("c") and option[1:2] != "-":
                self._run_script(python_script("".join(rest[:1])), rest[1:])
                return
            if option == "-m":
                return
            if option in {"-W", "-X"}:
                rest = rest[1:]
        if rest and rest[0] != "-":
            self._run_file(rest[0], rest[1:])
        elif stdin.text is not None:
            self._run_script(python_script(stdin.text), rest[1:])
        else:
            self._run_script(self._written.scripts.get(stdin.source), rest[1:])

    def _run_file(self, path: str, arguments: Sequence[str]) -> None:
        self._run_script(self._written.scripts.get(self._written.place_path(path)), arguments)

    def _run_script(self, script: WrittenScript | None, arguments: Sequence[str]) -> None:
        if script is None or script.patch:
            return
        self._written.add_all(script.targets_for(arguments))
        for command in script.commands:
            self._walk_nested(command, arguments)


_MAX_DEPTH = 3
"""How deep nested shells, scripts and loops are followed."""

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_DECLARES = frozenset({"export", "declare", "local", "readonly", "typeset"})
_LOOPS = frozenset({"for", "while", "until", "select"})
_BEFORE = frozenset({"if", "then", "else", "elif", "do", "!", "{"})
_KEYWORDS = _BEFORE | frozenset({"while", "until", "fi", "esac", "done", "}"})


@dataclass(slots=True)
class _Scope:
    directory: str
    subshell: bool
    crafted: bool = True


class Walk:
    """Follows command lines and notes what they write in `written`."""

    def __init__(self, written: WrittenFiles, *, depth: int = 0) -> None:
        self._written = written
        self._depth = depth
        self._calls = ProgramCalls(written, self._walk_nested)
        self._scopes: list[_Scope] = []
        self._out = EMPTY
        self._closed = False

    def follow(self, text: str) -> None:
        """Follow a command line."""
        items = parse(text)
        self._run_lines(_Lines(items), 0, len(items), 0)

    def _walk_nested(self, text: str, arguments: Sequence[str]) -> None:
        if self._depth >= _MAX_DEPTH:
            return
        directory, variables = self._written.directory, dict(self._written.variables)
        for at, argument in enumerate(arguments[:9], 1):
            self._written.assign(str(at), argument)
        Walk(self._written, depth=self._depth + 1).follow(text)
        self._written.directory, self._written.variables = directory, variables

    def _run_lines(self, lines: "_Lines", start: int, stop: int, loops: int) -> None:
        at = start
        while at < stop and self._written.step():
            item = lines.items[at]
            end = lines.ends.get(at, 0) if loops < _MAX_DEPTH else 0
            if isinstance(item, Bracket):
                self._handle_bracket(item)
            elif end and (values := self._loop_values(item)):
                name, *texts = values
                for text in texts:
                    self._written.assign(name, text)
                    self._run_lines(lines, at + 1, end, loops + 1)
                at = end
            else:
                self._run_command(item)
            at += 1

    def _loop_values(self, command: Command) -> list[str]:
        """Return the variable of a `for` and its values; empty for other loops."""
        words = _drop_leading(self._expand_words(command))
        if len(words) < 4 or words[0] != "for" or words[2] != "in":
            return []
        return [words[1], *words[3 : 3 + MAX_TARGETS]]

    def _expand_words(self, command: Command) -> list[str]:
        variables = self._written.variables
        return [text for word in command.words for text in expand(word, variables)]

    def _handle_bracket(self, bracket: Bracket) -> None:
        if bracket is Bracket.OPEN:
            self._scopes.append(_Scope(directory=self._written.directory, subshell=True))
        else:
            self._close_scope()

    def _close_scope(self) -> None:
        scope = self._scopes.pop() if self._scopes else _Scope(directory="", subshell=False)
        if scope.subshell:
            self._written.directory = scope.directory
        self._close_stream(Stream(crafted=scope.crafted))
        self._closed = True

    def _close_stream(self, out: Stream) -> None:
        self._out = out
        if self._scopes:
            self._scopes[-1].crafted &= out.crafted

    def _run_command(self, command: Command) -> None:
        stdin = self._out if command.piped else Stream(crafted=True)
        for redirect in command.redirects:
            stdin = self._read_redirect(redirect) or stdin
        words = self._take_assignments(self._drop_keywords(self._expand_words(command)))
        if words or not (command.words or self._closed):
            self._close_stream(self._calls.call(unwrap(words), stdin))
        for redirect in command.redirects:
            self._take_redirect(redirect)
        self._closed = False

    def _drop_keywords(self, words: list[str]) -> list[str]:
        """Return the words after leading keywords."""
        at = 0
        while at < len(words) and words[at] in _KEYWORDS:
            if words[at] == "{":
                self._scopes.append(_Scope(directory=self._written.directory, subshell=False))
            elif words[at] == "}":
                self._close_scope()
            else:
                self._out = Stream()
            at += 1
        return words[at:]

    def _take_assignments(self, words: list[str]) -> list[str]:
        """Return the words after leading assignments, which take effect if no words follow."""
        found: list[tuple[str, str]] = []
        for word in words[1:] if words and words[0] in _DECLARES else words:
            assignment = _ASSIGNMENT.fullmatch(word)
            if not assignment:
                return words
            found.append((assignment[1], assignment[2]))
        for name, value in found:
            self._written.assign(name, value)
        return []

    def _read_redirect(self, redirect: Redirect) -> Stream | None:
        if redirect.body is not None:
            body = redirect.body
            text = body if redirect.literal else expand_document(body, self._written.variables)
            return Stream(text=text, crafted=True)
        target = "".join(expand(redirect.target, self._written.variables))
        if redirect.operator == "<<<":
            return Stream(text=target + "\n", crafted=True)
        if redirect.operator == "<":
            return Stream(crafted=True, source=self._written.place_path(target))
        return None

    def _take_redirect(self, redirect: Redirect) -> None:
        if redirect.descriptor != 1 or redirect.operator not in {">", ">>", ">|"}:
            return
        if self._out.crafted:
            path = "".join(expand(redirect.target, self._written.variables))
            appended = redirect.operator == ">>"
            self._written.add(WriteTarget(path=path, text=self._out.text, appended=appended))
            self._out = EMPTY


class _Lines:
    """The commands of a text, and for each loop among them the index of its `done`."""

    def __init__(self, items: Sequence[Command | Bracket]) -> None:
        self.items = items
        self.ends: dict[int, int] = {}
        opened: list[int] = []
        for at, item in enumerate(items):
            if isinstance(item, Bracket):
                continue
            words = _drop_leading([text for word in item.words[:3] for text in expand(word, {})])
            if words and words[0] in _LOOPS:
                opened.append(at)
            elif words and words[0] == "done" and opened:
                self.ends[opened.pop()] = at


def _drop_leading(words: list[str]) -> list[str]:
    """Return the words without those that may precede a loop."""
    at = 0
    while at < len(words) and words[at] in _BEFORE:
        at += 1
    return words[at:]


class Shell:
    """Tracks what the commands of one run write, directly or through scripts written earlier."""

    def __init__(self) -> None:
        self._scripts = Scripts()
        self._root = ""

    def edits(self, command: str, *, cwd: str = "") -> tuple[Edit, ...]:
        """Return the files that a command writes, one edit each, in the order of the first write.

        `cwd` is the folder it starts in; paths are relative to the first `cwd` ever given. A file
        that holds the output of a program run is not an edit.
        """
        self._set_root(cwd)
        written = WrittenFiles(directory=cwd, root=self._root, scripts=self._scripts)
        Walk(written).follow(command)
        last: dict[str, WriteTarget] = {}
        for target in written.written:
            path = place_path(target.path, directory="", root=self._root)
            if path and not _names_folder(target):
                last[path] = _last_write(last.get(path), target)
        return tuple(_make_edit(path, target) for path, target in last.items())

    def note(self, path: str, content: str) -> None:
        """Note a file that was not written by a command: it may be a script that is run later."""
        path = place_path(path, directory=self._root, root=self._root)
        self._scripts.put(path, script_of(path, content))

    def _set_root(self, cwd: str) -> None:
        if cwd and not self._root:
            self._root = cwd
            self._scripts.rename(lambda path: place_path(path, directory=cwd, root=cwd))


def reverts(command: str) -> tuple[str, ...]:
    """Return the paths that a command restores from version control; `.` for everything."""
    written = WrittenFiles(directory="", root="", scripts=Scripts())
    Walk(written).follow(command)
    paths = [
        "." if target.path == EVERYTHING else place_path(target.path, directory="", root="")
        for target in written.written
        if target.restored
    ]
    return tuple(dict.fromkeys(path for path in paths if path))


def _last_write(before: WriteTarget | None, target: WriteTarget) -> WriteTarget:
    """Return the last write to a file, with the whole content if the command contains it."""
    if not target.appended:
        return target
    start = before.text if before and not before.deleted else None
    whole = None if start is None or target.text is None else start + target.text
    return replace(target, text=whole)


def _make_edit(path: str, target: WriteTarget) -> Edit:
    text = target.text
    known = "" if text is None or UNKNOWN in text else digest(text)
    return Edit(path=path, digest=known, deleted=target.deleted)


def _names_folder(target: WriteTarget) -> bool:
    """Whether the path names a folder, or everything."""
    return target.path == EVERYTHING or posixpath.basename(target.path) in {"", ".", ".."}
