"""The failure that an attempt comes back to, in the words of its own output. Pure."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from midwatch_monitor.records import Step, StepKind, Writer
from midwatch_monitor.rules.act import CheckKind, Normaliser
from midwatch_monitor.rules.failure import failure_line, failure_lines
from midwatch_monitor.rules.identity import HELD_BACK, command, held_back
from midwatch_monitor.shell.claimed_edits import changing

_LONGEST = 160
_RECENT = 10
"""Calls that are looked at for what was refused of late."""
_TEST = re.compile(r"^(?:-+ )?(?:FAIL|FAILED|ERROR):? (\S*[A-Za-z_]\S*)", re.MULTILINE)
_ONLY_COUNTS = re.compile(r"FAILED \((?:failures|errors)=|=+ .*\b\d+ (?:failed|errors?)\b.*=$")
"""A line at the end that says how many failed, and not what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedFailure:
    """A check that fails the same way each time it is run, or is asked for."""

    check: str
    """The command, or the tool where there is none."""
    told: str
    """The test that fails, and the line that says how."""
    steps: tuple[int, ...]
    file: str
    """The file that was edited most often meanwhile; empty where none was."""


def repeated_failure(steps: Sequence[Step]) -> RepeatedFailure | None:
    """The newest failure among these steps, oldest first, if the worker came back to it.

    Nothing where the same check has passed since, or failed in another way. A call that was
    refused because it failed before counts as coming back.
    """
    acts = Normaliser()
    edited: Counter[str] = Counter()
    newest: Step | None = None
    action = failure = 0
    came: list[int] = []
    for step in steps:
        act = acts.act(step)
        if came and act.action == action and held_back(step):
            came.append(step.number)
        elif act.check is CheckKind.NONE or act.failed is None or held_back(step):
            edited.update(_edited_files(step) if came else ())
        elif act.failed and act.failure:
            if act.failure != failure:
                came, edited = [], Counter()
            came.append(step.number)
            newest, action, failure = step, act.action, act.failure
        elif act.action == action:
            newest, came, failure = None, [], 0
    if newest is None or len(came) < 2:
        return None
    return RepeatedFailure(
        check=_cut(command(newest) or newest.tool),
        told=_failure_words(newest.output),
        steps=tuple(came),
        file=next((path for path, _ in edited.most_common(1)), ""),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Calls of late that the gate turned away, so that nothing came of them."""

    told: str
    """What the newest one was told, cut short."""
    steps: tuple[int, ...]


def find_refused(steps: Sequence[Step]) -> Refused | None:
    """The calls that were turned away among the last ones; nothing where it is a single one."""
    calls = [step for step in steps if step.kind is StepKind.TOOL][-_RECENT:]
    turned = [step for step in calls if held_back(step)]
    if len(turned) < 2:
        return None
    told = _cut(turned[-1].output.removeprefix(HELD_BACK))
    return Refused(told=told, steps=tuple(step.number for step in turned))


def _edited_files(step: Step) -> Sequence[str]:
    """The files that a step edited, or meant to: the same content again leaves no trace."""
    own = [edit.path for edit in step.edits if edit.writer is Writer.WORKER]
    return own or [step.path] if step.path and changing(step.tool) else own


def _failure_words(output: str) -> str:
    lines = [line.strip() for line in failure_lines(output)]
    more = [line for line in lines if not _ONLY_COUNTS.match(line)]
    line = _cut(more[-1]) if more else failure_line(output)
    test = _TEST.search(output)
    return line if test is None or test[1] in line else f"{_cut(test[1])}: {line}"


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
