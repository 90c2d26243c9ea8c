"""`midwatch grant` and `switch` over a real journal."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from math import inf, nan

import pytest

from midwatch_monitor.config.tasks import ModelSpec, Role, WorkerSpec
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Action, Actor, BudgetRequest, Ending, Grant, Record, Terms
from midwatch_stage.command import Cli, assignment, new_attempt, new_task
from midwatch_stage.factories import alert, change, ended, intervention

Write = Callable[..., Awaitable[int]]

FIRING = alert("budget_burn")
BUDGET = BudgetRequest(wanted=Grant(requests=20), reason="two files left")
MINE = intervention(Action.GRANT_BUDGET, Actor.OPERATOR, author="ada", message="Granted.")
AMOUNTS = ("--requests=5", "--cost-usd=0.5", "--minutes=2.5")
TERMS = Terms(grant=Grant(requests=5, cost_usd=0.5, minutes=2.5))
BIG = replace(MINE, action=Action.SWITCH_MODEL, message="", terms=Terms(model="big"))
UNREASONABLE = "each amount must be a number, at most 1,000,000,000"

pytestmark = pytest.mark.usefixtures("by_ada")


async def written(journal: Journal, after: int) -> list[Record]:
    return [entry.record for entry in await journal.entries(after)]


@pytest.mark.parametrize(
    ("before", "argv", "said", "given"),
    [
        (
            FIRING,
            ("grant", "fix", *AMOUNTS, "--message", "Go on."),
            "grant of 5 requests, $0.50, 2.5 min",
            replace(MINE, message="Go on.", terms=TERMS, answers=(FIRING.key,)),
        ),
        (
            BUDGET,
            ("grant", "fix#1"),
            "grant of 20 requests",
            replace(MINE, terms=Terms(grant=BUDGET.wanted), petition=3),
        ),
        (
            BUDGET,
            ("grant", "fix", "--tokens", "900"),
            "grant of 900 tokens",
            replace(MINE, terms=Terms(grant=Grant(tokens=900)), petition=3),
        ),
        (
            FIRING,
            ("switch", "fix", "big", "--from", "eve"),
            "switch to big",
            replace(BIG, author="eve", answers=(FIRING.key,)),
        ),
    ],
)
async def test_what_is_given_is_an_operators_intervention_about_what_fires_or_was_asked_for(
    journal: Journal,
    write: Write,
    cli: Cli,
    before: Record,
    argv: list[str],
    said: str,
    given: Record,
) -> None:
    last = await write(before)
    assert await cli.read(*argv, "--dry-run") == [f"fix#1: {said} would be sent"]
    assert await written(journal, last) == []
    assert await cli.read(*argv) == [f"fix#1: {said} sent ({last + 1})"]
    assert await written(journal, last) == [given]


HELD = intervention(Action.GRANT_BUDGET, Actor.SUPERVISOR, needs_approval=True)
ENDLESS = replace(BUDGET, wanted=Grant(minutes=inf))


@pytest.mark.parametrize(
    ("before", "words", "said"),
    [
        *(
            (FIRING, f"grant fix {amount}", UNREASONABLE)
            for amount in (
                "--minutes=nan",
                "--minutes=inf",
                "--cost-usd=1e308",
                "--requests=9999999999999",
            )
        ),
        (ENDLESS, "grant fix", UNREASONABLE),
        (ENDLESS, "approve 3", UNREASONABLE),
        (replace(BUDGET, wanted=Grant(tokens=2_000_000_000)), "approve 3", UNREASONABLE),
        (replace(HELD, terms=Terms(grant=Grant(minutes=nan))), "approve 3", UNREASONABLE),
        (
            FIRING,
            "grant fix",
            "fix#1 asked for nothing: say how much, with --requests, --tokens, --cost-usd or "
            "--minutes",
        ),
        (FIRING, "grant fix --requests=-5", "a grant can only add: no amount may be below 0"),
        (FIRING, "switch fix \t", "name the model to switch to"),
        (change(model="big"), "switch fix big", "fix#1 already works with big"),
        (
            ended(Ending.ERROR),
            "grant fix --requests 5",
            "fix#1 is over: failed; nothing reaches it any more",
        ),
        (
            ended(Ending.SPLIT),
            "switch fix big",
            "fix#1 is over: split; nothing reaches it any more",
        ),
    ],
)
async def test_what_can_change_nothing_or_is_beyond_reason_is_bad_usage(
    journal: Journal, write: Write, cli: Cli, before: Record, words: str, said: str
) -> None:
    last = await write(before)
    assert await cli.refused(*words.split(" ")) == f"{said}\n"
    assert await written(journal, last) == []


async def test_a_switch_goes_to_a_model_that_the_worker_has(journal: Journal, cli: Cli) -> None:
    worker = WorkerSpec(other_models=(ModelSpec(name="big"),))
    wanted = assignment(worker="coder", spec=worker, models={Role.WORKER: ModelSpec(name="m")})
    await new_attempt(journal, await new_task(journal, spec=wanted.model_dump_json()))
    said = "the worker of fix#1 has no model `huge`; it has: m, big\n"
    assert await cli.refused("switch", "fix", "huge") == said
    assert (await cli.read("switch", "fix", "big", "--dry-run"))[0].startswith("fix#1: switch")
