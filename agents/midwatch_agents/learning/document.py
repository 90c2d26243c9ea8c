"""A model's answer as a document of guidelines, or why it is none. Pure."""

import json
import re
from dataclasses import dataclass

from midwatch_agents.learning.cutting import cut_markdown, word_count
from midwatch_agents.learning.likeness import subject
from midwatch_agents.learning.screening import objection

NOTHING_NEW = "there is nothing new"
LEAST_WORDS = 12
"""Fewer are no document."""
LEAST_KEPT = 0.4
"""Share of the telling words of the document in force that a new one must still have: what several
attempts taught is not thrown away for one."""

_FENCED = re.compile(r"\A```(?:markdown|md)?[ \t]*\n(?P<body>.*)\n```\s*\Z", re.DOTALL)
_PREAMBLE = re.compile(r"\A[^\n#]{1,200}:[ \t]*\n+(?=#)")
_REFUSAL = re.compile(
    r"\A\W*(?:(?:i'?m|i am) (?:very |really )?(?:sorry|afraid|unable)|sorry\b|i apologi[sz]e|"
    r"i (?:can(?:'?t|not)|won'?t|will not|am not able|do not have|don'?t have|must decline)\b|"
    r"unfortunately,? (?:i|there)\b|as an ai\b|my apologies)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafted:
    """A new document, or the reason why the one in force stays."""

    text: str | None = None
    reason: str = ""
    words: int = 0
    """Of the answer, before it was cut."""


def drafted(answer: str, current: str | None, *, max_words: int) -> Drafted:
    """What an answer comes to. Nothing that is no sound Markdown document takes a place of one.

    An answer of more than `max_words` is cut at a sound place. `current` is what is in force.
    """
    text = _bare(answer)
    words = word_count(text)
    cut = cut_markdown(text, lambda part: word_count(part) <= max_words)
    reason = _unlike_a_document(text) or _unfit(text, cut, current)
    return Drafted(text=None if reason else cut, reason=reason, words=words)


def _bare(answer: str) -> str:
    """The document without a fence around all of it, and without a word of introduction."""
    text = answer.replace("\r\n", "\n").strip()
    if fenced := _FENCED.match(text):
        text = fenced["body"].strip()
    return _PREAMBLE.sub("", text, count=1)


def _unlike_a_document(text: str) -> str:
    if not text:
        return "the answer is empty"
    if _REFUSAL.match(text.replace("\u2019", "'")):
        return "the answer is a refusal"
    if _is_json(text):
        return "the answer is JSON instead of Markdown"
    if word_count(text) < LEAST_WORDS:
        return f"the answer is too short: {word_count(text)} words"
    return ""


def _unfit(text: str, cut: str, current: str | None) -> str:
    if word_count(cut) < LEAST_WORDS:
        return "the answer is too long, and cannot be cut at a sound place"
    if why := objection(text, personal=True):
        return f"the answer is refused: {why}"
    if current is None or not current.strip():
        return ""
    if cut.split() == current.split():
        return NOTHING_NEW
    before = subject(current)
    if len(before & subject(cut)) < LEAST_KEPT * len(before):
        return "too little of the guidelines in force is left in it"
    return ""


def _is_json(text: str) -> bool:
    body = re.sub(r"\A```\w*\s*|\s*```\Z", "", text)
    if body[:1] not in {"{", "["}:
        return False
    try:
        json.loads(body)
    except ValueError:
        # Broken off or commented JSON is no document either; a list of links is.
        return body.startswith(("{", '["', "[{"))
    return True
