"""Text that agents wrote, made harmless for a terminal. Pure."""

import re
import unicodedata

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
    return "".join(_shown(char) for char in text.expandtabs(4))


def one_line(text: str) -> str:
    """The same on one line."""
    return " ".join(plain(text).split())


def _shown(char: str) -> str:
    if char == "\n" or char.isprintable():
        return char
    return " " if unicodedata.category(char) == "Zs" else "\N{REPLACEMENT CHARACTER}"
