"""Text for a terminal: records as lines, signs for states, untrusted text made harmless. Pure."""

import html
import re
import unicodedata
from collections.abc import Iterable, Mapping
from enum import Enum, auto
from typing import NamedTuple

from midwatch_monitor.records import Checkpoint, Health, Lifecycle, Severity
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.attempt_details import AttemptStatus

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # cursor, colours
    # Titles, links, strings; on one line only, or an unterminated one would hide the rest.
    r"|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)"
    r"|[ -/]*[0-~])"
)
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_MAX = 20_000
"""Characters of one text that are used: nobody reads more of it in a terminal."""


def plain(text: str) -> str:
    """Return a text with its lines and tabs, but without escapes, control characters and bidi
    overrides.

    It stays readable, but cannot affect a terminal. A carriage return begins a new line. A text of
    more than 20,000 characters is cut.
    """
    if len(text) > _MAX:
        text = f"{text[:_MAX]}…"
    if text.isprintable():  # false for every character that is treated below
        return text
    text = _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _BIDI.sub("", text)
    return "".join(_show_char(char) for char in text.expandtabs(4))


def one_line(text: str) -> str:
    """Return the same on one line."""
    return " ".join(plain(text).split())


def visible(line: str) -> str:
    r"""Return one line with its spaces, with unprintable characters shown.

    A newline becomes `\n`, an escape `\x1b`, a direction override `\u202e`.
    """
    if line.isprintable():
        return line
    return "".join(_mark_char(char) for char in line.expandtabs(4))


def as_html(text: str) -> str:
    """Return the same for a page: unprintable characters are shown, and HTML is escaped."""
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
"""Prefix of parts that learn from the work: they may fail while the watch is fine."""

NODE = "node"
"""Prefix of fleet parts outside the watch: if one is lost, others take over."""

Parts = tuple[tuple[str, str], ...]
"""Paragraphs with their names; empty ones are left out."""


class Tone(Enum):
    """How a line is meant; the console has a style for each, but never relies on it alone."""

    PLAIN = auto()
    DIM = auto()
    ACCENT = auto()
    GOOD = auto()
    WARN = auto()
    BAD = auto()


class TextLine(NamedTuple):
    """One record's text for people, harmless for a terminal.

    A tuple, so that the tables of texts read as tables.
    """

    sign: str
    what: str
    """The kind of the record, in a word or two."""
    text: str
    """The record on one line."""
    tone: Tone = Tone.PLAIN
    parts: Parts = ()
    """The whole record; empty if the line has everything."""

    @property
    def detail(self) -> str:
        """The whole record, in paragraphs."""
        return paragraphs(self.parts or ((self.what, self.text),))


def paragraphs(parts: Iterable[tuple[str, str]]) -> str:
    """Return named texts, harmless for a terminal; empty ones are left out."""
    return plain("\n\n".join(f"{name}:\n{text}" for name, text in parts if text))


def brief(text: str, width: int = 500) -> str:
    """Return an untrusted text on one line of at most `width` characters."""
    flat = one_line(text if len(text) <= 4 * width else f"{text[: 4 * width]}…")
    return flat if len(flat) <= width else f"{flat[: width - 1]}…"


def cut_middle(text: str, width: int) -> str:
    """Return an untrusted name on one line of at most `width` characters, keeping both ends."""
    flat = one_line(text)
    if len(flat) <= width:
        return flat
    tail = (width - 1) // 2
    return f"{flat[: width - 1 - tail]}…{flat[len(flat) - tail :]}"


def because(reason: str, width: int = 500) -> str:
    """Return `: reason`; empty without a reason."""
    return f": {brief(reason, width)}" if reason else ""


def in_brackets(text: str) -> str:
    """Return ` (text)`; empty without a text."""
    return f" ({brief(text)})" if text else ""


def blocker_words(blockers: Iterable[str]) -> str:
    """Return a worker's blockers: `blocked: a; b`; empty without any."""
    said = "; ".join(filter(None, map(brief, blockers)))
    return f"blocked: {said}" if said else ""


def asked_words(report: Checkpoint) -> str:
    """Return what a worker asks for in its report: `a; b`; empty if it does not say."""
    return "; ".join(map(brief, filter(None, (*report.blockers, report.notes))))


def with_reservations(reservations: Iterable[str]) -> str:
    """Return the reservations about a completed task; empty without any."""
    said = "; ".join(reservations)
    return f"with reservations: {brief(said, 160)}" if said else ""


def by(author: str) -> str:
    """Return ` by author`; empty without an author."""
    return f" by {brief(author)}" if author else ""


def number_lines(items: Iterable[str]) -> str:
    """Return a numbered list, one item a line."""
    return "\n".join(f"{number}. {item}" for number, item in enumerate(items, start=1))


def list_lines(items: Iterable[str]) -> str:
    """Return a list, one item a line."""
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
"""For a lost node."""

SPLIT_SIGN = "÷"
"""For an attempt replaced by smaller tasks; it is over, and no failure."""

STATUS_SIGNS: Mapping[AttemptStatus, str] = {
    AttemptStatus.PAUSED: "‖",
    AttemptStatus.SPLIT: SPLIT_SIGN,
    AttemptStatus.RESTARTED: "↻",
    AttemptStatus.ENDED: "○",
}
"""For lifecycles without a sufficient sign."""


def status_text(status: AttemptStatus, *, accepted: bool | None) -> str:
    """Return a task's status in a word, with any reservations about a completed one."""
    rejected = accepted is False and status in (AttemptStatus.COMPLETED, AttemptStatus.ENDED)
    return f"{status} (result rejected)" if rejected else status.value


def standing_sign(state: AttemptState) -> str:
    """Return an attempt's state as one sign; an unaccepted result has no tick."""
    if state.rejected:
        return LIFECYCLE_SIGNS[Lifecycle.FAILED]
    return STATUS_SIGNS.get(state.status, LIFECYCLE_SIGNS[state.lifecycle])
