"""`midwatch grant` and `switch` over a real journal."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from math import inf, nan

import pytest

from midwatch_monitor.config.tasks import ModelSpec, Role, WorkerSpec
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Action,
    Actor,
    Attempt,
    AttemptTransition,
    BudgetRequest,
    Change,
    Ending,
    Grant,
    Intervention,
    Lifecycle,
    Record,
    Terms,
)
from midwatch_stage.command import (
    assignment,
    midwatch,
    new_attempt,
    new_task,
    printed,
    read,
)
from midwatch_stage.factories import alert

Capture = pytest.CaptureFixture[str]
Write = Callable[..., Awaitable[int]]

FIRING = alert("budget_burn")
BUDGET = BudgetRequest(wanted=Grant(requests=20), reason="two files left")
GRANT = Intervention(
    action=Action.GRANT_BUDGET, by=Actor.OPERATOR, author="ada", message="Granted."
)
SWITCH = Intervention(
    action=Action.SWITCH_MODEL, by=Actor.OPERATOR, author="ada", terms=Terms(model="big")
)


pytestmark = pytest.mark.usefixtures("by_ada")


async def written(journal: Journal, after: int) -> list[Record]:
    return [entry.record for entry in await journal.entries(after)]


async def test_a_grant_is_an_operators_intervention_about_what_fires(
    journal: Journal, write: Write, capsys: Capture
) -> None:
    last = await write(FIRING)
    argv = ("--requests", "5", "--cost-usd", "0.5", "--minutes", "2.5", "--message", "Go on.")
    assert await read(capsys, "grant", "fix", *argv) == [
        f"fix#1: grant of 5 requests, $0.50, 2.5 min sent ({last + 1})",
    ]
    given = Terms(grant=Grant(requests=5, cost_usd=0.5, minutes=2.5))
    assert await written(journal, last) == [
        replace(GRANT, message="Go on.", terms=given, answers=(FIRING.key,))
    ]


@pytest.mark.parametrize(
    "amount", ["--minutes=nan", "--minutes=inf", "--cost-usd=1e308", "--requests=9999999999999"]
)
async def test_an_amount_that_is_no_sensible_number_is_refused(
    amount: str, journal: Journal, write: Write, capsys: Capture
) -> None:
    last = await write(FIRING)
    assert await midwatch("grant", "fix", amount) == 2
    assert capsys.readouterr().err == "each amount must be a number, at most 1,000,000,000\n"
    assert await written(journal, last) == []


@pytest.mark.parametrize(
    ("argv", "given"), [((), Grant(requests=20)), (("--tokens", "900"), Grant(tokens=900))]
)
async def test_a_grant_answers_what_the_worker_asked_for(
    journal: Journal, argv: tuple[str, ...], given: Grant, write: Write
) -> None:
    id = await write(BUDGET)
    assert await midwatch("grant", "fix#1", *argv) == 0
    assert await written(journal, id) == [replace(GRANT, terms=Terms(grant=given), petition=id)]


@pytest.mark.parametrize("wanted", [Grant(minutes=inf), Grant(tokens=2_000_000_000)])
@pytest.mark.parametrize("words", [("grant", "fix"), ("approve", "{}")])
async def test_what_an_older_worker_asked_for_is_not_granted_beyond_reason(
    journal: Journal, write: Write, capsys: Capture, wanted: Grant, words: tuple[str, ...]
) -> None:
    id = await write(replace(BUDGET, wanted=wanted))
    assert await midwatch(*(word.format(id) for word in words)) == 2
    assert capsys.readouterr().err == "each amount must be a number, at most 1,000,000,000\n"
    assert await written(journal, id) == []


async def test_a_grant_that_waits_is_not_approved_beyond_reason(
    journal: Journal, write: Write, capsys: Capture
) -> None:
    decision = replace(GRANT, by=Actor.SUPERVISOR, author="", needs_approval=True)
    id = await write(replace(decision, terms=Terms(grant=Grant(minutes=nan))))
    assert await midwatch("approve", str(id)) == 2
    assert capsys.readouterr().err == "each amount must be a number, at most 1,000,000,000\n"
    assert await written(journal, id) == []


async def test_a_switch_names_the_model_that_goes_on(
    journal: Journal, write: Write, capsys: Capture
) -> None:
    last = await write(FIRING)
    assert await read(capsys, "switch", "fix", "big", "--from", "eve") == [
        f"fix#1: switch to big sent ({last + 1})"
    ]
    assert await written(journal, last) == [replace(SWITCH, author="eve", answers=(FIRING.key,))]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("grant", "fix", "--requests", "5"), "fix#1: grant of 5 requests would be sent\n"),
        (("switch", "fix", "big"), "fix#1: switch to big would be sent\n"),
    ],
)
async def test_a_dry_run_writes_nothing(
    journal: Journal, attempt: Attempt, capsys: Capture, argv: tuple[str, ...], said: str
) -> None:
    last = await journal.last_id()
    assert await printed(capsys, *argv, "--dry-run") == said
    assert await written(journal, last) == []


@pytest.mark.parametrize(
    ("records", "argv", "said"),
    [
        (
            (),
            ("grant", "fix"),
            "fix#1 asked for nothing: say how much, with --requests, --tokens, --cost-usd or "
            "--minutes",
        ),
        (
            (),
            ("grant", "fix", "--requests=-5"),
            "a grant can only add: no amount may be below 0",
        ),
        ((), ("switch", "fix", " "), "name the model to switch to"),
        ((Change(model="big"),), ("switch", "fix", "big"), "fix#1 already works with big"),
        (
            (AttemptTransition(lifecycle=Lifecycle.FAILED, ending=Ending.ERROR),),
            ("grant", "fix", "--requests", "5"),
            "fix#1 is over: failed; nothing reaches it any more",
        ),
        (
            (AttemptTransition(lifecycle=Lifecycle.FAILED, ending=Ending.SPLIT),),
            ("switch", "fix", "big"),
            "fix#1 is over: split; nothing reaches it any more",
        ),
    ],
)
async def test_what_can_change_nothing_is_bad_usage(
    journal: Journal,
    write: Write,
    capsys: Capture,
    records: tuple[Record, ...],
    argv: tuple[str, ...],
    said: str,
) -> None:
    if records:
        await write(*records)
    last = await journal.last_id()
    assert await midwatch(*argv) == 2
    assert capsys.readouterr() == ("", f"{said}\n")
    assert await written(journal, last) == []


async def test_a_switch_goes_to_a_model_that_the_worker_has(
    journal: Journal, capsys: Capture
) -> None:
    worker = WorkerSpec(other_models=(ModelSpec(name="big"),))
    wanted = assignment(worker="coder", spec=worker, models={Role.WORKER: ModelSpec(name="m")})
    await new_attempt(journal, await new_task(journal, spec=wanted.model_dump_json()))
    assert await midwatch("switch", "fix", "huge") == 2
    assert capsys.readouterr().err == ("the worker of fix#1 has no model `huge`; it has: m, big\n")
    assert await midwatch("switch", "fix", "big", "--dry-run") == 0
