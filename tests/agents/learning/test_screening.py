"""What the form of a text shows: secrets, personal data, commands."""

import pytest

from midwatch_agents.learning.screening import names_a_command, objection

KEY = "A1b2" * 9 + "Zz"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("The key is AKIA" + "Q7" * 8 + ".", "aws key"),
        (f"Use ghp_{KEY[:36]} to clone.", "github token"),
        (f"github_pat_{KEY[:30]}", "github token"),
        ("xoxb-" + "1234567890-abcdef", "slack token"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMII", "private key"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----", "private key"),
        (f"eyJhbGciOiJI.eyJzdWIiOiIx.{KEY[:20]}", "json web token"),
        (f"sk-{KEY[:32]}", "openai key"),
        ("postgres://app:" + "tr0ub4dor@db/app", "url password"),
        ("password = " + "hunter2", "password or key"),
        ("DB_PASSWORD=" + "correct-horse", "password or key"),
        ('{"api_key": "' + "8f3kd92ma01Lq77Z" + '"}', "password or key"),
        ("API_TOKEN: " + "8f3kd92ma01Lq77Zx", "password or key"),
        ("Authorization: Bearer " + "8f3kd92ma01Lq77Zx", "authorization"),
    ],
)
def test_a_secret_is_refused_and_not_repeated(text: str, kind: str) -> None:
    assert objection(text) == f"it holds a secret: {kind}"


@pytest.mark.parametrize(
    "text",
    [
        "Commit 3f786850e387550fdab836ed7e6dc881de23001b broke it.",
        "sha256 = e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "A token is a word of the grammar: the lexer emits one per token.",
        "password: str = Field(min_length=8)",
        "Read the password from the environment: password = os.environ['DB_PASSWORD'].",
        "token = parser.next_token()",
        "Set `API_KEY=$API_KEY` or api_key=<your key>.",
        "The secret: start with the smallest test.",
        "password: the form field, must be typed twice.",
        "if token == self.current: advance()",
        "postgres://user:$PASSWORD@db/app",
        "token: src/app/lexer2/token_reader10.py",
        "test_password_reset_form and is_token_valid failed.",
        "Set max_tokens = 4096000, and connect(password=password).",
        "The bearer token was missing in the header.",
    ],
)
def test_what_only_looks_like_a_secret_may_stand(text: str) -> None:
    assert objection(text, personal=True) == ""


def test_personal_data_is_refused_only_where_it_is_asked_for() -> None:
    text = "Ask ann" + "@" + "corp.com before a release."
    assert (objection(text), objection(text, personal=True)) == ("", "it holds personal data")
    assert objection("Write to dev@example.org in tests.", personal=True) == ""


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
