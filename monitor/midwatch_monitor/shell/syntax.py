"""The commands of a shell text: tokens, words, redirections, what is piped into what.

In linear time; nothing makes it raise.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from itertools import product

UNKNOWN = "\0"
"""Stands for what only running the command could tell. No shell word can contain it."""

_BLANKS = re.compile(r"[ \t\r]+")
_COMMENT = re.compile(r"#[^\n]*")
_REDIRECT = re.compile(r"\d*(?:<<<|<<-|<<|<>|<&|>>|>&|>\||<|>)|&>>|&>")
_OPERATOR = re.compile(r"&&|\|\||;;|\|&|[;&|()]")
_PLAIN = re.compile(r"[^ \t\r\n;&|()<>\\'\"$`]+")
_IN_DOUBLE = re.compile(r'[^"\\$`]+')
_NAME = re.compile(r"[A-Za-z_]\w*|\d|[@*#?!$-]")
_BRACED = re.compile(r"\{([A-Za-z_]\w*|\d+)\}")
_ANSI = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "e": "\x1b", "0": ""}
_NESTED = re.compile(
    r"\\.|['\"`()]|<<-?[ \t]*(?P<quote>['\"]?)(?P<mark>\w{1,64})(?P=quote)", re.DOTALL
)
_IN_QUOTES = re.compile(r'\\.|"|\$\(', re.DOTALL)


class PartKind(Enum):
    """What a piece of a word is."""

    BARE = auto()
    """Unquoted text: braces and blanks still mean something."""
    QUOTED = auto()
    VARIABLE = auto()
    """The name of a variable that is split at blanks."""
    QUOTED_VARIABLE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece of a word; for a variable, `text` is its name."""

    kind: PartKind
    text: str


class TokenKind(Enum):
    """The kinds of token."""

    WORD = auto()
    OPERATOR = auto()
    REDIRECT = auto()
    NEWLINE = auto()
    BODY = auto()
    """The body of a here-document; it stands after the newline that ends its line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One token, with its text as it stands in the command."""

    kind: TokenKind
    raw: str
    parts: tuple[Part, ...] = ()

    @property
    def quoted(self) -> bool:
        """Whether any of the word is quoted: a here-document's mark that is, expands nothing."""
        return any(part.kind is not PartKind.BARE for part in self.parts)


def tokens(text: str) -> list[Token]:
    """The tokens of a command. What is not closed ends with the text."""
    return _Lexer(text.replace(UNKNOWN, "").replace("\r\n", "\n")).read()


class _Lexer:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._read: list[Token] = []
        self._parts: list[Part] = []
        self._marks: list[tuple[str, bool]] = []
        self._operator = ""
        self._starts: dict[str, Callable[[], None]] = {
            "\\": self._escaped,
            "'": self._single,
            '"': self._double,
            "$": self._dollar,
            "`": self._backtick,
        }

    def read(self) -> list[Token]:
        while self._at < len(self._text):
            if self._take(_BLANKS) or self._take(_COMMENT):
                continue
            if self._text.startswith("\\\n", self._at):
                self._at += 2
            elif self._text[self._at] == "\n":
                self._newline()
            elif self._text.startswith(("<(", ">("), self._at):
                self._word(substitution=True)
            elif found := self._take(_REDIRECT):
                self._operator = found.lstrip("0123456789")
                self._add(TokenKind.REDIRECT, found)
            elif found := self._take(_OPERATOR):
                self._add(TokenKind.OPERATOR, found)
            else:
                self._word()
        return self._read

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if not found:
            return ""
        self._at = found.end()
        return found.group()

    def _add(self, kind: TokenKind, raw: str, parts: tuple[Part, ...] = ()) -> None:
        self._read.append(Token(kind=kind, raw=raw, parts=parts))

    def _put(self, kind: PartKind, text: str) -> None:
        self._parts.append(Part(kind=kind, text=text))

    def _newline(self) -> None:
        self._at += 1
        self._operator = ""
        self._add(TokenKind.NEWLINE, "\n")
        for mark, tabs in self._marks:
            self._add(TokenKind.BODY, self._body(mark, tabs=tabs))
        self._marks.clear()

    def _body(self, mark: str, *, tabs: bool) -> str:
        lines: list[str] = []
        while self._at < len(self._text):
            end = self._text.find("\n", self._at) + 1 or len(self._text)
            line = self._text[self._at : end]
            self._at = end
            line = line.lstrip("\t") if tabs else line
            if line.rstrip("\r\n") == mark:
                break
            lines.append(line)
        return "".join(lines)

    def _word(self, *, substitution: bool = False) -> None:
        start = self._at
        self._parts = []
        if substitution:
            self._at = closing(self._text, self._at + 2)
            self._put(PartKind.QUOTED, UNKNOWN)
        while self._at < len(self._text):
            if found := self._take(_PLAIN):
                self._put(PartKind.BARE, found)
            elif part := self._starts.get(self._text[self._at]):
                part()
            else:
                break
        self._add(TokenKind.WORD, self._text[start : self._at], tuple(self._parts))
        if self._operator in {"<<", "<<-"}:
            mark = "".join(part.text for part in self._parts)
            self._marks.append((mark, self._operator == "<<-"))
        self._operator = ""

    def _escaped(self) -> None:
        after = self._text[self._at + 1 : self._at + 2]
        self._at += 2
        if after != "\n":
            self._put(PartKind.QUOTED, after)

    def _single(self) -> None:
        end = self._text.find("'", self._at + 1)
        end = len(self._text) if end < 0 else end
        self._put(PartKind.QUOTED, self._text[self._at + 1 : end])
        self._at = end + 1

    def _double(self) -> None:
        self._at += 1
        self._put(PartKind.QUOTED, "")
        while self._at < len(self._text):
            if found := self._take(_IN_DOUBLE):
                self._put(PartKind.QUOTED, found)
            elif self._text[self._at] == '"':
                self._at += 1
                return
            elif self._text[self._at] == "\\":
                self._escaped_in_double()
            elif self._text[self._at] == "$":
                self._dollar(quoted=True)
            else:
                self._backtick()

    def _escaped_in_double(self) -> None:
        after = self._text[self._at + 1 : self._at + 2]
        self._at += 2
        if after != "\n":
            self._put(PartKind.QUOTED, after if after in {"$", "`", '"', "\\"} else "\\" + after)

    def _dollar(self, *, quoted: bool = False) -> None:
        self._at += 1
        after = self._text[self._at : self._at + 1]
        variable = PartKind.QUOTED_VARIABLE if quoted else PartKind.VARIABLE
        if after == "(":
            self._at = closing(self._text, self._at + 1)
            self._put(PartKind.QUOTED, UNKNOWN)
        elif found := _BRACED.match(self._text, self._at):
            self._at = found.end()
            self._put(variable, found.group(1))
        elif after == "{":
            self._at = self._text.find("}", self._at) + 1 or len(self._text)
            self._put(PartKind.QUOTED, UNKNOWN)
        elif name := self._take(_NAME):
            self._put(variable, name)
        elif after == "'" and not quoted:
            self._ansi()
        elif after != '"' or quoted:
            self._put(PartKind.QUOTED, "$")

    def _ansi(self) -> None:
        self._at += 1
        read: list[str] = []
        while self._at < len(self._text) and self._text[self._at] != "'":
            if self._text[self._at] == "\\":
                self._at += 1
                after = self._text[self._at : self._at + 1]
                read.append(_ANSI.get(after, "\\" + after))
            else:
                read.append(self._text[self._at])
            self._at += 1
        self._at += 1
        self._put(PartKind.QUOTED, "".join(read))

    def _backtick(self) -> None:
        self._at += 1
        while self._at < len(self._text) and self._text[self._at] != "`":
            self._at += 2 if self._text[self._at] == "\\" else 1
        self._at += 1
        self._put(PartKind.QUOTED, UNKNOWN)


