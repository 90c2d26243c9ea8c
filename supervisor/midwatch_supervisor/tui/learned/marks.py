"""What a person can do about what was learned, when it makes sense, and how it is stored."""

from enum import StrEnum

from midwatch_monitor.records import (
    FactAct,
    GuidelinesAct,
    GuidelinesState,
    KnownFact,
    KnownGuidelines,
    KnownLesson,
    LessonAct,
)
from midwatch_supervisor.operator.actions import LearningActions
from midwatch_supervisor.tui.learned.lists import former_of, version_diff
from midwatch_supervisor.tui.operator_command import DialogQuestion
from midwatch_supervisor.tui.state.learning import LearningView, Marked


class Mark(StrEnum):
    """One thing that a person does about what was learned."""

    RATE = "rate"
    RETIRE = "retire"
    RESTORE = "restore"
    APPROVE = "approve"
    REJECT = "reject"
    ROLL_BACK = "roll back"


def named(known: Marked) -> str:
    """What people call it."""
    match known:
        case KnownLesson():
            return f"lesson {known.id}"
        case KnownFact():
            return f"fact {known.id}"
        case KnownGuidelines():
            return f"version {known.guidelines.version} of the guidelines"


def refusal(mark: Mark, known: Marked) -> str:
    """Why a mark makes no sense; empty if it does."""
    if isinstance(known, KnownGuidelines):
        return _refused_version(mark, known)
    if mark in {Mark.REJECT, Mark.ROLL_BACK}:
        return "that is for guidelines"
    if mark is Mark.RATE:
        return "" if isinstance(known, KnownLesson) else "only lessons are rated"
    if mark is Mark.APPROVE:
        return "" if known.waiting else "it does not wait for anybody"
    gone = known.obsolete if isinstance(known, KnownLesson) else not known.live
    if mark is Mark.RETIRE:
        return "nobody gets it any more already" if gone else ""
    return "" if gone else "it stands as it is"


def _refused_version(mark: Mark, known: KnownGuidelines) -> str:
    if mark in {Mark.APPROVE, Mark.REJECT}:
        needed, called = GuidelinesState.PROPOSED, "proposed"
    elif mark is Mark.ROLL_BACK:
        needed, called = GuidelinesState.LIVE, "in force"
    else:
        return "guidelines are approved, rejected or rolled back"
    return "" if known.state is needed else f"it is not {called}; it is {known.state}"


def question(mark: Mark, known: Marked, view: LearningView) -> DialogQuestion | None:
    """What is asked before a mark; `None` if it is made at once."""
    name = named(known)
    if isinstance(known, KnownGuidelines):
        return _of_version(mark, known, view)
    quote = known.lesson.text if isinstance(known, KnownLesson) else known.fact.text
    match mark:
        case Mark.APPROVE:
            title = f"Let workers be given {name}?"
            return DialogQuestion(title=title, send="Approve", quote=quote, confirm=True)
        case Mark.RATE:
            title = f"What is {name} worth, from 1 (misleading) to 5 (saved the day)?"
            return DialogQuestion(title=title, send="Rate", quote=quote, check=_unrated)
        case Mark.RETIRE:
            title = f"Retire {name}: no worker gets it any more. Why?"
            return DialogQuestion(title=title, send="Retire", quote=quote, required=False)
        case _:
            return None


def _of_version(mark: Mark, known: KnownGuidelines, view: LearningView) -> DialogQuestion:
    name = named(known)
    diff = version_diff(known, view)
    match mark:
        case Mark.APPROVE:
            title = f"Put {name} in force, for every attempt that begins from now on?"
            return DialogQuestion(title=title, send="Approve", quote=diff, confirm=True)
        case Mark.REJECT:
            title = f"Reject {name}: why?"
            return DialogQuestion(title=title, send="Reject", quote=diff, required=False)
        case _:
            before = former_of(known, view)
            then = "no guidelines are" if before is None else f"{named(before)} is"
            title = f"Roll {name} back: {then} in force again. Why?"
            return DialogQuestion(title=title, send="Roll back", required=False)


def rating_in(words: str) -> tuple[int, str]:
    """The rating on the first line, and the comment, which is the rest; 0 for no rating."""
    first, _, rest = words.strip().partition("\n")
    return (int(first) if first.strip() in {"1", "2", "3", "4", "5"} else 0), rest.strip()


def _unrated(words: str) -> str:
    return "" if rating_in(words)[0] else "write a number from 1 to 5; the lines below it comment"


def stored(mark: Mark, known: Marked) -> str:
    """What a person is told once a mark stands in the journal."""
    approved = "in force" if isinstance(known, KnownGuidelines) else "approved"
    became = {
        Mark.RATE: "rated",
        Mark.RETIRE: "retired: it never comes back into a prompt",
        Mark.RESTORE: "back",
        Mark.APPROVE: approved,
        Mark.REJECT: "rejected",
        Mark.ROLL_BACK: "rolled back",
    }
    return f"{named(known)} is {became[mark]}"


_LESSON_ACTS = {
    Mark.RATE: LessonAct.RATED,
    Mark.RETIRE: LessonAct.RETIRED,
    Mark.RESTORE: LessonAct.RESTORED,
    Mark.APPROVE: LessonAct.RESTORED,
}
_FACT_ACTS = {
    Mark.RETIRE: FactAct.RETIRED,
    Mark.RESTORE: FactAct.RESTORED,
    Mark.APPROVE: FactAct.REVIEWED,
}
_GUIDELINES_ACTS = {
    Mark.APPROVE: GuidelinesAct.APPROVED,
    Mark.REJECT: GuidelinesAct.REJECTED,
    Mark.ROLL_BACK: GuidelinesAct.ROLLED_BACK,
}


async def store_mark(actions: LearningActions, mark: Mark, known: Marked, words: str) -> int:
    """Store a mark that makes sense; answers its journal id. Raises JournalError."""
    match known:
        case KnownLesson():
            rating, comment = rating_in(words) if mark is Mark.RATE else (0, words)
            return await actions.mark_lesson(known.id, _LESSON_ACTS[mark], comment, rating=rating)
        case KnownFact():
            return await actions.mark_fact(known.id, _FACT_ACTS[mark], words)
        case KnownGuidelines():
            return await actions.mark_guidelines(known.id, _GUIDELINES_ACTS[mark], words)
