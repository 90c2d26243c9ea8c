"""What a command tells by its words: whether it looks if the work is right, or changes files."""

import re
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from midwatch_monitor.shell import reverts

_TESTS = re.compile(
    r"(?i)\b(?:pytest|py\.test|tox|nox|unittest|runtests|nosetests|jest|vitest|mocha|rspec|phpunit"
    r"|ctest|gradlew? \S*test|mvnw? \S*test|(?:npm|yarn|pnpm|bun)(?: run)? \S*test"
    r"|(?:go|cargo|dotnet|make|mix|swift|rake|manage\.py) \S*test|bin/test|test_runner)"
)
"""Commands and tools that run tests."""
_RUN = re.compile(r"(?:^|[\s;&|(/])(?:python[\d.]*|node|ruby|perl|php|java|bash|sh|\./\S+)\s")
"""Commands that run a program of the work."""
_TEST_TOOL = re.compile(r"(?i)(?:^|_)(?:test|tests|pytest|check|checks)(?:_|$)")
_HINTS = ("test", "tox", "nox", "jest", "mocha", "rspec")
"""Every command that runs tests has one of these in its line: looking for them is cheap."""
_SWAPS = re.compile(
    r"\bgit (?:-\S+ )*(?:bisect|switch|checkout|reset|merge|pull|rebase|cherry-pick)\b"
)
_SHORT = 500
"""Characters of a command that is remembered: what is short comes again, in every attempt."""


class Check(Enum):
    """What an act tells of the work."""

    NONE = 0
    RUN = 1
    """It ran something of the work."""
    TESTS = 2


class Told(NamedTuple):
    """What a command tells."""

    check: Check = Check.NONE
    """Whether it looks if the work is right."""
    reverts: tuple[str, ...] = ()
    """What it puts back to a state under version control."""
    swaps: bool = False
    """Whether the whole tree of files becomes another one."""
    sleeps: bool = False
    """Whether it waits before it does something."""


NO_COMMAND = Told()


def read(line: str) -> Told:
    """What a command tells."""
    return _known(line) if len(line) <= _SHORT else _read(line)


@lru_cache(maxsize=512)
def _known(line: str) -> Told:
    return _read(line)


def _read(line: str) -> Told:
    of_git = "git" in line
    put_back = reverts(line) if of_git else ()
    swaps = of_git and not put_back and _SWAPS.search(line) is not None
    return Told(_check(line), put_back, swaps, line.startswith("sleep "))


def _check(line: str) -> Check:
    if _hinted(line) and any(_hinted(each) and _TESTS.search(each) for each in line.split("\n")):
        return Check.TESTS
    return Check.RUN if _RUN.search(line) else Check.NONE


def _hinted(line: str) -> bool:
    lower = line.lower()
    return any(hint in lower for hint in _HINTS)


@lru_cache(maxsize=512)
def checks(tool: str) -> Check:
    """Whether a tool without a command runs tests, by its name."""
    return Check.TESTS if _TEST_TOOL.search(tool) else Check.NONE


def tests(tool: str, line: str) -> bool:
    """Whether a call runs tests."""
    return (read(line).check if line else checks(tool)) is Check.TESTS
