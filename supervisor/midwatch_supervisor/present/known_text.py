"""Lessons, facts and guidelines in their present state: in a line, in full, and as JSON. Pure."""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from difflib import unified_diff

from pydantic import JsonValue

from midwatch_monitor.command_hint import command
from midwatch_monitor.records import (
    Certainty,
    FactMark,
    FactState,
    Feedback,
    GuidelinesState,
    KnownFact,
    KnownGuidelines,
    KnownLesson,
)
from midwatch_supervisor.present.json_lines import moment, pick_fields
from midwatch_supervisor.present.learning_text import fact_parts, lesson_parts, verdict_text
from midwatch_supervisor.present.lesson_history import LessonHistory, Use
from midwatch_supervisor.present.lookup import NamedAttempt
from midwatch_supervisor.present.numbers import count_noun
from midwatch_supervisor.present.text_line import Parts, because, brief, by, list_lines

Known = KnownLesson | KnownFact | KnownGuidelines
"""Anything that a person can mark."""
KnownFields = dict[str, object]

_USES = 20
"""Number of uses of a lesson that are shown, the newest; `--json` has all."""


def known_name(known: Known) -> str:
    """Return the name for people."""
    match known:
        case KnownLesson():
            return f"lesson {known.id}"
        case KnownFact():
            return f"fact {known.id}"
        case KnownGuidelines():
            return f"version {known.guidelines.version} of the guidelines"


def _source_text(known: KnownLesson | KnownFact, sources: Sequence[int]) -> str:
    others = ", ".join(str(each) for each in sources if each != known.attempt)
    also = f"; also from attempts {others}" if others else ""
    of = f"task {known.task}, attempt {known.attempt}{also}, in " if known.task else ""
    return f"{of}{known.project}; entry {known.id}"


def _mark_text(at: datetime, act: str, author: str, comment: str) -> str:
    return f"{at.astimezone():%Y-%m-%d %H:%M} {act}{by(author)}{because(comment)}"


def verdict_line(verdict: Feedback) -> str:
    """Return a verdict with its comment: `rejected by ada: it rounds down`."""
    return f"{verdict_text(verdict)}{because(verdict.comment)}"


def verdict_fields(verdict: Feedback) -> KnownFields:
    """Return a verdict as JSON fields."""
    return pick_fields(verdict, "accepted origin sign author comment")


# -- lessons -------------------------------------------------------------------------------


def lesson_standing(known: KnownLesson) -> str:
    """Return why a lesson is not in use, as a sentence continues after "is"; empty if it is."""
    if known.waiting:
        return f"waiting for you, because {known.lesson.waits}"
    return (
        "retired or archived: not given to attempts unless it is restored" if known.obsolete else ""
    )


def lesson_detail(known: KnownLesson, history: LessonHistory | None = None) -> Parts:
    """Return a lesson in full, with its history as far as it was read."""
    worth = (
        f"given to {count_noun(known.used, 'attempt')}; {known.helped} of them accepted, "
        f"{known.hurt} rejected or failed"
        if known.used
        else "not given to any attempt yet"
    )
    parts = (
        *lesson_parts(known.lesson),
        ("use", worth),
        ("rating", f"{known.rating} of 5" if known.rating else ""),
        ("state", lesson_standing(known)),
        ("where it comes from", _source_text(known, known.lesson.sources)),
    )
    if history is None:
        return parts
    marks = (
        _mark_text(at, _rating_text(mark.act, mark.rating), mark.author, mark.comment)
        for at, mark in history.marks
    )
    return (
        *parts,
        ("attempts", ", ".join(f"{each.name} ({each.attempt.id})" for each in history.sources)),
        ("it explains", verdict_line(history.verdict) if history.verdict else ""),
        ("given to", list_lines(map(_use_line, history.uses[-_USES:]))),
        ("marks", list_lines(marks)),
    )


def _rating_text(act: str, rating: int) -> str:
    return f"{act} {rating} of 5" if rating else act


def _use_line(use: Use) -> str:
    said = "; ".join(map(verdict_line, use.verdicts)) or "not judged"
    return f"{use.place.name} ({use.place.attempt.id}), found by {use.recalled.method}: {said}"


def lesson_fields(known: KnownLesson) -> KnownFields:
    """Return a lesson as one object."""
    lesson = known.lesson
    return {
        "type": "lesson",
        "id": known.id,
        **pick_fields(lesson, "text failure_class tags"),
        "source_attempt": known.attempt,
        **pick_fields(known, "used helped hurt"),
        "rating": known.rating or None,
        "obsolete": known.obsolete,
        "waits": lesson.waits if known.waiting else None,
        "at": moment(known.at),
        "last_used": moment(known.last_used) if known.last_used else None,
        "project": known.project,
        "task": known.task or None,
        **pick_fields(lesson, "kind files insights sources steps born verdict origin"),
        "model": lesson.model or None,
        "author": lesson.author or None,
    }


