"""Secrets that must not become facts, and talk about secrets that may."""

import pytest

from midwatch_monitor.secrets.masking import secret_in

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLWhlcmU"
AWS = "wJalrXUtnFEMI/K7MDENG" + "/bPxRfiCYEXAMPLEKEY"


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
        "The staging database password is " + "Winter2024! for user shop",
        "Log in as user admin and password " + "hunter2",
        "User shop, password " + "hunter2.",
        "DB_PASSWORD: " + "hunter2",
        "The password is: " + "hunter2",
        'The password for the test server is "' + 'correct horse"',
        "The password for root is now `" + "letmein`",
        "The password of the staging database: " + "Winter2024!",
        "The password was changed to " + "Sommer24 last week",
        "Passwords are " + "Winter2024! and Summer2024!",
        "The password is " + "correct-Tr0ub4dor-3",
        "The deploy token is " + "abcDEF1234567890abcd",
        "The token is " + "123e4567-e89b-12d3-a456-426614174000",
        "The API key is " + "9f8e7d6c5b4a39281706fedc.",
        f"Use the aws secret {AWS}",
        f"The aws secret access key {AWS} is in use",
    ],
)
def test_a_secret_told_in_plain_prose_is_seen(text: str) -> None:
    assert secret_in(text) == "password or key"


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


@pytest.mark.parametrize(
    "text",
    [
        "The password is PBKDF2-hashed before it is stored",
        "The password is SHA-256 hashed",
        "The password is base64-encoded in the header",
        "password: sha256 of the salt",
        "The token is UUIDv4 and lives for an hour",
        "The token is JWT-based",
        "The password v2 form replaces the old one",
        "The password field1 and field2 must match",
        "The password is argon2id with 64MB",
        "The password is in app/auth2.py",
        "The password for the admin is `settings.ADMIN_PW`",
        "The password for tests is in `TEST_PASSWORD`",
        "The password for tests is `TEST_PW`",
        "The password for the login is `hashed` there",
        "The token is test_a_long_name_of_a_test_2",
        "The secret TokenReader10FactoryBuilder reads it",
        "The token ServiceAccountV2ProviderFactory is the class",
        "The password is PasswordHasherV2 in code",
        "The password is 8-64 characters long",
        "The password is step2 of the form",
        "The token of the parser is `NUMBER_LITERAL`",
        "The token for the lexer is src/app/lexer2/token_reader10.py",
        "The private key for signing is ed25519",
        "The access key is read from AWS_ACCESS_KEY_ID",
        "The secret to fast tests is pytest-xdist2000",
        "password: str8 is wrong",
        "The password is 12chars",
        "password: varchar255",
        "The password hash for users is bcrypt12",
        "The token in line 12 is Identifier42",
        "Password in tests: see tests/conftest.py",
        "The password to the vault is kept in 1Password",
        "The password policy is NIST80063",
        "The token is 3rd in the list",
        "The password reset mail goes to user2024 at once",
        "The password sha256 for old users",
        "The token count is 4096000 for gpt4omini2024",
        "The secret is mounted at /run/secrets/db_password2",
        "Tokens: 1234567890123456",
        "The password is TestPassword1-free",
        "The password is stored in postgresql16",
        "The key is `user2024x`",
        "Password is Base64Encoder2 output",
        "The password is sent to auth2.example.com",
        "The token is OAuth2-issued",
        "token in the request is Bearer2024",
        "The token is src_tests_unit_test_tokens2",
        "The password of user admin2024 is hashed",
        "The password and user2024 fixture",
        "password for user2024 is not set",
        "Set the password in config2024 and restart",
        "password-protected2 zip",
        "the token in tests: abc",
    ],
)
def test_words_of_the_trade_behind_a_secrets_name_are_none(text: str) -> None:
    assert secret_in(text) == ""
