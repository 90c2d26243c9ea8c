"""When two facts say the same, and what is left of them then. Pure."""

from dataclasses import replace

from midwatch_monitor.records import Certainty, Fact


def same_text(one: str, other: str) -> bool:
    """Whether two texts are equal but for case and white space."""
    return one.casefold().split() == other.casefold().split()


def same(one: Fact, other: Fact) -> bool:
    """Whether two facts say the same of the same thing.

    Their texts must be equal but for case and white space, structured values equal where both have
    one, and the files not all different where both name some.
    """
    if one.value and other.value and one.value != other.value:
        return False
    if one.files and other.files and not {*one.files} & {*other.files}:
        return False
    return same_text(one.text, other.text)


def covers(known: Fact, new: Fact) -> bool:
    """Whether the known one of two facts that are the same says all that the new one does."""
    return (
        (_confirmed(known) or not _confirmed(new))
        and (known.value == new.value or not new.value)
        and {*new.files} <= {*known.files}
    )


def joined(known: Fact, new: Fact) -> Fact:
    """One fact that says all that two say which are the same; maker and state are the new one's."""
    return replace(
        new,
        text=known.text,
        certainty=known.certainty if _confirmed(known) else new.certainty,
        value=known.value or new.value,
        files=tuple(dict.fromkeys((*known.files, *new.files))),
        tags=tuple(dict.fromkeys((*known.tags, *new.tags))),
        sources=tuple(dict.fromkeys((*known.sources, *new.sources))),
    )


def _confirmed(fact: Fact) -> bool:
    return fact.certainty is Certainty.CONFIRMED
