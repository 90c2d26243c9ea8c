"""A worker revises its plan within the caps, checks it between plan steps, and reads the board."""

from datetime import datetime
from typing import Any

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.config.settings import Approver, MonitorSettings, PlanSettings, Settings
from midwatch_monitor.journal import Journal
from midwatch_tests import factories
from midwatch_tests.reading import answers, turned_away
from midwatch_tests.worker import Performer
from midwatch_tools.data_blocks import DataBlocks
from midwatch_tools.tools.board import Board

PIVOT = ("reflect", {"progress_percent": 1, "confidence": 50, "decision": "pivot"})
PUT = ("put", {"path": "a.py", "text": "1"})


def plan_call(*titles: str) -> tuple[str, dict[str, Any]]:
    return ("set_plan", {"steps": titles})


def plan_settings(revisions: int, approval: Approver = Approver.POLICY) -> Settings:
    plan = PlanSettings(max_revisions=revisions, approval=approval)
    return Settings(plan=plan, monitor=MonitorSettings(poll_seconds=0.01))


async def test_requirement_11_a_revision_beyond_the_cap_is_refused(perform: Performer) -> None:
    turns = [[plan_call(name)] for name in "abc"]
    result = await perform(*turns, settings=plan_settings(2))
    said = answers(result.all_messages(), "set_plan")
    assert ["2 of 2 revisions" in each for each in said] == [False, False, True]
    assert (await perform.records(r.Plan))[-1].open_titles == ("b",)
    assert [step.ok for step in await perform.records(r.Step)][:3] == [True, True, False]


async def test_a_pivot_does_not_lift_the_cap(perform: Performer) -> None:
    result = await perform([PIVOT], [plan_call("a")], settings=plan_settings(0))
    assert "0 of 0 revisions" in answers(result.all_messages(), "set_plan")[0]


async def test_who_orders_new_plan_steps_gets_them_beyond_the_cap(perform: Performer) -> None:
    await perform.write(
        r.Intervention(action=r.Action.REPLAN, by=r.Actor.SUPERVISOR, message="Anew.")
    )
    settings = plan_settings(0, Approver.SUPERVISOR)
    result = await perform([plan_call("a")], [plan_call("b")], settings=settings)
    said = answers(result.all_messages(), "set_plan")
    assert ["The plan is now" in each for each in said] == [True, False]
    assert (await perform.records(r.Plan))[-1].open_titles == ("a",)


@pytest.mark.parametrize(
    ("turns", "refused"),
    [([[plan_call("a")]], [True]), ([[PIVOT, plan_call("a")], [plan_call("b")]], [False, True])],
)
async def test_where_the_supervisor_approves_a_plan_is_changed_through_its_check(
    perform: Performer, turns: list[Any], refused: list[bool]
) -> None:
    result = await perform(*turns, settings=plan_settings(9, Approver.SUPERVISOR))
    said = answers(result.all_messages(), "set_plan")
    assert ["`check_plan`" in each for each in said] == refused


async def test_a_worker_has_tools_for_a_plan_only_where_there_is_one(perform: Performer) -> None:
    result = await perform([plan_call("a", "b")], plan=(r.PlanStep(title="the goal"),))
    assert "Unknown tool" in answers(result.all_messages(), "set_plan")[0]


BLOCKS = DataBlocks("0badcafe")
NOTED = factories.reflecting(notes="it is the parser")
FOUND = factories.analysis(root="the parser cuts")


@pytest.fixture
async def others(journal: Journal, at: datetime) -> r.Attempt:
    """An attempt at a task of a project, another one of its project, and one of another."""
    run = await journal.add_run(source="t", settings="{}", at=at)
    attempts: list[r.Attempt] = []
    for name, project in (("own", "/p"), ("next", "/p"), ("far", "/q")):
        task = await journal.add_task(
            run=run.id, name=name, title=name, spec=f'{{"workspace": "{project}"}}', at=at
        )
        for number in (1, 2):
            whose = {"worker": "w", "model": "m", "node": "n", "workspace": "/w"}
            made = await journal.add_attempt(task=task.id, number=number, at=at, **whose)
            await journal.commit(r.Commit(drafts=factories.drafts(made, (NOTED, FOUND))))
            attempts.append(made)
    return attempts[1]


async def test_the_board_shows_task_and_project(perform: Performer, others: r.Attempt) -> None:
    board = Board(
        journal=perform.journal, task=await perform.journal.task(others.task), attempt=others
    )
    result = await perform([("read_board", {})], board=board)
    (answer,) = answers(result.all_messages(), "read_board")
    names = [line.split(" (")[0] for line in answer.splitlines() if line.startswith("- ")]
    assert names == ["- next, attempt 2", "- next, attempt 1", "- own, attempt 1"]
    assert answer.count("40 % of plan step 1, confidence 70") == 3
    assert "parser" not in answer


