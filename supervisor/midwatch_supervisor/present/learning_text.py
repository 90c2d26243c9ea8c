"""What is learned from attempts, and what an attempt is given, as text. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from midwatch_monitor.records import (
    Chore,
    Fact,
    FactMark,
    FactReview,
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
    LessonOrigin,
    Origin,
    Recall,
    Reflection,
    ReviewState,
    Study,
    StudyState,
    Summary,
    Trial,
)
from midwatch_supervisor.present.numbers import amount, count_noun, percent, steps_text
from midwatch_supervisor.present.text_line import (
    Parts,
    TextLine,
    Tone,
    because,
    brief,
    by,
    list_lines,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenLearning:
    """What an attempt was given, in its present state."""

    lessons: tuple[KnownLesson, ...] = ()
    facts: tuple[KnownFact, ...] = ()
    guidelines: KnownGuidelines | None = None


NOTHING = GivenLearning()
"""Used before anything was looked up."""

ORIGINS: Mapping[Origin, str] = {
    Origin.EXPLICIT: "a person",
    Origin.IMPLIED: "what a person did with the result",
    Origin.AUTOMATIC: "its checks and its end",
}
_CHORES: Mapping[Chore, str] = {
    Chore.SUMMARY: "summary",
    Chore.LESSON: "lesson",
    Chore.REVIEW: "review of its facts",
}
_SETTLED: Mapping[GuidelinesAct, tuple[str, Tone]] = {
    GuidelinesAct.APPROVED: ("✓", Tone.GOOD),
    GuidelinesAct.REJECTED: ("✗", Tone.WARN),
    GuidelinesAct.ROLLED_BACK: ("↶", Tone.WARN),
}


def verdict_text(verdict: Feedback) -> str:
    """Return a verdict with its author, or an implied one with its grounds: `rejected (edited)`."""
    word = "accepted" if verdict.accepted else "rejected"
    rests_on = "" if verdict.origin is Origin.EXPLICIT else f" ({verdict.origin}: {verdict.sign})"
    return f"{word}{by(verdict.author)}{rests_on}"


def _feedback_text(verdict: Feedback) -> TextLine:
    sign, tone = ("✓", Tone.GOOD) if verdict.accepted else ("✗", Tone.WARN)
    parts = (
        ("verdict", verdict_text(verdict)),
        ("comment", verdict.comment),
        ("changed by a person afterwards", verdict.diff),
    )
    text = f"result {verdict_text(verdict)}{because(verdict.comment)}"
    return TextLine(sign, "verdict", text, tone, parts)


def recall_text(recall: Recall, given: GivenLearning) -> TextLine:
    """Return what an attempt was given; `given` is the present state of that."""
    version = given.guidelines.guidelines if given.guidelines else None
    guidelines = f"guidelines v{version.version}" if version else "guidelines"
    control = recall.group is Group.CONTROL and not recall.lessons
    text = ", ".join(
        (
            "no lessons (control group)" if control else count_noun(len(recall.lessons), "lesson"),
            count_noun(len(recall.facts), "fact"),
            "no guidelines" if recall.guidelines is None else guidelines,
            *((f"{amount(recall.tokens)} tokens",) if recall.tokens else ()),
        )
    )
    lessons = {known.id: known.lesson.text for known in given.lessons}
    facts = {known.id: known.fact.text for known in given.facts}
    parts = (
        ("given", text),
        (
            "lessons",
            list_lines(
                f"{each.lesson} (found by {each.method}, fits {percent(each.score)}) "
                f"{lessons.get(each.lesson, '')}".rstrip()
                for each in recall.lessons
            ),
        ),
        ("facts", list_lines(f"{id} {facts.get(id, '')}".rstrip() for id in recall.facts)),
        ("guidelines", version.text if version else ""),
        ("group", "" if recall.group is Group.NONE else recall.group.value),
        ("found in", f"{recall.seconds:.3f} seconds" if recall.seconds else ""),
    )
    return TextLine("«", "given", text, Tone.ACCENT, parts)


def _summary_text(summary: Summary) -> TextLine:
    author = summary.model or "a fixed template"
    parts = (
        ("summary", summary.text),
        ("topics", ", ".join(summary.topics)),
        ("from", f"{count_noun(summary.turns, 'turn')} of its model; written by {author}"),
    )
    return TextLine("∑", "summary", brief(summary.text), Tone.DIM, parts)


def _lesson_text(lesson: Lesson) -> TextLine:
    text = f"{brief(lesson.failure_class)}: {brief(lesson.text)}"
    return TextLine("✎", "lesson", text, Tone.ACCENT, lesson_parts(lesson))


def lesson_parts(lesson: Lesson) -> Parts:
    """Return all parts of a lesson's text."""
    born = {
        LessonOrigin.REFLECTION: "a look back at several attempts",
        LessonOrigin.PERSON: "a person wrote it",
    }
    return (
        ("lesson", lesson.text),
        ("failure class", lesson.failure_class),
        ("what to do instead", list_lines(lesson.insights)),
        ("tags", ", ".join(lesson.tags)),
        ("files", "\n".join(lesson.files)),
        ("kind of work", lesson.kind),
        ("evidence", steps_text(lesson.steps)),
        ("comes from", born.get(lesson.born, ORIGINS[lesson.origin])),
        ("written by", lesson.author or lesson.model or "a fixed template"),
    )


