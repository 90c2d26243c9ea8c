"""A record as text: a sign, its kind, a line, and all of it in paragraphs. Pure."""

from collections.abc import Iterable
from enum import Enum, auto
from typing import NamedTuple

from midwatch_supervisor.present.plain import one_line, plain

LEARNING = "learning"
"""How the parts begin that learn from the work: they may fail, and the watch is well."""

NODE = "node"
"""The part of a fleet that is no part of the watch: others go on where one is lost."""

Parts = tuple[tuple[str, str], ...]
"""Paragraphs, each under its name; an empty one is left out."""


class Tone(Enum):
    """How a line is meant; the console gives each a style, and no line is told by it alone."""

    PLAIN = auto()
    DIM = auto()
    ACCENT = auto()
    GOOD = auto()
    WARN = auto()
    BAD = auto()


class TextLine(NamedTuple):
    """What one record says to a person, harmless for a terminal.

    A tuple, so that the tables of texts read as tables.
    """

    sign: str
    what: str
    """The kind of the record, in a word or two."""
    text: str
    """The record on one line."""
    tone: Tone = Tone.PLAIN
    parts: Parts = ()
    """All of the record; empty if the line is all."""

    @property
    def detail(self) -> str:
        """All that the record says, in paragraphs."""
        return paragraphs(self.parts or ((self.what, self.text),))


def paragraphs(parts: Iterable[tuple[str, str]]) -> str:
    """Texts under their names, harmless for a terminal; an empty one is left out."""
    return plain("\n\n".join(f"{name}:\n{text}" for name, text in parts if text))


def brief(text: str, width: int = 500) -> str:
    """A text of somebody else's on one line of at most `width` characters."""
    flat = one_line(text if len(text) <= 4 * width else f"{text[: 4 * width]}…")
    return flat if len(flat) <= width else f"{flat[: width - 1]}…"


def cut_middle(text: str, width: int) -> str:
    """A name of somebody else's on one line of at most `width` characters: both ends are kept."""
    flat = one_line(text)
    if len(flat) <= width:
        return flat
    tail = (width - 1) // 2
    return f"{flat[: width - 1 - tail]}…{flat[len(flat) - tail :]}"


def because(reason: str, width: int = 500) -> str:
    """`: reason` behind what it explains; nothing without one."""
    return f": {brief(reason, width)}" if reason else ""


def in_brackets(text: str) -> str:
    """` (text)` behind what it belongs to; nothing without one."""
    return f" ({brief(text)})" if text else ""


def blocker_words(blockers: Iterable[str]) -> str:
    """What a worker says that it lacks: `blocked: a; b`; nothing without any."""
    said = "; ".join(filter(None, map(brief, blockers)))
    return f"blocked: {said}" if said else ""


def with_reservations(reservations: Iterable[str]) -> str:
    """With what reservations a task counts as completed; nothing without any."""
    said = "; ".join(reservations)
    return f"with reservations: {brief(said, 160)}" if said else ""


def by(author: str) -> str:
    """` by author` behind what was done; nothing if nobody is named."""
    return f" by {brief(author)}" if author else ""


def number_lines(items: Iterable[str]) -> str:
    """A numbered list, one item a line."""
    return "\n".join(f"{number}. {item}" for number, item in enumerate(items, start=1))


def list_lines(items: Iterable[str]) -> str:
    """A list, one item a line."""
    return "\n".join(f"- {item}" for item in items)
