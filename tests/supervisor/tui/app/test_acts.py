"""Keys on the chosen attempt become rows of the journal, and what comes of them is told."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from midwatch_monitor.config.tasks import TaskFile
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Action,
    Actor,
    BudgetRequest,
    Commit,
    Delivery,
    DeliveryState,
    Draft,
    Grant,
    Hint,
    Intervention,
    Lifecycle,
    PermissionRequest,
    PlanCheck,
    Record,
    Ruling,
    Severity,
    TaskTransition,
    Terms,
)
from midwatch_stage.console import ConsoleDriver, console_of
from midwatch_stage.factories import AT, alert, delivery, intervention, message, outcome, transition
from midwatch_supervisor.present.assignment import assignments
from midwatch_supervisor.tui.command_palette import ConsoleCommands
from midwatch_supervisor.tui.keys import ACTS, LEARNED, MARKS
from midwatch_supervisor.tui.widgets.dialogs import HelpScreen, TextDialog

ALERT = alert(severity=Severity.CRITICAL, summary="the same [red]three[/red] acts", step=4)
WORKING = transition()
PARKED = transition(Lifecycle.INPUT_REQUIRED, reason="Which port?")
FAILED = transition(Lifecycle.FAILED, reason="a check failed")
DONE = transition(Lifecycle.COMPLETED, reason="every check passed")
HELD = intervention(
    Action.NUDGE, Actor.POLICY, message="Look [b]up.", answers=(ALERT.key,), needs_approval=True
)
PERMISSION = PermissionRequest(tool="execute", what="run `make [b]`")
MINE = Intervention(action=Action.NUDGE, by=Actor.OPERATOR, author="ada")
BUDGET = BudgetRequest(wanted=Grant(requests=20), reason="[b]two[/b] files left")
REVISION = PlanCheck(
    plan_step=2, assumption="", reality="", impact="", proposed=("x", "y"), ruling=Ruling.PENDING
)
GRANT = replace(MINE, action=Action.GRANT_BUDGET, message="Granted.")
SWITCH = replace(MINE, action=Action.SWITCH_MODEL)
GRANTED_BY_POLICY = replace(
    GRANT, by=Actor.POLICY, terms=Terms(grant=Grant(requests=5)), petition=5, needs_approval=True
)

Sit = Callable[..., AbstractAsyncContextManager[ConsoleDriver[Journal]]]


def spec(max_attempts: int) -> str:
    """The specification of a task that may have so many attempts."""
    tasks = [{"id": "fix", "goal": "Fix it.", "acceptance": ["true"], "max_attempts": max_attempts}]
    file = TaskFile.model_validate({"workers": {"coder": {}}, "tasks": tasks})
    return assignments(file, Path.cwd())[0].model_dump_json()


@pytest.fixture
def sit(tmp_path: Path) -> Sit:
    """Opens the console on a journal that holds `records` of one attempt."""

    @asynccontextmanager
    async def seat(
        *records: Record, attempts: int = 2, deaf: bool = False
    ) -> AsyncGenerator[ConsoleDriver[Journal]]:
        file = tmp_path / "journal.db"
        async with (
            await Journal.open(file) as journal,
            await Journal.open_to_read(file) as closed,
            console_of(
                journal,
                WORKING,
                message(4),
                *records,
                spec=spec(attempts),
                desk=closed if deaf else None,
            ) as operator,
        ):
            yield operator

    return seat


async def end_task(seat: ConsoleDriver[Journal]) -> None:
    """Let the task `fix` be over, as its run would."""
    state = TaskTransition(lifecycle=Lifecycle.FAILED)
    task = seat.attempt.task
    (entry,) = await seat.journal.commit(Commit(drafts=(Draft(record=state, at=AT, task=task),)))
    seat.before = entry.id
    seat.bus.publish(Hint(entry=entry.id, kind="task_state", task=task))
    await seat.until(lambda: seat.app.read >= seat.before)


async def test_guidance_is_about_the_firing_alerts(sit: Sit) -> None:
    async with sit(ALERT) as seat:
        await seat.press("i", *"hi", "ctrl+j", "x", "enter")
        assert await seat.written() == [replace(MINE, message="hi\nx", answers=(ALERT.key,))]
        assert seat.app.told == ["fix#1: guidance sent; the worker reads it at its next request"]


async def test_empty_guidance_is_not_sent_and_escape_gives_it_up(sit: Sit) -> None:
    async with sit() as seat:
        await seat.press("i", "enter")
        assert isinstance(seat.app.screen, TextDialog)
        await seat.press(*"hi", "escape")
        assert await seat.written() == []


async def test_one_key_pauses_and_lets_go_on(sit: Sit) -> None:
    pause = replace(MINE, action=Action.PAUSE)
    resume = replace(MINE, action=Action.RESUME, message="Go on.")
    async with sit() as seat:
        await seat.press("p", "p")
        await seat.write(PARKED)
        await seat.press("p")
        entries = await seat.journal.entries()
        issued = [each.record for each in entries if isinstance(each.record, Intervention)]
        assert issued == [pause, resume, resume]


async def test_a_stop_is_issued_only_when_it_was_agreed_to(sit: Sit) -> None:
    async with sit() as seat:
        await seat.press("x", "escape", "x", "enter", "escape")
        assert await seat.written() == []
        await seat.press("x", "y")
        assert await seat.written() == [replace(MINE, action=Action.STOP)]


async def test_a_persons_restart_carries_its_note_and_is_above_the_number_of_attempts(
    sit: Sit,
) -> None:
    async with sit(ALERT, attempts=1) as seat:
        await seat.press("b", *"no", "enter")
        assert await seat.written() == [
            replace(MINE, action=Action.RESTART, message="no", answers=(ALERT.key,))
        ]


async def test_a_task_that_is_over_is_begun_again_with_a_note(sit: Sit) -> None:
    async with sit(FAILED) as seat:
        await end_task(seat)
        await seat.press("b", *"no", "enter")
        order, stamp, state = await seat.written()
        assert order == replace(MINE, action=Action.RESTART, message="no")
        assert isinstance(stamp, Delivery)
        assert (stamp.state, stamp.step) == (DeliveryState.DELIVERED, 4)
        reason = "begun again by ada: no"
        assert state == TaskTransition(lifecycle=Lifecycle.SUBMITTED, reason=reason)
        assert seat.app.told == [
            "fix#1: begun again: attempt 2 begins if run 1 is running, or with `midwatch resume "
            "--run 1`"
        ]


async def test_what_a_later_attempt_has_taken_over_is_not_begun_again(sit: Sit) -> None:
    async with sit(FAILED) as seat:
        whose = {"worker": "coder", "model": "m", "node": "n", "workspace": ""}
        await seat.journal.add_attempt(task=1, number=2, at=AT, **whose)
        await seat.write(message(5))
        await seat.press("G", "b")
        assert seat.app.told == ["fix#1: attempt 2 has taken over"]


def stamp(id: int, state: DeliveryState, comment: str = "") -> Delivery:
    return Delivery(intervention=id, state=state, step=4, author="ada", comment=comment)


async def test_approving_tells_what_was_approved(sit: Sit) -> None:
    async with sit(HELD) as seat:
        await seat.press("a")
        assert await seat.written() == [stamp(seat.before, DeliveryState.APPROVED)]
        assert seat.app.told == ["fix#1: approved: nudge: Look [b]up."]


async def test_rejecting_asks_for_a_comment_that_may_be_empty(sit: Sit) -> None:
    async with sit(HELD) as seat:
        for comment in ("", "no"):
            await seat.press("r", *comment, "enter")
            assert await seat.written() == [stamp(seat.before, DeliveryState.REJECTED, comment)]
            await seat.write(HELD)


async def test_modifying_issues_the_operators_words_instead(sit: Sit) -> None:
    async with sit(HELD) as seat:
        await seat.press("m", *"now", "enter")
        assert await seat.written() == [
            stamp(seat.before, DeliveryState.REJECTED, "in other words"),
            replace(MINE, message="Look [b]up.now", answers=(ALERT.key,)),
        ]


async def test_what_was_settled_while_the_dialog_stood_open_is_left_alone(sit: Sit) -> None:
    async with sit(HELD) as seat:
        held = seat.before
        await seat.press("m")
        await seat.write(stamp(held, DeliveryState.APPROVED), replace(HELD, message="Another."))
        await seat.press("enter")
        assert await seat.written() == []
        assert seat.app.told == ["fix#1: that decision has already been settled"]


async def test_alerts_are_acknowledged_and_silenced(sit: Sit) -> None:
    async with sit(ALERT) as seat:
        await seat.press("c", "s", "y")
        acts = (Action.ACKNOWLEDGE, Action.SILENCE)
        assert await seat.written() == [
            replace(MINE, action=action, answers=(ALERT.key,)) for action in acts
        ]


async def test_an_act_that_makes_no_sense_is_refused(sit: Sit) -> None:
    async with sit(DONE) as seat:
        await seat.press("x")
        assert seat.app.told == ["fix#1: it is over: completed; nothing reaches it any more"]
        assert await seat.written() == []
        assert not seat.app.screen.is_modal


async def test_it_is_told_when_it_was_delivered_and_what_came_of_it(sit: Sit) -> None:
    async with sit(ALERT) as seat:
        await seat.press("i", *"hi", "enter")
        id = seat.before + 1
        await seat.write(delivery(id, step=5))
        await seat.write(outcome(id, step=9))
        assert seat.app.told[1:] == [
            "fix#1: guidance delivered",
            "fix#1: recovered after guidance: it moves",
        ]


async def test_a_journal_that_refuses_is_told_and_nothing_breaks(sit: Sit) -> None:
    async with sit(deaf=True) as seat:
        assert seat.app.offers() == ()
        assert seat.app.why_not("pause") == "this journal is read-only here"
        await seat.press("p")
        (told,) = seat.app.told
        assert told.startswith("pause for fix#1 was not stored: ")
        assert await seat.written() == []


async def test_of_a_journal_that_may_only_be_read_no_key_that_acts_is_listed(sit: Sit) -> None:
    async with sit(deaf=True) as seat:
        await seat.press("question_mark")
        help_screen = seat.app.screen
        assert isinstance(help_screen, HelpScreen)
        listed = {id for _, _, id in help_screen.lines}
        await seat.press("escape", "5")
        hits = [hit async for hit in ConsoleCommands(seat.app.screen).discover()]
    acts = [*ACTS, *(key for key in LEARNED if key.id in MARKS)]
    assert not listed & {key.id for key in acts}
    assert {"fleet", "attempt.search", "learned.source", "list.open"} <= listed
    assert not {str(hit.text) for hit in hits} & {key.does for key in acts}


async def test_the_words_of_agents_are_shown_as_they_are(sit: Sit) -> None:
    async with sit(ALERT) as seat:
        await seat.press("i")
        assert seat.text(".quote Static") == "cycle: the same [red]three[/red] acts"


async def test_the_keys_of_a_filter_do_not_act(sit: Sit) -> None:
    async with sit() as seat:
        await seat.press("slash", *"pxb")
        assert await seat.written() == []
        assert seat.app.told == []


async def test_the_same_keys_act_in_the_attempt_view_and_the_attention_queue(sit: Sit) -> None:
    async with sit(PARKED) as seat:
        await seat.press("3", "i", *"80", "enter")
        await seat.first_screen()
        await seat.press("1", "enter", "i", *"81", "enter")
        assert await seat.written() == [replace(MINE, message=said) for said in ("80", "81")]


async def test_without_a_line_nothing_is_acted_on(sit: Sit) -> None:
    async with sit() as seat:
        await seat.press("2", "x")
        assert seat.app.told == ["no attempt is selected"]
        assert await seat.written() == []


async def test_a_request_is_approved_with_what_was_wanted(sit: Sit) -> None:
    async with sit(BUDGET) as seat:
        await seat.press("a")
        terms = Terms(grant=Grant(requests=20))
        assert await seat.written() == [replace(GRANT, terms=terms, petition=seat.before)]


async def test_a_revision_is_approved_with_what_was_proposed(sit: Sit) -> None:
    async with sit(REVISION) as seat:
        await seat.press("a", "y")
        approved = replace(MINE, action=Action.REPLAN, message="Approved.", plan=("x", "y"))
        assert await seat.written() == [replace(approved, petition=seat.before)]


async def test_a_request_is_refused_with_a_reason(sit: Sit) -> None:
    async with sit(BUDGET) as seat:
        for comment, heard in (("", "Refused."), ("no", "no")):
            await seat.press("r", *comment, "enter")
            assert await seat.written() == [replace(MINE, message=heard, petition=seat.before)]
            await seat.write(BUDGET)


async def test_a_request_that_was_answered_while_the_dialog_stood_open_is_left_alone(
    sit: Sit,
) -> None:
    async with sit(BUDGET) as seat:
        await seat.press("B")
        await seat.write(replace(MINE, by=Actor.POLICY, petition=seat.before))
        await seat.press("enter")
        assert await seat.written() == []


async def test_rejecting_the_answer_of_the_policy_tells_the_worker(sit: Sit) -> None:
    async with sit(BUDGET, GRANTED_BY_POLICY) as seat:
        held = seat.before
        await seat.press("r", *"no", "enter")
        written = await seat.written()
        assert written == [
            stamp(held, DeliveryState.REJECTED, "no"),
            replace(MINE, message="no", petition=GRANTED_BY_POLICY.petition),
        ]


async def test_budget_is_granted_in_other_amounts_with_a_message(sit: Sit) -> None:
    async with sit(BUDGET) as seat:
        await seat.press("B", *", 5 minutes", "ctrl+j", *"go", "enter")
        terms = Terms(grant=Grant(requests=20, minutes=5))
        assert await seat.written() == [
            replace(GRANT, message="go", terms=terms, petition=seat.before)
        ]


async def test_a_grant_that_is_not_readable_is_not_sent(sit: Sit) -> None:
    async with sit() as seat:
        await seat.press("B", *"lots", "enter")
        assert isinstance(seat.app.screen, TextDialog)
        assert seat.text(".hint").startswith("enter amounts of requests")
        await seat.press("escape")
        assert await seat.written() == []


async def test_the_model_is_switched_by_its_name(sit: Sit) -> None:
    async with sit() as seat:
        await seat.press("M", *"big", "enter")
        assert await seat.written() == [replace(SWITCH, terms=Terms(model="big"))]


async def test_a_permission_is_given_and_its_line_goes_on(sit: Sit) -> None:
    waits = transition(Lifecycle.INPUT_REQUIRED, reason="asks to run `make [b]`")
    async with sit(PERMISSION, waits) as seat:
        (line,) = seat.app.queue.calling
        assert (line.kind, line.what) == ("answer", "asks to run `make [b]`")
        await seat.press("p")
        (said,) = seat.app.told
        assert said.startswith("fix#1: it waits for permission to run `make [b]`: ")
        await seat.press("a", "y")
        approved = replace(MINE, action=Action.RESUME, message="Approved.")
        assert await seat.written() == [replace(approved, petition=seat.before - 1)]
        await seat.write(transition())
        assert list(seat.app.queue.calling) == []


async def test_who_asks_stands_in_the_attention_queue(sit: Sit) -> None:
    async with sit(BUDGET) as seat:
        (line,) = seat.app.queue.calling
        assert line.what == "asks for budget: 20 requests ([b]two[/b] files left)"
        await seat.press("3", "a")
        assert len(await seat.written()) == 1