def _lesson_mark(mark: LessonMark) -> TextLine:
    what = f"rated {mark.rating} of 5" if mark.act is LessonAct.RATED else mark.act.value
    text = f"lesson {mark.lesson} {what}{by(mark.author)}{because(mark.comment)}"
    return TextLine("✎", "lesson", text, Tone.DIM)


def _fact_text(fact: Fact) -> TextLine:
    # Not its state: later marks change that.
    return TextLine("=", "fact", brief(fact.text), Tone.PLAIN, fact_parts(fact))


def fact_parts(fact: Fact) -> Parts:
    """Return all parts of a fact's text."""
    return (
        ("fact", fact.text),
        ("known", f"{fact.certainty}, by {fact.maker}"),
        ("value", fact.value),
        ("files", "\n".join(fact.files)),
        ("tags", ", ".join(fact.tags)),
    )


def _fact_mark(mark: FactMark) -> TextLine:
    instead = "" if mark.instead is None else f" with fact {mark.instead}"
    text = f"fact {mark.fact} {mark.act}{instead}{by(mark.author)}{because(mark.reason)}"
    return TextLine("=", "fact", text, Tone.DIM)


def _fact_review(review: FactReview) -> TextLine:
    facts = count_noun(len(review.facts), "fact")
    if review.state is not ReviewState.OK:
        text = f"{review.state}: {facts} kept unreviewed{because(review.error)}"
        tone = Tone.WARN if review.state is ReviewState.FALLBACK else Tone.DIM
        return TextLine("⊘", "fact review", text, tone)
    counts = (
        (review.modified, "reworded"),
        (review.removed, "removed"),
        (review.missed, "added"),
        (review.conflicts, "in conflict"),
        (review.unanswered, "unanswered"),
    )
    found = ", ".join(f"{number} {word}" for number, word in counts if number) or "all kept"
    return TextLine("≟", "fact review", f"{facts}: {found}", Tone.DIM)


def _guidelines_text(version: Guidelines) -> TextLine:
    words = count_noun(len(version.text.split()), "word")
    parts = ((f"guidelines, version {version.version}", version.text),)
    text = f"version {version.version} proposed: {words}"
    return TextLine("?", "guidelines", text, Tone.WARN, parts)


def _guidelines_mark(mark: GuidelinesMark) -> TextLine:
    sign, tone = _SETTLED[mark.act]
    author = by(mark.author or mark.by.value)
    text = f"entry {mark.guidelines} {mark.act}{author}{because(mark.comment)}"
    return TextLine(sign, "guidelines", text, tone)


def _study_text(study: Study) -> TextLine:
    chore = _CHORES[study.chore]
    match study.state:
        case StudyState.DONE:
            return TextLine("·", "learning", f"{chore}: done", Tone.DIM)
        case StudyState.FAILED:
            return TextLine("✗", "learning", f"{chore} failed{because(study.reason)}", Tone.WARN)
        case StudyState.REFUSED:
            return TextLine("⊘", "learning", f"no {chore}{because(study.reason)}", Tone.DIM)


def reflection_text(look: Reflection) -> TextLine:
    """Return the result of a look back."""
    insights, attempts = (
        count_noun(look.insights, "insight"),
        count_noun(len(look.attempts), "attempt"),
    )
    proposed = ", and new guidelines" if look.proposed else ""
    failed = f"; failed{because(look.error)}" if look.error else ""
    text = f"skipped{because(look.skipped)}" if look.skipped else f"{insights} from {attempts}"
    tone = Tone.WARN if look.error else Tone.DIM
    return TextLine("∑", "look back", f"{text}{proposed}{failed}", tone)


def _trial_text(trial: Trial) -> TextLine:
    adopted = "adopted" if trial.adopted else "not adopted"
    tasks = count_noun(len(trial.scores), "task")
    text = f"guidelines tried on {tasks}: {adopted}{because(trial.reason)}"
    return TextLine("≟", "trial", text, Tone.DIM)


LEARNING_TEXTS: Mapping[type, Callable[[Any], TextLine]] = {
    Feedback: _feedback_text,
    Summary: _summary_text,
    Lesson: _lesson_text,
    LessonMark: _lesson_mark,
    Fact: _fact_text,
    FactMark: _fact_mark,
    FactReview: _fact_review,
    Guidelines: _guidelines_text,
    GuidelinesMark: _guidelines_mark,
    Study: _study_text,
    Reflection: reflection_text,
    Trial: _trial_text,
}
"""The texts of these kinds of records; a recall says more if what it selected is known."""
