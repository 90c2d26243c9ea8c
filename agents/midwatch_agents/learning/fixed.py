"""A lesson and a summary in a fixed form, for where no model writes them. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from midwatch_agents.learning.case import Case, line, rejecter
from midwatch_agents.learning.classes import OTHER, UNKNOWN, class_of
from midwatch_agents.learning.diff import Rewrite, rewrites
from midwatch_agents.learning.likeness import subject
from midwatch_agents.learning.particulars import commands, named_files
from midwatch_agents.learning.screening import objection
from midwatch_monitor.config.learning import FAILURE_CLASSES
from midwatch_monitor.records import Actor, Feedback, Lesson, Origin, Outcome, Sign, Summary

MAX_TAGS = 8
MAX_STEPS = 20
MAX_FILES = 10
LEAST_TOPICS = 3
MOST_TOPICS = 7
_FEW = 3
"""Alarms, analyses, changes that are told of; more would hide the first."""
_COMMENT = 1000
_PART = 240
_NO_COMMENT = "no reason was given"
_WAITS = "it holds words of a worker, of its tools or of a model"
_LAST_RESORT = ("work", "attempt", "result")


def fixed_lesson(
    case: Case, classes: Mapping[str, Sequence[str]] = FAILURE_CLASSES
) -> Lesson | None:
    """What a rejected attempt teaches, from what was said and seen of it.

    Of a person's rejection the person's words are told with what Midwatch saw, and nothing else: so
    others may be given it at once. Elsewhere the words of workers, tools and models are told too,
    and a person must read it first. `None` where nothing specific is known: no comment, no
    analysis, no alarm and no check that failed.
    """
    told = case.verdict
    if told is None or told.accepted or not _specific(case, told):
        return None
    bare = _without_words(case)
    spoken = told.origin is Origin.EXPLICIT and _specific(bare, told)
    case = bare if spoken else case
    # What was taken back as a whole says nothing of which line was wrong.
    changed = rewrites(told.diff) if told.sign is Sign.EDITED else ()
    text = " ".join([_verdict(case, told, changed), *_seen(case), *_found(case)])
    steps = {step for alarm in case.findings for step in alarm.steps}
    steps |= {each.about for each in case.analyses}
    files = (*(each.path for each in changed), *named_files(text, case)) or case.files
    return Lesson(
        text=text,
        failure_class=_class(case, told, classes),
        insights=tuple(_instead(case, changed)),
        tags=tags_of(case),
        kind=case.kind,
        files=tuple(dict.fromkeys(files))[:MAX_FILES],
        steps=tuple(sorted(steps & case.citable))[:MAX_STEPS],
        verdict=case.verdict_id,
        origin=told.origin,
        sources=case.sources,
        waits="" if spoken else _WAITS,
    )


def _without_words(case: Case) -> Case:
    """The case without what workers, tools and models say in it."""
    return replace(
        case,
        reason="",
        analyses=(),
        findings=tuple(replace(each, summary="") for each in case.findings),
        checks=tuple(replace(each, detail="") for each in case.checks),
        told=tuple(each for each in case.told if each.by is Actor.OPERATOR),
    )


def fixed_summary(case: Case) -> Summary:
    """An ended attempt in two or three sentences, with three to seven topics."""
    name = sentence(f"The task was: {line(case.title or case.task or 'unnamed', _PART)}")
    turns = "1 turn" if case.turns == 1 else f"{case.turns} turns"
    ended = f"The attempt ended {_ending(case)} after {turns}"
    why = f": {line(case.reason, _PART)}" if case.reason else ""
    full = " ".join(filter(None, [name, sentence(f"{ended}{why}"), _happened(case)]))
    bare = f"The task was {line(case.task, 80) or 'unnamed'}. {ended}."
    return Summary(text=bare if objection(full) else full, topics=topics_of(case), turns=case.turns)


def tags_of(case: Case) -> tuple[str, ...]:
    """What a lesson of the case is found by: its task's tags, kinds of files, commands."""
    kinds = (PurePosixPath(path).suffix.lstrip(".") for path in case.files)
    return unique((*case.tags, *kinds, *sorted(commands(case))), MAX_TAGS)


