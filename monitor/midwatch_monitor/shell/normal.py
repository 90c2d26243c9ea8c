"""The normal form of a command: equivalent commands have the same one."""

import re
import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache

from midwatch_monitor.shell.syntax import UNKNOWN, Token, TokenKind, tokens

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_VALUED = {
    "sudo": "ugCDhpRrTtU",
    "timeout": "ks",
    "nice": "n",
    "env": "uCS",
    "stdbuf": "ioe",
    "time": "of",
    "ionice": "cnp",
    "nohup": "",
    "command": "",
    "builtin": "",
    "exec": "a",
    "setsid": "",
}
"""For each wrapper, its options that take a value."""
_NUMBERS = {"timeout": 1}
"""For each wrapper, the number of its own arguments before the command."""
_RUNNERS = frozenset({"uv", "poetry", "pipenv", "pdm", "hatch", "rye"})
_MAX_WRAPPINGS = 6


def unwrap(words: list[str]) -> list[str]:
    """Return the words of the command that is run in the end."""
    for _ in range(_MAX_WRAPPINGS):
        name = words[0].rpartition("/")[2] if words else ""
        if name in _RUNNERS and words[1:2] == ["run"]:
            words = _without_options(words[2:], "")
        elif name in _VALUED:
            words = _without_options(words[1:], _VALUED[name])[_NUMBERS.get(name, 0) :]
        elif words and _ASSIGNMENT.match(words[0]):
            words = words[1:]
        else:
            break
    return words


def _without_options(words: list[str], valued: str) -> list[str]:
    at = 0
    while at < len(words) and words[at].startswith("-"):
        option = words[at]
        at += 1
        if option == "--":
            break
        if not option.startswith("--") and option[-1] in valued:
            at += 1
    return words[at:]


_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_SHELL = re.compile(r"(?:ba|da|z|k)?sh")
_PYTHON_CODE = re.compile(
    r"^[ \t]*#[^\n]*\n?"
    r'|((?:[^"\'\n]++|\n(?![ \t]*\#)|"""(?:[^"\\]++|\\.|"(?!""))*+(?:"""|\\?\Z)'
    r"|'''(?:[^'\\]++|\\.|'(?!''))*+(?:'''|\\?\Z)"
    r'|"(?:[^"\\\n]++|\\.)*+"?'
    r"|'(?:[^'\\\n]++|\\.)*+'?)++\n?|\n)",
    re.MULTILINE | re.DOTALL,
)
"""Matches comments on lines of their own, or else strings, which contain no comments."""
_OPEN_ENDED = frozenset({"\n", "&&", "||", ";", "|", "|&", "(", "&"})
"""After one of these, a newline has no meaning."""
_DROPPED = frozenset({"\n", ";", "&&"})
"""Insignificant at the end."""
_GIVEN_TEXT = re.compile(r"-\w*c")
"""The option with which a shell takes its command as text."""
_MAX_DEPTH = 3
"""How deep nested shells in here-documents are followed."""


_SHORT = 500
"""Longest command that is cached, in characters: short ones recur in every attempt."""


_PLAIN_WORD = (
    r"""(?!\#)(?:[^\s;&|()<>\\'"$`\0]++|\\[^\r\n\0]|'[^'\r\0]*+'|\$(?![({'])"""
    r"""|"(?:[^"\\$`\r\0]++|\\[^\r\n\0]|\$(?![({]))*+")++"""
)
_PLAIN = re.compile(rf"{_PLAIN_WORD}(?: (?:(?:&&|\|\|?|;) )?{_PLAIN_WORD})*+")
"""Matches most commands: words separated by single blanks, which need no normalisation."""


def normal(command: str) -> str:
    """Return a command without comments and with insignificant white space unified.

    Equal for equivalent commands. Quoted text is unchanged. In bodies of here-documents, blanks at
    line ends are removed, and comments too if an interpreter runs the body.
    """
    if _PLAIN.fullmatch(command):
        return command
    return _normalize_known(command) if len(command) <= _SHORT else _normal_form(command, 0)


def command_line(words: Sequence[str]) -> str:
    """Return a program and its arguments as one command; for `bash -lc TEXT`, the text."""
    match words:
        case [shell, option, text] if _GIVEN_TEXT.fullmatch(option) and _SHELL.fullmatch(
            shell.rpartition("/")[2]
        ):
            return text
        case _:
            return shlex.join(words)


@lru_cache(maxsize=512)
def _normalize_known(command: str) -> str:
    return _normal_form(command, 0)


def _normal_form(command: str, depth: int) -> str:
    read = tokens(command)
    documents = _documents(read)
    out: list[str] = []
    for token in read:
        if token.kind is TokenKind.BODY:
            runner, mark = next(documents, ("", ""))
            out += [_normal_body(token.raw, runner, depth), mark, "\n"]
        elif token.kind is TokenKind.WORD:
            out.append(_join_lines(token.raw))
        elif token.kind is not TokenKind.NEWLINE or (out and out[-1] not in _OPEN_ENDED):
            out.append(token.raw)
    while out and out[-1] in _DROPPED:
        del out[-1]
    return _join_pieces(out)


def _join_pieces(pieces: Sequence[str]) -> str:
    read: list[str] = []
    for piece in pieces:
        if read and piece != "\n" and not read[-1].endswith("\n"):
            read.append(" ")
        if piece:
            read.append(piece)
    return "".join(read)


def _join_lines(word: str) -> str:
    return word if "'" in word or '"' in word else word.replace("\\\n", "")


def _normal_body(text: str, runner: str, depth: int) -> str:
    lines = text
    if " \n" in text or "\t\n" in text or "\r\n" in text:
        lines = "\n".join([line.rstrip(" \t\r") for line in text.split("\n")])
    if _PYTHON.fullmatch(runner):
        lines = "".join(_PYTHON_CODE.findall(lines))
    elif _SHELL.fullmatch(runner) and depth < _MAX_DEPTH:
        lines = _normal_form(lines, depth + 1)
    return lines.rstrip(" \t\r\n") + "\n"


def _documents(read: Sequence[Token]) -> Iterator[tuple[str, str]]:
    """Yield each here-document's interpreter (empty if none runs it) and delimiter."""
    pipeline: list[list[str]] = [[]]
    marks: list[str] = []
    redirect = ""
    for token in (*read, Token(kind=TokenKind.NEWLINE, raw="\n")):
        if token.kind is TokenKind.REDIRECT:
            redirect = token.raw.lstrip("0123456789")
            continue
        if token.kind is TokenKind.WORD and redirect in {"<<", "<<-"}:
            marks.append(token.text.replace(UNKNOWN, ""))
        elif token.kind is TokenKind.WORD and not redirect:
            pipeline[-1].append(token.raw)
        elif token.raw == "|":
            pipeline.append([])
        elif token.kind in {TokenKind.OPERATOR, TokenKind.NEWLINE}:
            runner = next((name for words in pipeline if (name := _runner(words))), "")
            yield from ((runner, mark) for mark in marks)
            pipeline, marks = [[]], []
        redirect = ""


def _runner(words: list[str]) -> str:
    """Return the interpreter if these words make it run its input."""
    words = unwrap(words)
    name = words[0].rpartition("/")[2] if words else ""
    reads = all(word.startswith("-") and word != "-c" for word in words[1:])
    return name if reads and (_PYTHON.fullmatch(name) or _SHELL.fullmatch(name)) else ""
