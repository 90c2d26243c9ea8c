"""What a person may do about what was learned, and what becomes of it. Pure."""

from enum import StrEnum

from midwatch_monitor.records import (
    FactAct,
    GuidelinesAct,
    GuidelinesState,
    KnownGuidelines,
    KnownLesson,
    LessonAct,
)
from midwatch_supervisor.present.known_text import Known


class LearningMark(StrEnum):
    """One thing that a person does about what was learned."""

    RATE = "rate"
    RETIRE = "retire"
    RESTORE = "restore"
    APPROVE = "approve"
    REJECT = "reject"
    ROLL_BACK = "roll back"


def refusal(mark: LearningMark, known: Known) -> str:
    """Why a mark makes no sense; empty if it does."""
    if isinstance(known, KnownGuidelines):
        return _refused_version(mark, known)
    if mark in {LearningMark.REJECT, LearningMark.ROLL_BACK}:
        return "that is for guidelines"
    if mark is LearningMark.RATE:
        return "" if isinstance(known, KnownLesson) else "only lessons are rated"
    if mark is LearningMark.APPROVE:
        return "" if known.waiting else "it does not wait for anybody"
    gone = known.obsolete if isinstance(known, KnownLesson) else not known.live
    if mark is LearningMark.RETIRE:
        return "nobody gets it any more already" if gone else ""
    return "" if gone else "it waits: approve it" if known.waiting else "it stands as it is"


def _refused_version(mark: LearningMark, known: KnownGuidelines) -> str:
    if mark in {LearningMark.APPROVE, LearningMark.REJECT}:
        needed, called = GuidelinesState.PROPOSED, "proposed"
    elif mark is LearningMark.ROLL_BACK:
        needed, called = GuidelinesState.LIVE, "in force"
    else:
        return "guidelines are approved, rejected or rolled back"
    return "" if known.state is needed else f"it is not {called}; it is {known.state}"


def became(mark: LearningMark, known: Known, rating: int = 0) -> str:
    """What becomes of it by a mark, behind `it is`."""
    match mark:
        case LearningMark.RATE:
            return f"rated {rating} of 5"
        case LearningMark.RETIRE:
            return "retired: it never comes back into a prompt"
        case LearningMark.RESTORE:
            return "back"
        case LearningMark.APPROVE:
            return "in force" if isinstance(known, KnownGuidelines) else "approved"
        case LearningMark.REJECT:
            return "rejected"
        case LearningMark.ROLL_BACK:
            return "rolled back"


LESSON_ACTS = {
    LearningMark.RATE: LessonAct.RATED,
    LearningMark.RETIRE: LessonAct.RETIRED,
    LearningMark.RESTORE: LessonAct.RESTORED,
    LearningMark.APPROVE: LessonAct.RESTORED,
}
FACT_ACTS = {
    LearningMark.RETIRE: FactAct.RETIRED,
    LearningMark.RESTORE: FactAct.RESTORED,
    LearningMark.APPROVE: FactAct.REVIEWED,
}
GUIDELINES_ACTS = {
    LearningMark.APPROVE: GuidelinesAct.APPROVED,
    LearningMark.REJECT: GuidelinesAct.REJECTED,
    LearningMark.ROLL_BACK: GuidelinesAct.ROLLED_BACK,
}
