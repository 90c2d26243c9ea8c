"""Keys on the chosen attempt become rows of the journal, and what comes of them is told."""

from collections.abc import AsyncGenerator, Callable, Sequence
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
from midwatch_supervisor.present.assignment import assignments
from midwatch_supervisor.tui.command_palette import ConsoleCommands
from midwatch_supervisor.tui.keys import ACTS, LEARNED, MARKS
from midwatch_supervisor.tui.widgets.dialogs import HelpScreen, TextDialog
from midwatch_tests.console import ConsoleDriver, console_of
from midwatch_tests.factories import AT, alert, delivery, intervention, message, outcome, transition

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
ABOUT = replace(MINE, answers=(ALERT.key,))
GRANTED_BY_POLICY = replace(
    GRANT, by=Actor.POLICY, terms=Terms(grant=Grant(requests=5)), petition=5, needs_approval=True
)
WANTED = replace(GRANT, terms=Terms(grant=Grant(requests=20)), petition=5)
REPLAN = replace(MINE, action=Action.REPLAN, message="Approved.", plan=("x", "y"), petition=5)


def own_delivery(state: DeliveryState, comment: str = "", *, id: int = 5) -> Delivery:
    return Delivery(intervention=id, state=state, step=4, author="ada", comment=comment)


APPROVED, REJECTED = own_delivery(DeliveryState.APPROVED), own_delivery(DeliveryState.REJECTED)

OpenConsole = Callable[..., AbstractAsyncContextManager[ConsoleDriver[Journal]]]


def spec() -> str:
    """The specification of a task that may have one attempt."""
    tasks = [{"id": "fix", "goal": "Fix it.", "acceptance": ["true"], "max_attempts": 1}]
    file = TaskFile.model_validate({"workers": {"coder": {}}, "tasks": tasks})
    return assignments(file, Path.cwd())[0].model_dump_json()


@pytest.fixture
def open_console(tmp_path: Path) -> OpenConsole:
    """Opens the console on a journal that holds `records` of one attempt, with ids from 5."""

    @asynccontextmanager
    async def ui(*records: Record, deaf: bool = False) -> AsyncGenerator[ConsoleDriver[Journal]]:
        file = tmp_path / "journal.db"
        async with (
            await Journal.open(file) as journal,
            await Journal.open_to_read(file) as closed,
            console_of(
                journal, WORKING, message(4), *records, spec=spec(), target=closed if deaf else None
            ) as operator,
        ):
            yield operator

    return ui


async def end_task(ui: ConsoleDriver[Journal]) -> None:
    """Let the task `fix` be over, as its run would."""
    state = TaskTransition(lifecycle=Lifecycle.FAILED)
    task = ui.attempt.task
    (entry,) = await ui.journal.commit(Commit(drafts=(Draft(record=state, at=AT, task=task),)))
    ui.before = entry.id
    ui.bus.publish(Hint(entry=entry.id, kind="task_state", task=task))
    await ui.until(lambda: ui.app.read >= ui.before)


OTHER_WORDS = [
    replace(REJECTED, comment="in other words"),
    replace(ABOUT, message="Look [b]up.now"),
]
REFUSED = replace(MINE, message="Refused.", petition=5)
LESS = replace(WANTED, message="go", terms=Terms(grant=Grant(requests=20, minutes=5)))
BIG = replace(MINE, action=Action.SWITCH_MODEL, terms=Terms(model="big"))
PERMITTED = replace(MINE, action=Action.RESUME, message="Approved.", petition=5)
AGAIN = replace(ABOUT, action=Action.RESTART, message="no")
ACTS_BY_KEYS: dict[str, tuple[tuple[Record, ...], str, Sequence[Record]]] = {
    "resume": ((PARKED,), "p", [replace(MINE, action=Action.RESUME, message="Go on.")]),
    "permit": ((PERMISSION, PARKED), "a y", [PERMITTED]),
    "guidance": ((ALERT,), "i h i ctrl+j x enter", [replace(ABOUT, message="hi\nx")]),
    "no empty guidance": ((), "i enter h i enter", [replace(MINE, message="hi")]),
    "a stop": ((), "x y", [replace(MINE, action=Action.STOP)]),
    "a restart above the number of attempts": ((ALERT,), "b n o enter", [AGAIN]),
    "approve a decision": ((HELD,), "a", [APPROVED]),
    "reject it without a comment": ((HELD,), "r enter", [REJECTED]),
    "reject it with one": ((HELD,), "r n o enter", [replace(REJECTED, comment="no")]),
    "modify it": ((HELD,), "m n o w enter", OTHER_WORDS),
    "acknowledge": ((ALERT,), "c", [replace(ABOUT, action=Action.ACKNOWLEDGE)]),
    "silence": ((ALERT,), "s y", [replace(ABOUT, action=Action.SILENCE)]),
    "approve a request": ((BUDGET,), "a", [WANTED]),
    "approve it in the queue": ((BUDGET,), "3 a", [WANTED]),
    "approve a revision": ((REVISION,), "a y", [REPLAN]),
    "refuse without a reason": ((BUDGET,), "r enter", [REFUSED]),
    "refuse with one": ((BUDGET,), "r n o enter", [replace(REFUSED, message="no")]),
    "reject the policy's answer": (
        (BUDGET, GRANTED_BY_POLICY),
        "r n o enter",
        [own_delivery(DeliveryState.REJECTED, "no", id=6), replace(REFUSED, message="no")],
    ),
    "grant another amount": ((BUDGET,), "B , 5 space m i n u t e s ctrl+j g o enter", [LESS]),
    "switch the model": ((), "M b i g enter", [BIG]),
}


