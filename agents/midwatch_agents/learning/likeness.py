"""How alike two texts are, by their words. Pure."""

import re

ALIKE = 0.8
"""From this share of common words on, two lessons say the same."""

_WORD = re.compile(r"[^\W_]+(?:[._/-][^\W_]+)*")
_STEP = re.compile(r"\bsteps?\s+\d+(?:(?:,| and|, and)\s+\d+)*", re.IGNORECASE)
_EMPTY = """
a an and are as at be been but by can did do does for from had has have if in into is it its may
must not now of off on one only or our out shall should so such than that the their them then there
they this to too use was were what when where which will with would you your
"""
_EMPTY_WORDS = frozenset(_EMPTY.split())
"""What two texts may share without being alike."""

_WORDS_OF_ANY_DAY = """
about after again agent agents all also always another any approach asked attempt attempts
avoid because before begin best better both carefully careful cause change changed changes
check checked checking checks code command commands complete completed completely correct
correctly could different done double each early edit edits end ended ensure error errors
every everything exactly expected fail failed failing fails failure failures feature features
file files first fix fixed follow following full fully function functions future given goal
good has have help here how implement implementation implemented important improve incomplete
incorrect instead instruction instructions issue issues job just keep know last later lesson
like line lines list look made make many minute missed missing mistake model more most much
need needed needs never new next nothing once other others own part parts pass passed passes
passing past plan problem project proper properly question quality read reason reasons reject
rejected requirement requirements require required requires result results review reviewed
right root run running same see set several simple small solution some something sooner state
step steps still stop submit submitted sure take task tasks test tested testing tests text
thing things think thorough thoroughly through time times try tried turn understand understood
until used user using verify very wanted way well went without word words work worked worker
working works write writing written wrong wrote
"""
ANY_DAY = frozenset(_WORDS_OF_ANY_DAY.split())
"""What any worker could be told on any day."""
_SHORT = 3
"""Letters; a shorter word tells little."""


def telling(text: str) -> frozenset[str]:
    """The words that tell what a text is about, in small letters; names stay whole."""
    return frozenset(_WORD.findall(text.casefold())) - _EMPTY_WORDS


def subject(text: str) -> frozenset[str]:
    """The telling words that not every task has."""
    return frozenset(word for word in telling(text) - ANY_DAY if len(word) >= _SHORT)


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Which share of the smaller of two sets is in the other, from 0 to 1."""
    return len(one & other) / min(len(one), len(other)) if one and other else 0.0


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Which share of all that is in either of two sets is in both, from 0 to 1."""
    return len(one & other) / len(one | other) if one and other else 0.0


def likeness(one: str, other: str) -> float:
    """Which share of their telling words two texts have in common, from 0 to 1.

    In which step something happened does not tell them apart.
    """
    return jaccard(telling(_STEP.sub(" ", one)), telling(_STEP.sub(" ", other)))
