"""Whether what was seen in several attempts is really in what is told of them. Pure."""

import re
from collections.abc import Iterable
from enum import StrEnum
from functools import cache

from midwatch_agents.learning.likeness import telling

_STOCK = """
    about advice after again agent all also always any approach ask attempt avoid away back bad
    be before begin best better both break can careful carefully cause change check claim clear
    clearly code command complete completely correct correctly could could do done early edit
    else end ensure error even every everything evidence example expect explain fail failure fast
    few file find finish first fix follow full function get give go goal good guess help here how
    idea implement important improve instead issue just keep know known large last late later
    learn less line list long look make many matter mean mistake more most much need never new
    next no not note nothing often once open order other part pass past pay plan possible
    practice problem proceed process progress project proper properly question quick quickly read
    ready real really reason repeat report require requirement result review right risk root run
    same save say see sense set several show simple slow small smart solution solve some something
    soon sooner start state stay step still stop success successful such sure take task tell test
    thing think thorough thoroughly through time tool toward try turn understand until use user
    verify very wait want way well whole without word work worker wrong write
    """
"""What could be said to any agent on any day."""
_PARTS = re.compile(r"[._/-]+")
_NAMELIKE = re.compile(r"\w[._/]\w|\d")
_SHARED = 2
"""Words that an insight has in common with its attempts at least."""
_STOCK_SHARED = 3
"""The same where all of them are stock, ..."""
_STOCK_SHARE = 0.5
"""... which are then at least this share of the stock words in it."""


class Ground(StrEnum):
    """What an insight rests on."""

    FIRM = "firm"
    """It refers to what is told of its attempts."""
    GENERIC = "generic"
    """It would fit any agent on any day."""
    NONE = "none"
    """It speaks of something else than its attempts."""


def ground_of(insight: str, evidence: Iterable[str]) -> Ground:
    """What an insight rests on, given all that is told of the attempts that it names.

    It needs two words in common with them, or one that is a name, such as `totals.py`, or all that
    it has. Words that anybody could be told count only where there are three of them beside a word
    that is none.
    """
    said = _words(insight)
    told = frozenset[str]().union(*map(_words, evidence))
    own = said - _stock()
    if not own:
        return Ground.GENERIC
    shared, stock = own & told, said & told & _stock()
    if len(shared) >= _SHARED or shared == own or any(map(_NAMELIKE.search, shared)):
        return Ground.FIRM
    if len(shared) + len(stock) >= _STOCK_SHARED and (
        shared or len(stock) >= _STOCK_SHARE * len(said & _stock())
    ):
        return Ground.FIRM
    return Ground.NONE


def kept_share(before: str, after: str) -> float:
    """Which share of the telling words of one text is still in another, from 0 to 1."""
    words = _words(before) - _stock()
    return len(words & _words(after)) / len(words) if words else 1.0


@cache
def _stock() -> frozenset[str]:
    return frozenset(map(_stem, _STOCK.split()))


def _words(text: str) -> frozenset[str]:
    """The telling words of a text without their endings, and the parts of names."""
    found = telling(text)
    parts = {part for word in found for part in _PARTS.split(word) if len(part) > 2}
    files = {word.rpartition("/")[2] for word in found}
    return frozenset(map(_stem, found | parts | files))


def _stem(word: str) -> str:
    """The word without the commonest endings: both sides are cut alike, so it need not be right."""
    if _NAMELIKE.search(word):
        return word
    if word.endswith("ies") and len(word) > 4:
        word = f"{word[:-3]}y"
    elif not word.endswith("ss") and len(word) > 3:
        word = word.removesuffix("s")
    for ending in ("ing", "ed", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return _single(word.removesuffix(ending))
    return word


def _single(bare: str) -> str:
    """`runn` as `run`."""
    return bare[:-1] if len(bare) > 3 and bare[-1] == bare[-2] and bare[-1] not in "sl" else bare
