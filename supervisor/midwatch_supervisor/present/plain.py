"""Text that agents wrote, made harmless for a terminal. Pure."""

import html
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
