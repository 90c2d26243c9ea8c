"""A person turns down what the demo's supervisor proposes: it goes on, and asks at last."""

import pytest

from midwatch_agents.scripted import play
from midwatch_monitor.config.policy import PolicySettings
from midwatch_monitor.config.settings import SupervisorSettings
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.errors import WorkspaceError
from midwatch_monitor.records import Action, Actor, Diagnosis, Plan, Severity
from midwatch_monitor.state.attempt import AttemptState
from midwatch_stage.factories import alert, attempt, message, task
from midwatch_supervisor.decide.agent import DecisionResult, Supervisor
from midwatch_supervisor.decide.context import DecisionContext, Means
from midwatch_supervisor.decide.diagnosis import DiagnosedCause
from midwatch_supervisor.decide.history import AttemptEvidence
from midwatch_supervisor.demo import script_for

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
