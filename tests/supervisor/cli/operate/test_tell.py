"""`midwatch tell`, `grant` and `switch`: whom they mean, what they write and what they refuse."""

import shlex
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from math import inf, nan

import pytest

from midwatch_monitor.config.tasks import ModelSpec, Role, WorkerSpec
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.run_lock import hold_run
from midwatch_monitor.records import (
    Action,
    Actor,
    Attempt,
    BudgetRequest,
    DeliveryState,
    Ending,
    Grant,
    Intervention,
    Lifecycle,
    PermissionRequest,
    Record,
    Terms,
)
from midwatch_monitor.records.work import EMBEDDED
from midwatch_tests import factories as make
from midwatch_tests.command import Cli, assignment, midwatch, new_attempt, new_task
from midwatch_tests.command import write as _write

Write = Callable[..., Awaitable[int]]

MESSAGE = make.message(7)
FIRING = make.alert("budget_burn")
BUDGET = BudgetRequest(wanted=Grant(requests=20), reason="two files left")
PAUSE = make.intervention(Action.PAUSE, Actor.OPERATOR)
PARKED = make.change(lifecycle=Lifecycle.INPUT_REQUIRED)
PERMISSION = PermissionRequest(tool="execute", what="run `make`")
OVER = make.ended(Ending.ERROR)
FAILED = make.task_transition(Lifecycle.FAILED)
SPEC = assignment("fix").model_dump_json()
"""Of a task as `midwatch run` stores it."""

pytestmark = pytest.mark.usefixtures("by_ada")


async def read_new_records(journal: Journal, after: int) -> list[Record]:
    """What was written since, each about the first attempt and without a `seq`."""
    entries = await journal.entries(after)
    assert {(entry.task, entry.attempt, entry.seq) for entry in entries} <= {(1, 1, None)}
    return [entry.record for entry in entries]


async def first_attempt(journal: Journal, name: str = "fix", spec: str = "{}") -> Attempt:
    """The first attempt at a task of a new run."""
    return await new_attempt(journal, await new_task(journal, name, spec=spec))


async def test_who_tells_a_secret_hears_what_the_worker_is_told_instead(
    journal: Journal, write: Write, cli: Cli
) -> None:
    id = await write(make.message(7))
    (said,) = await cli.read("tell", "fix", "Use sk-proj-" + "a1B2c3D4" * 6)
    (told,) = await read_new_records(journal, id)
    assert isinstance(told, Intervention)
    assert "[masked: openai key" in told.message
    assert said == f"fix#1: guidance sent ({id + 1}); secrets in it are masked: {told.message}"


MINE = make.intervention(by=Actor.OPERATOR, author="ada")
GRANT = replace(MINE, action=Action.GRANT_BUDGET, message="Granted.")
AMOUNTS = "--requests=5 --cost-usd=0.5 --minutes=2.5 --message Go!"
GIVEN = Terms(grant=Grant(requests=5, cost_usd=0.5, minutes=2.5))
GRANTED = replace(GRANT, message="Go!", terms=GIVEN, answers=(FIRING.key,))
SWITCH = replace(MINE, action=Action.SWITCH_MODEL, terms=Terms(model="big"), author="eve")


@pytest.mark.parametrize(
    ("before", "words", "said", "given"),
    [
        (MESSAGE, "tell fix Look!", "guidance", replace(MINE, message="Look!")),
        (MESSAGE, "tell fix --pause", "pause", replace(MINE, action=Action.PAUSE)),
        (MESSAGE, "tell fix No! --stop", "stop", replace(MINE, action=Action.STOP, message="No!")),
        (
            MESSAGE,
            "tell fix Anew! --restart",
            "restart",
            replace(MINE, action=Action.RESTART, message="Anew!"),
        ),
        (
            PARKED,
            "tell fix#1 --resume --from eve",
            "resume",
            replace(MINE, action=Action.RESUME, message="Go on.", author="eve"),
        ),
        (
            PAUSE,
            "tell fix Try! --resume",
            "resume",
            replace(MINE, action=Action.RESUME, message="Try!"),
        ),
        (FIRING, f"grant fix {AMOUNTS}", "grant of 5 requests, $0.50, 2.5 min", GRANTED),
        (
            BUDGET,
            "grant fix#1",
            "grant of 20 requests",
            replace(GRANT, terms=Terms(grant=BUDGET.wanted), petition=3),
        ),
        (
            BUDGET,
            "grant fix --tokens 900",
            "grant of 900 tokens",
            replace(GRANT, terms=Terms(grant=Grant(tokens=900)), petition=3),
        ),
        (
            FIRING,
            "switch fix big --from eve",
            "switch to big",
            replace(SWITCH, answers=(FIRING.key,)),
        ),
    ],
)
async def test_what_is_told_or_given_becomes_an_operators_intervention(
    journal: Journal, write: Write, cli: Cli, before: Record, words: str, said: str, given: Record
) -> None:
    last = await write(before)
    assert await cli.read(*words.split(), "--dry-run") == [f"fix#1: {said} would be sent"]
    assert await read_new_records(journal, last) == []
    assert await cli.read(*words.split()) == [f"fix#1: {said} sent ({last + 1})"]
    assert await read_new_records(journal, last) == [given]


