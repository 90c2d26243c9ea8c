"""Takes the pictures of the README: `uv run python docs/screenshots.py`.

It runs the bundled demo without a console, about half a minute, in a folder that it removes again.
Then it opens the console on what the journal holds, for the fleet on what it held when the last
critical alert fired. The numbers are those of a real run; only the model of the demo is scripted.
"""

import asyncio
import re
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from textual.pilot import Pilot

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.source import load_tasks
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Alert, Entry, Severity
from midwatch_supervisor.demo import make_project
from midwatch_supervisor.learning.run_learning import RunLearning
from midwatch_supervisor.operator.actions import OperatorActions
from midwatch_supervisor.present.assignment import assignments
from midwatch_supervisor.run.launch import begin_run, conduct
from midwatch_supervisor.tui.app import Console
from midwatch_supervisor.tui.state.feed import Feed, FeedBatch

FOLDER = Path(__file__).parent / "screenshots"
SIZE = (120, 32)
THEN = {"fleet": ()}
AFTERWARDS = {
    "checkpoints": ("2",),
    "overview": ("4",),
    "attempt": ("1", "g", "enter"),
    "chart": ("f4",),
}
"""The keys that lead from one picture to the next."""


class Past(Feed):
    """A feed that ends at one entry: the console shows the journal as it was then."""

    until: datetime

    async def batches(self) -> AsyncGenerator[FeedBatch]:
        """What the journal said until then."""
        async for batch in super().batches():
            entries = tuple(entry for entry in batch.entries if entry.at <= self.until)
            begun = tuple(one for one in batch.attempts if one.started_at <= self.until)
            yield replace(batch, entries=entries, attempts=begun)


async def main() -> None:
    """Run the demo, then take each picture."""
    with tempfile.TemporaryDirectory() as folder:
        async with await Journal.open(Path(folder) / "journal.db") as journal:
            await run_demo(journal, Path(folder))
            entries = await journal.entries(limit=100_000)
            await take(journal, THEN, until=critical(entries))
            await take(journal, AFTERWARDS, until=entries[-1].at)


async def run_demo(journal: Journal, folder: Path) -> None:
    """The demo as `midwatch demo --headless` runs it, on a machine without a name."""
    file = make_project(folder)
    wanted = assignments(load_tasks(file), file.parent)
    resources, jobs = await begin_run(
        journal,
        wanted,
        source="demo",
        settings=Settings(),
        home=folder / "home",
        learning=RunLearning,
    )
    await conduct(replace(resources, node="laptop"), jobs, _hear_nothing)


async def _hear_nothing(entries: Sequence[Entry]) -> None:
    """Nobody looks on."""


async def take(journal: Journal, pictures: Mapping[str, Sequence[str]], *, until: datetime) -> None:
    """Write pictures of the console as it was at a moment."""
    feed = Past(journal, run=1, bus=LocalBus(), poll_seconds=60, hertz=10)
    feed.until = until
    operator = OperatorActions(journal, author="ada")
    about = ("Run 1: 6 tasks", "Sandbox for commands: bubblewrap", "Models: scripted")
    app = Console(feed, operator, now=lambda: until, about=about)
    app.animation_level = "none"
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(1)
        FOLDER.mkdir(exist_ok=True)
        for name, keys in pictures.items():
            await pilot.press(*keys)
            write(name, await drawn(app, pilot))


def critical(entries: Sequence[Entry]) -> datetime:
    """When the last critical alert began to fire."""
    return max(
        entry.at
        for entry in entries
        if isinstance(entry.record, Alert)
        and entry.record.firing
        and entry.record.severity is Severity.CRITICAL
    )


async def drawn(app: Console, pilot: Pilot[int]) -> str:
    """The screen once it is at rest, without fonts from elsewhere."""
    await pilot.pause(1)
    app.clear_notifications()
    await pilot.pause(1)
    return re.sub(r"@font-face \{.*?\}\s*", "", app.export_screenshot(), flags=re.S)


def write(name: str, picture: str) -> None:
    """Write a picture. Raises ValueError if it shows a path of this machine."""
    if tempfile.gettempdir() in picture or str(Path.home()) in picture:
        raise ValueError(f"the picture {name} shows a path of this machine")
    (FOLDER / f"{name}.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
