"""When two facts say the same, and what is left of them then. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from midwatch_monitor.records import Certainty, Fact

_TOKEN = re.compile(
    r"(?P<word>\w+(?:[.'-]\w+)*)"
    r"|(?P<sign>(?<![\w)\]])-(?=[\w-])|!(?=[\w=(])"  # a minus, a flag, a negation
    r"|[^\w\s.,;:'\"`()\[\]{}!\u2013\u2014\u2018\u2019\u201c\u201d\u2026-])"
)
"""A word, or a sign that is no punctuation of prose."""
_CODE = re.compile(r"`[^`\n]+`")
_SENTENCE = re.compile(r"(?:^|[.!?:]\s+|\n)[\s*_#>`'\"(-]*$")
"""What stands before the first word of a sentence."""
_SMALL_WORDS = """
a an and are as at be been for in is it its of on so that the their there these they this which
will with you your
"""
_SMALL = frozenset(_SMALL_WORDS.split())
"""Words that may differ."""
_WEIGHTY_WORDS = """
no not none never nor neither nothing cannot can't without except unless until only isn't aren't
doesn't don't didn't won't wasn't weren't hasn't haven't hadn't mustn't shouldn't couldn't wouldn't
needn't hardly rarely seldom barely scarcely sometimes occasionally often usually mostly always
almost nearly partly optional optionally maybe perhaps can could may might must shall should would
or either both all any each every some most few least more less fewer enough if when whenever while
once by to from into out off against outside inside within between during since through across
behind beyond above below before after under over instead rather than then up down back
was were had formerly previously once deprecated obsolete missing lack lacking absent wrong false
broken old new first last
"""
_WEIGHTY = frozenset(_WEIGHTY_WORDS.split())
"""Words that turn, narrow or direct what is said: a fact with one more of them is another fact."""
_CONTRARY = ("un", "non", "dis", "mis", "anti")
"""How words begin that turn another round; "unit" and "distinct" count too, which harms nobody."""
_KIND_WORDS = """
class function method module file folder variable constant type table column field flag option
setting branch target command package key
"""
_KINDS = frozenset(_KIND_WORDS.split())
"""Words beside which a word is a name, so that its capitals count."""
_SECURE = frozenset({"https", "ftps", "ldaps", "smtps", "imaps", "sftps"})
"""Words whose last letter is no plural."""
_STEM = 4
"""Letters from which a word can be a plural."""
_ENDINGS = (
    frozenset({"", "s", "es", "ed", "ing"}),
    frozenset({"e", "ing"}),
    frozenset({"y", "ies", "ied"}),
    frozenset({"", "d"}),  # of a word in "e"
    frozenset({"s", "d"}),
)
"""How forms of one word end, behind what they have in common."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token:
    """A word or a sign where it stands."""

    text: str
    exact: bool
    """A name, a number or a sign, of which every character counts."""

    @property
    def plain(self) -> str:
        return self.text.lower().strip("_")

    @property
    def weighty(self) -> bool:
        """Whether a text says something else for having it."""
        return (
            self.exact
            or self.plain in _WEIGHTY
            or len(self.plain) < 2
            or self.plain.startswith(_CONTRARY)
        )


def same(one: Fact, other: Fact, *, alike: float) -> bool:
    """Whether two facts say the same of the same thing.

    That takes `alike` of their words in common, and that one says all of the other in its order,
    word for word or in other forms of the words. What it says beside that may be no number, name
    or sign, and no word that turns, narrows or directs the rest: "MySQL" for "PostgreSQL", "from"
    for "to", or a "rarely" is news, however long the rest is. In doubt two facts are kept apart,
    by which nothing is lost. Structured values must be equal, and the files not all different,
    where both have some.
    """
    if one.value and other.value and one.value != other.value:
        return False
    if one.files and other.files and not {*one.files} & {*other.files}:
        return False
    return says_the_same(one.text, other.text, alike=alike)


