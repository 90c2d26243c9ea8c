"""The supervisor agent with a scripted model: it decides within the policy, and never fails."""

import asyncio
import re
from dataclasses import replace

import pytest
from pydantic_ai.exceptions import ModelHTTPError, ModelRequestRejectedError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from midwatch_monitor.config.settings import PolicySettings, SupervisorSettings
from midwatch_monitor.errors import WorkspaceError
from midwatch_monitor.records import Action, Actor, AlertKey, Decision, Diagnosis, StepKind
from midwatch_monitor.state.attempt import AttemptState
from midwatch_stage.deciding import Script, Turn, answer
from midwatch_stage.factories import alert, attempt, checkpoint, step, task
from midwatch_stage.watched import uncoded
from midwatch_supervisor.decide.agent import REQUESTS, DecisionResult, Supervisor
from midwatch_supervisor.decide.context import DecisionContext, DiagnosedCause, Means
from midwatch_supervisor.decide.history import AttemptEvidence
from midwatch_supervisor.decide.policy import choose

ALERT = alert("repeated_edits", subject="calc.py", step=5, summary="calc.py was edited 8 times")
STEPS = tuple(step(number, "shell", output=f"output {number}") for number in range(1, 6))
CONTEXT = DecisionContext(
    escalation=7,
    title="Fix it",
    goal="Make the tests pass.",
    worker="coder",
    firing=(ALERT,),
    steps=STEPS[3:],
    alerts=(ALERT,),
    reading=DiagnosedCause(cause=Diagnosis.WRONG_APPROACH, steps=(4, 5)),
    means=Means(attempts=1),
    policy=PolicySettings(),
)
WEAK = replace(CONTEXT, alerts=(replace(ALERT, key=AlertKey(rule="low_confidence")),))
SETTINGS = SupervisorSettings()
NOTHING: dict[str, object] = {}


class Gone(AttemptEvidence):
    """The steps above, with a checkpoint at the second; the workspace is gone."""

    async def diff(self) -> str:
        raise WorkspaceError("the workspace is gone")


def records() -> AttemptEvidence:
    reported = replace(STEPS[1], kind=StepKind.CHECKPOINT, checkpoint=checkpoint(10, 90))
    of = attempt()
    steps = [STEPS[0], reported, *STEPS[2:]]
    return Gone(task=task(), attempt=of, state=AttemptState(attempt=of), steps=steps)


async def decide(
    script: Script, context: DecisionContext = CONTEXT, settings: SupervisorSettings = SETTINGS
) -> Decision:
    return (await script.supervisor(settings).decide(context, records())).decision


async def test_without_a_model_the_policy_decides() -> None:
    supervisor = Supervisor(None, SETTINGS)
    decided = await supervisor.decide(CONTEXT, records())
    assert decided == DecisionResult(decision=choose(CONTEXT))


async def test_a_models_answer_becomes_the_decision() -> None:
    script = Script([answer("replan", evidence=[5, 3], plan=["read", "fix"])])
    assert await decide(script) == Decision(
        escalation=7,
        action=Action.REPLAN,
        diagnosis=Diagnosis.WRONG_APPROACH,
        message="Look.",
        rationale="So.",
        plan=("read", "fix"),
        steps=(3, 5),
        by=Actor.SUPERVISOR,
        author="scripted",
    )


async def test_any_model_that_fills_in_the_answer_will_do() -> None:
    model = TestModel(
        call_tools=[],
        custom_output_args={"action": "observe", "diagnosis": "false_alarm", "rationale": "Fine."},
    )
    decision = (await Supervisor(model, SETTINGS).decide(CONTEXT, records())).decision
    assert (decision.action, decision.diagnosis) == (Action.OBSERVE, Diagnosis.FALSE_ALARM)


async def test_the_model_reads_what_it_may_do_and_the_case() -> None:
    script = Script([answer()])
    await decide(script, WEAK)
    assert script.asked[-1].startswith("You may choose: observe, nudge, ask_operator.\n")
    assert "interventions so far: 0\n" in script.asked[-1]


async def test_a_plan_is_kept_for_a_replan_only() -> None:
    assert (await decide(Script([answer("nudge", plan=["one"])]))).plan == ()


