"""The command palette finds what can be done now first, and says why the rest cannot be done."""

from collections.abc import AsyncGenerator

import pytest
from textual.command import CommandList, DiscoveryHit, Hit

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Lifecycle, PermissionRequest
from midwatch_stage.console import ConsoleDriver, console_in, console_of
from midwatch_stage.factories import transition
from midwatch_supervisor.tui.command_palette import ConsoleCommands

Watch = ConsoleDriver[Journal]
AGAIN = "Restart it, or begin a finished task again, with a note"
APPROVE = "Approve a decision or a worker's request"


@pytest.fixture(scope="module")
async def watch(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Watch]:
    """The console on an attempt that works, for tests that write nothing."""
    async with console_in(tmp_path_factory.mktemp("palette"), transition()) as driver:
        yield driver


async def found(watch: Watch, letters: str = "") -> dict[str, str]:
    """What the palette lists for some letters, the best first: each command with its help."""
    commands = ConsoleCommands(watch.app.screen)
    hits: list[Hit | DiscoveryHit] = []
    async for hit in commands.search(letters) if letters else commands.discover():
        assert isinstance(hit, Hit | DiscoveryHit)
        hits.append(hit)
    hits.sort(key=lambda hit: hit.score, reverse=True)
    return {str(hit.text): hit.help or "" for hit in hits}


async def test_our_own_commands_come_first_and_what_makes_no_sense_is_left_out(
    watch: Watch,
) -> None:
    lines = [*await found(watch)]
    assert lines[0] == "Send guidance to the worker"
    assert lines.index("Quit the console") < lines.index("Quit")
    assert APPROVE not in lines
    ours = {*lines, APPROVE} - {"Quit", "Theme", "Keys", "Maximize", "Screenshot"}
    for letters in ("quit", "theme", "pause", "guid", "approve"):
        of_ours = [line in ours for line in await found(watch, letters)]
        assert of_ours == sorted(of_ours, reverse=True)


async def test_a_restart_is_found_by_its_names(watch: Watch) -> None:
    for letters in ("restart", "begin again", "restart task"):
        first, *_ = await found(watch, letters)
        assert first == AGAIN


async def test_what_is_searched_for_and_makes_no_sense_now_says_why(watch: Watch) -> None:
    help = (await found(watch, "approve"))[APPROVE]
    assert help == "key a; not now: no decision is waiting for approval"
    await watch.press("4")
    stop = "Stop the attempt"
    assert not {AGAIN, stop} & {*await found(watch)}
    assert (await found(watch, "stop"))[stop] == "key x; not now: no attempt is selected"
    await watch.press("1")


async def test_what_an_agent_asks_for_is_no_markup_in_the_palette(journal: Journal) -> None:
    asks = PermissionRequest(tool="execute", what="run `make [/b]`")
    parked = transition(Lifecycle.INPUT_REQUIRED)
    async with console_of(journal, transition(), asks, parked) as seat:
        await seat.press("ctrl+p", *"pause")
        commands = seat.app.screen.query_one(CommandList)
        await seat.until(lambda: bool(commands.option_count))
        assert "run `make [/b]`" in str(commands.get_option_at_index(0).prompt)
