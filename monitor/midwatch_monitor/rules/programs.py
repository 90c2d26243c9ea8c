"""Commands and tools by which a worker looks whether the work is right."""

import re

_TESTS = re.compile(
    r"(?i)\b(?:pytest|py\.test|tox|nox|unittest|runtests|nosetests|jest|vitest|mocha|rspec|phpunit"
    r"|ctest|gradlew? \S*test|mvnw? \S*test|(?:npm|yarn|pnpm|bun)(?: run)? \S*test"
    r"|(?:go|cargo|dotnet|make|mix|swift|rake|manage\.py) \S*test|bin/test|test_runner)"
)
"""Commands and tools that run tests."""
_RUN = re.compile(r"(?:^|[\s;&|(/])(?:python[\d.]*|node|ruby|perl|php|java|bash|sh|\./\S+)\s")
"""Commands that run a program of the work."""
_TEST_TOOL = re.compile(r"(?i)(?:^|_)(?:test|tests|pytest|check|checks)(?:_|$)")
_HINT = re.compile(r"(?i)test|tox|nox|jest|mocha|rspec|check")


def tests(tool: str, line: str) -> bool:
    """Whether a call runs tests."""
    if line:
        return bool(_HINT.search(line) and _TESTS.search(line))
    return bool(_TEST_TOOL.search(tool))


def runs(line: str) -> bool:
    """Whether a command runs a program of the work."""
    return bool(_RUN.search(line))
