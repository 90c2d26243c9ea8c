"""The lists of what was learned: lessons, facts, versions of the guidelines."""

from collections.abc import Callable, Mapping
from datetime import datetime

from midwatch_monitor.command_hint import command
from midwatch_monitor.records import (
    FactState,
    GuidelinesState,
    KnownFact,
    KnownGuidelines,
    KnownLesson,
)
from midwatch_supervisor.operator.actions import LearningMark
from midwatch_supervisor.present.known_text import Known, fact_standing, known_name, version_diff
from midwatch_supervisor.present.numbers import count_noun
from midwatch_supervisor.present.text_line import brief
from midwatch_supervisor.tui.operator_command import DialogQuestion
from midwatch_supervisor.tui.state.learning import LearningView
from midwatch_supervisor.tui.widgets.palette import Cell
from midwatch_supervisor.tui.widgets.table import Column, Draw, Table, span

_FACT_SIGNS: Mapping[FactState, Cell] = {
    FactState.UNREVIEWED: ("?", "warn"),
    FactState.PENDING: ("…", "dim"),
    FactState.WAITING: ("!", "warn"),
    FactState.REVIEWED: ("✓", "good"),
}
_VERSION_SIGNS: Mapping[GuidelinesState, Cell] = {
    GuidelinesState.PROPOSED: ("?", "warn"),
    GuidelinesState.LIVE: ("●", "good"),
    GuidelinesState.FORMER: ("○", "dim"),
    GuidelinesState.REJECTED: ("✗", "dim"),
}


def _draw_age(now: Callable[[], datetime]) -> Draw[Known]:
    def age(known: Known) -> Cell:
        return span((now() - known.at).total_seconds()), "dim"

    return age


def _task_cell(known: KnownLesson | KnownFact) -> Cell:
    return brief(known.task or "-"), "dim"


def _project_cell(known: Known) -> Cell:
    return brief(known.project), "dim"


def _id_cell(known: Known) -> Cell:
    return f"{known.id:>7}", "dim"


def lessons_list(now: Callable[[], datetime]) -> Table[KnownLesson]:
    """Return the table of lessons: their text, how often they were given, and the outcomes."""
    return Table(
        [
            Column("", 1, 0, _lesson_sign),
            Column("age", 4, 5, _draw_age(now)),
            Column("class", 14, 1, lambda known: (brief(known.lesson.failure_class), "text")),
            Column("lesson", 40, 0, _lesson_text, grow=8),
            Column("used", 4, 2, lambda known: (f"{known.used:>4}", "text")),
            Column("+/-", 5, 2, _lesson_worth),
            Column("rated", 5, 3, _rating_cell),
            Column("task", 12, 4, _task_cell, grow=1),
            Column("project", 14, 7, _project_cell, grow=1),
            Column("id", 7, 6, _id_cell),
        ],
        name="lessons",
        hint="words, class, tag, file, task, project, `waiting` or `obsolete`",
        nothing=(
            "No lessons yet.\n"
            "One is drawn from each attempt that failed or whose result was rejected. To reject a\n"
            f"result, select the attempt in the fleet, or use `{command('feedback')}`."
        ),
        text=_lesson_words,
        key=lambda known: known.id,
    )


def _lesson_sign(known: KnownLesson) -> Cell:
    if known.waiting:
        return "!", "warn"
    return ("⊘", "dim") if known.obsolete else ("✎", "accent")


def _lesson_text(known: KnownLesson) -> Cell:
    return brief(known.lesson.text), "dim" if known.obsolete else "strong"


def _lesson_worth(known: KnownLesson) -> Cell:
    if not known.helped + known.hurt:
        return "-", "dim"
    return f"{known.helped}/{known.hurt}", "warn" if known.hurt > known.helped else "good"


def _rating_cell(known: KnownLesson) -> Cell:
    return (f"{known.rating}/5", "text") if known.rating else ("-", "dim")


def _lesson_words(known: KnownLesson) -> str:
    """Return the text that a filter searches."""
    lesson = known.lesson
    state = "obsolete" if known.obsolete else "waiting" if known.waiting else ""
    words = (lesson.text, lesson.failure_class, lesson.origin, known.task, known.project, state)
    return " ".join((*words, *lesson.tags, *lesson.files)).lower()


def facts_list(now: Callable[[], datetime]) -> Table[KnownFact]:
    """Return the table of facts: shared, not yet reviewed, and replaced ones."""
    return Table(
        [
            Column("", 1, 0, _fact_sign),
            Column("age", 4, 4, _draw_age(now)),
            Column("state", 17, 1, _fact_state),
            Column("fact", 32, 0, _fact_text, grow=8),
            Column("certainty", 9, 3, lambda known: (known.fact.certainty.value, "dim")),
            Column("files", 12, 2, _fact_files, grow=2),
            Column("task", 12, 5, _task_cell, grow=1),
            Column("project", 14, 7, _project_cell, grow=1),
            Column("id", 7, 6, _id_cell),
        ],
        name="facts",
        hint="words, `waiting`, `unreviewed`, `replaced`, tag, file, task or project",
        nothing=(
            "No facts yet.\n"
            "Workers record what they find out about their workspace, and more is extracted from\n"
            "finished attempts: see `learning.facts` in the configuration."
        ),
        text=_fact_words,
        key=lambda known: known.id,
    )


