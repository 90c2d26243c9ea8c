"""Lessons and summaries in a fixed form, for use without a model. Pure."""

import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import PurePosixPath

from midwatch_agents.learning.case import Case, line, observed_class, rejecter
from midwatch_agents.learning.text_safety import objection
from midwatch_monitor.config.learning import FAILURE_CLASSES
from midwatch_monitor.records import (
    Actor,
    Ending,
    Feedback,
    Lesson,
    Origin,
    Outcome,
    Summary,
    VerdictBasis,
)

MAX_TAGS = 8
MAX_STEPS = 20
MAX_FILES = 10
LEAST_TOPICS = 3
MOST_TOPICS = 7
_FEW = 3
"""Number of alarms, analyses or changes that are mentioned; more would bury the first ones."""
_COMMENT = 1000
_PART = 240
_DIFF_LINES = 6
"""Number of first lines of a person's diff that are mentioned."""
_NO_COMMENT = "no reason was given"
_UNFIT = "the comment is left out, because it may not stand in a prompt"
_WAITS = "it holds words of a worker, of its tools or of a model"
_ENDS = {
    Ending.DONE: "was completed",
    Ending.STUCK: "was stopped as stuck",
    Ending.RESTARTED: "was restarted",
    Ending.SPLIT: "was split",
    Ending.OUT_OF_BUDGET: "ran out of budget",
    Ending.ERROR: "ended with an error",
    Ending.CANCELED: "was canceled",
    "": "ended without saying how",
}
"""Wording for endings whose name cannot follow "ended" in English."""
_LAST_RESORT = ("work", "attempt", "result")
_CHANGED_FILE = re.compile(r"^(?:\+\+\+ b|--- a)/([^\t\n]+)", re.MULTILINE)
_CHANGED_LINE = re.compile(r"^(?:\+(?!\+\+ )|-(?!-- )).*\S.*", re.MULTILINE)


def fixed_lesson(case: Case, classes: Collection[str] = FAILURE_CLASSES) -> Lesson | None:
    """Return the lesson of a rejected attempt, based on what was said and observed.

    If a person rejected it, only the person's words and Midwatch's observations are used, so that
    others can get the lesson at once. Otherwise, words of workers, tools and models are used, too,
    and a person must read it first. `None` if nothing specific is known: no comment, no analysis,
    no alarm and no failed check.
    """
    verdict = case.verdict
    if verdict is None or verdict.accepted:
        return None
    unfit = bool(objection(verdict.comment))
    verdict = replace(verdict, comment="") if unfit else verdict
    if not _is_specific(case, verdict):
        return None
    bare = _without_words(case)
    spoken = verdict.origin is Origin.EXPLICIT and _is_specific(bare, verdict)
    case = bare if spoken else case
    verdict = replace(verdict, comment=_UNFIT) if unfit else verdict
    text = " ".join([_verdict(case, verdict), *_seen_lines(case), *_found_lines(case)])
    steps = {step for alarm in case.alarms for step in alarm.evidence}
    steps |= {each.about for each in case.analyses}
    return Lesson(
        text=text,
        failure_class=observed_class(
            classes,
            ending=case.ending,
            rules=[each.key.rule for each in case.alarms],
            check_failed=any(not each.passed for each in case.checks),
        ),
        insights=tuple(_remedy_sentences(case, verdict)),
        tags=tags_of(case),
        kind=case.kind,
        files=(changed_files(verdict.diff) or case.named_files(text) or case.files)[:MAX_FILES],
        steps=tuple(sorted(steps & case.citable))[:MAX_STEPS],
        verdict=case.verdict_id,
        origin=verdict.origin,
        sources=case.sources,
        waits="" if spoken else _WAITS,
    )


def changed_files(diff: str) -> tuple[str, ...]:
    """Return the files that a unified diff names."""
    return tuple(dict.fromkeys(_CHANGED_FILE.findall(diff)))


def _without_words(case: Case) -> Case:
    """Return the case without words of workers, tools and models."""
    return replace(
        case,
        reason="",
        analyses=(),
        alarms=tuple(replace(each, summary="") for each in case.alarms),
        checks=tuple(replace(each, detail="") for each in case.checks),
        interventions=tuple(
            each for each in case.interventions if each.intervention.by is Actor.OPERATOR
        ),
    )


def fixed_summary(case: Case) -> Summary:
    """Return the summary of an ended attempt: two or three sentences, three to seven topics."""
    name = sentence(f"The task was: {line(case.title or case.task or 'unnamed', _PART)}")
    turns = "1 turn" if case.turns == 1 else f"{case.turns} turns"
    ended = f"The attempt {_end_words(case)} after {turns}"
    why = f": {_told_once(line(case.reason, _PART))}" if case.reason else ""
    full = " ".join(filter(None, [name, sentence(f"{ended}{why}"), _event_words(case)]))
    bare = f"The task was {line(case.task, 80) or 'unnamed'}. {ended}."
    return Summary(text=bare if objection(full) else full, topics=topics_of(case), turns=case.turns)