def says_the_same(one: str, other: str, *, alike: float) -> bool:
    """The same of two texts alone."""
    mine, theirs = _telling(one), _telling(other)
    short, long = (mine, theirs) if len(mine) <= len(theirs) else (theirs, mine)
    beside = _beside(short, long)
    if beside is None or any(each.weighty for each in beside):
        return False
    return bool(_words(one) & _words(other)) and likeness(one, other) >= alike


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
        and len(_telling(new.text)) <= len(_telling(known.text))
    )


def joined(known: Fact, new: Fact) -> Fact:
    """One fact that says all that two say which are the same; maker and state are the new one's.

    What is confirmed stays so, and a structured value is carried over as it is.
    """
    longer = len(_telling(new.text)) > len(_telling(known.text))
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
    return frozenset(_singular(each.text.lower()) for each in _tokens(text) if _is_word(each))


def _is_word(token: _Token) -> bool:
    return token.text[0].isalnum() or token.text[0] == "_"


def _singular(word: str) -> str:
    """The word without the `s` of a plural or a verb, so that both forms are one."""
    keeps = len(word) < _STEM or word in _SMALL | _WEIGHTY | _SECURE or not word.endswith("s")
    return word if keeps or word.endswith("ss") else word[:-1]


def _telling(text: str) -> tuple[_Token, ...]:
    """The words and signs of a text that may not differ, as they follow one another."""
    return tuple(each for each in _tokens(text) if each.exact or each.text not in _SMALL)


def _tokens(text: str) -> list[_Token]:
    text = text.replace("\u2019", "'")
    code = [range(*found.span()) for found in _CODE.finditer(text)]
    found = list(_TOKEN.finditer(text))
    tokens: list[_Token] = []
    for at, each in enumerate(found):
        beside = (*found[max(0, at - 1) : at], *found[at + 1 : at + 2])
        named = any(_kind(near[0]) for near in beside) and each[0].lower() not in _SMALL
        quoted = any(each.start() in span for span in code)
        first = _SENTENCE.search(text, max(0, each.start() - 20), each.start()) is not None
        tokens.append(_token(each[0], first=first, name=quoted or named))
    return tokens


def _kind(word: str) -> bool:
    return not {word.lower(), word.lower().removesuffix("s")}.isdisjoint(_KINDS)


def _token(text: str, *, first: bool, name: bool) -> _Token:
    """One word or sign, in small letters where its capitals say nothing.

    They do in a name, in the middle of a word and in a single letter: "plan A".
    """
    if name or not text.replace("'", "").replace("-", "").isalpha():
        return _Token(text=text, exact=True)
    if len(text) == 1 and text.isupper() and not first:
        return _Token(text=text, exact=True)
    small = text.lower()
    if text[1:] == small[1:] or small in _WEIGHTY | _SMALL:
        return _Token(text=small, exact=False)
    return _Token(text=text, exact=False)


def _beside(short: Sequence[_Token], long: Sequence[_Token]) -> list[_Token] | None:
    """What the longer of two texts says beside the shorter; `None` if it does not say all of it."""
    beside: list[_Token] = []
    at = 0
    for each in long:
        if at < len(short) and _forms(short[at], each):
            at += 1
        else:
            beside.append(each)
    return beside if at == len(short) else None


def _forms(one: _Token, other: _Token) -> bool:
    """Whether two are the same, or forms of one word."""
    if one.text == other.text or one.exact or other.exact:
        return one.text == other.text
    if {one.text, other.text} & (_WEIGHTY | _SECURE):
        return False
    start = 0
    for mine, theirs in zip(one.text, other.text, strict=False):
        if mine != theirs:
            break
        start += 1
    return _inflected(one.text[:start], one.text[start:], other.text[start:])


def _inflected(stem: str, *ends: str) -> bool:
    """Whether a word with one end and with the other are two forms of it."""
    doubled = stem[-1:]  # "run" and "running"
    if {*ends} & {"", "s"}:
        ends = tuple(each.removeprefix(doubled) if len(each) > 2 else each for each in ends)
    if "d" in ends and not stem.endswith("e"):
        return False
    return len(stem) > ("" in ends) + 1 and any({*ends} <= endings for endings in _ENDINGS)
