"""Secrets that must not become facts, and talk about secrets that may."""

import pytest

from midwatch_tools.secrets import secret_in

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLWhlcmU"


@pytest.mark.parametrize(
    "text",
    [
        "The key is AKIA" + "IOSFODNN7EXAMPLE",
        "Use ghp_" + "a1B2" * 9 + " to push",
        "The deploy token is glpat-" + "x1y2z3w4" * 3,
        "Slack posts with xoxb-" + "1234567890-abcdef",
        "OPENAI_API_KEY=sk-" + "proj-Ab12" * 5,
        f"The service sends {JWT} in tests",
        "-----BEGIN RSA PRIVATE KEY-----",
        "Connect to postgres://app:s3cr3tpw@db/orders",
        "DB_PASSWORD=hunter2hunter2",
        'The admin password is "tr0ub4dor&3"',
        "curl -H 'Authorization: Bearer 9f8e7d6c5b4a39281706fedc'",
    ],
)
def test_a_secret_is_seen(text: str) -> None:
    assert secret_in(text)


@pytest.mark.parametrize(
    "text",
    [
        "The password reset form lives in src/auth/reset.py",
        "The API token is read from the environment variable APP_TOKEN",
        "The key of the cache is the user's id",
        "Passwords are hashed with bcrypt, cost 12",
        "Set password=$DB_PASSWORD in the compose file",
        "password = os.environ['DB_PASSWORD'] stands in settings.py",
        "The token: generated at login, and kept for an hour",
        "Commit 3c344a8 changed it; the digest is sha256:9f86d081884c7d659a2feaa0c55ad015",
        "Connect to postgres://app:${DB_PASSWORD}@db/orders",
        "The secret is kept in vault under apps/orders",
    ],
)
def test_talk_about_secrets_is_none(text: str) -> None:
    assert secret_in(text) == ""
