"""`midwatch guidelines`: read versions, and decide on them."""

import pytest

from midwatch_monitor.records import Guidelines, GuidelinesState
from midwatch_tests.command import Cli, midwatch
from midwatch_tests.harness import PastAttempts

FIRST = "## Working style\n\n- Run the failing test first.\n- Ask where a rule is missing."
SECOND = "## Working style\n\n- Run the failing test first.\n- Look at the whole file."


pytestmark = pytest.mark.usefixtures("named_by_the_environment")


async def propose(past: PastAttempts, text: str, *, project: str = "shop") -> int:
    """A new version, as a look back writes it; its journal id."""
    attempt = await past.attempt(project)
    versions = await past.learned.guidelines(project)
    live = await past.learned.live_guidelines(project)
    proposal = Guidelines(
        version=len(versions) + 1,
        text=text,
        base=live.id if live else None,
        sources=(attempt.id,),
        model="m",
    )
    return await past.say(attempt, proposal)


async def states(past: PastAttempts, project: str = "shop") -> list[tuple[int, str]]:
    versions = await past.learned.guidelines(project)
    return [(each.guidelines.version, each.state.value) for each in versions]


async def in_force(past: PastAttempts, *texts: str) -> int:
    """Versions of which each was approved; the id of the last."""
    id = 0
    for text in texts:
        id = await propose(past, text)
        assert await midwatch("guidelines", "approve", "--from", "Ada", "--comment", "Good.") == 0
    return id


async def test_without_any_version_or_any_that_waits_that_is_said(
    past: PastAttempts, cli: Cli
) -> None:
    await past.attempt("shop")
    assert await cli.read("guidelines", "list") == ["shop has no guidelines yet"]
    assert await cli.ask("guidelines", "list") == []
    await in_force(past, FIRST)
    assert await cli.read("guidelines", "diff") == ["no version of shop is waiting"]


async def test_c5_requirement_20_none_is_in_force_without_an_approval(past: PastAttempts) -> None:
    await propose(past, FIRST)
    await propose(past, SECOND)
    assert await midwatch("guidelines", "reject", "2", "--comment", "Too vague.") == 0
    assert await states(past) == [(2, "rejected"), (1, "proposed")]
    assert await past.learned.live_guidelines("shop") is None


async def test_requirement_20_a_rollback_restores_the_text(past: PastAttempts, cli: Cli) -> None:
    await in_force(past, f"{FIRST}\n\n```\n  exact \t\n```", SECOND)
    assert (
        await cli.said("guidelines", "rollback", "--comment", "It made things worse.")
        == "version 2 of shop is rolled back\nversion 1 is in force\n"
    )
    live = await past.learned.live_guidelines("shop")
    assert live is not None
    assert live.guidelines.text == f"{FIRST}\n\n```\n  exact \t\n```"


async def test_the_project_is_named_where_there_are_several(past: PastAttempts, cli: Cli) -> None:
    await propose(past, FIRST)
    await propose(past, SECOND, project="/srv/ada/site")
    assert "name the project with --project" in await cli.refused("guidelines", "approve")
    assert await midwatch("guidelines", "approve", "--project", "site") == 0
    assert await states(past, "/srv/ada/site") == [(1, GuidelinesState.LIVE.value)]
    assert await states(past) == [(1, GuidelinesState.PROPOSED.value)]
