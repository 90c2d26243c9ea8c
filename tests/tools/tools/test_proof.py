"""What shows that something works, and whether what a worker reports says anything."""

from typing import Any

import pytest
from pydantic_ai.messages import ToolCallPart

from midwatch_monitor.records import Cause
from midwatch_tools.tools.proof import ErrorReport, Statements, is_check, shows_claim, statements_in

CLAIM = "rounding of totals works"
HEREDOC = "python - <<'EOF'\nfrom totals import rounded\nassert rounded(1) == 1\nEOF"
WRITTEN = "cat > test_totals.py <<EOF\nimport pytest\npytest.main()\nEOF"


@pytest.mark.parametrize(
    "command",
    [
        'git commit -am "Fix rounding of totals; pytest tests pass"',
        "pytest --version",
        "python3 -m pytest --collect-only",
        "pip install pytest",
        "python -m pip install pytest",
        'python3 -c "print(1)"',
        'python3 -c "import sys; print(sys.version)"',
        "echo rounding totals; true",
        "cat totals.py | grep rounding",
        "sed -i s/a/b/ totals.py",
        "command -v pytest",
        "git add my_test",
        "touch pytest.ini",
        'bash -c "echo pytest"',
        ".venv/bin/ruff check totals.py",
        WRITTEN,
    ],
)
def test_what_runs_neither_tests_nor_the_work_shows_nothing(command: str) -> None:
    assert not shows_claim(command, CLAIM)


@pytest.mark.parametrize(
    "command",
    [
        "pytest -v",
        "cd /w && .venv/bin/python -m pytest -q 2>&1 | tail -3",
        "python3 -B -m unittest tests.test_totals",
        "uv run pytest -q",
        "PYTHONPATH=. timeout 30 python3 app.py",
        "make test",
        "npm run test",
        "bash run.sh",
        'bash -lc "pytest -q"',
        "node index.js",
        "if pytest; then date; fi",
        "run_tests",
        'python -c "import totals; assert totals.rounded(1) == 1"',
        HEREDOC,
    ],
)
def test_tests_and_programs_of_the_work_show_what_works(command: str) -> None:
    assert shows_claim(command, CLAIM)
    assert is_check(command)


@pytest.mark.parametrize(
    ("claim", "command", "proved"),
    [
        ("`pytest tests/a.py` passes", "cd x && pytest  tests/a.py -q", True),
        ("`pytest tests/a.py` passes", "python -m pytest tests/a.py", True),
        ("`uv run pytest tests/a.py` passes", "pytest tests/a.py", True),
        ("`pytest tests/a.py` passes", "pytest tests/b.py", False),
        ("`pytest tests/a.py` passes", "pytest tests/a.py::test_one", False),
        ("`total = 3` is printed", "python total.py", True),
        ("`cargo build` succeeds", "cargo build --release", True),
        ("`cargo build` succeeds", "cargo fmt", False),
        ("`git status` is clean", "git status", False),
        ("`c` is 3", "cargo build", False),
    ],
)
def test_what_is_in_backquotes_has_to_be_run(claim: str, command: str, proved: bool) -> None:
    assert shows_claim(command, claim) is proved


GOOD: dict[str, Any] = {
    "what_happened": "pytest stops at import: no module named yaml",
    "category": "permanent",
    "root_cause": "PyYAML is not in the environment",
    "change": "install pyyaml",
}
CHECK: dict[str, Any] = {
    "assumption": "there is an auth module",
    "reality": "step 2 found none",
    "impact": "plan steps 4 to 6 need one",
    "options": ["write a small one", "drop the login"],
    "choice": "drop the login: no new file",
}


def missing_parts(**other: str) -> str:
    return ErrorReport.model_validate({**GOOD, **other}).lacks()


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"what_happened": "timeout"},
        {"category": "unknown", "root_cause": "unknown"},
        {"category": "transient", "change": "try again"},
        {"what_happened": "网络超时"},
    ],
)
def test_what_names_something_is_taken(other: dict[str, str]) -> None:
    assert missing_parts(**other) == ""


@pytest.mark.parametrize(
    ("other", "field"),
    [
        ({"what_happened": "Error"}, "what_happened"),
        ({"what_happened": "The test failed again!"}, "what_happened"),
        ({"what_happened": "???"}, "what_happened"),
        ({"root_cause": "unknown"}, "root_cause"),
        ({"category": "transient", "root_cause": "it failed"}, "root_cause"),
        ({"change": "retry"}, "change"),
        ({"category": "unknown", "change": "I will try something"}, "change"),
    ],
)
def test_what_says_nothing_is_told_what_it_lacks(other: dict[str, str], field: str) -> None:
    assert missing_parts(**other).startswith(f"`{field}` is too general")


def call(tool: str, **args: Any) -> ToolCallPart:
    return ToolCallPart(tool, args, "c")


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ([], Statements()),
        ([call("put", **GOOD)], Statements()),
        ([call("report_error", **GOOD)], Statements(cause=Cause.PERMANENT)),
        ([call("report_error", **{**GOOD, "category": "odd"})], Statements()),
        ([call("report_error", **{**GOOD, "change": " "})], Statements()),
        ([call("report_error", **{**GOOD, "change": "retry"})], Statements()),
        ([call("check_plan", **CHECK)], Statements(checked=True)),
        ([call("check_plan", **{**CHECK, "options": []})], Statements()),
        ([ToolCallPart("check_plan", "no JSON", "c")], Statements()),
        (
            [call("report_error", **GOOD), call("check_plan", **CHECK)],
            Statements(cause=Cause.PERMANENT, checked=True),
        ),
    ],
)
def test_a_turn_says_what_its_good_calls_say(calls: list[ToolCallPart], said: Statements) -> None:
    assert statements_in(calls) == said
