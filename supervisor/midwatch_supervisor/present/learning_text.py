"""What was learned from an attempt, and what it was given of it, as told to a person. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from midwatch_monitor.records import (
    Chore,
    Fact,
    FactMark,
    FactReview,
    FactState,
    Feedback,
    Group,
    Guidelines,
    GuidelinesAct,
    GuidelinesMark,
    KnownFact,
    KnownGuidelines,
    KnownLesson,
    Lesson,
    LessonAct,
    LessonMark,
    Origin,
    Recall,
    Record,
    Reflection,
    ReviewState,
    Study,
    StudyState,
    Summary,
    Trial,
)
from midwatch_supervisor.present.accounts import Parts
from midwatch_supervisor.present.text_line import Told, Tone, because, brief


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What an attempt was given, as it stands now."""

    lessons: tuple[KnownLesson, ...] = ()
    facts: tuple[KnownFact, ...] = ()
    guidelines: KnownGuidelines | None = None


NOTHING = Given()
"""What is known before anybody has looked."""


def counted(number: int, word: str) -> str:
    """A number with its word: 1 lesson, 2 lessons."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def verdict_words(verdict: Feedback) -> str:
    """A verdict with where it comes from."""
    word = "accepted" if verdict.accepted else "rejected"
    by = f" by {brief(verdict.author)}" if verdict.author else ""
    if verdict.origin is Origin.EXPLICIT:
        return f"{word}{by}"
    return f"{word}{by} ({verdict.origin}: {verdict.sign})"


def line(record: Record, given: Given = NOTHING) -> Told | None:
    """The record as one line; `None` for other kinds. `given` is what a recall was of."""
    match record:
        case Feedback() as verdict:
            sign, tone = ("✓", Tone.GOOD) if verdict.accepted else ("✗", Tone.WARN)
            text = f"result {verdict_words(verdict)}{because(verdict.comment)}"
            return Told(sign=sign, what="verdict", text=text, tone=tone)
        case Recall() as recall:
            return Told(sign="«", what="given", text=_given(recall, given), tone=Tone.ACCENT)
        case Summary() as summary:
            return Told(sign="∑", what="summary", text=brief(summary.text), tone=Tone.DIM)
        case Lesson() as lesson:
            text = f"{brief(lesson.failure_class)}: {brief(lesson.text)}"
            return Told(sign="✎", what="lesson", text=text, tone=Tone.ACCENT)
        case Fact() as fact:
            text = f"{_STATES[fact.state]}{brief(fact.text)}"
            return Told(sign="=", what="fact", text=text, tone=Tone.PLAIN)
        case Guidelines() as version:
            text = f"version {version.version} is proposed: {_words(version.text)}"
            return Told(sign="?", what="guidelines", text=text, tone=Tone.WARN)
        case _:
            return _marked(record) or _worked(record)


def _given(recall: Recall, given: Given) -> str:
    if recall.group is Group.CONTROL and not recall.lessons:
        head = "no lessons: it is in the control group"
    else:
        head = counted(len(recall.lessons), "lesson")
    parts = [head, counted(len(recall.facts), "fact"), _in_force(recall, given)]
    tokens = f"; {recall.tokens} tokens" if recall.tokens else ""
    return f"{', '.join(parts)}{tokens}"


def _in_force(recall: Recall, given: Given) -> str:
    if recall.guidelines is None:
        return "no guidelines"
    if given.guidelines is None:
        return "guidelines"
    return f"guidelines v{given.guidelines.guidelines.version}"


_STATES: Mapping[FactState, str] = {
    FactState.UNREVIEWED: "unreviewed: ",
    FactState.PENDING: "waits for its review: ",
    FactState.WAITING: "waits for you: ",
    FactState.REVIEWED: "",
}


def _words(text: str) -> str:
    return counted(len(text.split()), "word")


def _marked(record: Record) -> Told | None:
    match record:
        case LessonMark() as mark:
            what = f"rated {mark.rating} of 5" if mark.act is LessonAct.RATED else mark.act.value
            text = f"lesson {mark.lesson} {what}{_by(mark.author)}{because(mark.comment)}"
            return Told(sign="✎", what="lesson", text=text, tone=Tone.DIM)
        case FactMark() as mark:
            instead = "" if mark.instead is None else f" by fact {mark.instead}"
            who = f"{mark.act}{instead}"
            author = f" ({brief(mark.author)})" if mark.author else ""
            text = f"fact {mark.fact} {who}{author}{because(mark.reason)}"
            return Told(sign="=", what="fact", text=text, tone=Tone.DIM)
        case GuidelinesMark() as mark:
            sign, tone = _SETTLED[mark.act]
            by = _by(mark.author or mark.by.value)
            text = f"version of entry {mark.guidelines} {mark.act}{by}{because(mark.comment)}"
            return Told(sign=sign, what="guidelines", text=text, tone=tone)
        case _:
            return None


_SETTLED: Mapping[GuidelinesAct, tuple[str, Tone]] = {
    GuidelinesAct.APPROVED: ("✓", Tone.GOOD),
    GuidelinesAct.REJECTED: ("✗", Tone.WARN),
    GuidelinesAct.ROLLED_BACK: ("↶", Tone.WARN),
}


def _by(author: str) -> str:
    return f" by {brief(author)}" if author else ""


def _worked(record: Record) -> Told | None:
    match record:
        case Study(state=StudyState.DONE):
            return Told(sign="·", what="study", text=f"{record.chore}: done", tone=Tone.DIM)
        case Study() as study:
            failed = study.state is StudyState.FAILED
            text = f"{_CHORES[study.chore]} {'failed' if failed else 'refused'}"
            tone = Tone.WARN if failed else Tone.DIM
            return Told(
                sign="✗" if failed else "⊘",
                what="study",
                text=f"{text}{because(study.reason)}",
                tone=tone,
            )
        case FactReview() as review:
            return _reviewed(review)
        case Reflection() as look:
            return Told(sign="∑", what="look back", text=_looked(look), tone=_tone(look))
        case Trial() as trial:
            adopted = "adopted" if trial.adopted else "not adopted"
            tasks = counted(len(trial.scores), "task")
            text = f"guidelines tried on {tasks}: {adopted}{because(trial.reason)}"
            return Told(sign="≟", what="trial", text=text, tone=Tone.DIM)
        case _:
            return None


_CHORES: Mapping[Chore, str] = {
    Chore.SUMMARY: "its summary",
    Chore.LESSON: "its lesson",
    Chore.REVIEW: "the review of its facts",
}


def _reviewed(review: FactReview) -> Told:
    if review.state is not ReviewState.OK:
        kept = f"{review.state}: {counted(len(review.facts), 'fact')} kept unreviewed"
        tone = Tone.WARN if review.state is ReviewState.FALLBACK else Tone.DIM
        text = f"{kept}{because(review.error)}"
        return Told(sign="⊘", what="fact review", text=text, tone=tone)
    counts = (
        (review.modified, "reworded"),
        (review.removed, "removed"),
        (review.missed, "added"),
        (review.conflicts, "in conflict"),
        (review.unanswered, "unanswered"),
    )
    said = ", ".join(f"{number} {word}" for number, word in counts if number) or "all kept"
    text = f"{counted(len(review.facts), 'fact')}: {said}"
    return Told(sign="≟", what="fact review", text=text, tone=Tone.DIM)


def _looked(look: Reflection) -> str:
    if look.skipped:
        return f"nothing was asked{because(look.skipped)}"
    came = f"{counted(look.insights, 'insight')} of {counted(len(look.attempts), 'attempt')}"
    proposed = ", and new guidelines" if look.proposed else ""
    failed = f"; it failed{because(look.error)}" if look.error else ""
    return f"{came}{proposed}{failed}"


def _tone(look: Reflection) -> Tone:
    return Tone.WARN if look.error else Tone.DIM


def parts(record: Record, given: Given = NOTHING) -> Parts:
    """All that a record says; nothing for other kinds."""
    match record:
        case Feedback() as verdict:
            return (
                ("verdict", verdict_words(verdict)),
                ("comment", verdict.comment),
                ("what a person changed afterwards", verdict.diff),
            )
        case Recall() as recall:
            return _of_recall(recall, given)
        case Summary() as summary:
            turns = f"{counted(summary.turns, 'answer')} of its model"
            by = summary.model or "made in the fixed form"
            return (
                ("summary", summary.text),
                ("topics", ", ".join(summary.topics)),
                ("from", f"{turns}; {by}"),
            )
        case Lesson() as lesson:
            return lesson_parts(lesson)
        case Fact() as fact:
            return fact_parts(fact)
        case Guidelines() as version:
            return ((f"guidelines, version {version.version}", version.text),)
        case _:
            return ()


def lesson_parts(lesson: Lesson) -> Parts:
    """All that a lesson says."""
    return (
        ("lesson", lesson.text),
        ("class of failure", lesson.failure_class),
        ("what to do instead", listed(lesson.insights)),
        ("tags", ", ".join(lesson.tags)),
        ("files", "\n".join(lesson.files)),
        ("rests on", _steps(lesson.steps)),
        ("born of", f"{lesson.born}, {lesson.origin}"),
        ("written by", lesson.model or "nobody: it is made in the fixed form"),
    )


def _steps(steps: tuple[int, ...]) -> str:
    return f"steps {', '.join(map(str, steps))}" if steps else ""


def fact_parts(fact: Fact) -> Parts:
    """All that a fact says."""
    return (
        ("fact", fact.text),
        ("known", f"{fact.certainty}, {fact.state}, by {fact.maker}"),
        ("value", fact.value),
        ("files", "\n".join(fact.files)),
        ("tags", ", ".join(fact.tags)),
    )


def listed(items: Iterable[str]) -> str:
    """Items on lines of their own."""
    return "\n".join(f"- {item}" for item in items)


def _of_recall(recall: Recall, given: Given) -> Parts:
    texts = {known.id: known.lesson.text for known in given.lessons}
    lessons = (
        f"{each.lesson} (by {each.method}, fits {each.score:.0%}) {texts.get(each.lesson, '')}"
        for each in recall.lessons
    )
    facts = {known.id: known.fact.text for known in given.facts}
    group = "" if recall.group is Group.NONE else recall.group.value
    version = "" if given.guidelines is None else given.guidelines.guidelines.text
    return (
        ("given", _given(recall, given)),
        ("lessons", listed(each.rstrip() for each in lessons)),
        ("facts", listed(f"{id} {facts.get(id, '')}".rstrip() for id in recall.facts)),
        ("guidelines", version),
        ("group", group),
        ("found in", f"{recall.seconds:.3f} seconds" if recall.seconds else ""),
    )
