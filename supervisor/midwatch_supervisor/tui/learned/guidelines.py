"""The versions of the guidelines: where each stands, and what it changes. Words only."""

from collections.abc import Callable, Iterator
from datetime import datetime
from difflib import unified_diff

from midwatch_monitor.records import GuidelinesState, KnownGuidelines
from midwatch_supervisor.present.learning_text import counted
from midwatch_supervisor.present.record_text import spelled_out
from midwatch_supervisor.present.text_line import brief
from midwatch_supervisor.tui.learned.learning_view import Lore
from midwatch_supervisor.tui.learned.part import Part
from midwatch_supervisor.tui.screens.fleet import span
from midwatch_supervisor.tui.widgets.columns import Column
from midwatch_supervisor.tui.widgets.line_list import Cell
from midwatch_supervisor.tui.widgets.palette import Palette


def guidelines(now: Callable[[], datetime]) -> Part[KnownGuidelines]:
    """The list of the versions."""
    return Part(
        [
            Column(title="", width=1, rank=0, draw=_sign),
            Column(title="no", width=4, rank=0, draw=_version),
            Column(title="state", width=8, rank=0, draw=_state),
            Column(title="age", width=4, rank=2, draw=_age(now)),
            Column(title="words", width=5, rank=3, draw=_words),
            Column(title="drawn from", width=12, rank=4, draw=_sources),
            Column(title="decided by", width=10, rank=3, draw=_author),
            Column(title="comment", width=10, rank=5, grow=2, draw=_comment),
            Column(title="project", width=14, rank=1, grow=2, draw=_project),
            Column(title="id", width=7, rank=6, draw=_id),
        ],
        name="guidelines",
        hint="state, words of the text, project, or who decided",
        nothing=(
            "No guidelines yet, or none that the filter lets through (escape drops it).\n"
            "`midwatch learn` looks back at attempts that are over and proposes a version;\n"
            "with `learning.guidelines.enabled` every run does so at its end."
        ),
        text=text,
    )


def _sign(known: KnownGuidelines, colours: Palette) -> Cell:
    return {
        GuidelinesState.PROPOSED: ("?", colours.warn),
        GuidelinesState.LIVE: ("●", colours.good),
        GuidelinesState.FORMER: ("○", colours.dim),
        GuidelinesState.REJECTED: ("✗", colours.dim),
    }[known.state]


def _version(known: KnownGuidelines, colours: Palette) -> Cell:
    return f"v{known.guidelines.version}", colours.strong


def _state(known: KnownGuidelines, colours: Palette) -> Cell:
    waits = known.state is GuidelinesState.PROPOSED
    return known.state.value, colours.warn if waits else colours.text


def _age(now: Callable[[], datetime]) -> Callable[[KnownGuidelines, Palette], Cell]:
    def age(known: KnownGuidelines, colours: Palette) -> Cell:
        return span((now() - known.at).total_seconds()), colours.dim

    return age


def _words(known: KnownGuidelines, colours: Palette) -> Cell:
    return f"{len(known.guidelines.text.split()):>5}", colours.text


def _sources(known: KnownGuidelines, colours: Palette) -> Cell:
    return counted(len(known.guidelines.sources), "attempt"), colours.dim


def _author(known: KnownGuidelines, colours: Palette) -> Cell:
    return brief(known.author) or "-", colours.dim


def _comment(known: KnownGuidelines, colours: Palette) -> Cell:
    return brief(known.comment) or "-", colours.dim


def _project(known: KnownGuidelines, colours: Palette) -> Cell:
    return brief(known.project), colours.dim


def _id(known: KnownGuidelines, colours: Palette) -> Cell:
    return f"{known.id:>7}", colours.dim


def text(known: KnownGuidelines) -> str:
    """What a filter looks at."""
    words = (known.state, known.project, known.author, known.comment, known.guidelines.text)
    return " ".join(words)


def base_of(known: KnownGuidelines, lore: Lore) -> KnownGuidelines | None:
    """What a version is compared with: a proposed one with what is in force, others with theirs."""
    if known.state is GuidelinesState.PROPOSED:
        return lore.live(known.project)
    base = known.guidelines.base
    return next((each for each in lore.guidelines if each.id == base), None)


def changes(known: KnownGuidelines, lore: Lore) -> str:
    """What a version changes, as a diff; empty if nothing."""
    base = base_of(known, lore)
    before = () if base is None else base.guidelines.text.splitlines()
    after = known.guidelines.text.splitlines()
    names = "nothing" if base is None else _name(base), _name(known)
    return "\n".join(unified_diff(before, after, *names, lineterm=""))


def _name(known: KnownGuidelines) -> str:
    return f"v{known.guidelines.version} ({known.state})"


def former_of(known: KnownGuidelines, lore: Lore) -> KnownGuidelines | None:
    """What is in force again when a version is rolled back, as far as that is known."""
    formers = [
        (each.decided_at, each.id, each)
        for each in lore.guidelines
        if each.project == known.project
        and each.state is GuidelinesState.FORMER
        and each.decided_at is not None
    ]
    return max(formers, key=lambda former: former[:2])[2] if formers else None


def detail(known: KnownGuidelines, lore: Lore) -> str:
    """What a version changes, then where it stands, then all of it."""
    version = known.guidelines
    return spelled_out(
        (
            ("what it changes", changes(known, lore) or "nothing: the text is the same"),
            ("state", ", ".join(_standing(known))),
            ("comment", known.comment),
            ("written by", version.model),
            ("drawn from attempts", ", ".join(map(str, version.sources))),
            ("all of it", version.text),
        )
    )


def _standing(known: KnownGuidelines) -> Iterator[str]:
    yield f"version {known.guidelines.version} of {known.project}"
    yield known.state.value
    if known.author:
        yield f"decided by {known.author}"
    yield f"entry {known.id}"
