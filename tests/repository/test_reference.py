"""The reference pages say what the code says, and the API is what they show."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast, get_args, get_type_hints

import pytest

from midwatch_monitor.config.section import Section
from midwatch_monitor.config.settings import Settings
from midwatch_supervisor.cli.run.conduct import EXIT_CODES
from midwatch_tests.page_blocks import ROOT
from midwatch_tests.reference import COMMAND, pages
from midwatch_tests.reference.api import API, documented
from midwatch_tests.reference.settings import undocumented
from midwatch_tools import Watch

MADE = pages()
NAMES = [(module, name) for module, names in API.items() for name in names]


@pytest.mark.parametrize("page", MADE, ids=str)
def test_a_page_is_what_the_code_says(page: Path) -> None:
    stands = (ROOT / "docs" / page).read_text("utf-8")
    assert stands == MADE[page], f"docs/{page} differs from the code: {COMMAND}"


def test_the_command_that_writes_them_is_told_to_contributors() -> None:
    assert COMMAND in (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def test_every_key_says_what_it_means() -> None:
    assert undocumented() == []


def test_every_key_of_the_configuration_has_its_row() -> None:
    page = MADE[Path("reference/configuration.md")] + MADE[Path("reference/rules.md")]
    told = set(re.findall(r"(?m)^\| `([\w.]+)` \|", page))
    for path in _keys(Settings()):
        assert {path, re.sub(r"^rules\.\w+\.", "rules.RULE.", path)} & told, path


def _keys(section: Section, at: str = "") -> Iterator[str]:
    for name, value in section:
        if isinstance(value, Section):
            yield from _keys(value, f"{at}{name}.")
        else:
            yield at + name


def test_the_readme_tells_the_same_exit_codes() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", readme, re.M)
    assert [int(code) for code, _ in rows] == list(EXIT_CODES)


def test_midwatch_tools_exports_what_the_page_shows_and_nothing_else() -> None:
    package = importlib.import_module("midwatch_tools")
    modules = {each.name for each in pkgutil.iter_modules(package.__path__)}
    public = {name for name in vars(package) if name[0] != "_"} - modules - {"TYPE_CHECKING"}
    assert set(package.__all__) == set(API["midwatch_tools"]) == public | {"Watch"}


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_documented_name_is_exported_typed_and_says_what_it_is(module: str, name: str) -> None:
    exported = getattr(importlib.import_module(module), "__all__", (name,))
    thing = documented(module, name)
    assert name in exported
    assert thing.__doc__
    functions = [thing] if inspect.isfunction(thing) else []
    functions += [getattr(thing, method) for method in API[module][name]]
    for function in functions:
        hints = get_type_hints(function)
        parameters = set(inspect.signature(function).parameters) - {"self", "cls"}
        assert parameters | {"return"} <= set(hints)
        assert function.__doc__ or function.__name__ == "__init__"


def test_whatever_the_signature_of_watch_needs_is_documented() -> None:
    needed = _classes([*get_type_hints(Watch.__init__).values()])
    ours = {each.__name__ for each in needed if each.__module__.startswith("midwatch_")}
    assert ours >= {"Settings", "Bus", "Alert"}
    assert ours - {name for _, name in NAMES} == set()


def _classes(hint: Any) -> set[type]:
    """The classes of an annotation, down to what a callable takes."""
    inner = cast("list[Any]", hint) if isinstance(hint, list) else get_args(hint)
    if not inner:
        return {hint} if isinstance(hint, type) else set()
    return {each for arg in inner for each in _classes(arg)}


def test_what_the_typing_tests_use_is_documented() -> None:
    used = {
        (module, name.strip())
        for file in (ROOT / "tests" / "typing").glob("*.py")
        for module, names in re.findall(
            r"^from (midwatch_[\w.]+) import (.+)$", file.read_text(), re.M
        )
        for name in names.split(",")
    }
    assert used
    assert used - {*NAMES} == set()
