"""`midwatch demo`: the bundled example, offline."""

from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.source import load_tasks
from midwatch_supervisor.assignment import assignments
from midwatch_supervisor.cli.console import on_terminal
from midwatch_supervisor.cli.journals import JournalOption
from midwatch_supervisor.cli.running import HeadlessOption, home, start
from midwatch_supervisor.cli.settings import JsonOption, settings_in_force
from midwatch_supervisor.demo import make_project


def demo(
    *, journal: JournalOption = None, headless: HeadlessOption = False, json: JsonOption = False
) -> int:
    """Run the bundled example with a scripted model; files, commands and judgements are real."""
    file = make_project(home() / "demo")
    wanted = assignments(load_tasks(file), file.parent)
    return start(
        wanted,
        source="demo",
        settings=Settings(console=settings_in_force(None).console),
        journal=journal,
        console=on_terminal() and not (headless or json),
        json=json,
    )
