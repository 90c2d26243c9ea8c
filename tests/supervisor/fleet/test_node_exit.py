"""What a node says while it leaves, whatever becomes of what it has in hand."""

import json

import pytest

from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Attempt, Commit, Lifecycle
from midwatch_supervisor.cli.fleet.node_exit import NodeExitReport
from midwatch_supervisor.fleet.nodes.turn import TurnEnded, TurnOutcome
from midwatch_tests.factories import draft, task_transition

Capture = pytest.CaptureFixture[str]


def report_of(journal: Journal, *, as_json: bool = False) -> NodeExitReport:
    settings = FleetSettings(drain_seconds=90)
    return NodeExitReport(journal, name="one", settings=settings, json=as_json)


async def printed_lines(
    journal: Journal, capsys: Capture, *ended: TurnOutcome | None, begin: int = 1
) -> list[str]:
    """What a node says that leaves with a task in hand, if anything becomes of it."""
    report = report_of(journal)
    for _ in range(begin):
        report.begin(frozenset({1} if ended else ()))
    for outcome in ended:
        report.turn_ended(TurnEnded(task=1, outcome=outcome))
    await report.end()
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("outcome", "said", "sum"),
    [
        (TurnOutcome.WAITS, "fix#1 is waiting for a person or for other tasks", "1 ended"),
        (TurnOutcome.TAKEN, "fix#1 was taken over by another process", "1 ended"),
        (TurnOutcome.FAILED, "fix#1 could not proceed, and is offered again", "1 ended"),
        (None, "fix#1 is given back: other nodes take it over", "1 given back"),
    ],
)
@pytest.mark.usefixtures("attempt")
async def test_it_says_what_it_waits_for_and_what_came_of_it(
    journal: Journal, capsys: Capture, outcome: TurnOutcome | None, said: str, sum: str
) -> None:
    assert await printed_lines(journal, capsys, outcome) == [
        "Node one takes no more turns. It waits up to 90 s for 1 task: fix#1",
        "A second SIGTERM or Ctrl-C gives them back at once: other nodes take them over",
        said,
        f"Node one has left: {sum}",
    ]


async def test_the_end_of_a_task_is_told_by_the_journal(
    journal: Journal, attempt: Attempt, capsys: Capture
) -> None:
    report = report_of(journal, as_json=True)
    report.begin(frozenset({1}))
    over = draft(task_transition(Lifecycle.COMPLETED), attempt=None)
    await journal.commit(Commit(drafts=(over,)))
    report.turn_ended(TurnEnded(task=1, outcome=TurnOutcome.OVER))
    await report.end()
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    held = {"run": 1, "task": "fix", "attempt": attempt.number}
    node = {"type": "node", "name": "one"}
    assert all(each.pop("at") for each in said)
    assert said == [
        {**node, "state": "draining", "at_once": False, "seconds": 90.0, "tasks": [held]},
        {"type": "turn", **held, "outcome": "over", "lifecycle": "completed"},
        {**node, "state": "down", "ended": 1, "given_back": 0},
    ]


@pytest.mark.usefixtures("attempt")
async def test_told_twice_it_says_that_it_gives_back_at_once(
    journal: Journal, capsys: Capture
) -> None:
    said = await printed_lines(journal, capsys, None, begin=2)
    assert "Node one gives back all its tasks at once" in said


async def test_with_nothing_in_hand_it_says_so(journal: Journal, capsys: Capture) -> None:
    assert await printed_lines(journal, capsys) == [
        "Node one takes no more turns, and none is running",
        "Node one has left",
    ]


@pytest.mark.usefixtures("attempt")
async def test_a_journal_that_does_not_answer_holds_nothing_up(
    journal: Journal, capsys: Capture
) -> None:
    await journal.close()
    said = await printed_lines(journal, capsys, TurnOutcome.OVER)
    assert said[2:] == ["task number 1 is over", "Node one has left: 1 ended"]