async def test_a_person_is_never_asked_without_words() -> None:
    decision = await decide(Script([answer("ask_operator", message="")]))
    assert "calc.py was edited 8 times" in decision.message


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (answer("restart"), "Allowed are: observe, nudge, ask_operator."),
        (answer("nudge", message=" "), "nudge needs a message."),
        (answer(evidence=[5, 6, 0]), "There is no step 0, 6: steps go from 1 to 5."),
        (answer("pause"), "'observe', 'nudge', 'replan'"),
        (answer(plan=["x"] * 13), "at most 12 items"),
        (answer(plan=[""]), "at least 1 character"),
    ],
)
async def test_a_wrong_answer_is_handed_back_with_the_reason(wrong: Turn, told: str) -> None:
    script = Script([wrong, answer()])
    decision = await decide(script, WEAK)
    assert (decision.action, decision.by) == (Action.NUDGE, Actor.SUPERVISOR)
    assert told in script.asked[-1]


async def test_a_model_that_insists_on_what_is_forbidden_is_replaced_by_the_policy() -> None:
    decision = await decide(Script([answer("stop")]), WEAK)
    assert (decision.action, decision.by) == (Action.OBSERVE, Actor.POLICY)
    assert "stop is not allowed here" in decision.rationale


@pytest.mark.parametrize(
    ("look", "shown"),
    [
        (("timeline", {"first": 1, "last": 99}), "step 1: shell"),
        (("output", {"step": 2}), '<data name="output">\noutput 2\n</data>'),
        (("output", {"step": 9}), "There is no step 9"),
        (("checkpoints", NOTHING), "confidence 90 %"),
        (("diff", NOTHING), "the workspace is gone"),
    ],
)
async def test_the_model_may_look_things_up(look: Turn, shown: str) -> None:
    script = Script([look, answer()])
    assert (await decide(script)).by is Actor.SUPERVISOR
    assert shown in uncoded(script.asked[-1])


async def test_looking_things_up_is_limited_too() -> None:
    settings = SupervisorSettings(max_evidence_chars=1000)
    script = Script([("output", {"step": 1}), answer()])
    assert (await decide(script, settings=settings)).by is Actor.SUPERVISOR
    assert "No more evidence" in script.asked[-1]


async def test_a_passing_fault_is_tried_again() -> None:
    script = Script([ModelHTTPError(503, "scripted"), ConnectionError("reset"), answer()])
    assert (await decide(script)).by is Actor.SUPERVISOR
    assert len(script.slept) == 2
    assert max(script.slept) <= SETTINGS.max_wait_seconds


async def test_after_the_last_try_the_policy_decides_and_says_why() -> None:
    script = Script([ModelHTTPError(503, "scripted", body="busy")])
    decision = await decide(script)
    expected = choose(CONTEXT)
    assert len(script.asked) == SETTINGS.tries
    assert decision == replace(expected, rationale=decision.rationale)
    assert re.match(r"the model scripted failed: Model\w*Error: .*503.*busy", decision.rationale)


async def test_a_refused_request_is_not_tried_again() -> None:
    script = Script([ModelRequestRejectedError("scripted", "no such key")])
    decision = await decide(script)
    assert (len(script.asked), decision.by) == (1, Actor.POLICY)
    assert "no such key" in decision.rationale


async def test_a_model_that_only_looks_is_stopped() -> None:
    script = Script([("output", {"step": 1})])
    decision = await decide(script)
    assert (len(script.asked), decision.by) == (REQUESTS, Actor.POLICY)
    assert "no usable answer within its request limit of 8" in decision.rationale


async def test_a_model_that_only_talks_is_replaced_by_the_policy() -> None:
    async def talk(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[TextPart(content="I wonder.")])

    settings = SupervisorSettings(tries=1)
    decided = await Supervisor(FunctionModel(talk), settings).decide(CONTEXT, records())
    assert decided.decision.by is Actor.POLICY


async def hang(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def test_a_model_that_hangs_is_given_up() -> None:
    supervisor = Supervisor(FunctionModel(hang), SupervisorSettings(timeout_seconds=0.05))
    decision = (await supervisor.decide(CONTEXT, records())).decision
    assert decision.by is Actor.POLICY
    assert "no answer within 0.05 s" in decision.rationale


async def test_a_cancellation_goes_through() -> None:
    started = asyncio.Event()

    async def slow(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        started.set()
        return await hang(messages, info)

    supervisor = Supervisor(FunctionModel(slow), SETTINGS)
    deciding = asyncio.create_task(supervisor.decide(CONTEXT, records()))
    await started.wait()
    deciding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await deciding