@pytest.mark.parametrize(
    ("spec", "waits"),
    [
        (SPEC, "no process works on it now: it waits for `midwatch resume --run 1`"),
        (EMBEDDED, "its process is gone, and nothing reaches it: `midwatch cancel --run 1`"),
    ],
    ids=["of a task file", "of an agent with a Watch"],
)
async def test_who_speaks_to_an_attempt_whose_process_is_gone_hears_what_must_come_first(
    journal: Journal, cli: Cli, spec: str, waits: str
) -> None:
    await first_attempt(journal, spec=spec)
    async with hold_run(journal, 1, lease_seconds=15):
        assert (await cli.read("tell", "fix", "Hello."))[0].endswith(")")
    assert (await cli.read("tell", "fix", "Hello."))[0].endswith(f"; {waits}")


async def test_a_name_means_the_newest_attempt_that_can_still_be_told_something(
    journal: Journal, attempt: Attempt, at: datetime, write: Write, cli: Cli
) -> None:
    dry = ("Look up.", "--dry-run")
    await write(PARKED)
    later = await first_attempt(journal)
    assert await cli.read("tell", "fix", *dry) == ["fix#1: guidance would be sent"]
    await _write(journal, later, at, OVER)
    for name in ("fix", "fi", "fix#1"):
        said = ["fix#1 of run 1: guidance would be sent"]
        assert await cli.read("tell", name, *dry) == said
        said = ["fix#1 of run 1: restart would be sent"]
        assert await cli.read("tell", name, "Anew.", "--restart", "--dry-run") == said
    assert "fix#1 is over: failed" in await cli.refused("tell", str(later.id), "Look up.")
    await write(OVER)
    await new_attempt(journal, await journal.task(attempt.task), 2)
    assert await cli.read("tell", "fix", *dry) == ["fix#2 of run 1: guidance would be sent"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("tell", "fix", "Look up."), "fix#1: guidance"),
        (("tell", "fi#1", "--pause"), "fix#1: pause"),
        (("grant", "fix", "--requests", "5"), "fix#1: grant of 5 requests"),
        (("switch", "fix", "openai:other"), "fix#1: switch to openai:other"),
    ],
)
async def test_of_two_runs_with_a_task_of_one_name_the_one_that_is_named_is_meant(
    journal: Journal, attempt: Attempt, at: datetime, cli: Cli, words: tuple[str, ...], said: str
) -> None:
    later = await first_attempt(journal)
    before = await journal.last_id()
    for run, of in (("1", attempt), ("2", later)):
        assert (await cli.read(*words, "--run", run))[0].startswith(f"{said} sent (")
        assert [each.attempt for each in await journal.entries(before)] == [of.id]
        before = await journal.last_id()
    assert "there is no run 3 in " in await cli.refused(*words, "--run", "3")
    await _write(journal, later, at, OVER)
    assert "fix#1 is over: failed" in await cli.refused(*words, "--run", "2")


@pytest.mark.parametrize("argv", [("tell", "proj", "--stop"), ("grant", "proj#1")])
async def test_of_several_open_tasks_with_one_beginning_none_is_chosen(
    journal: Journal, at: datetime, cli: Cli, argv: tuple[str, ...]
) -> None:
    first = await first_attempt(journal, "proj-1a")
    await first_attempt(journal, "proj-2b")
    assert await cli.refused(*argv) == "`proj` could mean any of proj-2b, proj-1a\n"
    assert await midwatch("tell", "proj-1a", "--stop", "--dry-run") == 0
    await _write(journal, first, at, OVER, FAILED)
    assert "proj-2b#1" in await cli.said("tell", "proj", "--stop", "--dry-run")


GIVE = "give a message, or use --pause, --resume, --stop or --restart"
CHOOSE = "choose one of --pause, --resume, --stop and --restart"
WAITS = "fix#1: it is already paused, or waiting for you"
IS_OVER = "fix#1 is over: failed; nothing reaches it any more"
HELD = make.intervention(Action.GRANT_BUDGET, Actor.SUPERVISOR, needs_approval=True)
ENDLESS = replace(BUDGET, wanted=Grant(minutes=inf))
UNREASONABLE = "each amount must be a number, at most 1,000,000,000"


