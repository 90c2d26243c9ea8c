"""When two facts say the same, and what is left of them then. Pure."""

import re
from dataclasses import replace

from midwatch_monitor.words import Certainty, Fact

_WORD = re.compile(r"[^\W_]+(?:[._'-][^\W_]+)*")
_NUMBER = re.compile(r"\d+(?:\.\d+)*")
_SMALL_WORDS = """
a an and are as at be been by can for from has have in is it its of on or so that the their there
these they this to was were which will with you your
"""
_SMALL = frozenset(_SMALL_WORDS.split())
"""Words that may differ."""
_TURNING = """
no not none never nor neither cannot can't without except unless until only isn't aren't doesn't
don't didn't won't wasn't mustn't shouldn't
"""
_TURNS = frozenset(_TURNING.split())
"""Words that turn what is said around: two facts that differ in one are not the same."""
_ORDERING = """
above after before below from instead into over rather than then under
"""
_DIRECTIONS = frozenset(_ORDERING.split())
"""Words with which the order of the others matters."""
_STEM = 4
"""Letters from which two words count as forms of one."""


def same(one: Fact, other: Fact, *, alike: float) -> bool:
    """Whether two facts say the same of the same thing.

    That takes `alike` of their words in common, all numbers in their order, and every word that
    turns a sentence around. Where each has words of its own, these must be forms of one another:
    "MySQL" for "PostgreSQL", or "enabled" for "disabled", is news, however long the rest is.
    Structured values must be equal, and the files not all different, where both have some.
    """
    if one.value and other.value and one.value != other.value:
        return False
    if one.files and other.files and not {*one.files} & {*other.files}:
        return False
    return says_the_same(one.text, other.text, alike=alike)


def says_the_same(one: str, other: str, *, alike: float) -> bool:
    """The same of two texts alone."""
    mine, theirs = _words(one), _words(other)
    if _numbers(one) != _numbers(other) or mine & _TURNS != theirs & _TURNS:
        return False
    if _DIRECTIONS & mine & theirs and _order(one, theirs) != _order(other, mine):
        return False
    only_mine, only_theirs = mine - theirs - _SMALL, theirs - mine - _SMALL
    if only_mine and only_theirs and not _reworded(only_mine, only_theirs):
        return False
    return bool(mine & theirs) and likeness(one, other) >= alike


def likeness(one: str, other: str) -> float:
    """The share of words that two texts have in common, 0 to 1."""
    mine, theirs = _words(one), _words(other)
    return len(mine & theirs) / len(mine | theirs) if mine | theirs else 0.0


def covers(known: Fact, new: Fact) -> bool:
    """Whether the known one of two that are the same says all that the new one does."""
    return (
        _surer(known, new) is known
        and (known.value == new.value or not new.value)
        and {*new.files} <= {*known.files}
    )


def joined(known: Fact, new: Fact) -> Fact:
    """One fact that says all that two say which are the same; maker and state are the new one's.

    What is confirmed stays so, and a structured value is carried over as it is.
    """
    longer = len(_words(new.text)) > len(_words(known.text))
    return replace(
        new,
        text=new.text if longer else known.text,
        certainty=_surer(known, new).certainty,
        value=known.value or new.value,
        files=tuple(dict.fromkeys((*known.files, *new.files))),
        tags=tuple(dict.fromkeys((*known.tags, *new.tags))),
        sources=tuple(dict.fromkeys((*known.sources, *new.sources))),
    )


def _surer(one: Fact, other: Fact) -> Fact:
    """The one that is better known; the first where both are as well."""
    return other if (one.certainty, other.certainty) == _RISES else one


_RISES = (Certainty.INFERRED, Certainty.CONFIRMED)


def _words(text: str) -> frozenset[str]:
    return frozenset(_in_order(text))


def _in_order(text: str) -> list[str]:
    return [_singular(match[0].lower()) for match in _WORD.finditer(text)]


def _singular(word: str) -> str:
    """The word without the `s` of a plural or a verb, so that both forms are one."""
    keeps = len(word) < _STEM or word in _SMALL | _DIRECTIONS or not word.endswith("s")
    return word if keeps or word.endswith("ss") else word[:-1]


def _order(text: str, others: frozenset[str]) -> list[str]:
    """The words that the other text has too, as they follow one another."""
    return [word for word in _in_order(text) if word in others - _SMALL]


def _numbers(text: str) -> list[str]:
    return _NUMBER.findall(text)


def _reworded(mine: frozenset[str], theirs: frozenset[str]) -> bool:
    """Whether the words that only one side has are forms of words of the other side."""
    return all(any(_forms(a, b) for b in theirs) for a in mine) and all(
        any(_forms(a, b) for a in mine) for b in theirs
    )


def _forms(one: str, other: str) -> bool:
    start = min(len(one), len(other), _STEM)
    return start > 1 and one[:start] == other[:start]
