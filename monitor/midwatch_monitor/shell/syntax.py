"""Parses shell text into commands: tokens, words, redirections, pipes.

Runs in linear time and never raises.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from itertools import product
from typing import NamedTuple

UNKNOWN = "\0"
"""Stands for text that is known only when the command runs. No shell word can contain it."""

_TOKEN = re.compile(
    r"""(?:[ \t\r]++|\#[^\n]*+|\\\n)*+
    (?:(?P<newline>\n)
      |(?![<>]\()(?P<redirect>\d*+(?:<<<|<<-|<<|<>|<&|>>|>&|>\||<|>)|&>>|&>)
      |(?P<operator>&&|\|\||;;|\|&|[;&|()])
      |(?P<word>(?:[^ \t\r\n;&|()<>\\'"$`]++|\\.|'[^']*+'|\$(?![({'])
          |"(?:[^"\\$`]++|\\.|\$(?![({]))*+")++(?=[ \t\r\n;&|()<>]|\Z))
      |(?P<odd>(?=.)))""",
    re.VERBOSE | re.DOTALL,
)
"""A token and the text before it. A word with a substitution or an unclosed quote is `odd`: its end
is found only by reading its parts.
"""
_SUBSTITUTION = r"""
    |\$(?:\{(?P<braced>[A-Za-z_]\w*|\d+)\}|(?P<name>[A-Za-z_]\w*|\d|[@*#?!$-]))
    |(?P<unknown>\$\(|\$\{[^}]*+\}?|`(?:[^`\\]|\\.?)*+`?)
    |(?P<dollar>\$)"""
_PIECE = re.compile(
    r"""(?P<bare>[^ \t\r\n;&|()<>\\'"$`]++)
    |\\(?P<escaped>.?)|'(?P<quoted>[^']*+)'?|\$'(?P<ansi>(?:[^'\\]|\\.?)*+)'?|\$?(?P<double>")"""
    + _SUBSTITUTION,
    re.VERBOSE | re.DOTALL,
)
_IN_DOUBLE = re.compile(
    r"""(?P<quoted>[^"\\$`]++)|\\(?P<escaped>.?)|(?P<double>")""" + _SUBSTITUTION,
    re.VERBOSE | re.DOTALL,
)
_ANSI_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)
_ANSI = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "e": "\x1b", "0": ""}
_NESTED = re.compile(
    r"\\.|['\"`()]|<<-?[ \t]*(?P<quote>['\"]?)(?P<mark>\w{1,64})(?P=quote)", re.DOTALL
)
_DOCUMENT = re.compile(r"<<-?[ \t]*['\"]?(?P<mark>\w{1,64})['\"]?[^\n]*\n")
_SHELL_READS = re.compile(r"\b(?:ba|da|z)?sh\b[^;&|<]*\Z")
_LEADING_TABS = re.compile(r"(?m)^\t+")
_IN_QUOTES = re.compile(r'\\.|"|\$\(', re.DOTALL)


class PartKind(Enum):
    """The kind of a piece of a word."""

    BARE = auto()
    """Unquoted text, in which braces and blanks have meaning."""
    QUOTED = auto()
    VARIABLE = auto()
    """The name of a variable that is split at blanks."""
    QUOTED_VARIABLE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class WordPart:
    """A piece of a word; for a variable, `text` is its name."""

    kind: PartKind
    text: str


_SIMPLE_WORD = re.compile(r"(['\"]?)(\w*)\1")


class TokenKind(Enum):
    WORD = auto()
    OPERATOR = auto()
    REDIRECT = auto()
    NEWLINE = auto()
    BODY = auto()
    """The body of a here-document, after the newline that ends its line."""


class Token(NamedTuple):
    """One token, with its text exactly as in the command."""

    kind: TokenKind
    raw: str

    @property
    def parts(self) -> tuple[WordPart, ...]:
        """The pieces of a word."""
        return _read_word(self.raw, 0)[0]

    @property
    def text(self) -> str:
        """The text of a word, without quotes."""
        simple = _SIMPLE_WORD.fullmatch(self.raw)  # like most delimiters of here-documents
        return simple[2] if simple else "".join(part.text for part in self.parts)

    @property
    def quoted(self) -> bool:
        """Whether any part of the word is quoted; a quoted here-document delimiter disables
        expansion.
        """
        return any(part.kind is not PartKind.BARE for part in self.parts)


_KINDS = {
    "newline": TokenKind.NEWLINE,
    "redirect": TokenKind.REDIRECT,
    "operator": TokenKind.OPERATOR,
}


def tokens(text: str) -> list[Token]:
    """Return the tokens of a command. Unclosed constructs end with the text."""
    text = text.replace(UNKNOWN, "").replace("\r\n", "\n")
    read: list[Token] = []
    marks: list[tuple[str, bool]] = []
    at, operator = 0, ""
    while found := _TOKEN.match(text, at):
        group = found.lastgroup or ""
        kind, at = _KINDS.get(group, TokenKind.WORD), found.end()
        start = found.start(group)
        if group == "odd":
            at = _read_word(text, start)[1]
        token = Token(kind, text[start:at])
        read.append(token)
        if kind is TokenKind.REDIRECT:
            operator = token.raw.lstrip("0123456789")
        elif kind is TokenKind.NEWLINE:
            at = _read_bodies(text, at, marks, read)
            operator, marks = "", []
        elif kind is TokenKind.WORD:
            if operator in {"<<", "<<-"}:
                marks.append((token.text, operator == "<<-"))
            operator = ""
    return read


def _read_bodies(text: str, at: int, marks: list[tuple[str, bool]], read: list[Token]) -> int:
    """Add the bodies of here-documents with these delimiters; return where the last one ends."""
    for mark, tabs in marks:
        end, after = _closing_line(text, at, mark, tabs=tabs)
        body = text[at:end]
        read.append(Token(TokenKind.BODY, _LEADING_TABS.sub("", body) if tabs else body))
        at = after
    return at


def _closing_line(text: str, at: int, mark: str, *, tabs: bool) -> tuple[int, int]:
    """Return start and end of the delimiter's line; both the text's end if there is none."""
    place = text.find(mark, at)
    while place >= 0:
        start = text.rfind("\n", at, place) + 1 or at
        end = text.find("\n", place) + 1 or len(text)
        line = text[start:end].rstrip("\r\n")
        if (line.lstrip("\t") if tabs else line) == mark:
            return start, end
        if end == len(text):
            break
        place = text.find(mark, end)
    return len(text), len(text)


def without_documents(text: str) -> str:
    """Return the command without the here-documents that no shell runs: those are mere text."""
    kept: list[str] = []
    at = 0
    while found := _DOCUMENT.search(text, at):
        reader = text[at : found.start()].rpartition("\n")[2]
        end = text.find("\n" + found["mark"], found.end() - 1)
        end = len(text) if end < 0 else end
        kept.append(text[at : end if _SHELL_READS.search(reader) else found.end()])
        at = end
    return "".join((*kept, text[at:])) if kept else text


def _read_word(text: str, at: int) -> tuple[tuple[WordPart, ...], int]:
    """Return the parts of the word that begins at a position, and where it ends."""
    parts: list[WordPart] = []
    if text.startswith(("<(", ">("), at):
        at = find_closing(text, at + 2)
        parts.append(WordPart(kind=PartKind.QUOTED, text=UNKNOWN))
    double = False
    while found := (_IN_DOUBLE if double else _PIECE).match(text, at):
        at, group = found.end(), found.lastgroup or ""
        piece: str = found[group]
        if group == "double":
            double = not double
        elif group == "unknown" and piece == "$(":
            at = find_closing(text, at)
        elif group == "escaped" and piece == "\n":
            continue
        parts.append(_word_part(group, piece, double=double))
    return tuple(parts), at


def _word_part(group: str, piece: str, *, double: bool) -> WordPart:
    """Return a piece of a word, by the group that matched it."""
    match group:
        case "bare":
            return WordPart(kind=PartKind.BARE, text=piece)
        case "name" | "braced":
            kind = PartKind.QUOTED_VARIABLE if double else PartKind.VARIABLE
            return WordPart(kind=kind, text=piece)
        case "escaped" if double and piece not in {"$", "`", '"', "\\"}:
            piece = "\\" + piece
        case "ansi":
            piece = _ANSI_ESCAPE.sub(lambda found: _ANSI.get(found[1], found[0]), piece)
        case "double":
            piece = ""
        case "unknown":
            piece = UNKNOWN
        case _:
            pass
    return WordPart(kind=PartKind.QUOTED, text=piece)


def find_closing(text: str, at: int) -> int:
    """Return where the parenthesis opened before `at` closes; by default, the end of the text."""
    open_: list[str] = ["("]
    while open_:
        pattern = _IN_QUOTES if open_[-1] == '"' else _NESTED
        found = pattern.search(text, at)
        if not found:
            return len(text)
        at = found.end()
        sign = found.group()
        if found.lastgroup == "mark":
            end = re.compile(rf"\n\t*{found['mark']}[ \t]*(?=[\n)]|$)").search(text, at)
            at = end.end() if end else len(text)
        elif sign in {"'", "`"}:
            at = text.find(sign, at) + 1 or len(text)
        elif sign == open_[-1] == '"' or sign == ")":
            open_.pop()
        elif not sign.startswith("\\"):
            open_.append('"' if sign == '"' else "(")
    return at


_MAX_WORDS = 16
"""Largest number of words that one word with braces may expand to."""
_BRACES = re.compile(r"\{([^{}\s]*)\}")
_EXPANDING = re.compile(r"\\([$`\\])|\$(?:\{(\w+)\}|([A-Za-z_]\w*))|(\$[\d({@*#?!]|`)")


class Bracket(Enum):
    """The ends of a subshell."""

    OPEN = auto()
    CLOSE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    operator: str
    """Without the number before it."""
    descriptor: int
    target: tuple[WordPart, ...] = ()
    body: str | None = None
    """The body of a here-document."""
    literal: bool = False
    """Whether nothing in the body is expanded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A simple command, with keywords and assignments still among its words."""

    words: tuple[tuple[WordPart, ...], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    piped: bool = False
    """Whether it reads the output of the previous command."""


def parse(text: str) -> list[Command | Bracket]:
    """Return the simple commands of a text in order, between the brackets of subshells."""
    read = tokens(text)
    bodies = iter([token.raw for token in read if token.kind is TokenKind.BODY])
    commands: list[Command | Bracket] = []
    words: list[tuple[WordPart, ...]] = []
    redirects: list[Redirect] = []
    piped = False
    rest = iter(read)
    for token in rest:
        if token.kind is TokenKind.WORD:
            words.append(token.parts)
        elif token.kind is TokenKind.REDIRECT:
            redirects.append(_read_redirect(token, rest, bodies))
        elif token.kind is not TokenKind.BODY:
            if words or redirects:
                commands.append(
                    Command(words=tuple(words), redirects=tuple(redirects), piped=piped)
                )
                words, redirects, piped = [], [], False
            piped = token.raw in {"|", "|&"} or (piped and token.raw in {"\n", "("})
            if token.raw in {"(", ")"}:
                commands.append(Bracket.OPEN if token.raw == "(" else Bracket.CLOSE)
    if words or redirects:
        commands.append(Command(words=tuple(words), redirects=tuple(redirects), piped=piped))
    return commands


def expand(word: tuple[WordPart, ...], variables: Mapping[str, str]) -> list[str]:
    """Return the words that a word expands to, with `UNKNOWN` for unknown parts."""
    if len(word) == 1 and word[0].kind is PartKind.QUOTED:
        return [word[0].text]
    made = [""]
    for part in word:
        choices = _part_values(part, variables)
        split = part.kind is PartKind.VARIABLE and len(choices) > 1
        if split:
            made = [*made[:-1], made[-1] + choices[0], *choices[1:]]
        else:
            made = [a + b for a, b in product(made, choices)][:_MAX_WORDS]
    return made


def expand_document(body: str, variables: Mapping[str, str]) -> str:
    """Return the body of a here-document with an unquoted delimiter, after expansion."""

    def fill(found: re.Match[str]) -> str:
        if found[1]:
            return found[1]
        return UNKNOWN if found[4] else variables.get(found[2] or found[3], UNKNOWN)

    return _EXPANDING.sub(fill, body)


def _part_values(part: WordPart, variables: Mapping[str, str]) -> list[str]:
    if part.kind is PartKind.QUOTED:
        return [part.text]
    if part.kind is PartKind.BARE:
        return _expand_braces(part.text)
    value = variables.get(part.text, UNKNOWN)
    if part.kind is PartKind.VARIABLE and (" " in value or "\n" in value):
        return value.split()[:_MAX_WORDS] or [""]
    return [value]


def _expand_braces(text: str) -> list[str]:
    if "{" not in text:
        return [text]
    pieces = _BRACES.split(text)
    choices = [_brace_choices(piece) if at % 2 else [piece] for at, piece in enumerate(pieces)]
    made = [""]
    for choice in choices:
        made = [a + b for a, b in product(made, choice[:_MAX_WORDS])][:_MAX_WORDS]
    return made


def _brace_choices(inside: str) -> list[str]:
    return inside.split(",") if "," in inside else ["{" + inside + "}"]


def _read_redirect(token: Token, rest: Iterator[Token], bodies: Iterator[str]) -> Redirect:
    operator = token.raw.lstrip("0123456789")
    number = token.raw[: len(token.raw) - len(operator)]
    after = next(rest, None)
    target = after.parts if after and after.kind is TokenKind.WORD else ()
    body = next(bodies, "") if operator in {"<<", "<<-"} else None
    return Redirect(
        operator=operator,
        descriptor=int(number[:3]) if number else int(operator[0] != "<"),
        target=target,
        body=body,
        literal=bool(after and after.quoted),
    )
