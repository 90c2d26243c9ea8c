"""The view of one attempt, as a person drives it, on a journal with every kind of record."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Static

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Acceptance,
    Action,
    Actor,
    Alert,
    AlertKey,
    AlertState,
    Attempt,
    AttemptTransition,
    Checkpoint,
    Commit,
    Delivery,
    DeliveryState,
    Draft,
    Edit,
    Escalation,
    EscalationState,
    Fault,
    Intervention,
    Lifecycle,
    Outcome,
    OutcomeReport,
    Plan,
    PlanStep,
    PlanStepState,
    Record,
    Severity,
    Step,
    StepKind,
)
from midwatch_stage.repository import worktree_with
from midwatch_supervisor.operator.actions import OperatorActions
from midwatch_supervisor.tui.app import Console
from midwatch_supervisor.tui.screens.attempt import AttemptScreen
from midwatch_supervisor.tui.state.feed import Feed
from midwatch_supervisor.tui.widgets.line_list import LineList
from midwatch_supervisor.tui.widgets.scrolling_text import Detail

AT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
KEY = AlertKey(rule="repeated_edits", subject="a.py")
CODE = "x = [b]1[/b] \x1b[31m\u202e"
WORKING = AttemptTransition(lifecycle=Lifecycle.WORKING)
PLAN = Plan(
    steps=(PlanStep(title="find it", state=PlanStepState.DONE), PlanStep(title="fix it")),
    revision=1,
)
CHECKPOINT = Checkpoint(progress_percent=40, confidence=30, blockers=("no key",))
ALERT = Alert(
    key=KEY,
    severity=Severity.WARNING,
    state=AlertState.FIRING,
    value=5,
    summary="five edits",
    evidence=(1, 3),
    since_step=1,
    step=3,
)
NUDGE = Intervention(
    action=Action.NUDGE, by=Actor.OPERATOR, author="eve", message="Read [i]it.", answers=(KEY,)
)


def write(number: int) -> Step:
    return Step(
        number=number,
        kind=StepKind.TOOL,
        tool="write_file",
        args='{"path": "a.py"}',
        output=f"{CODE} {number}",
        edits=(Edit(path="a.py"),),
        ok=True,
    )


def everything(nudge: int) -> Sequence[Record]:
    """Every kind of record; `nudge` is the id that the intervention among them will have."""
    return (
        WORKING,
        PLAN,
        write(1),
        Step(number=2, kind=StepKind.CHECKPOINT, checkpoint=CHECKPOINT),
        write(3),
        ALERT,
        Escalation(id=1, attempt=1, state=EscalationState.OPEN, alerts=(KEY,)),
        NUDGE,
        Delivery(intervention=nudge, state=DeliveryState.DELIVERED, step=3),
        write(4),
        replace(ALERT, state=AlertState.RESOLVED, step=4),
        OutcomeReport(intervention=nudge, outcome=Outcome.RECOVERED, step=4, reason="it moves"),
        Fault(part="cycle", error="boom"),
        Acceptance(check="make test", passed=False, detail="1 failed"),
    )


@dataclass
class Seat:
    """An operator before the console, with the attempt open."""

    journal: Journal
    attempt: Attempt
    app: Console
    pilot: Pilot[int]

    async def write(self, *records: Record) -> int:
        """Commit records of the attempt as its run would; the last id."""
        drafts = tuple(
            Draft(record=record, at=AT, task=self.attempt.task, attempt=self.attempt.id)
            for record in records
        )
        return (await self.journal.commit(Commit(drafts=drafts)))[-1].id

    async def until(self, happened: Callable[[], bool]) -> None:
        """Wait for the console; half a minute at most."""
        async with asyncio.timeout(30):
            while not happened():
                await self.pilot.pause()

    async def open(self) -> AttemptScreen:
        """Open the attempt's view and wait until it has read the journal."""
        await self.until(lambda: self.attempt.id in self.app.board.rows)
        self.app.open_attempt(self.app.board.rows[self.attempt.id])
        await self.until(lambda: isinstance(self.app.screen, AttemptScreen))
        screen = self.view
        last = (await self.journal.entries(limit=1000))[-1].id
        await self.until(lambda: screen.timeline.last_id >= last and not screen.reading)
        await self.pilot.pause()
        return screen

    @property
    def view(self) -> AttemptScreen:
        assert isinstance(self.app.screen, AttemptScreen)
        return self.app.screen

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    def lines(self, roll: str) -> list[str]:
        """What a list shows, line by line."""
        found = self.app.screen.query_one(f"#{roll}", LineList)
        return [found.render_line(y).text.rstrip() for y in range(found.count)]

    @property
    def cursor_line(self) -> str:
        return next(line for line in self.lines("timeline") if line.startswith(">"))

    @property
    def detail(self) -> str:
        return self.app.screen.query_one(Detail).text


