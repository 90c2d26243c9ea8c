"""`midwatch guidelines`: read versions, and decide on them."""

from textwrap import indent

import pytest

from midwatch_monitor.records import Guidelines, GuidelinesState
from midwatch_stage.command import Cli, midwatch
from midwatch_stage.harness import PastAttempts

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


async def test_c5_a_version_is_in_force_and_shown_once_it_is_approved(
    past: PastAttempts, cli: Cli
) -> None:
    id = await propose(past, FIRST)
    assert await cli.read("guidelines", "show") == [
        "no guidelines are in force in shop; version 1 is waiting"
    ]
    assert await past.learned.live_guidelines("shop") is None
    assert await cli.read("guidelines", "approve", "--from", "Ada") == [
        "version 1 of shop is in force"
    ]
    live = await past.learned.live_guidelines("shop")
    assert live is not None
    assert (live.guidelines.text, live.author) == (FIRST, "Ada")
    assert (await cli.said("guidelines", "show")).endswith(
        f"16 words from 1 attempt\n\n{indent(FIRST, '  ')}\n"
    )
    for named in ("1", str(id)):
        (found,) = await cli.ask("guidelines", "show", named)
        assert (found["id"], found["text"]) == (id, FIRST)
    none = "shop has no version 99 of guidelines; it has: 1\n"
    assert await cli.refused("guidelines", "show", "99") == none


async def test_requirement_20_none_is_in_force_without_an_approval(past: PastAttempts) -> None:
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


async def test_to_retire_is_to_have_none_and_one_that_waits_is_turned_down(
    past: PastAttempts, cli: Cli
) -> None:
    await in_force(past, FIRST, SECOND)
    before = await states(past)
    assert await cli.read("guidelines", "retire", "--dry-run") == [
        "version 2 of shop would be rolled back",
        "so would all versions before it: 1",
    ]
    assert await states(past) == before
    assert await midwatch("guidelines", "retire") == 0
    assert await past.learned.live_guidelines("shop") is None
    await propose(past, "## Third")
    for act in ("approve", "reject", "retire 3"):
        would = await cli.said("guidelines", *act.split(), "--dry-run")
        assert would.startswith("version 3 of shop would be ")
    assert (3, "proposed") in await states(past)
    (found,) = await cli.ask("guidelines", "retire", "3")
    assert (found["type"], found["act"], found["version"]) == ("guidelines_mark", "rejected", 3)
    assert (3, "rejected") in await states(past)


@pytest.mark.parametrize(
    ("act", "said"),
    [
        ("approve", "no version of shop is waiting\n"),
        ("approve 1", "version 1 of shop: it is not proposed; it is rejected\n"),
        ("rollback", "no guidelines are in force in shop\n"),
        ("retire", "no guidelines are in force in shop\n"),
    ],
)
async def test_what_cannot_be_is_said(past: PastAttempts, cli: Cli, act: str, said: str) -> None:
    await propose(past, FIRST)
    await midwatch("guidelines", "reject", "--from", "Ada")
    assert await cli.refused("guidelines", *act.split()) == said


async def test_an_approval_of_an_outdated_version_says_so(past: PastAttempts, cli: Cli) -> None:
    await propose(past, FIRST)
    await propose(past, SECOND)
    await midwatch("guidelines", "approve", "1")
    assert await cli.read("guidelines", "approve", "2") == [
        "It is based on a version that is no longer in force.",
        "version 2 of shop is in force",
    ]


async def test_the_project_is_named_where_there_are_several(past: PastAttempts, cli: Cli) -> None:
    await propose(past, FIRST)
    await propose(past, SECOND, project="/srv/ada/site")
    assert "name the project with --project" in await cli.refused("guidelines", "approve")
    assert await midwatch("guidelines", "approve", "--project", "site") == 0
    assert await states(past, "/srv/ada/site") == [(1, GuidelinesState.LIVE.value)]
    assert await states(past) == [(1, GuidelinesState.PROPOSED.value)]
