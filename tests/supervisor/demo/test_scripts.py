"""The demo's tasks and scripts fit each other, also when a person turns proposals down."""

import json
import re
from importlib.resources import files

import pytest
import yaml

from midwatch_agents.scripted import Phase, Script, Turn, play
from midwatch_monitor.config.policy import PolicySettings
from midwatch_monitor.config.settings import SupervisorSettings
from midwatch_monitor.config.tasks import Role, TaskFile, TaskSpec, WorkerKind
from midwatch_monitor.errors import WorkspaceError
from midwatch_monitor.records import Action, Actor, Diagnosis, Plan, Severity
from midwatch_monitor.state.attempt import AttemptState
from midwatch_stage.factories import alert, attempt, message, task
from midwatch_supervisor.decide.agent import DecisionResult, Supervisor
from midwatch_supervisor.decide.context import DecisionContext, Means
from midwatch_supervisor.decide.diagnosis import DiagnosedCause
from midwatch_supervisor.decide.history import AttemptEvidence
from midwatch_supervisor.demo import script_for

TASKS = TaskFile.model_validate(
    yaml.safe_load(files("midwatch_supervisor.demo").joinpath("tasks.yaml").read_text())
)
STUCK = ("totals", "delivery", "shipping", "labels")
CODER = {
    "check_plan",
    "complete_step",
    "edit_file",
    "list_files",
    "read_file",
    "reflect",
    "report_error",
    "run_command",
    "write_file",
}
CLERK = {"list_orders", "reflect", "report_error", "write_report"}
REPORT = {"progress_percent", "confidence", "decision", "blockers", "files_done", "notes"}


def turns(script: Script) -> list[Turn]:
    return [
        turn for phase in (*script.phases, *script.again, *script.taught) for turn in phase.turns
    ]


def reports(phase: Phase) -> list[tuple[int, int]]:
    """Progress and confidence of the checkpoints of a phase."""
    found = [
        json.loads(call.args)
        for turn in phase.turns
        for call in turn.calls
        if call.tool == "reflect"
    ]
    return [(each["progress_percent"], each["confidence"]) for each in found]


@pytest.mark.parametrize("task", TASKS.tasks, ids=lambda task: task.id)
def test_every_worker_calls_only_tools_that_it_has(task: TaskSpec) -> None:
    coder = TASKS.worker_of(task)[1].kind is WorkerKind.CODER
    script = script_for(Role.WORKER, task.id)
    assert {call.tool for turn in turns(script) for call in turn.calls} <= (
        CODER if coder else CLERK
    )


@pytest.mark.parametrize("task", TASKS.tasks, ids=lambda task: task.id)
def test_every_checkpoint_comes_with_work(task: TaskSpec) -> None:
    for turn in turns(script_for(Role.WORKER, task.id)):
        tools = [call.tool for call in turn.calls]
        assert tools.count("reflect") <= 1
        assert tools != ["reflect"]
        for call in turn.calls:
            assert call.tool != "reflect" or set(json.loads(call.args)) <= REPORT


@pytest.mark.parametrize("task", TASKS.tasks, ids=lambda task: task.id)
def test_every_worker_ends_with_a_word(task: TaskSpec) -> None:
    script = script_for(Role.WORKER, task.id)
    assert (script.again or script.phases)[-1].turns[-1].calls == ()


@pytest.mark.parametrize("task", TASKS.tasks, ids=lambda task: task.id)
def test_a_second_attempt_explains_the_first_before_it_works(task: TaskSpec) -> None:
    first = script_for(Role.WORKER, task.id).again[0].turns[0]
    assert first.calls[0].tool == "report_error"


@pytest.mark.parametrize("key", STUCK)
def test_who_gets_stuck_can_be_taught_and_ends_with_a_word_then(key: str) -> None:
    (phase,) = script_for(Role.WORKER, key).taught
    assert phase.turns[-1].calls == ()