def topics_of(case: Case) -> tuple[str, ...]:
    """Three to seven words or names of the case."""
    title = [word for word in re.findall(r"\w[\w.-]*", case.title) if subject(word)]
    found = (
        *case.tags,
        *(PurePosixPath(path).name for path in case.files[:2]),
        *(alarm.rule for alarm in case.findings[:2]),
        *title,
        case.kind,
        case.ending,
    )
    topics = unique((each for each in found if not objection(each)), MOST_TOPICS)
    return topics if len(topics) >= LEAST_TOPICS else unique((*topics, *_LAST_RESORT), LEAST_TOPICS)


def unique(words: Iterable[str], most: int) -> tuple[str, ...]:
    """The first few different words that say something, in small letters."""
    return tuple(dict.fromkeys(filter(None, (line(each, 40).casefold() for each in words))))[:most]


def sentence(text: str) -> str:
    """The text on one line, ended as a sentence."""
    flat = text.strip()
    return flat if flat.endswith((".", "!", "?", "…")) else f"{flat}."


def _specific(case: Case, told: Feedback) -> bool:
    said = told.comment.strip() and told.origin is not Origin.AUTOMATIC
    failed = any(not check.passed for check in case.checks)
    return bool(said or told.diff.strip() or case.analyses or case.findings or failed)


def _verdict(case: Case, told: Feedback, changed: Sequence[Rewrite]) -> str:
    comment = line(told.comment, _COMMENT)
    if told.sign is Sign.ENDED:
        reason = comment or line(case.reason, _COMMENT) or _NO_COMMENT
        return sentence(f"The attempt ended {_ending(case)}: {reason}")
    if told.sign is Sign.EDITED and changed:
        files = ", ".join(dict.fromkeys(each.path for each in changed))
        more = f": {comment}" if comment else ""
        return sentence(f"{rejecter(told)}, in {line(files, _PART)}{more}")
    return sentence(f"{rejecter(told)}: {comment or _NO_COMMENT}")


def _seen(case: Case) -> list[str]:
    lines = [
        sentence(f"Check failed: {line(f'{each.check} {each.detail}', _PART)}")
        for each in case.checks
        if not each.passed
    ][:_FEW]
    for alarm in case.findings[:_FEW]:
        word = "step" if len(alarm.steps) == 1 else "steps"
        at = f" at {word} {', '.join(map(str, alarm.steps[:_FEW]))}" if alarm.steps else ""
        said = f": {line(alarm.summary, _PART)}" if alarm.summary else ""
        lines.append(sentence(f"Alarm {alarm.rule}{at}{said}"))
    return lines


def _found(case: Case) -> list[str]:
    return [
        sentence(f"The worker's own analysis: {line(each.root, _PART)}")
        for each in case.analyses[-_FEW:]
        if each.root.strip()
    ]


def _instead(case: Case, changed: Sequence[Rewrite]) -> Iterable[str]:
    yield from (sentence(each.told) for each in changed[:_FEW] if each.told)
    for each in case.analyses[-_FEW:]:
        if each.remedy.strip():
            yield sentence(line(each.remedy, _PART))
    helped = [each for each in case.told if each.outcome is Outcome.RECOVERED and each.message]
    for each in helped[-1:]:
        yield sentence(f"This helped ({each.action}): {line(each.message, _PART)}")


def _class(case: Case, told: Feedback, classes: Mapping[str, Sequence[str]]) -> str:
    """By the person's words first, and by all the others where those do not tell."""
    first = class_of(told.comment, classes)
    if first not in {OTHER, UNKNOWN}:
        return first
    rest = [case.ending, case.reason]
    rest += [f"{each.rule} {each.summary}".replace("_", " ") for each in case.findings]
    rest += [f"{each.what} {each.root}" for each in case.analyses]
    second = class_of("\n".join(rest), classes)
    return second if second != UNKNOWN else first


def _ending(case: Case) -> str:
    return case.ending.replace("-", " ") or "without saying how"


def _happened(case: Case) -> str:
    parts: list[str] = []
    if case.files:
        names = ", ".join(case.files[:_FEW])
        more = len(case.files) - _FEW
        parts.append(f"changed {names}{f' and {more} more' if more > 0 else ''}")
    if case.findings:
        parts.append(f"raised {', '.join(dict.fromkeys(each.rule for each in case.findings))}")
    if case.told:
        parts.append(f"was told to {', '.join(dict.fromkeys(each.action for each in case.told))}")
    return f"It {'; it '.join(parts)}." if parts else ""