@pytest.mark.parametrize(("records", "keys", "written"), ACTS_BY_KEYS.values(), ids=ACTS_BY_KEYS)
async def test_keys_become_records(
    open_console: OpenConsole, records: Sequence[Record], keys: str, written: Sequence[Record]
) -> None:
    async with open_console(*records) as ui:
        await ui.press(*keys.split())
        assert await ui.written() == written


@pytest.mark.parametrize(
    ("record", "keys", "told"),
    [
        (WORKING, "i h i escape", []),
        (WORKING, "x escape x enter escape", []),
        (WORKING, "slash p x b", []),
        (WORKING, "2 x", ["no attempt is selected"]),
        (DONE, "x", ["fix#1: it is over: completed; nothing reaches it any more"]),
    ],
    ids=["given up", "not agreed to", "letters of a filter", "no line", "over"],
)
async def test_nothing_is_acted_on(
    open_console: OpenConsole, record: Record, keys: str, told: list[str]
) -> None:
    async with open_console(record) as ui:
        await ui.press(*keys.split())
        assert await ui.written() == []
        assert ui.app.told == told
        assert not ui.app.screen.is_modal


async def test_a_task_that_is_over_is_begun_again_with_a_note(open_console: OpenConsole) -> None:
    async with open_console(FAILED) as ui:
        await end_task(ui)
        await ui.press("b", *"no", "enter")
        order, stamp, state = await ui.written()
        assert order == replace(MINE, action=Action.RESTART, message="no")
        assert isinstance(stamp, Delivery)
        assert (stamp.state, stamp.step) == (DeliveryState.DELIVERED, 4)
        reason = "begun again by ada: no"
        assert state == TaskTransition(lifecycle=Lifecycle.SUBMITTED, reason=reason)
        assert ui.app.told == [
            "fix#1: begun again: attempt 2 begins if run 1 is running, or with `midwatch resume "
            "--run 1`"
        ]


async def test_what_a_later_attempt_has_taken_over_is_not_begun_again(
    open_console: OpenConsole,
) -> None:
    async with open_console(FAILED) as ui:
        whose = {"worker": "coder", "model": "m", "node": "n", "workspace": ""}
        await ui.journal.add_attempt(task=1, number=2, at=AT, **whose)
        await ui.write(message(5))
        await ui.press("G", "b")
        assert ui.app.told == ["fix#1: attempt 2 has taken over"]


DECIDED = APPROVED, replace(HELD, message="Another.")
ANSWERED = replace(MINE, by=Actor.POLICY, petition=5)


@pytest.mark.parametrize(
    ("asks", "key", "meanwhile", "told"),
    [
        (HELD, "m", DECIDED, "that decision has already been settled"),
        (BUDGET, "B", (ANSWERED,), "its request has already been answered"),
    ],
    ids=["a decision", "a request"],
)
async def test_what_was_settled_while_the_dialog_stood_open_is_left_alone(
    open_console: OpenConsole, asks: Record, key: str, meanwhile: Sequence[Record], told: str
) -> None:
    async with open_console(asks) as ui:
        await ui.press(key)
        await ui.write(*meanwhile)
        await ui.press("enter")
        assert await ui.written() == []
        assert ui.app.told == [f"fix#1: {told}"]


async def test_it_is_told_when_it_was_delivered_and_what_came_of_it(
    open_console: OpenConsole,
) -> None:
    async with open_console(ALERT) as ui:
        await ui.press("i", *"hi", "enter")
        id = ui.before + 1
        await ui.write(delivery(id, step=5))
        await ui.write(outcome(id, step=9))
        assert ui.app.told == [
            "fix#1: guidance sent; the worker reads it at its next request",
            "fix#1: guidance delivered",
            "fix#1: recovered after guidance: it moves",
        ]


async def test_a_journal_that_may_only_be_read_refuses_and_lists_no_key_that_acts(
    open_console: OpenConsole,
) -> None:
    async with open_console(deaf=True) as ui:
        assert ui.app.offers() == ()
        assert ui.app.why_not("pause") == "this journal is read-only here"
        await ui.press("p")
        (told,) = ui.app.told
        assert told.startswith("pause for fix#1 was not stored: ")
        assert await ui.written() == []
        await ui.press("question_mark")
        help_screen = ui.app.screen
        assert isinstance(help_screen, HelpScreen)
        listed = {id for _, _, id in help_screen.lines}
        await ui.press("escape", "5")
        hits = [hit async for hit in ConsoleCommands(ui.app.screen).discover()]
    acts = [*ACTS, *(key for key in LEARNED if key.id in MARKS)]
    assert not listed & {key.id for key in acts}
    assert {"fleet", "attempt.search", "learned.source", "list.open"} <= listed
    assert not {str(hit.text) for hit in hits} & {key.does for key in acts}


async def test_the_words_of_agents_are_shown_as_they_are(open_console: OpenConsole) -> None:
    async with open_console(ALERT, HELD) as ui:
        await ui.press("i")
        assert ui.text(".quote Static") == "cycle: the same [red]three[/red] acts"
        await ui.press("escape", "a")
        assert ui.app.told == ["fix#1: approved: nudge: Look [b]up."]


async def test_a_grant_that_is_not_readable_is_not_sent(open_console: OpenConsole) -> None:
    async with open_console() as ui:
        await ui.press("B", *"lots", "enter")
        assert isinstance(ui.app.screen, TextDialog)
        assert ui.text(".hint").startswith("enter amounts of requests")
        await ui.press("escape")
        assert await ui.written() == []