@pytest.mark.parametrize("task", TASKS.tasks, ids=lambda task: task.id)
def test_a_worker_heeds_a_person_s_lesson_of_its_own_task_only(task: TaskSpec) -> None:
    heeds = script_for(Role.WORKER, task.id).heeds
    assert re.search(heeds, f"1. (task {task.id}, rejected by a person; untested) Do it.")
    assert not re.search(heeds, f"1. (task {task.id}, rejected by the checks, or by how it ended)")
    assert not re.search(heeds, f"1. (task {task.id}-2, rejected by a person) Do it.")


@pytest.mark.parametrize("key", STUCK)
def test_who_gets_stuck_goes_on_until_guidance_comes(key: str) -> None:
    script = script_for(Role.WORKER, key)
    assert script.phases[0].repeat >= 4
    assert all(turn.calls for turn in script.phases[0].turns)


def test_falling_confidence_and_a_stall_come_at_the_same_checkpoint() -> None:
    first, second = script_for(Role.WORKER, "delivery").phases
    assert reports(first)[:3] == [(35, 72), (37, 60), (38, 48)]
    assert reports(second)[:3] == [(10, 50), (11, 40), (12, 30)]


def test_the_supervisor_answers_with_a_nudge_a_replan_and_a_restart() -> None:
    answers = {
        key: [
            json.loads(phase.turns[0].calls[0].args)["action"]
            for phase in script_for(Role.SUPERVISOR, key).phases
        ]
        for key in STUCK
    }
    assert answers == {
        "totals": ["nudge", "ask_operator"],
        "delivery": ["replan", "restart", "ask_operator"],
        "shipping": ["nudge", "ask_operator"],
        "labels": ["nudge", "ask_operator"],
    }


def test_a_refused_answer_is_given_again_with_a_step_that_there_is_and_then_a_person_is_asked() -> (
    None
):
    phase = script_for(Role.SUPERVISOR, "totals").phases[0]
    first, second, third = (json.loads(turn.calls[0].args) for turn in phase.turns)
    assert first["evidence"] == [2, 6, 9, 13]
    assert second == {**first, "evidence": [1]}
    assert third["action"] == "ask_operator"


def test_every_model_of_the_demo_is_scripted() -> None:
    assert {role: model.name for role, model in TASKS.models.items()} == {
        Role.WORKER: "scripted:demo",
        Role.SUPERVISOR: "scripted:demo",
    }


ALERT = alert("same_failure", severity=Severity.CRITICAL)
STEPS = tuple(message(number) for number in range(1, 16))
NUDGE, REPLAN, RESTART = Action.NUDGE, Action.REPLAN, Action.RESTART


class Bare(AttemptEvidence):
    """Without a workspace."""

    async def diff(self) -> str:
        raise WorkspaceError("there is none")


async def decided(key: str, *rejected: Action, escalations: int = 0) -> DecisionResult:
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
        ("labels", (NUDGE,), Action.ASK_OPERATOR),
        ("shipping", (NUDGE,), Action.ASK_OPERATOR),
        ("delivery", (REPLAN,), RESTART),
        ("delivery", (REPLAN, RESTART), Action.ASK_OPERATOR),
        ("delivery", (REPLAN, RESTART, NUDGE), Action.ASK_OPERATOR),
    ],
)
async def test_it_proposes_something_else_than_what_was_turned_down(
    key: str, rejected: tuple[Action, ...], action: Action
) -> None:
    found = await decided(key, *rejected)
    assert (found.fault, found.decision.by) == (None, Actor.SUPERVISOR)
    assert found.decision.action is action


@pytest.mark.parametrize("key", ["totals", "delivery", "report"])
async def test_where_its_answer_is_not_allowed_any_more_a_person_is_asked(key: str) -> None:
    found = await decided(key, escalations=PolicySettings().max_escalations)
    assert (found.fault, found.decision.by) == (None, Actor.SUPERVISOR)
    assert found.decision.action is Action.ASK_OPERATOR
