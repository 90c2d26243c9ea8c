"""Whether a command that passed shows that something works. Pure.

Only running it shows that: running tests, or a program of the project. Commands that look, print,
edit, install or keep versions show nothing, whatever words they share with a claim; nor does a
program that is only asked for its version, its help or a list of its tests. Any other command, such
as a build, proves a claim that names it in backquotes.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError
from pydantic_ai.messages import ToolCallPart

from midwatch_monitor.records import Cause
from midwatch_monitor.rules.act import runs_tests
from midwatch_monitor.shell.normal import unwrap
from midwatch_monitor.shell.syntax import Command, expand, parse
from midwatch_tools.tools.arguments import SomeTexts, TextArgument, Texts

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
"""Programs that look, print, edit, fetch or keep versions."""
_PROCURES = frozenset(
    "add ci i init install lock pip remove sync uninstall update upgrade".split()  # noqa: SIM905
)
"""First arguments with which a program only fetches or removes other programs."""
_ASKS = frozenset(
    {"--version", "-version", "--help", "--collect-only", "--co", "--dry-run", "--fixtures"}
    | {"--listTests", "--list-tests", "--list"}
)
_ASKS_ALONE = frozenset({"-V", "-h", "version", "help"})
"""Those that mean this only as the sole argument."""
_LEADS = frozenset({"if", "then", "else", "elif", "do", "while", "until", "{"})
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_SHELL = re.compile(r"(?:ba|da|z|k)?sh")
_OTHERS = frozenset({"node", "ruby", "perl", "php", "java", "deno", "bun"})
_TOOLBOX = frozenset(
    {"pip", "venv", "virtualenv", "ensurepip", "compileall", "py_compile", "json.tool", "site"}
    | {"http.server", "platform", "sysconfig"}
)
"""Python modules that run nothing of the project."""
_IMPORTS = re.compile(r"(?:^|[;\n:])\s*(?:from|import)\s+(\w+)")
_LOADS = re.compile(r"\b(?:require|import|use|load)\b")
_VENDORED = re.compile(r"(?:^|/)(?:\.?venv|env|node_modules)/|^/(?:usr/|opt/)?s?bin/")
_MAX_DEPTH = 3
"""How deep shells within shells are followed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One simple command."""

    words: tuple[str, ...]
    checks: bool
    idle: bool


def is_check(command: str) -> bool:
    """Whether a command, or a tool judging by its name, runs tests or a program of the project."""
    return any(part.checks for part in _simple_commands(command))


def shows_claim(command: str, claim: str) -> bool:
    """Whether a command that passed shows what a claim says.

    A claim with checks in backquotes is about those; they may be run with more arguments.
    """
    ran = list(_simple_commands(command))
    proving = [part.words for part in ran if part.checks]
    quoted = _QUOTED.findall(claim)
    named = [part.words for each in quoted for part in _simple_commands(each) if part.checks]
    if named:
        return any(_contains_words(words, run) for words in named for run in proving)
    if proving:
        return True
    said = [list(_simple_commands(each)) for each in quoted]
    return any(
        len(parts) == 1 and part.words[: len(parts[0].words)] == parts[0].words
        for parts in said
        for part in ran
        if not part.idle
    )


def _contains_words(words: Sequence[str], run: Sequence[str]) -> bool:
    """Whether these words occur next to each other in a command."""
    size = len(words)
    return any(run[at : at + size] == words for at in range(len(run) - size + 1))


def _simple_commands(text: str, depth: int = 0) -> Iterator[_Part]:
    """Yield the simple commands of a line, each without wrappers that only run it."""
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
        if (inner := _shell_text(words)) and depth < _MAX_DEPTH:
            yield from _simple_commands(inner, depth + 1)
            continue
        body = next((each.body for each in item.redirects if each.body is not None), "")
        idle = _shows_nothing(words)
        yield _Part(words=tuple(words), checks=not idle and _runs_code(words, body), idle=idle)


def _shell_text(words: Sequence[str]) -> str:
    """Return the text that a shell is given, as in `bash -lc 'make test'`; empty if none."""
    if not _SHELL.fullmatch(_program_name(words)):
        return ""
    at = next((n for n, word in enumerate(words) if re.fullmatch(r"-\w*c", word)), 0)
    return words[at + 1] if 0 < at < len(words) - 1 else ""


def _shows_nothing(words: Sequence[str]) -> bool:
    """Whether a command never shows anything, even if a claim names it."""
    rest = words[1:]
    return (
        _program_name(words) in _IDLE
        or bool(_ASKS & set(rest))
        or (len(rest) == 1 and rest[0] in _ASKS_ALONE)
        or (bool(rest) and rest[0] in _PROCURES)
    )


def _runs_code(words: Sequence[str], body: str) -> bool:
    name, rest = _program_name(words), words[1:]
    if _PYTHON.fullmatch(name):
        return _python_runs_code(rest, body)
    if name in _OTHERS or _SHELL.fullmatch(name):
        return _interpreter_runs_code(rest, body)
    if "/" in words[0] and not _VENDORED.search(words[0]):
        return True
    alone = len(words) == 1 and runs_tests(words[0], "")
    return alone or runs_tests("", " ".join([name, *rest]))


def _python_runs_code(rest: Sequence[str], body: str) -> bool:
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
    """Whether Python code imports more than the standard library."""
    return any(name not in sys.stdlib_module_names for name in _IMPORTS.findall(code))


def _interpreter_runs_code(rest: Sequence[str], body: str) -> bool:
    for word in rest:
        if re.fullmatch(r"-\w*[er]|--eval|--print", word):
            return any(_LOADS.search(each) for each in rest)
        if not word.startswith("-"):
            return True
    return bool(_LOADS.search(body))


def _program_name(words: Sequence[str]) -> str:
    return words[0].rpartition("/")[2]


_WORD = re.compile(r"[^\W_]+")
_NO_NEWS = """
a again an and at be been bug but by cause did does doesn error errored errors exception fail failed
fails failing failure fix fixed fixing for had happened has have i in is issue it its just know more
my n no none not nothing now of on once one or please problem problems really retry retrying root
same so some something still sure t tbd test tests that the there thing this time to todo tool tried
tries try trying unclear unexpected unknown was went will work worked working works wrong
"""
_EMPTY = frozenset(_NO_NEWS.split())
"""Words that say nothing about what failed or why."""


class ErrorReport(BaseModel):
    """The arguments of `report_error`."""

    what_happened: TextArgument
    category: Cause
    root_cause: TextArgument
    change: TextArgument

    def lacks(self) -> str:
        """Return what is missing, in words; empty if it says enough.

        The root cause may be missing if the cause is unknown, and the change if it is transient.
        """
        if _is_empty(self.what_happened):
            return (
                "`what_happened` is too general: name the act and the message with which it failed"
            )
        if self.category is not Cause.UNKNOWN and _is_empty(self.root_cause):
            return (
                "`root_cause` is too general: name the belief that was wrong, or what was missing; "
                "if you do not know it, the category is `unknown`"
            )
        if self.category is not Cause.TRANSIENT and _is_empty(self.change):
            return "`change` is too general: name what will be different in the next try"
        return ""


class PlanReview(BaseModel):
    """The arguments of `check_plan`."""

    assumption: TextArgument
    reality: TextArgument
    impact: TextArgument
    options: Texts
    choice: TextArgument
    remaining: SomeTexts = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """What else the turn of a call says."""

    cause: Cause | None = None
    """The cause according to an analysis in the turn."""
    checked: bool = False
    """Whether the turn contains a plan check."""


def statements_in(calls: Sequence[ToolCallPart]) -> Statements:
    """Return what the calls of one turn say; a report that would be refused says nothing."""
    cause, checked = None, False
    for call in calls:
        try:
            if call.tool_name == "report_error":
                report = ErrorReport.model_validate(call.args_as_dict())
                cause = cause if report.lacks() else report.category
            elif call.tool_name == "check_plan":
                PlanReview.model_validate(call.args_as_dict())
                checked = True
        except (ValidationError, ValueError, AssertionError):
            continue  # the tool itself tells the model
    return Statements(cause=cause, checked=checked)


def _is_empty(text: str) -> bool:
    return all(word in _EMPTY for word in _WORD.findall(text.lower()))