def _fact_sign(known: KnownFact) -> Cell:
    if not known.live:
        return ("↷" if known.instead is not None else "⊘"), "dim"
    return _FACT_SIGNS[known.state]


def _fact_state(known: KnownFact) -> Cell:
    unseen = known.live and known.state in {FactState.UNREVIEWED, FactState.WAITING}
    return fact_standing(known), "warn" if unseen else "dim"


def _fact_text(known: KnownFact) -> Cell:
    return brief(known.fact.text), "strong" if known.live else "dim"


def _fact_files(known: KnownFact) -> Cell:
    return brief(", ".join(known.fact.files)) or "-", "dim"


def _fact_words(known: KnownFact) -> str:
    """Return the text that a filter searches."""
    fact = known.fact
    words = (fact.text, fact_standing(known), fact.certainty, fact.maker, known.task, known.project)
    return " ".join((*words, *fact.tags, *fact.files)).lower()


def guidelines_list(now: Callable[[], datetime]) -> Table[KnownGuidelines]:
    """Return the table of the guidelines' versions, with their states and origins."""
    return Table(
        [
            Column("", 1, 0, lambda known: _VERSION_SIGNS[known.state]),
            Column("no", 4, 0, lambda known: (f"v{known.guidelines.version}", "strong")),
            Column("state", 8, 0, _version_state),
            Column("age", 4, 2, _draw_age(now)),
            Column("words", 5, 3, _version_length),
            Column("drawn from", 12, 4, _version_sources),
            Column("decided by", 10, 3, lambda known: (brief(known.author) or "-", "dim")),
            Column("comment", 10, 5, lambda known: (brief(known.comment) or "-", "dim"), 2),
            Column("project", 14, 1, _project_cell, grow=2),
            Column("id", 7, 6, _id_cell),
        ],
        name="guidelines",
        hint="state, words of the text, project or author",
        nothing=(
            "No guidelines yet.\n"
            f"`{command('learn')}` reflects on finished attempts and proposes a version; with\n"
            "`learning.guidelines.enabled`, every run does so at its end."
        ),
        text=_version_words,
        key=lambda known: known.id,
    )


def _version_state(known: KnownGuidelines) -> Cell:
    waits = known.state is GuidelinesState.PROPOSED
    return known.state.value, "warn" if waits else "text"


def _version_length(known: KnownGuidelines) -> Cell:
    return f"{len(known.guidelines.text.split()):>5}", "text"


def _version_sources(known: KnownGuidelines) -> Cell:
    return count_noun(len(known.guidelines.sources), "attempt"), "dim"


def _version_words(known: KnownGuidelines) -> str:
    """Return the text that a filter searches."""
    words = (known.state, known.project, known.author, known.comment, known.guidelines.text)
    return " ".join(words).lower()


def question(mark: LearningMark, known: Known, view: LearningView) -> DialogQuestion | None:
    """Return the question before a mark; `None` if it needs none."""
    name = known_name(known)
    if isinstance(known, KnownGuidelines):
        return _of_version(mark, known, view)
    quote = known.lesson.text if isinstance(known, KnownLesson) else known.fact.text
    match mark:
        case LearningMark.APPROVE:
            title = f"Allow {name} to be given to workers?"
            return DialogQuestion(title=title, send="Approve", quote=quote, confirm=True)
        case LearningMark.RATE:
            title = f"How useful is {name}, from 1 (misleading) to 5 (saved the day)?"
            return DialogQuestion(title=title, send="Rate", quote=quote, check=_unrated_note)
        case LearningMark.RETIRE:
            title = f"Retire {name}: it is no longer given to workers. Why?"
            return DialogQuestion(title=title, send="Retire", quote=quote, required=False)
        case _:
            return None


def _of_version(mark: LearningMark, known: KnownGuidelines, view: LearningView) -> DialogQuestion:
    name, diff = known_name(known), version_diff(view.before(known), known)
    match mark:
        case LearningMark.APPROVE:
            title = f"Put {name} in force for every attempt that begins from now on?"
            return DialogQuestion(title=title, send="Approve", quote=diff, confirm=True)
        case LearningMark.REJECT:
            title = f"Reject {name}: why?"
            return DialogQuestion(title=title, send="Reject", quote=diff, required=False)
        case _:
            former = view.former(known.project)
            then = "no guidelines are" if former is None else f"{known_name(former)} is"
            title = f"Roll back {name}: {then} in force again. Why?"
            return DialogQuestion(title=title, send="Roll back", required=False)


def rating_in(words: str) -> tuple[int, str]:
    """Return the rating on the first line, 0 for none, and the rest as the comment."""
    first, _, rest = words.strip().partition("\n")
    return (int(first) if first.strip() in {"1", "2", "3", "4", "5"} else 0), rest.strip()


def _unrated_note(words: str) -> str:
    return "" if rating_in(words)[0] else "enter a number from 1 to 5; further lines are a comment"