Sit = Callable[..., AbstractAsyncContextManager[Seat]]


@pytest.fixture
def sit(tmp_path: Path) -> Sit:
    """Opens the console on a journal with one attempt, which holds everything unless told."""

    @asynccontextmanager
    async def seat(
        *,
        bare: bool = False,
        size: tuple[int, int] = (120, 40),
        workspace: str = "",
        spec: str = "{}",
    ) -> AsyncGenerator[Seat]:
        async with await Journal.open(tmp_path / "journal.db") as journal:
            run = await journal.add_run(source="tasks.yaml", settings="{}", at=AT)
            task = await journal.add_task(run=run.id, name="fix", title="Fix it", spec=spec, at=AT)
            whose = {"worker": "coder", "model": "m", "node": "n", "workspace": workspace}
            attempt = await journal.add_attempt(task=task.id, number=1, at=AT, **whose)
            bus = LocalBus()
            feed = Feed(journal, run=run.id, bus=bus, poll_seconds=0.1, hertz=50)
            app = Console(feed, OperatorActions(journal, author="ada", bus=bus), now=lambda: AT)
            async with app.run_test(size=size) as pilot:
                seated = Seat(journal, attempt, app, pilot)
                if not bare:
                    last = await journal.last_id()
                    await seated.write(*everything(last + 8))
                yield seated

    return seat


async def test_the_view_shows_everything_that_happened_the_newest_last(sit: Sit) -> None:
    async with sit() as seat:
        await seat.open()
        told = [line.split(maxsplit=4)[2:] for line in seat.lines("timeline")]
        assert [words[1] for words in told[1:]] == [
            *("status", "plan", "write_file", "checkpoint", "write_file", "alert", "escalation"),
            *("message", "delivered", "write_file", "alert", "outcome", "fault"),
            "check",
        ]
        assert seat.lines("timeline")[-1].startswith(">20:00:00    4   ✗ check        FAILED make")


async def test_the_header_says_where_the_attempt_stands(sit: Sit) -> None:
    async with sit() as seat:
        view = await seat.open()
        standing = str(view.query_one("#standing", Static).content)
        waiting = str(view.query_one("#waiting", Static).content)
        assert standing == (
            "fix#1  ▶ working  ● ok  step 4  plan 2/2  progress 40%  confidence 30%"
            "  coder with m on n  Fix it"
        )
        assert waiting == (
            "waits for a decision  idle 0s  used: 0 requests, 0 tokens, $0.00, 0 min"
        )


async def test_enter_shows_all_of_a_step_and_escape_closes_it_then_goes_back(sit: Sit) -> None:
    async with sit() as seat:
        view = await seat.open()
        await seat.press("g", "j", "j", "j", "enter")
        assert seat.detail.endswith("output:\nx = [b]1[/b]  1")
        await seat.press("escape")
        assert not view.query_one(Detail).open
        await seat.press("escape")
        assert not isinstance(seat.app.screen, AttemptScreen)


async def test_a_detail_can_be_scrolled_by_keys(sit: Sit) -> None:
    async with sit(bare=True, size=(80, 24)) as seat:
        await seat.write(WORKING, replace(write(1), output="\n".join("abcdefghijklmnop")))
        view = await seat.open()
        detail = view.query_one(Detail)
        await seat.press("enter", "tab", "G")
        await seat.until(lambda: detail.scroll_y > 0)
        await seat.press("g")
        await seat.until(lambda: detail.scroll_y == 0)


async def test_enter_on_an_alert_jumps_to_its_evidence_and_e_goes_round(sit: Sit) -> None:
    async with sit() as seat:
        view = await seat.open()
        await seat.press("f3", "g", "enter")
        assert view.side == "timeline"
        assert "3 ◀ · write_file" in seat.cursor_line
        await seat.press("e")
        assert "1 ◀ · write_file" in seat.cursor_line


async def test_an_alert_stands_once_as_it_is_now_with_its_changes_below_it(sit: Sit) -> None:
    async with sit() as seat:
        await seat.open()
        await seat.press("f3")
        assert [line.lstrip(">").split()[:5] for line in seat.lines("alerts")] == [
            ["▲", "resolved", "20:00:00", "4", "warning"],
            ["firing", "20:00:00", "3", "warning", "1,"],
            ["resolved", "20:00:00", "4", "warning", "1,"],
        ]


async def test_messages_tell_by_whom_when_they_arrived_and_what_came_of_it(sit: Sit) -> None:
    async with sit(size=(200, 60)) as seat:
        await seat.open()
        await seat.press("f7")
        (line,) = seat.lines("messages")
        assert " ".join(line.split()) == (
            ">20:00:00 3 nudge eve (operator) » 20:00:00 step 3 ✓ recovered: it moves Read [i]it."
        )