async def test_a_new_attempt_is_shown_those_beside_it(journal: Journal, others: r.Attempt) -> None:
    task = await journal.task(others.task)
    beside = await Board(journal=journal, task=task, attempt=others).beside(BLOCKS)
    names = [line.split(" (")[0] for line in beside.splitlines() if line.startswith("- ")]
    assert names == ["- next, attempt 2", "- next, attempt 1"]


async def test_who_works_alone_has_no_board(perform: Performer) -> None:
    board = Board(
        journal=perform.journal,
        task=await perform.journal.task(perform.attempt.task),
        attempt=perform.attempt,
    )
    assert await board.section(BLOCKS) == ""
    result = await perform([("read_board", {})], board=board)
    assert "Unknown tool" in answers(result.all_messages(), "read_board")[0]


Call = tuple[str, dict[str, Any]]

QUICK = Settings(monitor=MonitorSettings(poll_seconds=0.01))
LOOKING: Call = ("run_command", {"command": "b fine"})


def check_plan_call(*remaining: str) -> Call:
    said: dict[str, Any] = {"assumption": "a", "reality": "r", "impact": "i", "choice": "keep it"}
    more = {"remaining": list(remaining)} if remaining else {}
    return ("check_plan", {**said, **more, "options": ["keep it"]})


COMPLETING: Call = (
    "complete_step",
    {"goal": "it is found", "files": ["b"], "structural": [], "functional": [], "confidence": 90},
)


@pytest.mark.parametrize(
    ("turns", "away"),
    [
        ([[COMPLETING], [LOOKING], [check_plan_call(), LOOKING], [LOOKING]], [True, False, False]),
        ([[COMPLETING, check_plan_call(), LOOKING], [LOOKING]], [False, False]),
        ([[COMPLETING, LOOKING], [check_plan_call(), LOOKING]], [True, False]),
    ],
    ids=["in turns", "all in one turn", "work behind a completion"],
)
async def test_work_of_a_new_plan_step_waits_for_its_check(
    perform: Performer, turns: list[list[Call]], away: list[bool]
) -> None:
    result = await perform([LOOKING], *turns, settings=QUICK)
    assert turned_away(result.all_messages()) == [False, *away]
    (check,) = await perform.records(r.PlanCheck)
    assert (check.plan_step, check.ruling, check.options) == (2, r.Ruling.GRANTED, ("keep it",))


@pytest.mark.parametrize(
    ("approval", "says"),
    [
        (Approver.POLICY, "This plan step's check is in"),
        (Approver.SUPERVISOR, "propose another one here, as `remaining`"),
    ],
)
async def test_a_plan_step_is_checked_once_and_the_refusal_names_the_way_that_is_open(
    perform: Performer, approval: Approver, says: str
) -> None:
    result = await perform(
        [check_plan_call()], [check_plan_call()], settings=plan_settings(5, approval)
    )
    first, again = answers(result.all_messages(), "check_plan")
    assert first.startswith("Recorded. The plan is now:")
    assert says in again
    assert len(await perform.records(r.PlanCheck)) == 1


async def test_a_revision_within_the_caps_is_carried_out_with_the_check(perform: Performer) -> None:
    result = await perform([check_plan_call("look", "mend", "prove")], settings=QUICK)
    assert "the plan is revised" in answers(result.all_messages(), "check_plan")[0]
    plan = (await perform.records(r.Plan))[-1]
    assert (plan.open_titles, plan.revision) == (("look", "mend", "prove"), 1)
    assert [change.revision for change in await perform.records(r.Change) if change.revision] == [1]


@pytest.mark.parametrize(
    ("settings", "ruling", "says"),
    [
        (plan_settings(0), r.Ruling.REFUSED, "0 of 0 revisions"),
        (plan_settings(9, Approver.SUPERVISOR), r.Ruling.PENDING, "Your supervisor is asked"),
    ],
)
async def test_a_revision_that_is_not_granted_leaves_the_plan_and_is_told(
    perform: Performer, settings: Settings, ruling: r.Ruling, says: str
) -> None:
    result = await perform([check_plan_call("look", "mend", "prove")], settings=settings)
    assert says in answers(result.all_messages(), "check_plan")[0]
    (check,) = await perform.records(r.PlanCheck)
    assert (check.ruling, check.proposed) == (ruling, ("look", "mend", "prove"))
    assert (await perform.records(r.Plan))[-1].open_titles == ("find it", "fix it")


async def test_another_plan_may_be_proposed_within_a_plan_step(perform: Performer) -> None:
    turns: list[list[Call]] = [
        [check_plan_call()],
        [check_plan_call("look", "prove")],
        [check_plan_call()],
    ]
    result = await perform(*turns, settings=plan_settings(9, Approver.SUPERVISOR))
    kept, proposed, again = answers(result.all_messages(), "check_plan")
    assert kept.startswith("Recorded.")
    assert "Your supervisor is asked" in proposed
    assert "has not answered your last proposal" in again
    rulings = [each.ruling for each in await perform.records(r.PlanCheck)]
    assert rulings == [r.Ruling.GRANTED, r.Ruling.PENDING]
