"""A plan step is done only when files, edits and commands say so."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.config.settings import CompletionSettings, Settings
from midwatch_tests.reading import answers
from midwatch_tests.worker import Performer

PUT = ("put", {"path": "a.py", "text": "x = 1"})
PASSED = {"what": "all tests pass", "state": "passed"}
UNSHOWN = "unproven: the goal: nothing was run that shows it"
CHECKED = r.PlanStep(title="mend", files=("a.py",), acceptance=("make test",), requests=9)


def complete_step_call(
    *files: str, functional: Sequence[dict[str, str]] = (), **more: Any
) -> tuple[str, dict[str, Any]]:
    said: dict[str, Any] = {"goal": "g", "files": files, "structural": [], "functional": functional}
    return ("complete_step", {**said, "confidence": 80, **more})


def checks(*, passed: bool) -> Callable[[Sequence[str]], Awaitable[tuple[r.Acceptance, ...]]]:
    async def check(commands: Sequence[str]) -> tuple[r.Acceptance, ...]:
        detail = "" if passed else "exit code 1\nno rule"
        return tuple(r.Acceptance(check=each, passed=passed, detail=detail) for each in commands)

    return check


async def test_what_was_seen_is_done_and_the_worker_told_what_is_next(perform: Performer) -> None:
    budget = r.Budget(requests=r.Meter(limit=20))
    result = await perform([PUT, complete_step_call("a.py")], budget=budget)
    (answer,) = answers(result.all_messages(), "complete_step")
    assert answer == (
        f"Done with a flag, for a later check: {UNSHOWN}.\n"
        f"The plan is now:\n[x] 1. find it (flag: {UNSHOWN})\n[ ] 2. fix it\n"
        "Next: `check_plan`, in the same turn as your first work on the next step.\n"
        "Budget: 1 of 20 requests (19 left). "
        "At this rate enough: 5 % of the requests for 50 % of the work."
    )
    (completion,) = await perform.records(r.Completion)
    assert completion == r.Completion(
        plan_step=1,
        goal="g",
        claims=(
            r.Claim(
                what="the goal", state=r.ClaimState.UNPROVEN, reason="nothing was run that shows it"
            ),
            r.Claim(what="file a.py", state=r.ClaimState.PASSED),
        ),
        confidence=80,
        accepted=True,
        flag=UNSHOWN,
        doubts=("the goal: nothing was run that shows it",),
    )
    assert (await perform.records(r.Plan))[-1].steps[0].state is r.PlanStepState.DONE
    assert [each.plan_step for each in await perform.records(r.Change) if each.plan_step] == [1, 2]


async def test_requirement_16_a_claim_out_of_nothing_is_refused(perform: Performer) -> None:
    result = await perform([complete_step_call(functional=[PASSED])])
    (answer,) = answers(result.all_messages(), "complete_step")
    assert answer.startswith("[midwatch] refused: the plan step stays open, because\n- nothing was")
    assert [each.accepted for each in await perform.records(r.Completion)] == [False]
    assert len(await perform.records(r.Plan)) == 1
    assert (await perform.records(r.Step))[0].ok is False


async def test_requirement_16_a_claim_with_half_its_evidence_is_flagged(perform: Performer) -> None:
    result = await perform([PUT, complete_step_call("a.py", functional=[PASSED])])
    assert "Done with a flag" in answers(result.all_messages(), "complete_step")[0]
    (completion,) = await perform.records(r.Completion)
    assert (completion.accepted, completion.confidence) == (True, 60)
    assert (await perform.records(r.Plan))[-1].flags == (f"find it: {completion.flag}",)


async def test_a_plan_steps_own_check_is_run_and_refuses_if_it_fails(perform: Performer) -> None:
    plan, check = (CHECKED,), checks(passed=False)
    result = await perform([PUT, complete_step_call()], plan=plan, check=check)
    assert (
        "- `make test`: exit code 1: no rule" in answers(result.all_messages(), "complete_step")[0]
    )
    changes = await perform.records(r.Change)
    doing = "checks the plan step: make test"
    assert r.Activity.COMMAND in [each.activity for each in changes if each.doing == doing]


@pytest.mark.parametrize("may", [False, True])
async def test_a_check_that_nobody_runs_is_unproven(perform: Performer, may: bool) -> None:
    settings = Settings(completion=CompletionSettings(run_acceptance=may))
    check = None if may else checks(passed=False)
    await perform([PUT, complete_step_call()], plan=(CHECKED,), check=check, settings=settings)
    (completion,) = await perform.records(r.Completion)
    assert completion.flag == "unproven: `make test`: it was not run after the last edit"


async def test_wrong_arguments_are_told_and_end_nothing(perform: Performer) -> None:
    wrong = complete_step_call("a.py", functional=[{"what": "x", "state": "fine"}])
    result = await perform([PUT, wrong], [complete_step_call("a.py")])
    first, second = answers(result.all_messages(), "complete_step")
    assert "'passed', 'failed' or 'unproven'" in first
    assert second.startswith("Done with a flag")
