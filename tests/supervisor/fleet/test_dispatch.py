"""What is handed out and what is taken from lost nodes, as values; tickets and queues."""

import asyncio
import logging
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from midwatch_monitor.errors import JournalError, UsageError
from midwatch_monitor.records import NodeState, name_of
from midwatch_supervisor.fleet.process import JournalOutageLog, identity
from midwatch_supervisor.fleet.queue.dispatch import DueTasks, due, loss_line, rescue_line
from midwatch_supervisor.fleet.queue.queue import (
    QueuedTurn,
    TurnUnderWay,
    queue_for,
    queues_of,
    run_key,
    system_url,
)
from midwatch_tests.factories import AT, run
from midwatch_tests.nodes import node

RUN = run(7)


def turn_under_way(task: int, number: int = 1, holder: str = "") -> TurnUnderWay:
    return TurnUnderWay(ticket=QueuedTurn.of("night", RUN, task, number), holder=holder)


MINE = turn_under_way(1, holder="a:1")
OLDER, NEWER = turn_under_way(1, 3, "a:0"), turn_under_way(1, 4, "a:0")
QUEUED, STRANDED = turn_under_way(1), turn_under_way(2, holder="gone:1")
UP, DOWN = NodeState.UP, NodeState.DOWN
DUE: dict[str, tuple[list[int], list[TurnUnderWay], NodeState, Collection[int], dict[str, Any]]] = {
    "what nobody has begins": (
        [1, 2, 3],
        [turn_under_way(2), turn_under_way(3, holder="a:1")],
        UP,
        (),
        {"begin": (1,)},
    ),
    "what a lost node had is rescued": ([1], [MINE], NodeState.LOST, (), {"rescue": (MINE,)}),
    "and what one had that left": ([1], [MINE], DOWN, (), {"rescue": (MINE,)}),
    "what a node has that lives stays": ([1], [MINE], UP, (), {}),
    "or that leaves": ([1], [MINE], NodeState.DRAINING, (), {}),
    "an earlier start of a node is gone": ([1], [OLDER], UP, (), {"rescue": (OLDER,)}),
    "of two turns the later counts": (
        [1],
        [NEWER, OLDER],
        DOWN,
        (),
        {"rescue": (NEWER,), "drop": (OLDER,)},
    ),
    "of what is over nothing is left but what a node has": (
        [],
        [QUEUED, STRANDED, turn_under_way(3, holder="a:1")],
        UP,
        {1, 2, 3},
        {"drop": (STRANDED, QUEUED)},
    ),
}


@pytest.mark.parametrize(("ready", "turns", "state", "over", "found"), DUE.values(), ids=DUE)
def test_what_is_due(
    ready: list[int],
    turns: list[TurnUnderWay],
    state: NodeState,
    over: Collection[int],
    found: dict[str, Any],
) -> None:
    assert due(ready, turns, [node("a", state=state)], over={*over}) == DueTasks(**found)


def test_a_ticket_is_read_as_it_was_written() -> None:
    ticket = QueuedTurn.of("night.shift-2", RUN, 12, 3)
    assert str(ticket) == "night.shift-2:7-20261121T200000:12:3"
    assert QueuedTurn.read(str(ticket)) == ticket
    assert ticket.next == QueuedTurn.of("night.shift-2", RUN, 12, 4)
    assert ticket.run == run_key(RUN)


@pytest.mark.parametrize("text", ["", "night", "night:7:x:1", "a:7:1:1:1", "a:7:-1:1"])
def test_what_is_no_ticket_is_passed_over(text: str) -> None:
    assert QueuedTurn.read(text) is None


def test_a_node_takes_from_the_queue_of_every_set_of_its_labels() -> None:
    queues = ("night", "night/big", "night/gpu", "night/big+gpu")
    assert queues_of("night", ["gpu", "big"]) == queues
    assert queue_for("night", ("gpu", "big")) == "night/big+gpu"
    with pytest.raises(UsageError, match="6 labels at most, not 7"):
        queues_of("night", list("abcdefg"))


def test_the_hand_out_is_in_the_journals_database() -> None:
    location = "postgresql+psycopg://me:s%3Acret@db:5433/night?sslmode=require"
    assert system_url(location) == "postgresql://me:s%3Acret@db:5433/night?sslmode=require"


@pytest.mark.parametrize("location", ["journal.db", ":memory:", "sqlite:///x.db", "a://"])
def test_a_fleet_needs_postgresql(location: str) -> None:
    with pytest.raises(UsageError, match="a fleet needs a journal in PostgreSQL"):
        system_url(location)


def test_every_start_of_a_process_is_another_one() -> None:
    one, other = identity("node-a"), identity("node-a")
    assert (one.name, other.name) == ("node-a", "node-a")
    assert one.holder != other.holder
    assert name_of(one.holder) == "node-a"
    assert identity(None).name, "that of the machine"


@pytest.mark.parametrize("name", ["", "a b", "a:b", "-a", "a/b", "ä" * 3, "x" * 81])
def test_a_bad_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"a name may have letters \(a-z, A-Z\)"):
        identity(name)


def test_people_hear_why_a_node_is_given_up_and_which_tasks_it_left_behind() -> None:
    lost = node("a", state=NodeState.LOST)
    unheard = "node a is lost: no heartbeat came in time, last at 20:00:00 (UTC)"
    assert loss_line(lost) == unheard
    assert "its broker says that it is gone" in loss_line(replace(lost, doubted_at=AT))
    assert rescue_line("a", ["x", "y"]) == "other nodes take over the tasks of node a: x, y"
    assert rescue_line("a", list("abcdefghijkl")).endswith("i, j and 2 more")


def log_lines(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(each.levelno, each.getMessage()) for each in caplog.records]


async def test_an_outage_and_its_end_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    async def say(error: str = "") -> str:
        if error:
            raise JournalError(error)
        return "yes"

    caplog.set_level(logging.INFO)
    reach = JournalOutageLog("one", "the database")
    assert await reach.of(say()) == "yes"
    for error in ("refused", "refused again"):
        with pytest.raises(JournalError):
            await reach.of(say(error))
    assert reach.away
    for _ in range(2):
        await reach.of(say())
    assert not reach.away
    assert log_lines(caplog) == [
        (logging.WARNING, "one cannot reach the journal and will try again: refused"),
        (logging.INFO, "one reached the journal again after 0 s"),
    ]


async def test_an_answer_that_stays_away_is_an_outage_before_patience_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    reach = JournalOutageLog("one", "the database", slow_seconds=0.01)
    may_answer = asyncio.Event()

    def answer(record: logging.LogRecord) -> bool:
        del record
        may_answer.set()
        return True

    caplog.handler.addFilter(answer)
    assert await reach.of(may_answer.wait())
    caplog.handler.removeFilter(answer)
    first, last = log_lines(caplog)
    assert first[1].endswith("will try again: no answer from the database for 0.01 s")
    assert last[1].startswith("one reached the journal again after ")
