"""What stands in the queue for a person, in what words and order."""

from dataclasses import replace
from datetime import datetime

import pytest

from midwatch_monitor.records import (
    Action,
    Actor,
    BudgetRequest,
    Grant,
    Lifecycle,
    PlanCheck,
    Record,
    Ruling,
    Severity,
    Terms,
)
from midwatch_stage.factories import (
    AT,
    after,
    alert,
    delivery,
    intervention,
    reflecting,
    transition,
)
from midwatch_stage.rows import Fleet, row
from midwatch_supervisor.tui.bell import Bell
from midwatch_supervisor.tui.state.attention import (
    AttentionQueue,
    QueueItem,
    collapse,
    next_of,
    waiting_attempt,
)
from midwatch_supervisor.tui.widgets.table import holds

WORKING = transition()
TIMES = "\N{MULTIPLICATION SIGN}"
BUDGET = BudgetRequest(wanted=Grant(requests=20), reason="two files left")
REVISION = PlanCheck(
    plan_step=2, assumption="", reality="none", impact="", proposed=("x",), ruling=Ruling.PENDING
)
STOP = intervention(Action.STOP, message="It is\x1b[31m lost.", needs_approval=True)
ENDS = intervention(Action.STOP, Actor.OPERATOR)
PAUSE = intervention(Action.PAUSE)
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


@pytest.mark.parametrize(
    ("records", "kind", "since", "what"),
    [
        ((WORKING, asking("Which\nport?")), "answer", 2, "Which port?"),
        ((WORKING, PAUSE, delivery(2), asking("")), "paused", 4, "p resumes it"),
        ((WORKING, STOP), "approval", 2, "policy wants to stop: It is lost."),
        ((WORKING, STOP, STOP), "approval", 2, "policy wants to stop (and 1 more): It is lost."),
        (
            (WORKING, ENDS, delivery(2), delivery(2), STOP),
            "stuck",
            4,
            "told to stop, still running: end it in its terminal",
        ),
        (
            (WORKING, GRANT),
            "approval",
            2,
            "supervisor wants to grant_budget (5 requests): (no message)",
        ),
        ((WORKING, stuck(), WORKING), "stuck", 0, "cycle was seen"),
        ((WORKING, stuck(None), WORKING), "stuck", 3, "cycle was seen"),
        (
            (WORKING, stuck(), alert("silence", Severity.CRITICAL, at=AT)),
            "stuck",
            0,
            "cycle was seen; silence was seen",
        ),
        ((WORKING, LACKS, asking("Which port?")), "answer", 3, "Which port?"),
        ((WORKING, LACKS, asking("")), "answer", 3, f"{BLOCKED}; p resumes it"),
        ((WORKING, LACKS, stuck()), "stuck", 0, f"cycle was seen; {BLOCKED}"),
        (
            (WORKING, LACKS, alert("multiple_blockers", Severity.CRITICAL, at=AT)),
            "stuck",
            0,
            BLOCKED,
        ),
        (
            (WORKING, BUDGET, REVISION),
            "asks",
            2,
            "asks for budget: 20 requests (two files left); asks to revise its plan: x (none)",
        ),
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
def test_the_next_of_the_queue_follows_the_last_visited_and_begins_anew(
    last: int | None, follows: int
) -> None:
    found = next_of([row(id=id) for id in (1, 2, 3)], last)
    assert found is not None
    assert found.attempt == follows
    assert next_of([], last) is None


def test_who_asks_stands_last_in_the_queue_and_leaves_it_once_answered() -> None:
    fleet = Fleet("ab")
    queue = AttentionQueue(fleet.board)
    for name, record in (("a", WORKING), ("a", BUDGET), ("b", WORKING), ("b", stuck())):
        fleet.say(name, record)
    assert [each.name for each in queue.rows] == ["b", "a"]
    (asks,) = (each for each in queue.calling if each.kind == "asks")
    assert Bell(opened_at=AT).next_call([asks]) is None  # others may answer it
    fleet.say("a", intervention(petition=2))
    queue.observe()
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
        *(("t1#1", "answer", 0), (f"▸ 4 {TIMES}", "stuck", 4)),
        *(("t6#1", "approval", 0), ("t7#1", "approval", 0)),
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
def test_needs_are_equal_whatever_their_workers_lack(
    lacks: tuple[str, ...], rule: str, what: str
) -> None:
    fired = alert(rule, Severity.CRITICAL)
    lacking = [
        waiting_attempt(row(WORKING, reflecting(1, blockers=(each,)), fired, id=id))
        for id, each in enumerate(lacks, start=1)
    ]
    (line,) = collapse(lacking, ())
    assert line.what == what
