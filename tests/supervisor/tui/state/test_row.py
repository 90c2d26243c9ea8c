"""What a row needs, what its worker reported last, and what stands in the queue for a person."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from midwatch_monitor.records import (
    Action,
    Actor,
    AlertState,
    Budget,
    BudgetRequest,
    Change,
    Checkpoint,
    DeliveryState,
    Ending,
    Grant,
    Lifecycle,
    Meter,
    PlanCheck,
    Record,
    Ruling,
    Severity,
    Terms,
)
from midwatch_supervisor.tui.bell import Bell
from midwatch_supervisor.tui.screens.fleet import columns
from midwatch_supervisor.tui.state.attention import (
    AttentionQueue,
    QueueItem,
    collapse,
    next_of,
    waiting_attempt,
)
from midwatch_supervisor.tui.state.board import FleetBoard
from midwatch_supervisor.tui.state.row import KEPT, CheckpointHistory, Need, Row, Trend, trend
from midwatch_supervisor.tui.widgets.table import holds
from midwatch_tests.factories import (
    AT,
    after,
    alert,
    attempt,
    away,
    delivery,
    ended,
    entry,
    feedback,
    intervention,
    reflecting,
    run,
    task,
    transition,
)
from midwatch_tests.rows import Fleet, row

HELD = intervention(Action.RESTART, needs_approval=True)
WORKING = transition()
ASKS = transition(Lifecycle.INPUT_REQUIRED, reason="Which port?")
ASK = intervention(Action.ASK_OPERATOR)
DONE = transition(Lifecycle.COMPLETED)
NOTICE, WARNING, CRITICAL = (alert(severity=each) for each in Severity)
RESOLVED = alert(state=AlertState.RESOLVED)
WATCHED = Change(acts=(Action.OBSERVE, Action.ASK_OPERATOR))
ASK_BESIDE = intervention(Action.ASK_OPERATOR, answers=(CRITICAL.key,))
PAUSE = intervention(Action.PAUSE)
ANSWER = intervention(Action.NUDGE, Actor.OPERATOR)
PARKED = transition(Lifecycle.INPUT_REQUIRED)
ACKNOWLEDGED = intervention(Action.ACKNOWLEDGE, answers=(CRITICAL.key,))


@pytest.mark.parametrize(
    ("records", "need"),
    [
        ((), Need.QUEUED),
        ((WORKING,), Need.WORKING),
        ((WORKING, NOTICE), Need.WORKING),
        ((WORKING, WARNING), Need.SUSPECT),
        ((WORKING, CRITICAL), Need.STUCK),
        ((WORKING, ASK, delivery(2), PARKED, ANSWER), Need.WORKING),
        ((WORKING, away()), Need.SUSPECT),
        ((WORKING, CRITICAL, HELD), Need.APPROVAL),
        ((WORKING, HELD, ASKS), Need.APPROVAL),
        ((WORKING, ASK, delivery(2), HELD, ASKS), Need.ANSWER),
        ((WORKING, HELD, DONE), Need.OVER),
        ((WORKING, WATCHED, CRITICAL, ASK_BESIDE), Need.ANSWER),
        ((WORKING, WATCHED, CRITICAL, ASK_BESIDE, delivery(4)), Need.ANSWER),
        ((WORKING, WATCHED, CRITICAL, ASK_BESIDE, delivery(4), RESOLVED), Need.WORKING),
    ],
)
def test_a_row_needs_what_is_most_urgent(records: tuple[Record, ...], need: Need) -> None:
    assert row(*records).need is need


@pytest.mark.parametrize("state", DeliveryState)
def test_a_decision_that_was_dealt_with_waits_no_more(state: DeliveryState) -> None:
    assert row(WORKING, HELD, delivery(2, state)).need is Need.WORKING


def test_an_alert_that_fires_again_calls_again() -> None:
    acknowledged = row(WORKING, CRITICAL, ACKNOWLEDGED, delivery(3))
    assert (acknowledged.need, acknowledged.called) == (Need.STUCK, False)
    again = row(WORKING, CRITICAL, ACKNOWLEDGED, delivery(3), RESOLVED, CRITICAL)
    assert again.called


def test_used_is_the_share_of_what_is_nearest_to_its_limit() -> None:
    budget = Budget(requests=Meter(used=6, limit=60), tokens=Meter(used=900, limit=1000))
    assert row(Change(budget=budget)).used == 0.9
    assert row(Change(budget=Budget(tokens=Meter(used=900)))).used is None


@pytest.mark.parametrize(
    ("records", "status"),
    [
        ((), "submitted"),
        ((WORKING,), "working"),
        ((WORKING, PAUSE, delivery(2), PARKED), "paused"),
        ((WORKING, ASKS), "waits for you"),
        ((WORKING, DONE), "completed"),
        ((WORKING, DONE, feedback(accepted=False)), "not accepted"),
        ((WORKING, DONE, feedback(accepted=True)), "completed"),
        ((WORKING, ended(Ending.STUCK)), "failed"),
        ((WORKING, ended(Ending.RESTARTED)), "restarted"),
        ((WORKING, ended(Ending.SPLIT)), "split"),
    ],
)
def test_where_it_stands_is_one_word(records: tuple[Record, ...], status: str) -> None:
    assert row(*records).status == status


def cells(about: Row) -> tuple[str, str]:
    """What the fleet shows of where a row stands: its sign and its state."""
    shown = {each.title: each.draw(about)[0] for each in columns(lambda: AT, FleetBoard())}
    return shown["!"], shown["state"]


def test_a_sign_says_what_was_accepted_and_what_nobody_judges() -> None:
    assert cells(row(WORKING, DONE)) == (" ✓", "completed")
    assert cells(row(WORKING, DONE, feedback(accepted=False))) == (" ✗", "not accepted")
    board = FleetBoard()
    board.meet_run(run(settings='{"mode": "off"}'))
    board.meet_task(task())
    board.meet_attempt(attempt())
    board.fold(entry(1, WORKING))
    assert cells(board.rows[1]) == (" ○", "not judged")


def history(*said: Checkpoint) -> CheckpointHistory:
    """One checkpoint a minute."""
    made = CheckpointHistory()
    for number, checkpoint in enumerate(said, start=1):
        made.add(checkpoint, AT + timedelta(minutes=number))
    return made


def make_checkpoint(confidence: int, notes: str = "") -> Checkpoint:
    return Checkpoint(progress_percent=10, confidence=confidence, notes=notes)


def test_equal_checkpoints_are_one_with_a_count_and_how_long_it_lasted() -> None:
    newest = history(make_checkpoint(50), *[make_checkpoint(24, "No way out.")] * 8).newest
    assert newest is not None
    assert (newest.count, newest.seconds, newest.change) == (8, 7 * 60, -26)


def test_what_differs_in_one_word_is_told_on_its_own_and_only_the_newest_are_kept() -> None:
    groups = [
        *history(
            make_checkpoint(50, "a"), make_checkpoint(50, "b"), make_checkpoint(50, "a")
        ).newest_first
    ]
    assert [each.checkpoint.notes for each in groups] == ["a", "b", "a"]
    assert [each.change for each in groups] == [0, 0, None]
    groups = [*history(*(make_checkpoint(n) for n in range(KEPT + 5))).newest_first]
    assert (len(groups), groups[0].checkpoint.confidence) == (KEPT, KEPT + 4)


@pytest.mark.parametrize(
    ("confidences", "found"),
    [
        ((), Trend.UNKNOWN),
        ((60,), Trend.UNKNOWN),
        ((60, 62), Trend.UNKNOWN),
        ((60, 40), Trend.DOWN),
        ((40, 60), Trend.UP),
        ((90, 24, 24, 24, 24), Trend.LEVEL),
        ((24, 25, 24, 26), Trend.LEVEL),
        ((80, 78, 76, 74), Trend.DOWN),
    ],
)
def test_a_trend_is_that_of_the_last_reports(confidences: tuple[int, ...], found: Trend) -> None:
    assert trend(confidences) is found


TIMES = "\N{MULTIPLICATION SIGN}"
BUDGET = BudgetRequest(wanted=Grant(requests=20), reason="two files left")
REVISION = PlanCheck(
    plan_step=2, assumption="", reality="none", impact="", proposed=("x",), ruling=Ruling.PENDING
)
STOP = intervention(Action.STOP, message="It is\x1b[31m lost.", needs_approval=True)
ENDS = intervention(Action.STOP, Actor.OPERATOR)
LACKS = reflecting(1, blockers=("no rates", "the tests\ncontradict the docs"))
BLOCKED = "blocked: no rates; the tests contradict the docs"
GRANT = intervention(
    Action.GRANT_BUDGET,
    Actor.SUPERVISOR,
    terms=Terms(grant=Grant(requests=5)),
    petition=2,
    needs_approval=True,
)


def stuck(at: datetime | None = AT) -> Record:
    return alert(severity=Severity.CRITICAL, at=at)


def item(*records: Record) -> QueueItem:
    """The line of attempt 1 after records that came a second apart."""
    return waiting_attempt(row(*records))


def asking(reason: str) -> Record:
    return transition(Lifecycle.INPUT_REQUIRED, reason=reason)


SILENT, LACKING = (
    alert(rule, Severity.CRITICAL, at=AT) for rule in ("silence", "multiple_blockers")
)
TOLD_TWICE = (WORKING, ENDS, delivery(2), delivery(2), STOP)
STILL = "told to stop, still running: end it in its terminal"
GRANTS = "supervisor wants to grant_budget (5 requests): (no message)"
BOTH = "asks for budget: 20 requests (two files left); asks to revise its plan: x (none)"
STOPS = "policy wants to stop"


@pytest.mark.parametrize(
    ("records", "kind", "since", "what"),
    [
        ((WORKING, asking("Which\nport?")), "answer", 2, "Which port?"),
        ((WORKING, PAUSE, delivery(2), asking("")), "paused", 4, "p resumes it"),
        ((WORKING, STOP), "approval", 2, f"{STOPS}: It is lost."),
        ((WORKING, STOP, STOP), "approval", 2, f"{STOPS} (and 1 more): It is lost."),
        (TOLD_TWICE, "stuck", 4, STILL),
        ((WORKING, GRANT), "approval", 2, GRANTS),
        ((WORKING, stuck(), WORKING), "stuck", 0, "cycle was seen"),
        ((WORKING, stuck(None), WORKING), "stuck", 3, "cycle was seen"),
        ((WORKING, stuck(), SILENT), "stuck", 0, "cycle was seen; silence was seen"),
        ((WORKING, LACKS, asking("Which port?")), "answer", 3, "Which port?"),
        ((WORKING, LACKS, asking("")), "answer", 3, f"{BLOCKED}; p resumes it"),
        ((WORKING, LACKS, stuck()), "stuck", 0, f"cycle was seen; {BLOCKED}"),
        ((WORKING, LACKS, LACKING), "stuck", 0, BLOCKED),
        ((WORKING, BUDGET, REVISION), "asks", 2, BOTH),
    ],
)
def test_a_line_says_what_is_wanted_and_since_when(
    records: tuple[Record, ...], kind: str, since: int, what: str
) -> None:
    found = item(*records)
    assert (found.kind, found.since, found.what) == (kind, after(since), what)


def test_a_filter_looks_at_the_task_the_need_the_text_and_the_rules() -> None:
    assert holds(item(WORKING, stuck()).text, ("fix", "stuck", "seen", "cycle"))


@pytest.mark.parametrize(("last", "follows"), [(None, 1), (9, 1), (1, 2), (2, 3), (3, 1)])
def test_the_next_follows_the_last_visited_and_begins_anew(last: int | None, follows: int) -> None:
    found = next_of([row(id=id) for id in (1, 2, 3)], last)
    assert found is not None
    assert found.attempt == follows
    assert next_of([], last) is None


def test_who_asks_stands_last_in_the_queue_and_leaves_it_once_answered() -> None:
    fleet = Fleet("ab")
    queue = AttentionQueue(fleet.board)
    for name, record in (("a", WORKING), ("a", BUDGET), ("b", WORKING), ("b", stuck())):
        queue.observe([fleet.say(name, record)])
    assert [each.name for each in queue.rows] == ["b", "a"]
    (asks,) = (each for each in queue.calling if each.kind == "asks")
    assert Bell(opened_at=AT).next_call([asks]) is None  # others may answer it
    queue.observe([fleet.say("a", intervention(petition=2))])
    assert [each.name for each in queue.rows] == ["b"]


def waiting(*groups: tuple[int, Record]) -> list[QueueItem]:
    """The lines of so many attempts of each need, one after the other."""
    each = [record for count, record in groups for _ in range(count)]
    return [
        waiting_attempt(row(WORKING, record, id=id, name=f"t{id}"))
        for id, record in enumerate(each, start=1)
    ]


def test_equal_needs_of_several_are_one_line_that_unfolds_into_them() -> None:
    items = waiting((1, asking("Which port?")), (4, stuck()), (2, STOP))
    found = collapse(items, ())
    assert [(each.name, each.kind, len(each.equal)) for each in found] == [
        ("t1#1", "answer", 0),
        (f"▸ 4 {TIMES}", "stuck", 4),
        ("t6#1", "approval", 0),
        ("t7#1", "approval", 0),
    ]
    unfolded = collapse(items, {found[1].key})
    assert [each.name for each in unfolded[1:6]] == [f"▾ 4 {TIMES}", "t2#1", "t3#1", "t4#1", "t5#1"]
    apart = waiting((2, asking("Which port?")), (2, asking("Which host?")))
    assert collapse(apart, ()) == apart
    no_attempts = [replace(items[0], key=("node", n), need=None) for n in range(4)]
    assert collapse(no_attempts, ()) == no_attempts


@pytest.mark.parametrize(
    ("lacks", "rule", "what"),
    [
        (("a", "b", "c"), "cycle", "cycle was seen"),
        (("no rates",) * 3, "multiple_blockers", "blocked: no rates"),
    ],
    ids=["each another", "all the same"],
)
def test_needs_are_equal_whatever_is_lacking(lacks: tuple[str, ...], rule: str, what: str) -> None:
    fired = alert(rule, Severity.CRITICAL)
    lacking = [
        waiting_attempt(row(WORKING, reflecting(1, blockers=(each,)), fired, id=id))
        for id, each in enumerate(lacks, start=1)
    ]
    (line,) = collapse(lacking, ())
    assert line.what == what
