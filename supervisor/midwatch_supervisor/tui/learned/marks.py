"""What is asked before a person marks what was learned."""

from midwatch_monitor.records import KnownGuidelines, KnownLesson
from midwatch_supervisor.operator.learning_marks import LearningMark
from midwatch_supervisor.present.known_text import Known, known_name, version_diff
from midwatch_supervisor.tui.operator_command import DialogQuestion
from midwatch_supervisor.tui.state.learning import LearningView


def question(mark: LearningMark, known: Known, view: LearningView) -> DialogQuestion | None:
    """What is asked before a mark; `None` if it is made at once."""
    name = known_name(known)
    if isinstance(known, KnownGuidelines):
        return _of_version(mark, known, view)
    quote = known.lesson.text if isinstance(known, KnownLesson) else known.fact.text
    match mark:
        case LearningMark.APPROVE:
            title = f"Let workers be given {name}?"
            return DialogQuestion(title=title, send="Approve", quote=quote, confirm=True)
        case LearningMark.RATE:
            title = f"What is {name} worth, from 1 (misleading) to 5 (saved the day)?"
            return DialogQuestion(title=title, send="Rate", quote=quote, check=_unrated_note)
        case LearningMark.RETIRE:
            title = f"Retire {name}: no worker gets it any more. Why?"
            return DialogQuestion(title=title, send="Retire", quote=quote, required=False)
        case _:
            return None


def _of_version(mark: LearningMark, known: KnownGuidelines, view: LearningView) -> DialogQuestion:
    name, diff = known_name(known), version_diff(view.before(known), known)
    match mark:
        case LearningMark.APPROVE:
            title = f"Put {name} in force, for every attempt that begins from now on?"
            return DialogQuestion(title=title, send="Approve", quote=diff, confirm=True)
        case LearningMark.REJECT:
            title = f"Reject {name}: why?"
            return DialogQuestion(title=title, send="Reject", quote=diff, required=False)
        case _:
            former = view.former(known.project)
            then = "no guidelines are" if former is None else f"{known_name(former)} is"
            title = f"Roll {name} back: {then} in force again. Why?"
            return DialogQuestion(title=title, send="Roll back", required=False)


def rating_in(words: str) -> tuple[int, str]:
    """The rating on the first line, and the comment, which is the rest; 0 for no rating."""
    first, _, rest = words.strip().partition("\n")
    return (int(first) if first.strip() in {"1", "2", "3", "4", "5"} else 0), rest.strip()


def _unrated_note(words: str) -> str:
    return "" if rating_in(words)[0] else "write a number from 1 to 5; the lines below it comment"
