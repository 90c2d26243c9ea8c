"""The scripts of the demo, from `scripts.yaml`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter

from midwatch_agents.scripted import Call, Cue, Phase, Script, Turn
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.errors import UsageError
from midwatch_monitor.records import Action, Diagnosis

_ARGS = TypeAdapter(JsonValue)


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _TurnData(_Data):
    say: str = ""
    calls: tuple[Annotated[dict[str, JsonValue], Field(min_length=1, max_length=1)], ...] = ()


class _PhaseData(_Data):
    turns: tuple[_TurnData, ...]
    repeat: int = 1


class _WorkerData(_Data):
    phases: tuple[_PhaseData, ...]
    again: tuple[_PhaseData, ...] = ()
    taught: tuple[_PhaseData, ...] = ()


class _AnswerData(_Data):
    action: Action
    diagnosis: Diagnosis
    message: str
    rationale: str
    evidence: tuple[int, ...] = ()
    plan: tuple[str, ...] = ()


class _ScriptsData(_Data):
    workers: dict[str, _WorkerData]
    supervisor: dict[str, Annotated[tuple[_AnswerData, ...], Field(min_length=1)]]


_OTHERWISE = "otherwise"
"""The supervisor's script for tasks that are expected to need no help."""


def script_for(role: Role, key: str) -> Script:
    """Return the script of a worker or the supervisor for a task. Raises UsageError without one."""
    scripts = _scripts().get(role, {})
    if role is Role.SUPERVISOR and key not in scripts:
        key = _OTHERWISE
    if key not in scripts:
        known = ", ".join(sorted(scripts)) or "none"
        raise UsageError(f"the demo has no script for the {role} of task {key!r}; it has: {known}")
    return scripts[key]


def lesson_mark(task: str) -> str:
    """Return a pattern that finds a lesson in a first prompt, from a person's rejection of a task.

    Lessons of failed attempts are ignored, or the second demo would show no trouble.
    """
    return rf"\(task {re.escape(task)}, rejected by a person\b"


@cache
def _scripts() -> Mapping[Role, Mapping[str, Script]]:
    text = files(__package__ or __name__).joinpath("scripts.yaml").read_text(encoding="utf-8")
    data = _ScriptsData.model_validate(yaml.safe_load(text))
    return {
        Role.WORKER: {
            key: Script(
                phases=_phases(worker.phases),
                again=_phases(worker.again) or _with_note(_phases(worker.taught or worker.phases)),
                taught=_phases(worker.taught),
                heeds=lesson_mark(key),
            )
            for key, worker in data.workers.items()
        },
        Role.SUPERVISOR: {key: _answers(answers) for key, answers in data.supervisor.items()},
    }


def _phases(phases: Sequence[_PhaseData]) -> tuple[Phase, ...]:
    return tuple(
        Phase(turns=tuple(_turn(turn) for turn in phase.turns), repeat=phase.repeat)
        for phase in phases
    )


_EXPLAINED = Call(
    tool="report_error",
    args=_ARGS.dump_json(
        {
            "what_happened": "The attempt before is over, and its work is not what is wanted",
            "category": "permanent",
            "root_cause": "It went on in a way that a person, or the supervisor, ended",
            "change": "I do it as I am advised",
        }
    ).decode(),
)
"""Without this report, a second attempt may do no work."""


def _with_note(phases: tuple[Phase, ...]) -> tuple[Phase, ...]:
    """Return the phases for an attempt that a person requested with a note."""
    first = phases[0]
    begun = replace(first.turns[0], calls=(_EXPLAINED, *first.turns[0].calls))
    return replace(first, turns=(begun, *first.turns[1:])), *phases[1:]


def _turn(turn: _TurnData) -> Turn:
    calls = (
        Call(tool=tool, args=_ARGS.dump_json(args).decode())
        for call in turn.calls
        for tool, args in call.items()
    )
    return Turn(say=turn.say.strip(), calls=tuple(calls))


_LAST_RESORT = _AnswerData(
    action=Action.ASK_OPERATOR,
    diagnosis=Diagnosis.UNKNOWN,
    message="What I had to propose was turned down, or did not help. What should it do?",
    rationale="There is nothing left that may be tried without a person.",
    evidence=(1,),
)
"""Always allowed; a script cannot know what a person rejects, or which limits are reached."""


def _answers(answers: Sequence[_AnswerData]) -> Script:
    beyond = (_LAST_RESORT,) if any(each.action is not Action.OBSERVE for each in answers) else ()
    return Script(phases=tuple(_answer(each) for each in (*answers, *beyond)), cue=Cue.COUNT)


def _answer(answer: _AnswerData) -> Phase:
    """Return the answer; if it is refused, once more with an existing step, then a question.

    The step numbers in the script may differ from those of this run.
    """
    sure = answer.model_copy(update={"evidence": _LAST_RESORT.evidence})
    said = (answer, sure, _LAST_RESORT)
    return Phase(turns=tuple(Turn(calls=(Call(args=data.model_dump_json()),)) for data in said))