def lesson_history_fields(known: KnownLesson, history: LessonHistory) -> KnownFields:
    """Return a lesson with its sources and history as one object."""
    return {
        **lesson_fields(known),
        "source_attempts": tuple(map(_place_fields, history.sources)),
        "explains": verdict_fields(history.verdict) if history.verdict else None,
        "uses": tuple(
            {
                **_place_fields(use.place),
                "method": use.recalled.method.value,
                "score": round(use.recalled.score, 4),
                "at": moment(use.at),
                "verdicts": tuple(map(verdict_fields, use.verdicts)),
            }
            for use in history.uses
        ),
        "marks": tuple(
            {
                "at": moment(at),
                "act": mark.act,
                "rating": mark.rating or None,
                **pick_fields(mark, "author comment"),
            }
            for at, mark in history.marks
        ),
    }


def _place_fields(place: NamedAttempt) -> KnownFields:
    attempt = place.attempt
    return {"attempt": attempt.id, "task": place.task.name, "number": attempt.number}


# -- facts ---------------------------------------------------------------------------------


def fact_standing(known: KnownFact) -> str:
    """Return a fact's state in a word or two."""
    if known.live:
        return known.state.value
    if known.instead is not None:
        return f"replaced → {known.instead}"
    return known.ended.value if known.ended is not None else "not shared"


def fact_line(known: KnownFact) -> str:
    """Return a fact on one line, with what to know before relying on it."""
    reviewed = known.live and known.state is FactState.REVIEWED
    doubts = (
        "" if reviewed else fact_standing(known) + because(known.reason if known.waiting else ""),
        "inferred" if known.fact.certainty is Certainty.INFERRED else "",
    )
    said = ", ".join(filter(None, doubts))
    return f"{known.id}{f' ({said})' if said else ''}: {brief(known.fact.text)}"


def fact_detail(
    known: KnownFact,
    instead: KnownFact | None = None,
    before: Iterable[KnownFact] = (),
    marks: Iterable[tuple[datetime, FactMark]] = (),
) -> Parts:
    """Return a fact in full, with both sides of a conflict and its marks, as far as known."""
    successor = "" if known.instead is None else f"{known.instead}"
    return (
        ("state", fact_standing(known)),
        ("because", known.reason),
        ("replaced by", f"{instead.id}: {instead.fact.text}" if instead else successor),
        (
            "replaces",
            "\n".join(f"{old.id}: {old.fact.text}{because(old.reason)}" for old in before),
        ),
        *fact_parts(known.fact),
        ("where it comes from", _source_text(known, known.sources)),
        (
            "marks",
            list_lines(_mark_text(at, mark.act, mark.author, mark.reason) for at, mark in marks),
        ),
    )


def fact_fields(known: KnownFact) -> KnownFields:
    """Return a fact as one object."""
    fact = known.fact
    return {
        "type": "fact",
        "id": known.id,
        **pick_fields(fact, "text certainty"),
        "state": known.state,
        **pick_fields(fact, "files tags"),
        "value": _structured_value(fact.value),
        **pick_fields(known, "live instead ended"),
        "sources": tuple(dict.fromkeys((known.attempt, *known.sources))),
        "source_attempt": known.attempt,
        **pick_fields(known, "reason project"),
    }


def _structured_value(text: str) -> JsonValue:
    """Return the structured value; one that is not JSON, as text."""
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text


# -- guidelines ----------------------------------------------------------------------------

_VERSION_STATES = {
    GuidelinesState.PROPOSED: "waits for `{command}`",
    GuidelinesState.LIVE: "is in force",
    GuidelinesState.FORMER: "was in force",
    GuidelinesState.REJECTED: "was turned down",
}


def version_line(known: KnownGuidelines) -> str:
    """Return a version as a line: `version 2 (31) is in force, Ada: shorter; 40 words from 3 …`."""
    version = known.guidelines
    who = f", {known.author}" if known.author else ""
    state = _VERSION_STATES[known.state].format(command=command("guidelines approve"))
    stands = f"version {version.version} ({known.id}) {state}{who}"
    size = f"{len(version.text.split())} words from {count_noun(len(version.sources), 'attempt')}"
    return f"{stands}{because(known.comment)}; {size}"


def version_detail(known: KnownGuidelines, before: KnownGuidelines | None) -> Parts:
    """Return a version's changes, then its state, then its whole text."""
    version = known.guidelines
    return (
        ("what it changes", version_diff(before, known) or "nothing: the text is the same"),
        ("state", f"{version_line(known)}; {known.project}"),
        ("written by", version.model),
        ("drawn from attempts", ", ".join(map(str, version.sources))),
        ("all of it", version.text),
    )


def version_diff(before: KnownGuidelines | None, after: KnownGuidelines) -> str:
    """Return a version's changes as a unified diff; empty if there are none."""
    old = before.guidelines.text if before else ""
    names = f"version {before.guidelines.version}" if before else "nothing"
    lines = unified_diff(
        old.splitlines(),
        after.guidelines.text.splitlines(),
        fromfile=names,
        tofile=f"version {after.guidelines.version}",
        lineterm="",
    )
    return "\n".join(lines)


def version_fields(known: KnownGuidelines, *, text: bool = False) -> KnownFields:
    """Return a version as one object; with its text if wanted."""
    version = known.guidelines
    fields: KnownFields = {
        "type": "guidelines",
        "id": known.id,
        "at": moment(known.at),
        "project": known.project,
        "version": version.version,
        "state": known.state.value,
        "words": len(version.text.split()),
        **pick_fields(version, "sources base model"),
        "decided_at": moment(known.decided_at) if known.decided_at else None,
        **pick_fields(known, "author comment"),
    }
    return {**fields, "text": version.text} if text else fields
