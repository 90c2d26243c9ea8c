"""Running it is what shows that something works; common words do not."""

import pytest

from midwatch_tools.tools.proof import is_check, shows_claim

CLAIM = "rounding of totals works"
HEREDOC = "python - <<'EOF'\nfrom totals import rounded\nassert rounded(1) == 1\nEOF"
WRITTEN = "cat > test_totals.py <<EOF\nimport pytest\npytest.main()\nEOF"


@pytest.mark.parametrize(
    "command",
    [
        'git commit -am "Fix rounding of totals; pytest tests pass"',
        "git diff totals.py",
        "python3 --version",
        "pytest --version",
        "pytest -h",
        "python3 -m pytest --collect-only",
        "pip install pytest",
        "python -m pip install pytest",
        "uv add pytest",
        "npm install jest",
        'python3 -c "print(1)"',
        'python3 -c "import sys; print(sys.version)"',
        "echo rounding totals; true",
        "cat totals.py | grep rounding",
        "sed -i s/a/b/ totals.py",
        "mkdir totals",
        "command -v pytest",
        "git add my_test",
        "touch pytest.ini",
        'bash -c "echo pytest"',
        ".venv/bin/ruff check totals.py",
        "cargo build",
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
        "cargo test",
        "./run.sh",
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
def test_what_stands_in_backquotes_has_to_be_what_was_run(
    claim: str, command: str, proved: bool
) -> None:
    assert shows_claim(command, claim) is proved
