"""The lessons: what they say, how often they were given, and what came of it."""

from collections.abc import Callable
from datetime import datetime

from midwatch_monitor.records import KnownLesson
from midwatch_supervisor.present.learning_text import lesson_parts
from midwatch_supervisor.present.numbers import counted
from midwatch_supervisor.present.text_line import brief, paragraphs
from midwatch_supervisor.tui.learned.part import Part, source
from midwatch_supervisor.tui.screens.fleet import span
from midwatch_supervisor.tui.widgets.columns import Column
from midwatch_supervisor.tui.widgets.line_list import Cell
from midwatch_supervisor.tui.widgets.palette import Palette


def lessons(now: Callable[[], datetime]) -> Part[KnownLesson]:
    """The list of the lessons."""
    return Part(
        [
            Column(title="", width=1, rank=0, draw=_sign),
            Column(title="age", width=4, rank=5, draw=_age(now)),
            Column(title="class", width=14, rank=1, draw=_class),
            Column(title="lesson", width=40, rank=0, grow=8, draw=_text),
            Column(title="used", width=4, rank=2, draw=_used),
            Column(title="+/-", width=5, rank=2, draw=_worth),
            Column(title="rated", width=5, rank=3, draw=_rated),
            Column(title="task", width=12, rank=4, grow=1, draw=_task),
            Column(title="project", width=14, rank=7, grow=1, draw=_project),
            Column(title="id", width=7, rank=6, draw=_id),
        ],
        name="lessons",
        hint="words, class, tag, file, task, project, `waiting` or `obsolete`",
        nothing=(
            "No lesson yet, or none that the filter lets through (escape drops it).\n"
            "One is drawn from each attempt that failed or whose result was rejected: reject one\n"
            "that is over in the fleet or in its view, or with `midwatch feedback`."
        ),
        text=text,
    )


def _sign(known: KnownLesson, colours: Palette) -> Cell:
    if known.waiting:
        return "!", colours.warn
    return ("⊘", colours.dim) if known.obsolete else ("✎", colours.accent)


def _age(now: Callable[[], datetime]) -> Callable[[KnownLesson, Palette], Cell]:
    def age(known: KnownLesson, colours: Palette) -> Cell:
        return span((now() - known.at).total_seconds()), colours.dim

    return age


def _class(known: KnownLesson, colours: Palette) -> Cell:
    return brief(known.lesson.failure_class), colours.text


def _text(known: KnownLesson, colours: Palette) -> Cell:
    return brief(known.lesson.text), colours.dim if known.obsolete else colours.strong


def _used(known: KnownLesson, colours: Palette) -> Cell:
    return f"{known.used:>4}", colours.text


def _worth(known: KnownLesson, colours: Palette) -> Cell:
    if not known.helped + known.hurt:
        return "-", colours.dim
    style = colours.warn if known.hurt > known.helped else colours.good
    return f"{known.helped}/{known.hurt}", style


def _rated(known: KnownLesson, colours: Palette) -> Cell:
    return (f"{known.rating}/5", colours.text) if known.rating else ("-", colours.dim)


def _task(known: KnownLesson, colours: Palette) -> Cell:
    return brief(known.task), colours.dim


def _project(known: KnownLesson, colours: Palette) -> Cell:
    return brief(known.project), colours.dim


def _id(known: KnownLesson, colours: Palette) -> Cell:
    return f"{known.id:>7}", colours.dim


def text(known: KnownLesson) -> str:
    """What a filter looks at."""
    lesson = known.lesson
    state = "obsolete" if known.obsolete else "waiting" if known.waiting else ""
    words = (lesson.text, lesson.failure_class, lesson.origin, known.task, known.project, state)
    return " ".join((*words, *lesson.tags, *lesson.files))


def detail(known: KnownLesson) -> str:
    """All of a lesson, with what became of it."""
    given = counted(known.used, "attempt")
    worth = (
        f"given to {given}; {known.helped} of them accepted, {known.hurt} rejected or failed"
        if known.used
        else "not given to anybody yet"
    )
    state = "retired or archived: it never comes back into a prompt" if known.obsolete else ""
    if known.waiting:
        state = f"waits for you, because {known.lesson.waits}"
    return paragraphs(
        (
            *lesson_parts(known.lesson),
            ("use", worth),
            ("rating", f"{known.rating} of 5" if known.rating else ""),
            ("state", state),
            source(known, known.lesson.sources),
        )
    )
