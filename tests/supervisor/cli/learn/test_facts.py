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
from midwatch_stage.command import ask, midwatch, new_attempt, new_task, objects

Capture = pytest.CaptureFixture[str]
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


async def test_a_fact_is_one_object(say: Say, capsys: Capture) -> None:
    (number,) = await say(REDIS)
    assert await midwatch("facts", "list", "--json") == 0
    assert objects(capsys) == [
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


async def test_only_what_stands_is_listed_unless_all_is_asked_for(
    say: Say, capsys: Capture
) -> None:
    old, new = await say(Fact(text="The app uses React 18"), Fact(text="The app uses React 19"))
    await say(FactMark(fact=old, act=FactAct.REPLACED, instead=new, reason="the review: keep_new"))
    await midwatch("facts", "list", "--json")
    assert [line["id"] for line in objects(capsys)] == [new]
    await midwatch("facts", "list", "--all", "--json")
    assert [(line["id"], line["live"], line["instead"]) for line in objects(capsys)] == [
        (new, True, None),
        (old, False, new),
    ]


async def test_only_those_that_nobody_looked_at_are_listed(say: Say, capsys: Capture) -> None:
    _, doubtful = await say(REDIS, Fact(text="The linter is slow"))
    await midwatch("facts", "list", "--unreviewed")
    assert capsys.readouterr().out == f"{doubtful} (unreviewed, inferred): The linter is slow\n"


async def test_of_several_projects_one_is_named(say: Say, capsys: Capture) -> None:
    await say(REDIS)
    (other,) = await say(Fact(text="The linter is ruff"), project="other")
    assert await midwatch("facts", "list") == 2
    assert await midwatch("facts", "list", "--project", "oth", "--json") == 0
    assert [(line["id"], line["project"]) for line in objects(capsys)] == [(other, "other")]


@pytest.mark.parametrize("json_option", [True, False])
async def test_where_there_is_nothing_nothing_is_told(
    journal: Journal, capsys: Capture, json_option: bool
) -> None:
    assert await midwatch("facts", "list", *(["--json"] if json_option else [])) == 0
    out = capsys.readouterr().out
    assert out == "" if json_option else out.startswith("there are no facts to list in ")


async def test_a_fact_is_shown_with_what_became_of_it(say: Say, capsys: Capture) -> None:
    (number,) = await say(REDIS)
    await midwatch("facts", "retire", str(number), "--from", "ann", "--comment", "no longer")
    capsys.readouterr()
    assert await midwatch("facts", "show", str(number)) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{number} (retired): The tests need Redis\n")
    for words in (
        "because:\n  no longer\n",
        'value:\n  {"port": 6379}\n',
        "files:\n  tests/conftest.py\n",
        f"where it comes from:\n  task fix, attempt 1, in shop; entry {number}\n",
    ):
        assert words in said
    assert said.endswith(" retired by ann: no longer\n")


async def test_a_fact_is_taken_back_and_restored(say: Say, capsys: Capture) -> None:
    (number,) = await say(REDIS)
    assert await midwatch("facts", "retire", str(number)) == 0
    assert await midwatch("facts", "list", "--json") == 0
    assert capsys.readouterr().out.startswith(f"fact {number} is retired")
    assert await midwatch("facts", "restore", str(number), "--comment", "it is so") == 0
    capsys.readouterr()
    await midwatch("facts", "show", str(number), "--json")
    (line,) = objects(capsys)
    assert (line["live"], line["reason"]) == (True, "it is so")


async def test_of_several_projects_status_names_the_one_where_facts_wait(
    say: Say, capsys: Capture
) -> None:
    await say(REDIS)
    await say(Fact(text="Docs are built by hand", state=FactState.WAITING), project="a shed")
    await midwatch("status")
    told = capsys.readouterr().out
    assert "facts waiting for you: 1 (`midwatch facts list --project 'a shed'`)" in told


async def test_facts_that_wait_are_counted_listed_with_the_reason_and_approved(
    say: Say, capsys: Capture
) -> None:
    waits = Fact(text="Tests run with make check", state=FactState.WAITING)
    numbers = await say(waits, replace(waits, text="Ruff is run by make lint"))
    await say(FactMark(fact=numbers[1], act=FactAct.HELD, reason="it names a command"))
    await midwatch("status")
    assert "facts waiting for you: 2 (`midwatch facts list`)" in capsys.readouterr().out
    unread = {"type": "unread", "lessons": 0, "facts": 2}
    assert unread in await ask(capsys, "status")
    await midwatch("facts", "list")
    assert capsys.readouterr().out.splitlines() == [
        f"{numbers[1]} (waiting: it names a command, inferred): Ruff is run by make lint",
        f"{numbers[0]} (waiting, inferred): Tests run with make check",
    ]
    assert await midwatch("facts", "approve", *map(str, numbers)) == 0
    capsys.readouterr()
    await midwatch("facts", "list", "--json")
    assert [line["state"] for line in objects(capsys)] == ["reviewed"] * 2
    assert await midwatch("facts", "approve", str(numbers[0])) == 2


@pytest.mark.parametrize("what", ["facts", "lessons"])
async def test_who_approves_nothing_hears_where_they_are_listed(
    say: Say, capsys: Capture, what: str
) -> None:
    await say(Fact(text="Tests run with make check", state=FactState.WAITING))
    assert await midwatch(what, "approve") == 2
    assert f"`midwatch {what} list` shows them" in capsys.readouterr().err


async def test_a_dry_run_only_says_what_it_would_do(say: Say, capsys: Capture) -> None:
    (number,) = await say(REDIS)
    assert await midwatch("facts", "retire", str(number), "--dry-run") == 0
    assert capsys.readouterr().out.startswith(f"fact {number} would be retired")
    await midwatch("facts", "list", "--json")
    assert len(objects(capsys)) == 1


@pytest.mark.parametrize("dry", [False, True])
async def test_what_is_done_to_a_fact_is_one_object(
    say: Say, journal: Journal, capsys: Capture, dry: bool
) -> None:
    (number,) = await say(REDIS)
    options = ["--dry-run"] if dry else []
    assert await midwatch("facts", "retire", str(number), "--json", *options) == 0
    marks = [entry.id for entry in await journal.entries(kinds=(FactMark,))]
    (line,) = objects(capsys)
    assert line == {
        "type": "fact_mark",
        "id": None if dry else marks[0],
        "fact": number,
        "act": "retired",
        "dry_run": dry,
    }
    assert len(marks) == (0 if dry else 1)


async def test_what_changes_nothing_or_is_not_there_is_refused(say: Say, capsys: Capture) -> None:
    (number,) = await say(REDIS)
    assert await midwatch("facts", "restore", str(number)) == 2
    assert f"fact {number}: it is already in use" in capsys.readouterr().err
    for act in ("show", "retire"):
        assert await midwatch("facts", act, "999") == 2
        assert "no fact 999; `midwatch facts list --all`" in capsys.readouterr().err
