"""Keys on the chosen attempt become rows of the journal, and what comes of them is told."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from textual.command import CommandList
from textual.widgets import Static

from midwatch_monitor.config.tasks import TaskFile
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Action,
    Actor,
    Alert,
    AlertKey,
    AlertState,
    AttemptTransition,
    Delivery,
    DeliveryState,
    Intervention,
    Lifecycle,
    Outcome,
    OutcomeReport,
    Record,
    Severity,
    Step,
    StepKind,
)
from midwatch_stage.seat import Seat, seated
from midwatch_supervisor.present.assignment import assignments
from midwatch_supervisor.tui.widgets.dialogs import TextDialog

CYCLE = AlertKey(rule="cycle")
ALERT = Alert(
    key=CYCLE,
    severity=Severity.CRITICAL,
    state=AlertState.FIRING,
    value=3,
    summary="the same [red]three[/red] acts",
    since_step=1,
    step=4,
)
STEP = Step(number=4, kind=StepKind.MESSAGE)
WORKING = AttemptTransition(lifecycle=Lifecycle.WORKING)
PARKED = AttemptTransition(lifecycle=Lifecycle.INPUT_REQUIRED, reason="Which port?")
DONE = AttemptTransition(lifecycle=Lifecycle.COMPLETED, reason="every check passed")
HELD = Intervention(
    action=Action.NUDGE,
    by=Actor.POLICY,
    message="Look [b]up.",
    answers=(CYCLE,),
    needs_approval=True,
)
MINE = Intervention(action=Action.NUDGE, by=Actor.OPERATOR, author="ada")

Sit = Callable[..., AbstractAsyncContextManager[Seat[Journal]]]


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
    ) -> AsyncGenerator[Seat[Journal]]:
        file = tmp_path / "journal.db"
        async with (
            await Journal.open(file) as journal,
            await Journal.open_to_read(file) as closed,
            seated(
                journal,
                *(WORKING, STEP, *records),
                spec=spec(attempts),
                desk=closed if deaf else None,
            ) as operator,
        ):
            yield operator

    return seat


async def test_guidance_is_about_the_firing_alerts(sit: Sit) -> None:
    async with sit(ALERT) as seat:
        await seat.press("i", *"hi", "ctrl+j", "x", "enter")
        assert await seat.written() == [replace(MINE, message="hi\nx", answers=(CYCLE,))]
        assert seat.app.told == ["fix#1: guidance sent; the worker reads it at its next request"]


async def test_empty_guidance_is_not_sent_and_escape_gives_it_up(sit: Sit) -> None:
    async with sit() as seat:
        await seat.press("i", "enter")
        assert isinstance(seat.app.screen, TextDialog)
        await seat.press(*"hi", "escape")
        assert await seat.written() == []


@pytest.mark.parametrize(
    ("state", "issued"),
    [
        (WORKING, replace(MINE, action=Action.PAUSE)),
        (PARKED, replace(MINE, action=Action.RESUME, message="Go on.")),
        (replace(MINE, action=Action.PAUSE), replace(MINE, action=Action.RESUME, message="Go on.")),
    ],
)
async def test_one_key_pauses_and_lets_go_on(sit: Sit, state: Record, issued: Intervention) -> None:
    async with sit(state) as seat:
        await seat.press("p")
        assert await seat.written() == [issued]


@pytest.mark.parametrize(
    ("answer", "written"),
    [
        ("y", [replace(MINE, action=Action.STOP)]),
        ("n", []),
        ("escape", []),
        ("enter", []),
    ],
)
async def test_a_stop_is_issued_only_when_it_was_agreed_to(
    sit: Sit, answer: str, written: list[Record]
) -> None:
    async with sit() as seat:
        await seat.press("x", answer)
        assert await seat.written() == written


async def test_a_restart_carries_its_note(sit: Sit) -> None:
    async with sit(ALERT) as seat:
        await seat.press("b", *"no", "enter")
        assert await seat.written() == [
            replace(MINE, action=Action.RESTART, message="no", answers=(CYCLE,))
        ]


async def test_the_last_attempt_is_not_restarted(sit: Sit) -> None:
    async with sit(attempts=1) as seat:
        await seat.press("b")
        assert seat.app.told == ["fix#1: attempt 1 is the last that the task may have"]
        assert await seat.written() == []


def stamp(id: int, state: DeliveryState, comment: str = "") -> Delivery:
    return Delivery(intervention=id, state=state, step=4, author="ada", comment=comment)


async def test_approving_tells_what_was_approved(sit: Sit) -> None:
    async with sit(HELD) as seat:
        await seat.press("a")
        assert await seat.written() == [stamp(seat.before, DeliveryState.APPROVED)]
        assert seat.app.told == ["fix#1: approved: nudge: Look [b]up."]


async def test_the_decision_that_waits_longest_is_settled_first(sit: Sit) -> None:
    async with sit(HELD, HELD) as seat:
        await seat.press("a")
        await seat.until(lambda: seat.app.read > seat.before)
        await seat.press("a")
        ids = [each.intervention for each in await seat.written() if isinstance(each, Delivery)]
        assert ids == [seat.before - 1, seat.before]


@pytest.mark.parametrize("comment", ["", "no"])
async def test_rejecting_asks_for_a_comment_that_may_be_empty(sit: Sit, comment: str) -> None:
    async with sit(HELD) as seat:
        await seat.press("r", *comment, "enter")
        assert await seat.written() == [stamp(seat.before, DeliveryState.REJECTED, comment)]


async def test_modifying_issues_the_operators_words_instead(sit: Sit) -> None:
    async with sit(HELD) as seat:
        await seat.press("m", *"now", "enter")
        assert await seat.written() == [
            stamp(seat.before, DeliveryState.REJECTED, "in other words"),
            replace(MINE, message="Look [b]up.now", answers=(CYCLE,)),
        ]


async def test_what_was_settled_while_the_dialog_stood_open_is_left_alone(sit: Sit) -> None:
    async with sit(HELD) as seat:
        held = seat.before
        await seat.press("m")
        await seat.write(stamp(held, DeliveryState.APPROVED), replace(HELD, message="Another."))
        await seat.press("enter")
        assert await seat.written() == []
        assert seat.app.told == ["fix#1: that decision was settled meanwhile"]


@pytest.mark.parametrize(("key", "action"), [("c", Action.ACKNOWLEDGE), ("s", Action.SILENCE)])
async def test_alerts_are_acknowledged_and_silenced(sit: Sit, key: str, action: Action) -> None:
    async with sit(ALERT) as seat:
        await seat.press(key)
        assert await seat.written() == [replace(MINE, action=action, answers=(CYCLE,))]


@pytest.mark.parametrize(
    ("key", "state", "said"),
    [
        ("a", WORKING, "no decision waits for approval"),
        ("m", WORKING, "no decision waits for approval"),
        ("r", WORKING, "no decision waits for approval"),
        ("c", WORKING, "no alert fires"),
        ("s", WORKING, "no alert fires"),
        ("A", WORKING, "there is no result yet: working"),
        ("R", PARKED, "there is no result yet: waits for you"),
        ("i", DONE, "it is over: completed; nothing reaches it any more"),
        ("p", DONE, "it is over: completed; nothing reaches it any more"),
        ("x", DONE, "it is over: completed; nothing reaches it any more"),
        ("b", DONE, "it is over: completed; nothing reaches it any more"),
    ],
)
async def test_an_act_that_makes_no_sense_is_refused(
    sit: Sit, key: str, state: Record, said: str
) -> None:
    async with sit(state) as seat:
        await seat.press(key)
        assert seat.app.told == [f"fix#1: {said}"]
        assert await seat.written() == []
        assert not seat.app.screen.is_modal


async def test_it_is_told_when_it_was_delivered_and_what_came_of_it(sit: Sit) -> None:
    async with sit(ALERT) as seat:
        await seat.press("i", *"hi", "enter")
        id = seat.before + 1
        await seat.write(Delivery(intervention=id, state=DeliveryState.DELIVERED, step=5))
        await seat.write(
            OutcomeReport(intervention=id, outcome=Outcome.RECOVERED, step=9, reason="it moved")
        )
        assert seat.app.told[1:] == [
            "fix#1: guidance delivered",
            "fix#1: recovered after guidance: it moved",
        ]


async def test_a_journal_that_refuses_is_told_and_nothing_breaks(sit: Sit) -> None:
    async with sit(deaf=True) as seat:
        await seat.press("p")
        (told,) = seat.app.told
        assert told.startswith("pause for fix#1 was not stored: ")
        assert await seat.written() == []


async def test_the_words_of_agents_are_shown_as_they_are(sit: Sit) -> None:
    async with sit(ALERT) as seat:
        await seat.press("i")
        quote = seat.app.screen.query_one(".quote Static", Static)
        assert str(quote.content) == "cycle: the same [red]three[/red] acts"


async def test_the_palette_does_what_a_key_does(sit: Sit) -> None:
    async with sit() as seat:
        await seat.press("ctrl+p", *"pause the")
        await seat.until(lambda: bool(seat.app.screen.query(CommandList).first().option_count))
        await seat.press("enter")
        await seat.until(lambda: bool(seat.app.told))
        assert await seat.written() == [replace(MINE, action=Action.PAUSE)]


async def test_the_keys_of_a_filter_do_not_act(sit: Sit) -> None:
    async with sit() as seat:
        await seat.press("slash", *"pxb")
        assert await seat.written() == []
        assert seat.app.told == []


@pytest.mark.parametrize("way", [("enter",), ("3",)])
async def test_the_same_keys_act_in_the_attempt_view_and_the_attention_queue(
    sit: Sit, way: tuple[str, ...]
) -> None:
    async with sit(PARKED) as seat:
        await seat.press(*way, "i", *"80", "enter")
        assert await seat.written() == [replace(MINE, message="80")]


async def test_without_a_line_nothing_is_acted_on(sit: Sit) -> None:
    async with sit() as seat:
        await seat.press("2", "x")
        assert seat.app.told == ["no attempt is chosen"]
        assert await seat.written() == []
