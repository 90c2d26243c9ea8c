"""Whether a command that passed shows that something works. Pure.

Only running it shows that: a run of tests, or of a program of the work. What looks, prints, edits,
installs or keeps versions shows nothing, whatever words it has in common with a claim; nor does a
program that is only asked for its version, its help, or a list of its tests. Any other command, a
build perhaps, shows what names it in backquotes.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from midwatch_monitor.rules.act import runs_tests
from midwatch_monitor.shell.normal import unwrap
from midwatch_monitor.shell.syntax import Command, expand, parse

_QUOTED = re.compile(r"`([^`]+)`")
_LOOKERS = """
. : [ [[ alias apt apt-get awk basename brew cat cd chmod chown cmp command conda cp cut date df
diff dirname dnf du echo egrep env exit export false fd file find git grep head hg id install jq
kill less ln locate ls md5sum mkdir more mv nl patch pip pip3 pipx printenv printf ps pushd popd
pwd read readlink realpath rg rm rmdir rsync sed seq set sha256sum sleep sort source stat svn
tail tar tee test touch tr tree true truncate type uname uniq unset unzip vi vim wait wc wget
which who whoami xargs yum zip
"""
_IDLE = frozenset(_LOOKERS.split())
"""Programs that look, print, edit, fetch, or keep versions."""
_PROCURES = frozenset(
    "add ci i init install lock pip remove sync uninstall update upgrade".split()  # noqa: SIM905
)
"""First arguments by which a program only fetches others, or drops them."""
_ASKS = frozenset(
    {"--version", "-version", "--help", "--collect-only", "--co", "--dry-run", "--fixtures"}
    | {"--listTests", "--list-tests", "--list"}
)
_ASKS_ALONE = frozenset({"-V", "-h", "version", "help"})
"""Those that mean it only where they stand alone."""
_LEADS = frozenset({"if", "then", "else", "elif", "do", "while", "until", "{"})
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_SHELL = re.compile(r"(?:ba|da|z|k)?sh")
_OTHERS = frozenset({"node", "ruby", "perl", "php", "java", "deno", "bun"})
_TOOLBOX = frozenset(
    {"pip", "venv", "virtualenv", "ensurepip", "compileall", "py_compile", "json.tool", "site"}
    | {"http.server", "platform", "sysconfig"}
)
"""Modules of Python that run nothing of the work."""
_IMPORTS = re.compile(r"(?:^|[;\n:])\s*(?:from|import)\s+(\w+)")
_LOADS = re.compile(r"\b(?:require|import|use|load)\b")
_VENDORED = re.compile(r"(?:^|/)(?:\.?venv|env|node_modules)/|^/(?:usr/|opt/)?s?bin/")
_MAX_DEPTH = 3
"""Shells within shells that are looked into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One simple command."""

    words: tuple[str, ...]
    checks: bool
    idle: bool


def checks(command: str) -> bool:
    """Whether a command, or a tool by its name, runs tests or a program of the work."""
    return any(part.checks for part in _parts(command))


def shows(command: str, claim: str) -> bool:
    """Whether a command that passed shows what a claim says.

    A claim that names checks in backquotes is about these. The run may have more arguments.
    """
    ran = list(_parts(command))
    proving = [part.words for part in ran if part.checks]
    quoted = _QUOTED.findall(claim)
    named = [part.words for each in quoted for part in _parts(each) if part.checks]
    if named:
        return any(_within(words, run) for words in named for run in proving)
    if proving:
        return True
    said = [list(_parts(each)) for each in quoted]
    return any(
        len(parts) == 1 and part.words[: len(parts[0].words)] == parts[0].words
        for parts in said
        for part in ran
        if not part.idle
    )


def _within(words: Sequence[str], run: Sequence[str]) -> bool:
    """Whether these words stand together in a command."""
    size = len(words)
    return any(run[at : at + size] == words for at in range(len(run) - size + 1))


def _parts(text: str, depth: int = 0) -> Iterator[_Part]:
    """The simple commands of a line, each without what only runs it."""
    for item in parse(text):
        if not isinstance(item, Command):
            continue
        raw = [text for word in item.words for text in expand(word, {})]
        while raw and raw[0] in _LEADS:
            del raw[0]
        if not raw or raw[0] == "!" or raw[:2] in (["command", "-v"], ["command", "-V"]):
            continue
        words = unwrap(raw)
        if not words:
            continue
        if (inner := _inner(words)) and depth < _MAX_DEPTH:
            yield from _parts(inner, depth + 1)
            continue
        body = next((each.body for each in item.redirects if each.body is not None), "")
        idle = _idles(words)
        yield _Part(words=tuple(words), checks=not idle and _runs(words, body), idle=idle)


def _inner(words: Sequence[str]) -> str:
    """What a shell is given as its text: `bash -lc 'make test'`."""
    if not _SHELL.fullmatch(_name(words)):
        return ""
    at = next((n for n, word in enumerate(words) if re.fullmatch(r"-\w*c", word)), 0)
    return words[at + 1] if 0 < at < len(words) - 1 else ""


def _idles(words: Sequence[str]) -> bool:
    """Whether it shows nothing at all, whoever names it."""
    rest = words[1:]
    return (
        _name(words) in _IDLE
        or bool(_ASKS & set(rest))
        or (len(rest) == 1 and rest[0] in _ASKS_ALONE)
        or (bool(rest) and rest[0] in _PROCURES)
    )


def _runs(words: Sequence[str], body: str) -> bool:
    name, rest = _name(words), words[1:]
    if _PYTHON.fullmatch(name):
        return _python(rest, body)
    if name in _OTHERS or _SHELL.fullmatch(name):
        return _interpreted(rest, body)
    if "/" in words[0] and not _VENDORED.search(words[0]):
        return True
    alone = len(words) == 1 and runs_tests(words[0], "")
    return alone or runs_tests("", " ".join([name, *rest]))


def _python(rest: Sequence[str], body: str) -> bool:
    for at, word in enumerate(rest):
        after = rest[at + 1] if at + 1 < len(rest) else ""
        if word == "-m":
            return after not in _TOOLBOX
        if word == "-c":
            return _loads_work(after)
        if word == "-":
            break
        if not word.startswith("-") and rest[at - 1] not in {"-W", "-X"}:
            return True
    return _loads_work(body)


def _loads_work(code: str) -> bool:
    """Whether code in Python loads more than what Python itself brings."""
    return any(name not in sys.stdlib_module_names for name in _IMPORTS.findall(code))


def _interpreted(rest: Sequence[str], body: str) -> bool:
    for word in rest:
        if re.fullmatch(r"-\w*[er]|--eval|--print", word):
            return any(_LOADS.search(each) for each in rest)
        if not word.startswith("-"):
            return True
    return bool(_LOADS.search(body))


def _name(words: Sequence[str]) -> str:
    return words[0].rpartition("/")[2]
