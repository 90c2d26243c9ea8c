"""What the call of a program does, where that depends on what was written or flows in."""

import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from midwatch_monitor.shell import diffs, git
from midwatch_monitor.shell.programs import WRITERS, pairs, positional, valued
from midwatch_monitor.shell.script import Script, python_script
from midwatch_monitor.shell.stream import CRAFTING, EMPTY, Stream, echo, printf
from midwatch_monitor.shell.target import Target
from midwatch_monitor.shell.trail import Trail

_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh"})
_DRY = frozenset({"--check", "--stat", "--numstat", "--summary", "--cached", "--dry-run"})


class Calls:
    """Calls the programs of one command line; `nested` follows a text with its arguments."""

    def __init__(self, trail: Trail, nested: Callable[[str, Sequence[str]], None]) -> None:
        self._trail = trail
        self._nested = nested
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
        """Call a program; answers what it puts out."""
        if not words:
            return EMPTY
        name, arguments = posixpath.basename(words[0]), words[1:]
        crafted = stdin.crafted and name in CRAFTING
        if special := self._special.get(name):
            out = special(arguments, stdin) or Stream()
            return replace(out, crafted=out.crafted or crafted)
        if name in WRITERS:
            self._trail.add_all(WRITERS[name](arguments))
        elif _PYTHON.fullmatch(name):
            self._python(arguments, stdin)
        elif name in _SHELLS:
            self._shell(arguments, stdin)
        elif "/" in words[0]:
            self._file(words[0], arguments)
        return Stream(crafted=crafted)

    def _cd(self, arguments: Sequence[str], stdin: Stream) -> None:
        left = [each for each in arguments if each == "-" or not each.startswith("-")]
        self._trail.go(left[0] if left else "~")

    def _popd(self, arguments: Sequence[str], stdin: Stream) -> None:
        self._trail.go("-")

    def _cat(self, arguments: Sequence[str], stdin: Stream) -> Stream | None:
        if list(arguments) in ([], ["-"]):
            return stdin
        left = positional(arguments)
        if len(left) == len(arguments) == 1:
            return Stream(crafted=True, source=self._trail.placed(left[0]))
        return None

    def _tee(self, arguments: Sequence[str], stdin: Stream) -> Stream:
        if stdin.crafted:
            appended = bool({"-a", "--append"} & set(arguments))
            for path in positional(arguments):
                self._trail.add(Target(path=path, text=stdin.text, appended=appended))
        return stdin

    def _cp(self, arguments: Sequence[str], stdin: Stream) -> None:
        for source, place in pairs(arguments):
            self._trail.copy(source, place)

    def _mv(self, arguments: Sequence[str], stdin: Stream) -> None:
        for source, place in pairs(arguments):
            self._trail.copy(source, place)
            self._trail.add(Target(path=source, deleted=True))

    def _git(self, arguments: Sequence[str], stdin: Stream) -> Stream | None:
        self._trail.add_all(git.written(arguments))
        left = positional(arguments, "Cc")
        if left[:1] in (["apply"], ["am"]) and not _DRY & set(arguments):
            self._applied(left[1:], arguments, stdin)
        return Stream(crafted=True) if left[:1] in (["show"], ["cat-file"]) else None

    def _patch(self, arguments: Sequence[str], stdin: Stream) -> None:
        left = positional(arguments, "idopFBrzYDgVx", "input directory output strip fuzz")
        if _DRY & set(arguments):
            return
        if left:
            self._trail.add(Target(path=left[0]))
        else:
            given = valued(arguments, "-i", "--input")
            self._applied([given] if given else [], arguments, stdin)

    def _applied(self, files: Sequence[str], arguments: Sequence[str], stdin: Stream) -> None:
        folder = valued(arguments, "-d", "--directory")
        strip = valued(arguments, "-p", "--strip")
        components = int(strip) if re.fullmatch(r"[0-9]{1,2}", strip) else None
        targets = list(diffs.named(stdin.text or ""))
        for path in [self._trail.placed(file) for file in files] or [stdin.source]:
            script = self._trail.scripts.get(path)
            targets += script.targets if script and script.patch else ()
        for target in targets:
            path = posixpath.join(folder, diffs.stripped(target.path, components))
            self._trail.add(replace(target, path=path))

    def _apply_patch(self, arguments: Sequence[str], stdin: Stream) -> None:
        self._trail.add_all(diffs.blocks("\n".join(arguments) + "\n" + (stdin.text or "")))

    def _eval(self, arguments: Sequence[str], stdin: Stream) -> None:
        self._nested(" ".join(arguments), ())

    def _source(self, arguments: Sequence[str], stdin: Stream) -> None:
        if arguments:
            self._file(arguments[0], arguments[1:])

    def _shell(self, arguments: Sequence[str], stdin: Stream) -> None:
        code = any(re.fullmatch(r"-[a-z]*c[a-z]*", each) for each in arguments)
        left = positional(arguments, "oO", "rcfile init-file")
        if code and left:
            self._nested(left[0], left[2:])
        elif left and not code:
            self._file(left[0], left[1:])
        elif stdin.text is not None:
            self._nested(stdin.text, ())
        else:
            self._run(self._trail.scripts.get(stdin.source), ())

    def _python(self, arguments: Sequence[str], stdin: Stream) -> None:
        rest = list(arguments)
        while rest and rest[0].startswith("-") and rest[0] != "-":
            option = rest.pop(0)
            if option.endswith("c") and option[1:2] != "-":
                self._run(python_script("".join(rest[:1])), rest[1:])
                return
            if option == "-m":
                return
            if option in {"-W", "-X"}:
                rest = rest[1:]
        if rest and rest[0] != "-":
            self._file(rest[0], rest[1:])
        elif stdin.text is not None:
            self._run(python_script(stdin.text), rest[1:])
        else:
            self._run(self._trail.scripts.get(stdin.source), rest[1:])

    def _file(self, path: str, arguments: Sequence[str]) -> None:
        self._run(self._trail.scripts.get(self._trail.placed(path)), arguments)

    def _run(self, script: Script | None, arguments: Sequence[str]) -> None:
        if script is None or script.patch:
            return
        self._trail.add_all(script.given(arguments))
        for command in script.commands:
            self._nested(command, arguments)
