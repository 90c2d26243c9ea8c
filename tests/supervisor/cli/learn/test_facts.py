"""`midwatch facts` over a real journal."""

import pytest

from midwatch_monitor.records import Attempt, Fact, FactAct, FactMark, FactState
from midwatch_stage.command import Cli, midwatch
from midwatch_stage.harness import PastAttempts

REDIS = Fact(text="The tests need Redis", state=FactState.REVIEWED)
WAITS = Fact(text="Tests run with make check", state=FactState.WAITING)

pytestmark = pytest.mark.usefixtures("named_by_the_environment")


@pytest.fixture
async def shop(past: PastAttempts) -> Attempt:
    return await past.attempt()


@pytest.fixture
async def redis(past: PastAttempts, shop: Attempt) -> int:
    """The id of a reviewed fact."""
    return await past.say(shop, REDIS)


async def test_only_what_stands_is_listed_unless_all_or_what_nobody_looked_at_is_asked_for(
    past: PastAttempts, shop: Attempt, redis: int, cli: Cli
) -> None:
    new = await past.say(shop, Fact(text="The tests need Valkey"))
    await past.say(shop, FactMark(fact=redis, act=FactAct.REPLACED, instead=new, reason="newer"))
    assert [line["id"] for line in await cli.ask("facts", "list")] == [new]
    assert [line["id"] for line in await cli.ask("facts", "list", "--all")] == [new, redis]
    only = [f"{new} (unreviewed, inferred): The tests need Valkey"]
    assert await cli.read("facts", "list", "--unreviewed") == only


async def test_of_several_projects_one_is_named_also_by_status_where_facts_wait(
    past: PastAttempts, redis: int, cli: Cli
) -> None:
    other = await past.say(await past.attempt("a shed"), WAITS)
    assert "name the project with --project" in await cli.refused("facts", "list")
    (line,) = await cli.ask("facts", "list", "--project", "a s")
    assert (line["id"], line["project"]) == (other, "a shed")
    told = "facts waiting for you: 1 (`midwatch facts list --project 'a shed'`)"
    assert told in await cli.said("status")


async def test_without_facts_none_are_told(past: PastAttempts, cli: Cli) -> None:
    assert await cli.ask("facts", "list") == []
    assert (await cli.said("facts", "list")).startswith("there are no facts to list in ")


async def test_a_fact_is_taken_back_shown_with_what_became_of_it_and_restored(
    past: PastAttempts, redis: int, cli: Cli
) -> None:
    number = str(redis)
    mark = {"type": "fact_mark", "fact": redis, "act": "retired"}
    would = [{**mark, "id": None, "dry_run": True}]
    assert await cli.ask("facts", "retire", number, "--dry-run") == would
    said = await cli.said("facts", "retire", number, "--dry-run")
    assert said.startswith(f"fact {number} would be retired")
    because = ("--from", "ann", "--comment", "no longer")
    assert await cli.ask("facts", "retire", number, *because) == [
        {**mark, "id": redis + 1, "dry_run": False}
    ]
    assert len(await past.told(FactMark)) == 1
    assert await cli.ask("facts", "list") == []
    said = await cli.said("facts", "show", number)
    assert said.startswith(f"{number} (retired, inferred): The tests need Redis\n")
    assert said.endswith(" retired by ann: no longer\n")
    assert await midwatch("facts", "restore", number, "--comment", "it is so") == 0
    (line,) = await cli.ask("facts", "show", number)
    assert (line["live"], line["reason"]) == (True, "it is so")
    already = await cli.refused("facts", "restore", number)
    assert f"fact {number}: it is already in use" in already
    for act in ("show", "retire"):
        assert "no fact 999; `midwatch facts list --all`" in await cli.refused("facts", act, "999")


async def test_facts_that_wait_are_counted_listed_and_approved(
    past: PastAttempts, shop: Attempt, cli: Cli
) -> None:
    ids = [await past.say(shop, each) for each in (WAITS, Fact(text="x", state=FactState.WAITING))]
    await past.say(shop, FactMark(fact=ids[1], act=FactAct.HELD, reason="it names a command"))
    assert "facts waiting for you: 2 (`midwatch facts list`)" in await cli.said("status")
    assert {"type": "unread", "lessons": 0, "facts": 2} in await cli.ask("status")
    assert await cli.read("facts", "list") == [
        f"{ids[1]} (waiting: it names a command, inferred): x",
        f"{ids[0]} (waiting, inferred): Tests run with make check",
    ]
    assert "`midwatch facts list` shows them" in await cli.refused("facts", "approve")
    assert await midwatch("facts", "approve", *map(str, ids)) == 0
    assert [line["state"] for line in await cli.ask("facts", "list")] == ["reviewed"] * 2
    assert await midwatch("facts", "approve", str(ids[0])) == 2
