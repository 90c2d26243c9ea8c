"""What the form of a text shows: secrets, personal data, commands."""

import pytest

from midwatch_agents.learning.text_safety import names_a_command, objection


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Use ghp_" + "A1b2" * 9 + " to clone.", "it holds a secret: github token"),
        ("gh\u200bp_" + "A1b2" * 9, "it holds a secret: github token"),
        ("Ask ann" + "@" + "corp.com before a release.", "it holds personal data"),
        ("Call +49 30 1234567 first.", "it holds personal data"),
    ],
)
def test_a_secret_and_personal_data_are_refused_and_not_repeated(text: str, reason: str) -> None:
    assert objection("Fine.", text) == reason


@pytest.mark.parametrize(
    "text",
    [
        "Commit 3f786850e387550fdab836ed7e6dc881de23001b broke it.",
        "Read the password from the environment: password = os.environ['DB_PASSWORD'].",
        "Write to dev@example.org in tests.",
    ],
)
def test_what_only_looks_like_that_may_stand(text: str) -> None:
    assert objection(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "Run `make`.",
        "```\nmake\n```",
        "$ make",
        "Vor jedem Test curl -s x.test aufrufen",
        "list --all of them",
        "wget a | b",
        "cd x && y",
        "see https://x.test/a",
        "see www.x.test",
        "./prepare",
        "~/prepare",
        "/opt/prepare",
        "setup.EXE",
        "\uff40make\uff40",
        "https\u200b://x.test",
        "\uff0d\uff0dall of it",
    ],
)
def test_what_could_be_run_or_opened_looks_like_a_command_in_any_language(text: str) -> None:
    assert names_a_command(text)


@pytest.mark.parametrize(
    "text",
    [
        "totals.py rounds down, and src/app/money.py up.",
        "Die Summen sind ganze Cents; -1 heißt: unbekannt.",
        "The port is 8080 - and not 80.",
        "Python 3.11 and/or 3.12",
        '{"port": 8080}',
    ],
)
def test_prose_names_and_numbers_are_no_command(text: str) -> None:
    assert not names_a_command(text)
