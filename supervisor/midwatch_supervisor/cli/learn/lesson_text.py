"""Lessons as lines for people and as fields for programs. Pure."""

from collections.abc import Iterator, Sequence
from textwrap import wrap

from midwatch_monitor.records import Birth, Feedback, KnownLesson, Origin
from midwatch_supervisor.learning.lessons import Mark, Place, Provenance, Use
from midwatch_supervisor.present.numbers import counted
from midwatch_supervisor.present.text_line import because, brief, by

_HEADS = ("id", "class", "from", "used", "helped", "hurt", "rated", "lesson")
_TEXT = 60
_NAME = 24
_WIDTH = 100
_USES = 20
"""Uses that are told to people, the newest; `--json` has them all."""

_ORIGINS = {
    Origin.EXPLICIT: "a person",
    Origin.IMPLIED: "what a person did with the result",
    Origin.AUTOMATIC: "its checks and its end",
}

_BORN = {
    Birth.VERDICT: "from",
    Birth.REFLECTION: "a look back at",
    Birth.PERSON: "written by a person, kept with",
}

Fields = dict[str, object]


def lesson_fields(known: KnownLesson) -> Fields:
    """A lesson as one object."""
    lesson = known.lesson
    return {
        "type": "lesson",
        "id": known.id,
        "text": lesson.text,
        "failure_class": lesson.failure_class,
        "tags": list(lesson.tags),
        "source_attempt": known.attempt,
        "used": known.used,
        "helped": known.helped,
        "hurt": known.hurt,
        "rating": known.rating or None,
        "obsolete": known.obsolete,
        "waits": lesson.waits if known.waiting else None,
        "at": known.at.isoformat(),
        "last_used": known.last_used.isoformat() if known.last_used else None,
        "project": known.project,
        "task": known.task,
        "kind": lesson.kind,
        "files": list(lesson.files),
        "insights": list(lesson.insights),
        "sources": list(lesson.sources),
        "steps": list(lesson.steps),
        "born": lesson.born.value,
        "verdict": lesson.verdict,
        "origin": lesson.origin.value,
        "model": lesson.model or None,
        "author": lesson.author or None,
    }


def story_fields(known: KnownLesson, found: Provenance) -> Fields:
    """A lesson with where it comes from and what became of it, as one object."""
    return {
        **lesson_fields(known),
        "source_attempts": [_place_fields(place) for place in found.sources],
        "explains": _verdict_fields(found.verdict) if found.verdict else None,
        "uses": [
            {
                **_place_fields(use.place),
                "method": use.method.value,
                "score": round(use.score, 4),
                "at": use.at.isoformat(),
                "verdicts": [_verdict_fields(verdict) for verdict in use.verdicts],
            }
            for use in found.uses
        ],
        "marks": [
            {
                "at": each.at.isoformat(),
                "act": each.mark.act.value,
                "rating": each.mark.rating or None,
                "author": each.mark.author,
                "comment": each.mark.comment,
            }
            for each in found.marks
        ],
    }


def _place_fields(place: Place) -> Fields:
    task, _, number = place.name.rpartition("#")
    return {"attempt": place.attempt, "task": task, "number": int(number)}


def _verdict_fields(verdict: Feedback) -> Fields:
    return {
        "accepted": verdict.accepted,
        "origin": verdict.origin.value,
        "sign": verdict.sign.value,
        "author": verdict.author,
        "comment": verdict.comment,
    }


def lesson_table(lessons: Sequence[KnownLesson]) -> Iterator[str]:
    """A brief table of lessons, a line each."""
    rows = [_HEADS, *(_row(known) for known in lessons)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(map(str.ljust, row, widths)).rstrip()


def _row(known: KnownLesson) -> tuple[str, ...]:
    state = "(waits for you) " if known.waiting else "(out of use) " if known.obsolete else ""
    return (
        str(known.id),
        brief(known.lesson.failure_class, _NAME),
        brief(f"{known.task} ({known.attempt})", _NAME),
        str(known.used),
        str(known.helped),
        str(known.hurt),
        str(known.rating or "-"),
        f"{state}{brief(known.lesson.text, _TEXT)}",
    )


def lesson_story(known: KnownLesson, found: Provenance) -> Iterator[str]:
    """Everything about a lesson, for people."""
    lesson = known.lesson
    state = ", out of use" if known.obsolete else ""
    yield f"lesson {known.id} of {known.project}{state}"
    if known.waiting:
        yield f"  waits for you, because {lesson.waits}: `midwatch lessons approve {known.id}`"
    author = lesson.author or lesson.model or "the fixed form"
    yield f"  {known.at.astimezone():%Y-%m-%d %H:%M}, by {author}"
    for name, said in (
        ("failure class", lesson.failure_class),
        ("tags", ", ".join(lesson.tags)),
        ("files", ", ".join(lesson.files)),
        ("kind of work", lesson.kind),
        ("rating", f"{known.rating} of 5" if known.rating else ""),
    ):
        if said:
            yield f"  {name}: {said}"
    yield ""
    yield from _paragraph(lesson.text)
    for insight in lesson.insights:
        yield from _paragraph(insight, mark="- ")
    yield ""
    yield from _from(known, found)
    given = counted(known.used, "attempt")
    yield f"given to {given}, {known.helped} accepted and {known.hurt} rejected"
    if len(found.uses) > _USES:
        yield f"  the newest {_USES}:"
    for use in found.uses[-_USES:]:
        yield f"  {_use(use)}"
    yield from (_marked(each) for each in found.marks)


def _from(known: KnownLesson, found: Provenance) -> Iterator[str]:
    lesson = known.lesson
    places = ", ".join(f"{place.name} ({place.attempt})" for place in found.sources)
    steps = f", steps {', '.join(map(str, lesson.steps))}" if lesson.steps else ""
    yield f"{_BORN[lesson.born]} {places}{steps}"
    if found.verdict is not None:
        yield f"it explains: {_verdict(found.verdict)}"


def _use(use: Use) -> str:
    said = "; ".join(_verdict(verdict) for verdict in use.verdicts) or "not judged"
    return f"{use.place.name} ({use.place.attempt}), found by {use.method}: {said}"


def _verdict(verdict: Feedback) -> str:
    what = "accepted" if verdict.accepted else "rejected"
    return f"{what} by {_ORIGINS[verdict.origin]}{because(verdict.comment, _WIDTH)}"


def _marked(each: Mark) -> str:
    mark = each.mark
    rating = f" {mark.rating} of 5" if mark.rating else ""
    when = f"{each.at.astimezone():%Y-%m-%d %H:%M}"
    return f"{when} {mark.act}{rating}{by(mark.author)}{because(mark.comment)}"


def _paragraph(text: str, *, mark: str = "  ") -> list[str]:
    return wrap(
        " ".join(text.split()), _WIDTH, initial_indent=mark, subsequent_indent=" " * len(mark)
    )
