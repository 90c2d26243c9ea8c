"""What a node says while it leaves, whatever becomes of what it has in hand."""

import asyncio
import json
from collections.abc import AsyncGenerator
from datetime import datetime

import pytest

from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Attempt, Commit, Draft, Lifecycle, TaskTransition
from midwatch_supervisor.cli.fleet.node_exit import NodeExitReport
from midwatch_supervisor.fleet.nodes.turn import Outcome
from midwatch_supervisor.fleet.nodes.turn_pool import TurnsInHand

Capture = pytest.CaptureFixture[str]


class Desk:
    """A node's hands, of which a test says what their turns come to."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.in_hand = TurnsInHand()
        self.turns: dict[int, asyncio.Task[Outcome]] = {}
        self._outcomes: dict[int, asyncio.Future[Outcome]] = {}
        self._take = self.in_hand.around(self._come)

    async def _come(self, task: int) -> Outcome:
        return await self._outcomes[task]

    async def begin(self, task: int) -> None:
        """Have a turn in hand."""
        self._outcomes[task] = asyncio.get_running_loop().create_future()
        self.turns[task] = asyncio.ensure_future(self._take(task))
        await asyncio.sleep(0)

    async def end(self, task: int, outcome: Outcome | None) -> None:
        """Let a turn come to something, or give it back."""
        if outcome is None:
            self.turns[task].cancel()
        else:
            self._outcomes[task].set_result(outcome)
        await asyncio.wait({self.turns[task]})

    def report(self, *, as_json: bool = False) -> NodeExitReport:
        settings = FleetSettings(drain_seconds=90)
        return NodeExitReport(
            self.journal, self.in_hand, name="one", settings=settings, json=as_json
        )


@pytest.fixture
async def desk(journal: Journal) -> AsyncGenerator[Desk]:
    made = Desk(journal)
    yield made
    for turn in made.turns.values():
        turn.cancel()
        await asyncio.wait({turn})


@pytest.mark.parametrize(
    ("outcome", "said", "sum"),
    [
        (Outcome.WAITS, "fix#1 waits, for a person or for other tasks", "1 ended"),
        (Outcome.TAKEN, "fix#1 is in other hands", "1 ended"),
        (Outcome.FAILED, "fix#1 did not get on, and is offered again", "1 ended"),
        (None, "fix#1 is given back: others go on with it", "1 given back"),
    ],
)
@pytest.mark.usefixtures("attempt")
async def test_it_says_what_it_waits_for_and_what_came_of_it(
    desk: Desk, capsys: Capture, outcome: Outcome | None, said: str, sum: str
) -> None:
    await desk.begin(1)
    report = desk.report()
    report.begin()
    await desk.end(1, outcome)
    await report.end()
    assert capsys.readouterr().out.splitlines() == [
        "Node one takes nothing more. It waits for 1 task, 90 s at most: fix#1",
        "A second SIGTERM or Ctrl-C gives them back at once: others go on with them",
        said,
        f"Node one has left: {sum}",
    ]


async def test_the_end_of_a_task_is_told_by_the_journal(
    desk: Desk, attempt: Attempt, at: datetime, capsys: Capture
) -> None:
    await desk.begin(1)
    report = desk.report(as_json=True)
    report.begin()
    state = TaskTransition(lifecycle=Lifecycle.COMPLETED)
    await desk.journal.commit(Commit(drafts=(Draft(record=state, at=at, task=attempt.task),)))
    await desk.end(1, Outcome.OVER)
    await report.end()
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    held = {"run": 1, "task": "fix", "attempt": 1}
    times = [each.pop("at") for each in said]
    assert len(times) == 3
    assert said == [
        {
            "type": "node",
            "name": "one",
            "state": "draining",
            "at_once": False,
            "seconds": 90.0,
            "tasks": [held],
        },
        {"type": "turn", **held, "outcome": "over", "lifecycle": "completed"},
        {"type": "node", "name": "one", "state": "down", "ended": 1, "given_back": 0},
    ]


@pytest.mark.usefixtures("attempt")
async def test_told_twice_it_says_that_it_gives_back_at_once(desk: Desk, capsys: Capture) -> None:
    await desk.begin(1)
    report = desk.report()
    report.begin()
    report.begin()
    await desk.end(1, None)
    await report.end()
    assert "Node one gives back at once what it has" in capsys.readouterr().out.splitlines()


async def test_with_nothing_in_hand_it_says_so(desk: Desk, capsys: Capture) -> None:
    report = desk.report()
    report.begin()
    await report.end()
    assert capsys.readouterr().out.splitlines() == [
        "Node one takes nothing more, and has nothing in hand",
        "Node one has left",
    ]


@pytest.mark.usefixtures("attempt")
async def test_a_journal_that_does_not_answer_holds_nothing_up(desk: Desk, capsys: Capture) -> None:
    await desk.begin(1)
    await desk.journal.close()
    report = desk.report()
    report.begin()
    await desk.end(1, Outcome.OVER)
    await report.end()
    assert capsys.readouterr().out.splitlines()[2:] == [
        "task number 1 is over",
        "Node one has left: 1 ended",
    ]
