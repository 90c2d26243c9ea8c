"""The demo's tasks and scripts fit each other, also when a person turns proposals down."""

import json
import re
from importlib.resources import files
from typing import Any

import pytest
import yaml

from midwatch_agents.scripted import Script, Turn, play
from midwatch_monitor.config.policy import PolicySettings
from midwatch_monitor.config.settings import SupervisorSettings
from midwatch_monitor.config.tasks import Role, TaskFile, TaskSpec, WorkerKind
from midwatch_monitor.errors import WorkspaceError
from midwatch_monitor.records import Action, Actor, Diagnosis, Plan, Severity
from midwatch_monitor.state.attempt import AttemptState
from midwatch_supervisor.decide.agent import DecisionResult, Supervisor
from midwatch_supervisor.decide.context import DecisionContext, Means
from midwatch_supervisor.decide.diagnosis import DiagnosedCause
from midwatch_supervisor.decide.history import AttemptEvidence
from midwatch_supervisor.demo import script_for
from midwatch_tests.factories import alert, attempt, message, task

TASKS = TaskFile.model_validate(
    yaml.safe_load(files("midwatch_supervisor.demo").joinpath("tasks.yaml").read_text())
)
STUCK = ("totals", "delivery", "shipping", "labels")
CODER = {
    *("check_plan", "complete_step", "edit_file", "list_files", "read_file"),
    *("reflect", "report_error", "run_command", "write_file"),
}
CLERK = {"list_orders", "reflect", "report_error", "write_report"}
REPORT = {"progress_percent", "confidence", "decision", "blockers", "files_done", "notes"}


def turns(script: Script) -> list[Turn]:
    return [
        turn for phase in (*script.phases, *script.again, *script.taught) for turn in phase.turns
    ]


def args(turn: Turn) -> dict[str, Any]:
    return json.loads(turn.calls[0].args)


@pytest.mark.parametrize("task", TASKS.tasks, ids=lambda task: task.id)
def test_every_worker_works_with_its_own_tools_and_heeds_a_person_s_lesson_of_its_own_task_only(
    task: TaskSpec,
) -> None:
    script = script_for(Role.WORKER, task.id)
    coder = TASKS.worker_of(task)[1].kind is WorkerKind.CODER
    for turn in turns(script):
        tools = [call.tool for call in turn.calls]
        assert set(tools) <= (CODER if coder else CLERK)
        assert tools.count("reflect") <= 1
        assert tools != ["reflect"], "every checkpoint comes with work"
        for call in turn.calls:
            assert call.tool != "reflect" or set(json.loads(call.args)) <= REPORT
    first, *_, last = [turn for phase in script.again for turn in phase.turns]
    assert first.calls[0].tool == "report_error", "a second attempt explains the first"
    assert last.calls == (), "it ends with a word"
    assert re.search(script.heeds, f"1. (task {task.id}, rejected by a person; untested) Do it.")
    assert not re.search(script.heeds, f"1. (task {task.id}, rejected by the checks, or by how it)")
    assert not re.search(script.heeds, f"1. (task {task.id}-2, rejected by a person) Do it.")


@pytest.mark.parametrize("key", STUCK)
def test_who_gets_stuck_goes_on_until_guidance_comes_and_can_be_taught(key: str) -> None:
    script = script_for(Role.WORKER, key)
    assert script.phases[0].repeat >= 4
    assert all(turn.calls for turn in script.phases[0].turns)
    (phase,) = script.taught
    assert phase.turns[-1].calls == ()


def test_the_supervisor_answers_with_a_nudge_a_replan_and_a_restart() -> None:
    answers = {
        key: [args(phase.turns[0])["action"] for phase in script_for(Role.SUPERVISOR, key).phases]
        for key in STUCK
    }
    assert answers == {
        "totals": ["nudge", "ask_operator"],
        "delivery": ["replan", "restart", "ask_operator"],
        "shipping": ["nudge", "ask_operator"],
        "labels": ["nudge", "ask_operator"],
    }
    # What was refused is given again with a step that there is, and then a person is asked.
    first, second, third = map(args, script_for(Role.SUPERVISOR, "totals").phases[0].turns)
    assert first["evidence"] == [2, 6, 9, 13]
    assert second == {**first, "evidence": [1]}
    assert third["action"] == "ask_operator"


ALERT = alert("same_failure", severity=Severity.CRITICAL)
STEPS = tuple(message(number) for number in range(1, 16))
NUDGE, REPLAN, RESTART = Action.NUDGE, Action.REPLAN, Action.RESTART


class Bare(AttemptEvidence):
    """Without a workspace."""

    async def diff(self) -> str:
        raise WorkspaceError("there is none")


async def make_decision(key: str, *rejected: Action, escalations: int = 0) -> DecisionResult:
    context = DecisionContext(
        attempt=1,
        steps=STEPS,
        firing=(ALERT,),
        alerts=(ALERT,),
        plan=Plan(steps=()),
        reading=DiagnosedCause(cause=Diagnosis.WRONG_APPROACH, steps=(4, 5)),
        means=Means(attempts=1),
        policy=PolicySettings(),
        escalations=escalations,
        rejected=frozenset(rejected),
    )
    of = attempt()
    evidence = Bare(task=task(), attempt=of, state=AttemptState(attempt=of), steps=[*STEPS])
    supervisor = Supervisor(play(script_for(Role.SUPERVISOR, key)), SupervisorSettings())
    return await supervisor.decide(context, evidence)


@pytest.mark.parametrize(
    ("key", "rejected", "action"),
    [
        ("totals", (), NUDGE),
        ("totals", (NUDGE,), Action.ASK_OPERATOR),
        ("delivery", (REPLAN,), RESTART),
        ("delivery", (REPLAN, RESTART), Action.ASK_OPERATOR),
        ("delivery", (REPLAN, RESTART, NUDGE), Action.ASK_OPERATOR),
    ],
)
async def test_it_proposes_something_else_than_what_was_turned_down(
    key: str, rejected: tuple[Action, ...], action: Action
) -> None:
    found = await make_decision(key, *rejected)
    assert (found.fault, found.decision.by) == (None, Actor.SUPERVISOR)
    assert found.decision.action is action


async def test_where_its_answer_is_not_allowed_any_more_a_person_is_asked() -> None:
    found = await make_decision("delivery", escalations=PolicySettings().max_escalations)
    assert (found.fault, found.decision.by) == (None, Actor.SUPERVISOR)
    assert found.decision.action is Action.ASK_OPERATOR
