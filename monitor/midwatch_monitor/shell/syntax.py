"""The commands of a shell text: words, redirections, what is piped into what."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from itertools import product

from midwatch_monitor.shell.lexer import UNKNOWN, Part, PartKind, Token, TokenKind, tokens

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
