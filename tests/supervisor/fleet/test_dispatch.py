"""What is handed out and what is taken from lost nodes, as values; tickets and queues."""

import asyncio
import logging
from dataclasses import replace

import pytest

from midwatch_monitor.errors import JournalError, UsageError
from midwatch_monitor.records import NodeState, NodeStatus, Run, name_of
from midwatch_stage.factories import AT
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

RUN = Run(id=7, started_at=AT, source="tasks.yaml", settings="{}")


def handed(task: int, number: int = 1, holder: str = "") -> TurnUnderWay:
    return TurnUnderWay(ticket=QueuedTurn.of("night", RUN, task, number), holder=holder)


def node(name: str, state: NodeState = NodeState.UP) -> NodeStatus:
    return NodeStatus(
        name=name,
        boot="1",
        state=state,
        slots=2,
        busy=0,
        labels=(),
        version="1",
        revision="0003",
        started_at=AT,
        beat_at=AT,
    )


def test_a_task_that_can_go_on_is_handed_out_unless_it_is_already() -> None:
    assert due([1, 2, 3], [handed(2), handed(3, holder="a:1")], [node("a")]) == DueTasks(begin=(1,))


@pytest.mark.parametrize("state", [NodeState.LOST, NodeState.DOWN])
def test_what_a_node_had_that_is_gone_is_rescued(state: NodeState) -> None:
    mine = handed(1, holder="a:1")
    assert due([1], [mine], [node("a", state)]) == DueTasks(rescue=(mine,))


@pytest.mark.parametrize("state", [NodeState.UP, NodeState.DRAINING])
def test_what_a_node_has_that_lives_stays_there(state: NodeState) -> None:
    assert due([1], [handed(1, holder="a:1")], [node("a", state)]) == DueTasks()


def test_an_earlier_start_of_a_node_is_gone() -> None:
    mine = handed(1, holder="a:0")
    assert due([1], [mine], [node("a")]) == DueTasks(rescue=(mine,))


def test_of_two_turns_of_a_task_the_later_one_counts() -> None:
    older, newer = handed(1, 3, "a:0"), handed(1, 4, "a:0")
    assert due([1], [newer, older], []) == DueTasks(rescue=(newer,), drop=(older,))


def test_of_a_task_that_is_over_nothing_is_left_but_what_a_node_has_in_hand() -> None:
    queued, stranded, mine = handed(1), handed(2, holder="gone:1"), handed(3, holder="a:1")
    found = due([], [queued, stranded, mine], [node("a")], over={1, 2, 3})
    assert found == DueTasks(drop=(stranded, queued))


def test_a_ticket_is_read_as_it_was_written() -> None:
    ticket = QueuedTurn.of("night.shift-2", RUN, 12, 3)
    assert str(ticket) == "night.shift-2:7-20261121T200000:12:3"
    assert QueuedTurn.read(str(ticket)) == ticket
    assert ticket.next == QueuedTurn.of("night.shift-2", RUN, 12, 4)
    assert ticket.run == run_key(RUN)


@pytest.mark.parametrize("text", ["", "night", "night:7:x:1", "night:7:1", "a:7:1:1:1", "a:7:-1:1"])
def test_what_is_no_ticket_is_passed_over(text: str) -> None:
    assert QueuedTurn.read(text) is None


def test_a_node_takes_from_the_queue_of_every_set_of_its_labels() -> None:
    assert queues_of("night", ["gpu", "big"]) == (
        "night",
        "night/big",
        "night/gpu",
        "night/big+gpu",
    )
    assert queue_for("night", ("gpu", "big")) == "night/big+gpu"


def test_too_many_labels_are_refused() -> None:
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


def test_a_process_without_a_name_has_that_of_the_machine() -> None:
    assert identity(None).name


@pytest.mark.parametrize("name", ["", "a b", "a:b", "-a", "a/b", "ä" * 3, "x" * 81])
def test_a_bad_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"a name may have letters \(a-z, A-Z\)"):
        identity(name)


def test_people_hear_why_a_node_is_given_up() -> None:
    lost = node("a", NodeState.LOST)
    unheard = "node a is lost: no heartbeat came in time, last at 20:00:00 (UTC)"
    assert loss_line(lost) == unheard
    assert "its broker says that it is gone" in loss_line(replace(lost, doubted_at=AT))


def test_one_line_names_ten_of_the_tasks_that_a_node_left_behind() -> None:
    assert rescue_line("a", ["x", "y"]) == "other nodes take over the tasks of node a: x, y"
    assert rescue_line("a", list("abcdefghijkl")).endswith("i, j and 2 more")


async def say(error: str = "") -> str:
    if error:
        raise JournalError(error)
    return "yes"


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(each.levelno, each.getMessage()) for each in caplog.records]


async def test_an_outage_and_its_end_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    reach = JournalOutageLog("one", "the database")
    for error in ("", "refused", "refused again"):
        if error:
            with pytest.raises(JournalError):
                await reach.of(say(error))
        else:
            assert await reach.of(say()) == "yes"
    assert reach.away
    for _ in range(2):
        await reach.of(say())
    assert not reach.away
    assert told(caplog) == [
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
    first, last = told(caplog)
    assert first[1].endswith("will try again: no answer from the database for 0.01 s")
    assert last[1].startswith("one reached the journal again after ")
