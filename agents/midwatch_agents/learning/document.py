"""The document of guidelines: what a model's answer comes to, and where one may be cut. Pure."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from midwatch_agents.learning.text_safety import objection

NOTHING_NEW = "there is nothing new"
LEAST_KEPT = 0.4
"""Share of the longer words of the document in force that a new one must still have: what several
attempts taught is not thrown away for one."""

_HEADING = re.compile(r"^#{1,6}\s+\S", re.MULTILINE)
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s")
_FENCE = re.compile(r"\s*(?:[-*+]\s+|\d+[.)]\s+)?(?:```|~~~)")
_LONGER_WORD = re.compile(r"\w{4,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafted:
    """A new document, or the reason why the one in force stays."""

    text: str | None = None
    reason: str = ""
    words: int = 0
    """Of the answer, before it was cut."""


def drafted(answer: str, current: str | None, *, max_words: int) -> Drafted:
    """What an answer comes to; a document begins with a Markdown heading.

    An answer of more than `max_words` is cut. `current` is what is in force.
    """
    text = _document(answer)
    cut = cut_markdown(text, lambda part: word_count(part) <= max_words)
    reason = _unfit(cut, current)
    return Drafted(text=None if reason else cut, reason=reason, words=word_count(text))


def _document(answer: str) -> str:
    """The answer from its first heading on, without a fence around all of it."""
    text = answer.replace("\r\n", "\n").strip()
    if text.startswith("```"):
        text = text.removesuffix("```").rstrip()
    heading = _HEADING.search(text)
    return text[heading.start() :] if heading else ""


def _unfit(text: str, current: str | None) -> str:
    if not text:
        return "the answer is no Markdown with headings, or cannot be cut at a sound place"
    if why := objection(text):
        return f"the answer is refused: {why}"
    if current is None or not current.strip():
        return ""
    if text.split() == current.split():
        return NOTHING_NEW
    before, after = (set(_LONGER_WORD.findall(each.casefold())) for each in (current, text))
    if len(before & after) < LEAST_KEPT * len(before):
        return "too little of the guidelines in force is left in it"
    return ""


def word_count(text: str) -> int:
    """How many words a text has: whatever stands between white space."""
    return len(text.split())


def cut_markdown(text: str, fits: Callable[[str], bool]) -> str:
    """The longest beginning of a Markdown text that fits and ends after a block or a list item.

    Code, tables and paragraphs are kept whole or left out, and no heading and no line that ends in
    a colon is left over at the end. Empty where not even the first block fits.
    """
    text = text.replace("\r\n", "\n").strip("\n").rstrip()
    if fits(text):
        return text
    lines = text.split("\n")
    kept, fenced = list[str](), False
    for number, line in enumerate(lines):
        if not fenced and (not line.strip() or _ITEM.match(line)):
            if not fits("\n".join(lines[:number])):
                break
            kept = lines[:number]
        fenced ^= bool(_FENCE.match(line))
    while kept and _leads(kept[-1]):
        kept.pop()
    return "\n".join(kept)


def _leads(line: str) -> bool:
    """Whether a line says nothing without the next one."""
    rule = not line.strip(" =-*_")
    return rule or bool(_HEADING.match(line)) or line.rstrip(" *_").endswith(":")
