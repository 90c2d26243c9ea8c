"""The reference pages as the code says them: settings, task files, rules, commands, Python."""

from pathlib import Path

from midwatch_tests.reference.api import api_page
from midwatch_tests.reference.commands import commands_page
from midwatch_tests.reference.settings import configuration_page, rules_page, tasks_page

COMMAND = "uv run python docs/reference.py"
"""Writes the pages anew."""


def pages() -> dict[Path, str]:
    """The text of each page, by its path below `docs`."""
    note = f"\n\n<!-- Written from the code by `{COMMAND}`: change the code. -->\n"
    made = {
        "reference/configuration.md": configuration_page(),
        "reference/rules.md": rules_page(),
        "reference/tasks.md": tasks_page(),
        "reference/commands.md": commands_page(),
        "api.md": api_page(),
    }
    return {Path(name): text.replace("\n", note, 1) for name, text in made.items()}
