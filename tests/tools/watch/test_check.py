"""No plan step begins unchecked, and its check is where another plan is proposed."""

from typing import Any

import pytest

from midwatch_monitor.config.settings import Approver, MonitorSettings, PlanSettings, Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Change, Plan, PlanCheck, Ruling
from midwatch_stage.reading import answers, records_of, turned_away
from midwatch_stage.worker import Perform

Call = tuple[str, dict[str, Any]]

QUICK = Settings(monitor=MonitorSettings(poll_seconds=0.01))
LOOKING: Call = ("run_command", {"command": "b fine"})


def checking(*remaining: str) -> Call:
    said: dict[str, Any] = {"assumption": "a", "reality": "r", "impact": "i", "choice": "keep it"}
    more = {"remaining": list(remaining)} if remaining else {}
    return ("check_plan", {**said, **more, "options": ["keep it"]})


COMPLETING: Call = (
    "complete_step",
    {"goal": "it is found", "files": ["b"], "structural": [], "functional": [], "confidence": 90},
)


async def test_work_of_a_new_plan_step_waits_for_its_check(
    journal: Journal, perform: Perform
) -> None:
    turns: list[list[Call]] = [[LOOKING], [COMPLETING], [LOOKING], [checking(), LOOKING], [LOOKING]]
    result = await perform(*turns, settings=QUICK)
    assert turned_away(result.all_messages()) == [False, True, False, False]
    (check,) = await records_of(journal, PlanCheck)
    assert (check.plan_step, check.ruling, check.options) == (2, Ruling.GRANTED, ("keep it",))


async def test_completion_check_and_work_may_share_a_turn(perform: Perform) -> None:
    turns: list[list[Call]] = [[LOOKING], [COMPLETING, checking(), LOOKING], [LOOKING]]
    result = await perform(*turns, settings=QUICK)
    assert turned_away(result.all_messages()) == [False, False, False]


async def test_work_behind_a_completion_in_its_turn_waits_for_the_check(
    journal: Journal, perform: Perform
) -> None:
    turns: list[list[Call]] = [[LOOKING], [COMPLETING, LOOKING], [checking(), LOOKING]]
    result = await perform(*turns, settings=QUICK)
    assert turned_away(result.all_messages()) == [False, True, False]
    assert [each.plan_step for each in await records_of(journal, PlanCheck)] == [2]


async def test_a_plan_step_is_checked_once(journal: Journal, perform: Perform) -> None:
    result = await perform([checking()], [checking()], settings=QUICK)
    first, again = answers(result.all_messages(), "check_plan")
    assert first.startswith("Recorded. The plan is now:")
    assert "This plan step's check is in" in again
    assert len(await records_of(journal, PlanCheck)) == 1


async def test_a_revision_within_the_caps_is_carried_out_with_the_check(
    journal: Journal, perform: Perform
) -> None:
    result = await perform([checking("look", "mend", "prove")], settings=QUICK)
    assert "the plan is revised" in answers(result.all_messages(), "check_plan")[0]
    plan = (await records_of(journal, Plan))[-1]
    assert (plan.open_titles, plan.revision) == (("look", "mend", "prove"), 1)
    assert [change.revision for change in await records_of(journal, Change) if change.revision] == [
        1
    ]


@pytest.mark.parametrize(
    ("plan", "ruling", "says"),
    [
        (PlanSettings(max_revisions=0), Ruling.REFUSED, "0 of 0 revisions"),
        (PlanSettings(approval=Approver.SUPERVISOR), Ruling.PENDING, "Your supervisor is asked"),
    ],
)
async def test_a_revision_that_is_not_granted_leaves_the_plan_and_is_told(
    journal: Journal, perform: Perform, plan: PlanSettings, ruling: Ruling, says: str
) -> None:
    settings = QUICK.model_copy(update={"plan": plan})
    result = await perform([checking("look", "mend", "prove")], settings=settings)
    assert says in answers(result.all_messages(), "check_plan")[0]
    (check,) = await records_of(journal, PlanCheck)
    assert (check.ruling, check.proposed) == (ruling, ("look", "mend", "prove"))
    assert (await records_of(journal, Plan))[-1].open_titles == ("find it", "fix it")


SUPERVISED = QUICK.model_copy(update={"plan": PlanSettings(approval=Approver.SUPERVISOR)})


async def test_where_the_supervisor_approves_another_plan_may_be_proposed_within_a_plan_step(
    journal: Journal, perform: Perform
) -> None:
    turns: list[list[Call]] = [[checking()], [checking("look", "prove")], [checking()]]
    result = await perform(*turns, settings=SUPERVISED)
    kept, proposed, again = answers(result.all_messages(), "check_plan")
    assert kept.startswith("Recorded.")
    assert "Your supervisor is asked" in proposed
    assert "has not answered your last proposal" in again
    rulings = [each.ruling for each in await records_of(journal, PlanCheck)]
    assert rulings == [Ruling.GRANTED, Ruling.PENDING]


async def test_and_the_refusal_names_the_way_that_is_open(perform: Perform) -> None:
    result = await perform([checking()], [checking()], settings=SUPERVISED)
    assert (
        "propose another one here, as `remaining`"
        in answers(result.all_messages(), "check_plan")[1]
    )