def tags_of(case: Case) -> tuple[str, ...]:
    """Return tags to find a lesson of the case by: the task's tags, file types, commands."""
    kinds = (PurePosixPath(path).suffix.lstrip(".") for path in case.files)
    checks = (each.check.split() for each in case.checks)
    commands = (PurePosixPath(words[0]).name for words in checks if words)
    return unique((*case.tags, *kinds, *sorted(commands)), MAX_TAGS)


def topics_of(case: Case) -> tuple[str, ...]:
    """Return three to seven words or names of the case."""
    title = re.findall(r"\w[\w.-]{3,}", case.title)
    found = (
        *case.tags,
        *(PurePosixPath(path).name for path in case.files[:2]),
        *(alarm.key.rule for alarm in case.alarms[:2]),
        *title,
        case.kind,
        case.ending,
    )
    topics = unique((each for each in found if not objection(each)), MOST_TOPICS)
    return topics if len(topics) >= LEAST_TOPICS else unique((*topics, *_LAST_RESORT), LEAST_TOPICS)


def unique(words: Iterable[str], most: int) -> tuple[str, ...]:
    """Return the first few distinct meaningful words, in lower case."""
    return tuple(dict.fromkeys(filter(None, (line(each, 40).casefold() for each in words))))[:most]


def sentence(text: str) -> str:
    """Return the text on one line, with a full stop at its end."""
    flat = text.strip()
    return flat if flat.endswith((".", "!", "?", "…")) else f"{flat}."


def _is_specific(case: Case, verdict: Feedback) -> bool:
    said = verdict.comment.strip() and verdict.origin is not Origin.AUTOMATIC
    failed = any(not check.passed for check in case.checks)
    return bool(said or verdict.diff.strip() or case.analyses or case.alarms or failed)


def _verdict(case: Case, verdict: Feedback) -> str:
    comment = line(verdict.comment, _COMMENT)
    if verdict.sign is VerdictBasis.ENDED:
        reason = comment or line(case.reason, _COMMENT) or _NO_COMMENT
        return sentence(f"The attempt {_end_words(case)}: {_told_once(reason)}")
    if verdict.sign is VerdictBasis.EDITED and (files := changed_files(verdict.diff)):
        more = f": {comment}" if comment else ""
        return sentence(f"{rejecter(verdict)}, in {line(', '.join(files), _PART)}{more}")
    return sentence(f"{rejecter(verdict)}: {comment or _NO_COMMENT}")


def _seen_lines(case: Case) -> list[str]:
    lines = [
        sentence(f"Check failed: {line(f'{each.check} {each.detail}', _PART)}")
        for each in case.checks
        if not each.passed
    ][:_FEW]
    for alarm in case.alarms[:_FEW]:
        word = "step" if len(alarm.evidence) == 1 else "steps"
        at = f" at {word} {', '.join(map(str, alarm.evidence[:_FEW]))}" if alarm.evidence else ""
        said = f": {line(alarm.summary, _PART)}" if alarm.summary else ""
        lines.append(sentence(f"Alarm {alarm.key.rule}{at}{said}"))
    return lines


def _found_lines(case: Case) -> list[str]:
    return [
        sentence(f"The worker's own analysis: {line(each.root, _PART)}")
        for each in case.analyses[-_FEW:]
        if each.root.strip()
    ]


def _remedy_sentences(case: Case, verdict: Feedback) -> Iterable[str]:
    # A complete revert does not show which line was wrong.
    changed = _CHANGED_LINE.findall(verdict.diff) if verdict.sign is VerdictBasis.EDITED else ()
    if changed:
        yield f"The person's change begins: {' / '.join(map(line, changed[:_DIFF_LINES]))}"
    for each in case.analyses[-_FEW:]:
        if each.remedy.strip():
            yield sentence(line(each.remedy, _PART))
    helped = [each.intervention for each in case.interventions if each.outcome is Outcome.RECOVERED]
    for each in [each for each in helped if each.message][-1:]:
        yield sentence(f"This helped ({each.action}): {line(each.message, _PART)}")


def _end_words(case: Case) -> str:
    return _ENDS.get(case.ending, f"ended {case.ending.replace('-', ' ')}")


def _told_once(reason: str) -> str:
    """Return the reason without the name of the ending, which is given before it."""
    return reason.removeprefix("out of budget: ")


def _event_words(case: Case) -> str:
    parts: list[str] = []
    if case.files:
        names = ", ".join(case.files[:_FEW])
        more = len(case.files) - _FEW
        parts.append(f"changed {names}{f' and {more} more' if more > 0 else ''}")
    if case.alarms:
        parts.append(f"raised {', '.join(dict.fromkeys(each.key.rule for each in case.alarms))}")
    if case.interventions:
        parts.append(
            f"received {', '.join(dict.fromkeys(each.action for each in case.interventions))}"
        )
    return f"It {'; it '.join(parts)}." if parts else ""
