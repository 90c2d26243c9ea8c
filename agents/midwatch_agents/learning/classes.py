"""Which class of failure a text tells of. Pure."""

import re
from collections.abc import Mapping, Sequence

OTHER = "other"
"""Something failed in a way that is in no class."""
UNKNOWN = "unknown"
"""Nobody said what failed."""


def class_of(text: str, classes: Mapping[str, Sequence[str]]) -> str:
    """The first class one of whose words stands in the text.

    `other` where none does, `unknown` where there is nothing to read. A word fits at the
    beginning of a word only, and with any ending: `bug` fits `bugs`, and not `debug`.
    """
    if not text.strip():
        return UNKNOWN
    folded = " ".join(text.casefold().split())
    return next((name for name, words in classes.items() if _fits(folded, words)), OTHER)


def named_class(name: str, classes: Mapping[str, Sequence[str]]) -> str:
    """A class that a model named, in the spelling of the configuration; else `other`."""
    plain = "_".join(re.split(r"[\s_-]+", name.strip().casefold()))
    known = {"_".join(re.split(r"[\s_-]+", each.casefold())): each for each in classes}
    return known.get(plain, UNKNOWN if plain == UNKNOWN else OTHER)


def _fits(folded: str, words: Sequence[str]) -> bool:
    return any(re.search(rf"(?<!\w){re.escape(word.casefold())}", folded) for word in words if word)
