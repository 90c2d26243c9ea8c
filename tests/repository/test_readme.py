"""What the README shows is what the code takes, and the glossary has the words of the screen."""

import re
import tomllib
from pathlib import Path

import yaml

from midwatch_agents.model_choice import PROVIDERS
from midwatch_monitor.config.tasks import TaskFile
from midwatch_monitor.records import Health, Lifecycle
from midwatch_supervisor.cli.app import GROUPS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
COMMANDS = (ROOT / "docs" / "commands.md").read_text("utf-8")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]


def blocks(language: str) -> list[str]:
    """The README's code blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.M | re.S)


def section(heading: str) -> str:
    """The README's text under one second-level heading."""
    return README.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]


def test_the_two_promised_commands_are_marked() -> None:
    assert "<!-- demo -->\n```sh\npip install uv && uv run midwatch demo\n```" in README
    assert "<!-- tests -->\n```sh\npip install uv && uv run pytest\n```" in README


def test_the_task_files_are_valid() -> None:
    files = [TaskFile.model_validate(yaml.safe_load(each)) for each in blocks("yaml")]
    assert [(task.id, task.depends_on) for file in files for task in file.tasks] == [
        ("rounding", ()),
        ("changelog", ("rounding",)),
        ("export", ()),
    ]


def test_every_command_is_in_its_group_of_the_page_and_no_other() -> None:
    parts = re.split(r"^## (.+)$", COMMANDS, flags=re.M)[1:]
    page = dict(zip(parts[::2], parts[1::2], strict=True))
    named = {
        group: {
            name
            for row in page[group].splitlines()
            if row.startswith("| `midwatch")
            for name in re.findall(r"`midwatch ([a-z]+)", row.split(" | ")[0])
        }
        for group in GROUPS
    }
    assert named == {group: set(commands) for group, commands in GROUPS.items()}


def test_every_model_that_is_chosen_by_a_key_is_on_the_page() -> None:
    rows = re.findall(r"^\| (`[A-Z_]+_API_KEY`.*) \| `(.+)` \|$", COMMANDS, re.M)
    told = [(tuple(re.findall(r"`(\w+)`", keys)), model) for keys, model in rows]
    assert told == [(provider.keys, provider.model) for provider in PROVIDERS]


def test_the_example_of_an_own_agent_is_the_promised_line() -> None:
    (code,) = blocks("python")
    assert "capabilities=[Watch()]" in code


def test_the_tokens_are_those_of_the_page_about_them() -> None:
    """Whose bytes are measured by tests/tools/watch/test_embedded.py."""
    page = (ROOT / "docs" / "tokens.md").read_text("utf-8")
    rows = re.findall(
        r"(?m)^\| (`(?:Watch|midwatch run).*?) \| ([\d,]+) \|$", section("Cost in tokens")
    )
    assert len(rows) == 5
    for what, tokens in rows:
        assert re.search(
            rf"(?m)^\| {re.escape(what.partition(':')[0])} \| [\d,]+ \| {tokens} \|$", page
        )


def test_every_extra_is_named() -> None:
    assert {extra for extra in EXTRAS if f"`{extra}`" not in section("Models")} == set()


def test_every_folder_is_in_the_layout() -> None:
    names = [path.parent.name for path in sorted(ROOT.glob("[a-z]*/README.md"))]
    assert [name for name in names if f"\n{name}/ " not in section("The repository")] == []


def test_every_state_of_an_attempt_is_in_the_glossary() -> None:
    lines = (ROOT / "docs" / "glossary.md").read_text("utf-8").splitlines()
    told = {line.split("**")[1]: line for line in lines if line.startswith("| **")}
    assert [each for each in Lifecycle if f"`{each}`" not in told["lifecycle"]] == []
    assert [each for each in Health if f"`{each}`" not in told["health"]] == []
