"""Commands and places are found by their names: what can be done first, and why the rest cannot."""

from collections.abc import AsyncGenerator

import pytest
from textual.command import CommandList, DiscoveryHit, Hit

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Lifecycle, PermissionRequest
from midwatch_supervisor.tui.command_palette import ConsoleCommands
from midwatch_supervisor.tui.jump import JumpDialog, JumpTarget, places, targets
from midwatch_supervisor.tui.screens.attempt import AttemptScreen
from midwatch_supervisor.tui.state.row import Row
from midwatch_tests.console import ConsoleDriver, console_in, console_of
from midwatch_tests.factories import reflecting, step, transition
from midwatch_tests.rows import row

Watch = ConsoleDriver[Journal]
AGAIN = "Restart it, or begin a finished task again, with a note"
APPROVE = "Approve a decision or a worker's request"


@pytest.fixture(scope="module")
async def watch(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Watch]:
    """The console on an attempt that works, for tests that write nothing."""
    async with console_in(tmp_path_factory.mktemp("palette"), transition()) as driver:
        yield driver


async def palette_commands(watch: Watch, letters: str = "") -> dict[str, str]:
    """What the palette lists for some letters, the best first: each command with its help."""
    commands = ConsoleCommands(watch.app.screen)
    hits: list[Hit | DiscoveryHit] = []
    async for hit in commands.search(letters) if letters else commands.discover():
        assert isinstance(hit, Hit | DiscoveryHit)
        hits.append(hit)
    hits.sort(key=lambda hit: hit.score, reverse=True)
    return {str(hit.text): hit.help or "" for hit in hits}


async def test_our_commands_come_first_and_what_makes_no_sense_is_left_out(watch: Watch) -> None:
    lines = [*await palette_commands(watch)]
    assert lines[0] == "Send guidance to the worker"
    assert lines.index("Quit the console") < lines.index("Quit")
    assert APPROVE not in lines
    ours = {*lines, APPROVE} - {"Quit", "Theme", "Keys", "Maximize", "Screenshot"}
    for letters in ("quit", "theme", "pause", "guid", "approve"):
        of_ours = [line in ours for line in await palette_commands(watch, letters)]
        assert of_ours == sorted(of_ours, reverse=True)


async def test_a_restart_is_found_by_its_names(watch: Watch) -> None:
    for letters in ("restart", "begin again", "restart task"):
        first, *_ = await palette_commands(watch, letters)
        assert first == AGAIN


async def test_what_is_searched_for_and_makes_no_sense_now_says_why(watch: Watch) -> None:
    help = (await palette_commands(watch, "approve"))[APPROVE]
    assert help == "key a; not now: no decision is waiting for approval"
    await watch.press("4")
    stop = "Stop the attempt"
    assert not {AGAIN, stop} & {*await palette_commands(watch)}
    assert (await palette_commands(watch, "stop"))[stop] == "key x; not now: no attempt is selected"
    await watch.press("1")


async def test_what_an_agent_asks_for_is_no_markup_in_the_palette(journal: Journal) -> None:
    asks = PermissionRequest(tool="execute", what="run `make [/b]`")
    parked = transition(Lifecycle.INPUT_REQUIRED)
    async with console_of(journal, transition(), asks, parked) as ui:
        await ui.press("ctrl+p", *"pause")
        commands = ui.app.screen.query_one(CommandList)
        await ui.until(lambda: bool(commands.option_count))
        assert "run `make [/b]`" in str(commands.get_option_at_index(0).prompt)


WORKING = transition()


def with_title(row: Row, title: str) -> Row:
    row.title = title
    return row


ROWS = (
    with_title(row(id=1, name="delivery"), "Deliveries skip holidays"),
    row(id=4, name="delivery", number=2),
    row(id=2, name="delivery-notes"),
    row(id=3, name="express-delivery"),
    with_title(row(id=5, name="plan"), "A plan for Nodes"),
)


def target_names(text: str, *, in_attempt: bool = False) -> list[str]:
    known = places(in_attempt=in_attempt)
    return [each.name for each in targets(text, known, ROWS, in_attempt=in_attempt)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("delivery", ["delivery#2", "delivery#1", "delivery-notes#1", "express-delivery#1"]),
        ("Delivery#1", ["delivery#1", "express-delivery#1"]),
        ("nodes", ["nodes", "plan#1"]),
        ("holiday", ["delivery#1"]),
        ("17", []),
        ("nowhere", []),
    ],
)
def test_equal_names_and_newest_attempts_come_first(text: str, found: list[str]) -> None:
    assert target_names(text) == found


def test_in_an_attempt_a_number_is_a_step_and_its_sides_come_first() -> None:
    assert target_names("")[:3] == ["fleet", "checkpoints", "attention"]
    assert target_names("", in_attempt=True)[:2] == ["timeline", "alerts"]
    assert target_names("17", in_attempt=True) == target_names("017", in_attempt=True) == ["17"]
    assert target_names("1" * 5_000, in_attempt=True) == []
    assert target_names("plan", in_attempt=True) == ["plan", "plan#1"]


def test_what_agents_wrote_does_nothing_in_the_list() -> None:
    evil = with_title(row(name="a\x1b[31m"), "\u202eb")
    (found,) = targets("a", (), [evil], in_attempt=False)
    assert (found.name, found.what) == ("a#1", f"{evil.status}: b")
    assert isinstance(found, JumpTarget)


@pytest.fixture(scope="module")
async def shared_console(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Watch]:
    """A console on the tasks `fix` and `port`; the first of them has made twenty steps."""
    steps = (step(number) for number in range(1, 20))
    async with console_in(tmp_path_factory.mktemp("jump"), WORKING, *steps) as driver:
        await driver.write(WORKING, task="port")
        await driver.write(reflecting(20))
        yield driver


@pytest.fixture
async def ui(shared_console: Watch) -> Watch:
    await shared_console.first_screen()
    await shared_console.press("1")
    return shared_console


async def test_a_pane_is_reached_by_its_name_from_anywhere(ui: Watch) -> None:
    await ui.press("colon", *"over", "enter")
    assert ui.tab == "overview-tab"
    await ui.open_attempt()
    await ui.press("colon", *"fleet", "enter")
    assert (ui.tab, ui.opened) == ("fleet-tab", None)


async def test_an_attempt_is_reached_by_its_name_also_from_another(ui: Watch) -> None:
    await ui.press("colon", *"fix", "enter")
    assert ui.opened == "fix"
    await ui.press("colon", *"port#1", "enter")
    assert ui.opened == "port"
    assert len(ui.app.screen_stack) == 2


async def test_in_an_attempt_a_side_and_a_step_are_reached(ui: Watch) -> None:
    view = await ui.open_attempt()
    await ui.press("colon", *"plan", "enter")
    assert view.tab == "plan"
    await ui.press("colon", *"07", "enter")
    assert view.tab == "timeline"
    assert "   7 " in ui.cursor_line
    await ui.press("colon", *"70", "enter")
    assert ui.app.noticed == ["the timeline has no step 70"]


async def test_an_unknown_name_says_what_is_near_and_arrows_choose(ui: Watch) -> None:
    await ui.press("colon", *"flet", "enter")
    said = ui.text("#targets-pane > .nothing")
    assert said == "Nothing is named 'flet'. Similar: fleet."
    assert isinstance(ui.app.screen, JumpDialog)
    await ui.press("escape")
    assert not isinstance(ui.app.screen, JumpDialog | AttemptScreen)
    await ui.press("colon", "down", "down", "down", "up", "enter")
    assert ui.tab == "attention-tab"
