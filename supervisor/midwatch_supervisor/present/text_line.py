"""A record as one line of the console, and how the line is meant. Pure."""

from dataclasses import dataclass
from enum import Enum, auto

from midwatch_supervisor.present.plain import one_line

_SEEN = 500
"""Characters of a text that can matter on one line: no terminal is wider."""


LEARNING = "learning"
"""How the parts begin that draw something from the work: they may fail, and the watch is well."""


NODE = "node"
"""The part of a fleet that is no part of the watch: others go on where one is lost."""


class Tone(Enum):
    """How a line is meant; the console gives each a style, and no line is told by it alone."""

    PLAIN = auto()
    DIM = auto()
    ACCENT = auto()
    GOOD = auto()
    WARN = auto()
    BAD = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One record as a line."""

    sign: str
    what: str
    """The kind of the record, in a word or two."""
    text: str
    tone: Tone = Tone.PLAIN


def brief(text: str) -> str:
    """A text of somebody else's on one line; what no terminal could show of it is cut."""
    return one_line(text if len(text) <= _SEEN else f"{text[:_SEEN]}…")


def because(reason: str) -> str:
    """A reason behind what it explains; nothing where there is none."""
    return f": {brief(reason)}" if reason else ""