def closing(text: str, at: int) -> int:
    """Where the parenthesis that was opened before `at` is closed; the end if it never is."""
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
"""Words that one word with braces may become."""
_BRACES = re.compile(r"\{([^{}\s]*)\}")
_EXPANDING = re.compile(r"\\([$`\\])|\$(?:\{(\w+)\}|([A-Za-z_]\w*))|(\$[\d({@*#?!]|`)")


class Bracket(Enum):
    """The ends of a subshell."""

    OPEN = auto()
    CLOSE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """One redirection."""

    operator: str
    """Without the number before it."""
    descriptor: int
    target: tuple[Part, ...] = ()
    body: str | None = None
    """Of a here-document."""
    literal: bool = False
    """Whether nothing in the body is expanded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A simple command, with keywords and assignments still among its words."""

    words: tuple[tuple[Part, ...], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    piped: bool = False
    """Whether it reads what the one before it writes."""


def parse(text: str) -> list[Command | Bracket]:
    """The simple commands of a text in their order, between the brackets of subshells."""
    read = tokens(text)
    bodies = iter([token.raw for token in read if token.kind is TokenKind.BODY])
    commands: list[Command | Bracket] = []
    words: list[tuple[Part, ...]] = []
    redirects: list[Redirect] = []
    piped = False
    rest = iter(read)
    for token in rest:
        if token.kind is TokenKind.WORD:
            words.append(token.parts)
        elif token.kind is TokenKind.REDIRECT:
            redirects.append(_redirect(token, rest, bodies))
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


def expand(word: tuple[Part, ...], variables: Mapping[str, str]) -> list[str]:
    """The words that a word becomes; `UNKNOWN` stands in them for what is not known."""
    if len(word) == 1 and word[0].kind is PartKind.QUOTED:
        return [word[0].text]
    made = [""]
    for part in word:
        choices = _choices(part, variables)
        split = part.kind is PartKind.VARIABLE and len(choices) > 1
        if split:
            made = [*made[:-1], made[-1] + choices[0], *choices[1:]]
        else:
            made = [a + b for a, b in product(made, choices)][:_MAX_WORDS]
    return made


def filled(body: str, variables: Mapping[str, str]) -> str:
    """The body of a here-document whose mark is not quoted, after expansion."""

    def fill(found: re.Match[str]) -> str:
        if found[1]:
            return found[1]
        return UNKNOWN if found[4] else variables.get(found[2] or found[3], UNKNOWN)

    return _EXPANDING.sub(fill, body)


def _choices(part: Part, variables: Mapping[str, str]) -> list[str]:
    if part.kind is PartKind.QUOTED:
        return [part.text]
    if part.kind is PartKind.BARE:
        return _braced(part.text)
    value = variables.get(part.text, UNKNOWN)
    if part.kind is PartKind.VARIABLE and (" " in value or "\n" in value):
        return value.split()[:_MAX_WORDS] or [""]
    return [value]


def _braced(text: str) -> list[str]:
    if "{" not in text:
        return [text]
    pieces = _BRACES.split(text)
    choices = [_choice(piece) if at % 2 else [piece] for at, piece in enumerate(pieces)]
    made = [""]
    for choice in choices:
        made = [a + b for a, b in product(made, choice[:_MAX_WORDS])][:_MAX_WORDS]
    return made


def _choice(inside: str) -> list[str]:
    return inside.split(",") if "," in inside else ["{" + inside + "}"]


def _redirect(token: Token, rest: Iterator[Token], bodies: Iterator[str]) -> Redirect:
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
