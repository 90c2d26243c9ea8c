"""What was learned in an attempt, in words for people. Pure."""

from collections.abc import Iterable, Iterator

from midwatch_monitor.records import Group, Origin
from midwatch_supervisor.learning.line import (
    FactLine,
    FeedbackLine,
    Learnt,
    LessonLine,
    RecallLine,
    StudyLine,
    SummaryLine,
)
from midwatch_supervisor.present.progress import short
from midwatch_supervisor.present.spelling import in_brackets

_BY = {
    Origin.EXPLICIT: "a person",
    Origin.IMPLIED: "what a person did with the result",
    Origin.AUTOMATIC: "a reviewer",
}


def given_words(line: RecallLine) -> Iterator[str]:
    """What an attempt was given, a line each."""
    if line.group is not Group.NONE:
        yield f"in the {line.group} group"
    if line.guidelines is not None:
        yield f"guidelines, version {line.guidelines.version}"
    for each in line.lessons:
        text = short(each.text) if each.text else "erased since"
        yield f"lesson {each.id} (found by {each.method}, {each.score:.2f}): {text}"
    for fact in line.facts:
        yield f"fact {fact.id}: {short(fact.text) if fact.text else 'erased since'}"


def learnt_words(lines: Iterable[Learnt]) -> Iterator[str]:
    """What was said of an attempt afterwards and drawn from it, a line each."""
    for line in lines:
        match line:
            case RecallLine():
                pass
            case FeedbackLine():
                yield _verdict(line)
            case LessonLine():
                yield f"lesson {line.id} ({line.failure_class}): {short(line.text)}"
            case SummaryLine():
                yield f"summary: {line.text}"
            case FactLine():
                yield f"fact {line.id} ({line.certainty}, {line.state}): {short(line.text)}"
            case StudyLine():
                reason = f": {short(line.reason)}" if line.reason else ""
                yield f"no {line.chore} of {line.about}, {line.state}{reason}"


def _verdict(line: FeedbackLine) -> str:
    verdict = "accepted" if line.accepted else "rejected"
    comment = f": {short(line.comment)}" if line.comment else ""
    return f"{verdict} by {_BY[line.origin]}{in_brackets(line.author)}{comment}"