@pytest.mark.parametrize(
    ("before", "words", "said"),
    [
        (MESSAGE, "tell fix", GIVE),
        (MESSAGE, "tell fix \t", GIVE),
        (MESSAGE, "tell fix --pause --stop", CHOOSE),
        (MESSAGE, "tell fix --restart", "say what the next attempt should do differently"),
        (OVER, "tell fix No! --restart", "fix: it is not over: it continues by itself"),
        (MESSAGE, "tell fix --resume", "fix#1: it is not paused: submitted"),
        (PARKED, "tell fix --pause", WAITS),
        (PAUSE, "tell fix --pause", WAITS),
        (OVER, "tell fix Hello!", IS_OVER),
        *((MESSAGE, f"grant fix --minutes={amount}", UNREASONABLE) for amount in ("nan", "inf")),
        (MESSAGE, "grant fix --cost-usd=1e308", UNREASONABLE),
        (MESSAGE, "grant fix --requests=9999999999999", UNREASONABLE),
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
        (make.change(model="big"), "switch fix big", "fix#1 already works with big"),
        (OVER, "grant fix --requests 5", IS_OVER),
        (
            make.ended(Ending.SPLIT),
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
    assert await read_new_records(journal, last) == []


async def test_what_waits_for_a_permission_is_not_resumed_without_it(
    journal: Journal, write: Write, cli: Cli
) -> None:
    last = await write(PERMISSION, PARKED)
    assert await cli.refused("tell", "fix", "--resume") == (
        "fix#1: it waits for permission to run `make`: `midwatch approve 3` or "
        "`midwatch reject 3`\n"
    )
    assert await read_new_records(journal, last) == []


async def test_a_task_that_has_not_begun_hears_nothing(journal: Journal, cli: Cli) -> None:
    await new_task(journal)
    told = "fix has no attempt yet; `midwatch cancel fix` cancels it\n"
    assert await cli.refused("tell", "fix", "Hello.") == told


async def test_a_switch_goes_to_a_model_that_the_worker_has(journal: Journal, cli: Cli) -> None:
    worker = WorkerSpec(other_models=(ModelSpec(name="big"),))
    wanted = assignment(worker="coder", spec=worker, models={Role.WORKER: ModelSpec(name="m")})
    await new_attempt(journal, await new_task(journal, spec=wanted.model_dump_json()))
    said = "the worker of fix#1 has no model `huge`; it has: m, big\n"
    assert await cli.refused("switch", "fix", "huge") == said
    assert (await cli.read("switch", "fix", "big", "--dry-run"))[0].startswith("fix#1: switch")


async def failed_attempt(journal: Journal, at: datetime) -> Attempt:
    """The failed attempt of a failed task."""
    made = await first_attempt(journal, spec=SPEC)
    await _write(journal, made, at, make.message(7), OVER, FAILED)
    return made


async def test_a_task_that_is_over_is_begun_again_with_a_note(
    journal: Journal, at: datetime, cli: Cli
) -> None:
    made = await failed_attempt(journal, at)
    before = await journal.last_id()
    follows = "attempt 2 begins if run 1 is running, or with `midwatch resume --run 1`\n"
    argv = ("tell", "fix", "Go day by day.", "--restart")
    assert await cli.said(*argv, "--dry-run") == f"fix: would be begun again: {follows}"
    assert await journal.last_id() == before
    assert await cli.said(*argv) == f"fix: begun again: {follows}"
    order = make.intervention(
        Action.RESTART, Actor.OPERATOR, author="ada", message="Go day by day."
    )
    reason = "begun again by ada: Go day by day."
    entries = await journal.entries(before)
    assert [(entry.record, entry.attempt) for entry in entries] == [
        (order, made.id),
        (make.delivery(before + 1, DeliveryState.DELIVERED, step=7), made.id),
        (make.task_transition(Lifecycle.SUBMITTED, reason=reason), None),
    ]
    async with hold_run(journal, 1, lease_seconds=15):
        (line,) = await cli.ask("status")
    assert (line["status"], line["waits_for"]) == ("submitted", "its turn")
    (line,) = await cli.ask("status")
    left = "`midwatch resume --run 1`: no process works on it"
    assert (line["interrupted"], line["waits_for"]) == (True, left)
    assert reason in await cli.said("show", "fix")


async def test_who_speaks_to_an_attempt_that_is_over_hears_how_it_is_begun_again(
    journal: Journal, at: datetime, cli: Cli
) -> None:
    made = await failed_attempt(journal, at)
    said = await cli.refused("tell", "fix", "Hello.")
    assert said == (
        "fix#1 is over: failed; nothing reaches it any more, but `midwatch tell fix --run 1 "
        '--restart "what to do differently"` begins the task again\n'
    )
    await failed_attempt(journal, at)  # a newer run with the same task
    assert await cli.refused("tell", str(made.id), "Hello.") == said
    words = shlex.split(said.split("`")[1])[1:]
    assert "if run 1 is running" in await cli.said(*words, "--dry-run")
