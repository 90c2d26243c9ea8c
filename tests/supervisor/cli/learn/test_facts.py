"""`midwatch facts` over a real journal."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Attempt,
    Certainty,
    Commit,
    Draft,
    Fact,
    FactAct,
    FactMark,
    FactState,
    Record,
)
from midwatch_stage.command import Cli, midwatch, new_attempt, new_task

Say = Callable[..., Awaitable[list[int]]]
REDIS = Fact(
    text="The tests need Redis",
    certainty=Certainty.CONFIRMED,
    files=("tests/conftest.py",),
    tags=("db",),
    value='{"port": 6379}',
    state=FactState.REVIEWED,
)


pytestmark = pytest.mark.usefixtures("named_by_the_environment")


@pytest.fixture
def say(journal: Journal, at: datetime) -> Say:
    """Commits records of an attempt of a project; their ids."""
    of: dict[str, Attempt] = {}

    async def write(*records: Record, project: str = "shop") -> list[int]:
        if project not in of:
            of[project] = await new_attempt(journal, await new_task(journal, project=project))
        it = of[project]
        drafts = [Draft(record=each, at=at, task=it.task, attempt=it.id) for each in records]
        return [entry.id for entry in await journal.commit(Commit(drafts=tuple(drafts)))]

    return write


async def test_a_fact_is_one_object(say: Say, cli: Cli) -> None:
    (number,) = await say(REDIS)
    assert await cli.ask("facts", "list") == [
        {
            "type": "fact",
            "id": number,
            "text": "The tests need Redis",
            "certainty": "confirmed",
            "state": "reviewed",
            "files": ["tests/conftest.py"],
            "tags": ["db"],
            "value": {"port": 6379},
            "live": True,
            "instead": None,
            "ended": None,
            "sources": [1],
            "source_attempt": 1,
            "reason": "",
            "project": "shop",
        }
    ]


async def test_only_what_stands_is_listed_unless_all_is_asked_for(say: Say, cli: Cli) -> None:
    old, new = await say(Fact(text="The app uses React 18"), Fact(text="The app uses React 19"))
    await say(FactMark(fact=old, act=FactAct.REPLACED, instead=new, reason="the review: keep_new"))
    assert [line["id"] for line in await cli.ask("facts", "list")] == [new]
    assert [
        (line["id"], line["live"], line["instead"])
        for line in await cli.ask("facts", "list", "--all")
    ] == [
        (new, True, None),
        (old, False, new),
    ]


async def test_only_those_that_nobody_looked_at_are_listed(say: Say, cli: Cli) -> None:
    _, doubtful = await say(REDIS, Fact(text="The linter is slow"))
    assert (
        await cli.said("facts", "list", "--unreviewed")
        == f"{doubtful} (unreviewed, inferred): The linter is slow\n"
    )


async def test_of_several_projects_one_is_named(say: Say, cli: Cli) -> None:
    await say(REDIS)
    (other,) = await say(Fact(text="The linter is ruff"), project="other")
    assert await midwatch("facts", "list") == 2
    assert [
        (line["id"], line["project"]) for line in await cli.ask("facts", "list", "--project", "oth")
    ] == [(other, "other")]


@pytest.mark.parametrize("json_option", [True, False])
async def test_without_facts_none_are_told(journal: Journal, cli: Cli, json_option: bool) -> None:
    out = await cli.said("facts", "list", *(["--json"] if json_option else []))
    assert out == "" if json_option else out.startswith("there are no facts to list in ")


async def test_a_fact_is_shown_with_what_became_of_it(say: Say, cli: Cli) -> None:
    (number,) = await say(REDIS)
    await midwatch("facts", "retire", str(number), "--from", "ann", "--comment", "no longer")
    said = await cli.said("facts", "show", str(number))
    assert said.startswith(f"{number} (retired): The tests need Redis\n")
    for words in (
        "because:\n  no longer\n",
        'value:\n  {"port": 6379}\n',
        "files:\n  tests/conftest.py\n",
        f"where it comes from:\n  task fix, attempt 1, in shop; entry {number}\n",
    ):
        assert words in said
    assert said.endswith(" retired by ann: no longer\n")


async def test_a_fact_is_taken_back_and_restored(say: Say, cli: Cli) -> None:
    (number,) = await say(REDIS)
    assert (await cli.said("facts", "retire", str(number))).startswith(f"fact {number} is retired")
    assert await cli.ask("facts", "list") == []
    assert await midwatch("facts", "restore", str(number), "--comment", "it is so") == 0
    (line,) = await cli.ask("facts", "show", str(number))
    assert (line["live"], line["reason"]) == (True, "it is so")


async def test_of_several_projects_status_names_that_where_facts_wait(say: Say, cli: Cli) -> None:
    await say(REDIS)
    await say(Fact(text="Docs are built by hand", state=FactState.WAITING), project="a shed")
    told = await cli.said("status")
    assert "facts waiting for you: 1 (`midwatch facts list --project 'a shed'`)" in told


async def test_facts_that_wait_are_counted_listed_and_approved(say: Say, cli: Cli) -> None:
    waits = Fact(text="Tests run with make check", state=FactState.WAITING)
    numbers = await say(waits, replace(waits, text="Ruff is run by make lint"))
    await say(FactMark(fact=numbers[1], act=FactAct.HELD, reason="it names a command"))
    assert "facts waiting for you: 2 (`midwatch facts list`)" in await cli.said("status")
    unread = {"type": "unread", "lessons": 0, "facts": 2}
    assert unread in await cli.ask("status")
    assert (await cli.said("facts", "list")).splitlines() == [
        f"{numbers[1]} (waiting: it names a command, inferred): Ruff is run by make lint",
        f"{numbers[0]} (waiting, inferred): Tests run with make check",
    ]
    assert await midwatch("facts", "approve", *map(str, numbers)) == 0
    assert [line["state"] for line in await cli.ask("facts", "list")] == ["reviewed"] * 2
    assert await midwatch("facts", "approve", str(numbers[0])) == 2


@pytest.mark.parametrize("what", ["facts", "lessons"])
async def test_who_approves_nothing_hears_of_the_list(say: Say, cli: Cli, what: str) -> None:
    await say(Fact(text="Tests run with make check", state=FactState.WAITING))
    assert f"`midwatch {what} list` shows them" in await cli.refused(what, "approve")


async def test_a_dry_run_only_says_what_it_would_do(say: Say, cli: Cli) -> None:
    (number,) = await say(REDIS)
    assert (await cli.said("facts", "retire", str(number), "--dry-run")).startswith(
        f"fact {number} would be retired"
    )
    assert len(await cli.ask("facts", "list")) == 1


@pytest.mark.parametrize("dry", [False, True])
async def test_each_mark_is_one_object(say: Say, journal: Journal, cli: Cli, dry: bool) -> None:
    (number,) = await say(REDIS)
    options = ["--dry-run"] if dry else []
    (line,) = await cli.ask("facts", "retire", str(number), *options)
    marks = [entry.id for entry in await journal.entries(kinds=(FactMark,))]
    assert line == {
        "type": "fact_mark",
        "id": None if dry else marks[0],
        "fact": number,
        "act": "retired",
        "dry_run": dry,
    }
    assert len(marks) == (0 if dry else 1)


async def test_what_changes_nothing_or_is_not_there_is_refused(say: Say, cli: Cli) -> None:
    (number,) = await say(REDIS)
    assert f"fact {number}: it is already in use" in await cli.refused(
        "facts", "restore", str(number)
    )
    for act in ("show", "retire"):
        assert "no fact 999; `midwatch facts list --all`" in await cli.refused("facts", act, "999")
