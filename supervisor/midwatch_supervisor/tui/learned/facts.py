"""The facts: what is shared, what nobody looked at yet, and what was replaced by what."""

from collections.abc import Callable
from datetime import datetime

from midwatch_monitor.records import FactState, KnownFact
from midwatch_supervisor.present.learning_text import fact_parts
from midwatch_supervisor.present.text_line import because, brief, paragraphs
from midwatch_supervisor.tui.learned.learning_view import Lore
from midwatch_supervisor.tui.learned.part import Part, source
from midwatch_supervisor.tui.screens.fleet import span
from midwatch_supervisor.tui.widgets.columns import Column
from midwatch_supervisor.tui.widgets.line_list import Cell
from midwatch_supervisor.tui.widgets.palette import Palette


def facts(now: Callable[[], datetime]) -> Part[KnownFact]:
    """The list of the facts."""
    return Part(
        [
            Column(title="", width=1, rank=0, draw=_sign),
            Column(title="age", width=4, rank=4, draw=_age(now)),
            Column(title="state", width=17, rank=1, draw=_state),
            Column(title="fact", width=32, rank=0, grow=8, draw=_text),
            Column(title="known", width=9, rank=3, draw=_certainty),
            Column(title="files", width=12, rank=2, grow=2, draw=_files),
            Column(title="task", width=12, rank=5, grow=1, draw=_task),
            Column(title="project", width=14, rank=7, grow=1, draw=_project),
            Column(title="id", width=7, rank=6, draw=_id),
        ],
        name="facts",
        hint="words, `waiting`, `unreviewed`, `replaced`, tag, file, task or project",
        nothing=(
            "No fact yet, or none that the filter lets through (escape drops it).\n"
            "Workers record what they find out about their workspace, and more is taken out of\n"
            "finished attempts: `learning.facts` in the configuration."
        ),
        text=text,
    )


def standing(known: KnownFact) -> str:
    """Where a fact stands, in a word or two."""
    if known.instead is not None and not known.live:
        return f"replaced → {known.instead}"
    if known.live:
        return known.state.value
    return known.ended.value if known.ended is not None else "not shared"


def _sign(known: KnownFact, colours: Palette) -> Cell:
    if not known.live:
        return ("↷" if known.instead is not None else "⊘"), colours.dim
    return {
        FactState.UNREVIEWED: ("?", colours.warn),
        FactState.PENDING: ("…", colours.dim),
        FactState.WAITING: ("!", colours.warn),
        FactState.REVIEWED: ("✓", colours.good),
    }[known.state]


def _age(now: Callable[[], datetime]) -> Callable[[KnownFact, Palette], Cell]:
    def age(known: KnownFact, colours: Palette) -> Cell:
        return span((now() - known.at).total_seconds()), colours.dim

    return age


def _state(known: KnownFact, colours: Palette) -> Cell:
    unseen = known.live and known.state in {FactState.UNREVIEWED, FactState.WAITING}
    return standing(known), colours.warn if unseen else colours.dim


def _text(known: KnownFact, colours: Palette) -> Cell:
    return brief(known.fact.text), colours.strong if known.live else colours.dim


def _certainty(known: KnownFact, colours: Palette) -> Cell:
    return known.fact.certainty.value, colours.dim


def _files(known: KnownFact, colours: Palette) -> Cell:
    return brief(", ".join(known.fact.files)) or "-", colours.dim


def _task(known: KnownFact, colours: Palette) -> Cell:
    return brief(known.task), colours.dim


def _project(known: KnownFact, colours: Palette) -> Cell:
    return brief(known.project), colours.dim


def _id(known: KnownFact, colours: Palette) -> Cell:
    return f"{known.id:>7}", colours.dim


def text(known: KnownFact) -> str:
    """What a filter looks at."""
    fact = known.fact
    words = (fact.text, standing(known), fact.certainty, fact.maker, known.task, known.project)
    return " ".join((*words, *fact.tags, *fact.files))


def detail(known: KnownFact, lore: Lore) -> str:
    """All of a fact, with both sides of a conflict."""
    fact = known.fact
    successor = lore.successor(known)
    instead = "" if known.instead is None else f"{known.instead}"
    if successor is not None:
        instead = f"{successor.id}: {successor.fact.text}"
    before = (f"{old.id}: {old.fact.text}{because(old.reason)}" for old in lore.replaced(known))
    return paragraphs(
        (
            ("state", standing(known)),
            ("because", known.reason),
            ("instead of it stands", instead),
            ("it stands instead of", "\n".join(before)),
            *fact_parts(fact),
            source(known, known.sources),
        )
    )
