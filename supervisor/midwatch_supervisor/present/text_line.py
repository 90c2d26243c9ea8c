"""Text for a terminal: records as lines, a sign a state, others' text made harmless. Pure."""

import html
import re
import unicodedata
from collections.abc import Iterable, Mapping
from enum import Enum, auto
from typing import NamedTuple

from midwatch_monitor.records import Health, Lifecycle, Severity
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.attempt_details import AttemptStatus

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # cursor, colours
    # Titles, links, strings. One without an end, or over several lines, would hide what follows.
    r"|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)"
    r"|[ -/]*[0-~])"
)
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_MAX = 20_000
"""Characters of one text that are looked at: nobody reads more of it in a terminal."""


def plain(text: str) -> str:
    """The text with its lines and tabs, without escapes, control characters and bidi overrides.

    What it says stays readable; what it would do to a terminal is gone. A carriage return begins
    a new line. A text of more than 20,000 characters is cut.
    """
    if len(text) > _MAX:
        text = f"{text[:_MAX]}…"
    if text.isprintable():  # false for every character that is treated below
        return text
    text = _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _BIDI.sub("", text)
    return "".join(_show_char(char) for char in text.expandtabs(4))


def one_line(text: str) -> str:
    """The same on one line."""
    return " ".join(plain(text).split())


def visible(line: str) -> str:
    """One line with its spaces, on which nothing that cannot be printed is lost: it is marked.

    A newline becomes `\\n`, an escape `\\x1b`, a direction override `\\u202e`.
    """
    if line.isprintable():
        return line
    return "".join(_mark_char(char) for char in line.expandtabs(4))


def as_html(text: str) -> str:
    """The same for a page: marked, because a page can be printed too, and escaped."""
    return html.escape(visible(text))


def _mark_char(char: str) -> str:
    if char.isprintable():
        return char
    return " " if _is_space(char) else char.encode("unicode_escape").decode("ascii")


def _show_char(char: str) -> str:
    if char == "\n" or char.isprintable():
        return char
    return " " if _is_space(char) else "\N{REPLACEMENT CHARACTER}"


def _is_space(char: str) -> bool:
    return unicodedata.category(char) == "Zs"


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


HEALTH_SIGNS: Mapping[Health, str] = {
    Health.OK: "●",
    Health.SUSPECT: "▲",
    Health.STUCK: "■",
    Health.UNKNOWN: "?",
    Health.NOTICE: "·",
    Health.NOT_JUDGED: "○",
}
"""A shape for each health, so that no colour is needed."""

SEVERITY_SIGNS: Mapping[Severity, str] = {
    Severity.NOTICE: "·",
    Severity.WARNING: "▲",
    Severity.CRITICAL: "■",
}

LIFECYCLE_SIGNS: Mapping[Lifecycle, str] = {
    Lifecycle.SUBMITTED: "…",
    Lifecycle.WORKING: "▶",
    Lifecycle.INPUT_REQUIRED: "?",
    Lifecycle.COMPLETED: "✓",
    Lifecycle.FAILED: "✗",
    Lifecycle.CANCELED: "⊘",
    Lifecycle.REJECTED: "⊘",
}

LOST_SIGN = "✗"
"""Of a node that is lost."""

SPLIT_SIGN = "÷"
"""Of an attempt that smaller tasks took over; it is over, and no failure."""

STATUS_SIGNS: Mapping[AttemptStatus, str] = {
    AttemptStatus.PAUSED: "‖",
    AttemptStatus.SPLIT: SPLIT_SIGN,
    AttemptStatus.RESTARTED: "↻",
    AttemptStatus.ENDED: "○",
}
"""Where a lifecycle has no sign that says enough."""


def status_text(status: AttemptStatus, *, accepted: bool | None) -> str:
    """Where a task stands, in a word, with what speaks against a completed one."""
    rejected = accepted is False and status in (AttemptStatus.COMPLETED, AttemptStatus.ENDED)
    return f"{status} (result rejected)" if rejected else status.value


def standing_sign(state: AttemptState) -> str:
    """Where an attempt stands in one sign; one whose result was not accepted has no tick."""
    if state.rejected:
        return LIFECYCLE_SIGNS[Lifecycle.FAILED]
    return STATUS_SIGNS.get(state.status, LIFECYCLE_SIGNS[state.lifecycle])