async def test_the_plan_and_the_checks_show_their_states(sit: Sit) -> None:
    async with sit() as seat:
        await seat.open()
        await seat.press("f5")
        assert seat.lines("plan") == [">  1 ✓ done    find it", "   2 ▶ now     fix it"]
        await seat.press("f8", "space")
        assert seat.detail == "check:\nmake test\n\nresult:\nFAILED\n\ndetail:\n1 failed"


async def test_the_keys_turn_through_all_sides(sit: Sit) -> None:
    async with sit(size=(80, 24)) as seat:
        view = await seat.open()
        seen = [view.side]
        for _ in range(7):
            await seat.press("l")
            seen.append(view.side)
        await seat.press("h")
        assert seen == [
            *("timeline", "alerts", "chart", "plan", "diff", "messages", "checks", "timeline")
        ]
        assert view.side == "checks"


async def test_what_is_added_appears_and_the_cursor_follows_the_end(sit: Sit) -> None:
    async with sit() as seat:
        view = await seat.open()
        await seat.write(write(5))
        await seat.until(lambda: view.timeline.state.last_step == 5)
        assert seat.lines("timeline")[-1].startswith(">20:00:00    5")


async def test_the_cursor_stays_on_its_line_when_more_is_added(sit: Sit) -> None:
    async with sit() as seat:
        view = await seat.open()
        await seat.press("g", "j")
        await seat.write(write(5))
        await seat.until(lambda: view.timeline.state.last_step == 5)
        assert seat.lines("timeline")[1].startswith(">")


async def test_what_comes_while_another_screen_is_in_front_is_not_missed(sit: Sit) -> None:
    async with sit() as seat:
        view = await seat.open()
        await seat.app.push_screen(Screen[None]())
        await seat.write(write(5), write(6))
        await seat.until(lambda: view.timeline.state.last_step == 6)
        await seat.app.pop_screen()
        assert seat.lines("timeline")[-1].startswith(">20:00:00    6")


async def test_the_keys_act_on_the_attempt_that_is_seen(sit: Sit) -> None:
    async with sit() as seat:
        view = await seat.open()
        assert view.chosen is seat.app.board.rows[seat.attempt.id]
        assert seat.app.target is view.chosen


async def test_a_task_that_has_not_begun_opens_nothing(sit: Sit) -> None:
    async with sit(bare=True) as seat:
        run = (await seat.journal.runs())[0].id
        task = await seat.journal.add_task(run=run, name="later", title="", spec="{}", at=AT)
        await seat.until(lambda: task.id in seat.app.board.queued)
        seat.app.open_attempt(seat.app.board.queued[task.id])
        await seat.pilot.pause()
        assert not isinstance(seat.app.screen, AttemptScreen)


async def test_the_diff_of_the_worktree_is_shown_by_sign(sit: Sit, tmp_path: Path) -> None:
    folder, spec = await worktree_with(tmp_path, "a.py", "x = 1\n")
    (folder / "a.py").write_text("x = 2  # [b]\n")
    async with sit(workspace=str(folder), spec=spec) as seat:
        await seat.open()
        await seat.press("f6")
        await seat.until(lambda: bool(seat.lines("diff")))
        assert seat.lines("diff")[-2:] == [" -x = 1", " +x = 2  # [b]"]


@pytest.mark.parametrize(
    ("workspace", "said"),
    [
        ("", "The attempt has no workspace."),
        ("/nowhere/at/all", "There is no git worktree here: /nowhere/at/all"),
    ],
)
async def test_where_there_is_no_diff_the_view_says_why(
    sit: Sit, workspace: str, said: str
) -> None:
    async with sit(workspace=workspace) as seat:
        view = await seat.open()
        await seat.press("f6")
        empty = view.query_one("#diff-pane > .nothing", Static)
        await seat.until(lambda: str(empty.content) == said)


async def test_an_attempt_without_anything_says_so_on_every_side(sit: Sit) -> None:
    async with sit(bare=True) as seat:
        view = await seat.open()
        for key in ("f3", "f4", "f5", "f7", "f8"):
            await seat.press(key)
            active = view.query_one(f"#{view.side}-tab")
            assert active.query_one(".empty").display


@pytest.mark.parametrize("size", [(20, 5), (40, 12), (80, 24), (200, 60)])
async def test_every_side_can_be_drawn_at_any_size(sit: Sit, size: tuple[int, int]) -> None:
    async with sit(size=size) as seat:
        await seat.open()
        for key in ("f2", "f3", "f4", "f5", "f6", "f7", "f8", "space", "T"):
            await seat.press(key)
        assert seat.app.export_screenshot()


async def test_what_agents_wrote_does_nothing_on_the_screen(sit: Sit) -> None:
    async with sit() as seat:
        await seat.open()
        await seat.press("enter", "g", "j", "j", "j")
        drawn = seat.app.export_screenshot()
        assert "[b]1[/b]" in seat.detail
        assert not {"\x1b", "\u202e"} & set(drawn)
