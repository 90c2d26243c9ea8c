"""What is masked in a text and in a record, what is left, and what must not become a fact."""

import hashlib
import json
import time
import uuid

import pytest

from midwatch_monitor.records import Checkpoint, Edit, Plan, PlanStep, Record, Step, StepKind
from midwatch_monitor.secrets.masking import Masker, Secrets, known_secrets, known_values, secret_in
from midwatch_tests.made_up import NAMED, SECRETS, drawn, key_block

MASKER = Masker(Secrets(), b"key")


@pytest.mark.parametrize("kind", SECRETS)
@pytest.mark.parametrize(
    "around", ["{}", "KEY={}\n", 'the key "{}" is in use', "a={};b", "\\n{}\\n"]
)
def test_a_secret_of_a_known_shape_is_masked_wherever_it_stands(kind: str, around: str) -> None:
    masked = MASKER.text(around.format(SECRETS[kind]))
    before, _, after = around.partition("{}")
    assert masked.startswith(f"{before}[masked: ")
    assert masked.endswith(f"]{after}")


@pytest.mark.parametrize("kind", NAMED)
def test_of_a_secret_that_is_known_by_its_surroundings_the_value_is_masked(kind: str) -> None:
    around, secret = NAMED[kind]
    before, _, after = around.replace("{{", "{").replace("}}", "}").partition("{}")
    masked = MASKER.text(around.format(secret))
    assert masked.startswith(f"{before}[masked: ")
    assert masked.endswith(f"]{after}")
    assert secret not in masked


@pytest.mark.parametrize(
    "kind", ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"]
)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\\n", "\n    ", "\n> "])
def test_a_key_block_is_masked_as_a_whole(kind: str, newline: str) -> None:
    masked = MASKER.text(f"before {key_block(kind, newline=newline)} after")
    assert masked.startswith("before [masked: private key ")
    assert masked.endswith("] after")
    assert masked.count("masked") == 1


def test_an_encrypted_key_block_is_masked_with_its_headers() -> None:
    header = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n\n"
    first, _, rest = key_block("RSA PRIVATE KEY").partition("\n")
    masked = MASKER.text(f"{first}\n{header}{rest}")
    assert masked.startswith("[masked: private key ")
    assert masked.endswith("]")


@pytest.mark.parametrize(
    "text",
    [
        f"commit {hashlib.sha1(b'a').hexdigest()}",
        f"sha256:{hashlib.sha256(b'a').hexdigest()}",
        f'integrity = "sha512-{drawn("lock", 86)}=="',
        f"hash = 'sha256:{hashlib.sha256(b'b').hexdigest()}'",
        str(uuid.UUID(int=2**127 + 12345)),
        f"data:image/png;base64,iVBORw0KGgo{drawn('image', 300)}",
        "task-runner-with-a-long-name-of-words sk-learn-contrib-and-more-words",
        "def token(self, key: str = DEFAULT_KEY) -> Token: ...",
        "self.password = hash_password(password)",
        "api_key = os.environ['OPENAI_API_KEY']",
        "curl https://example.com:8080/path@2 and git@github.com:org/repo.git",
        "postgres://app:${DB_PASSWORD}@db/orders",
        "headers = {'Authorization': f'Bearer {token}'}",
        "primary_key=True, key=lambda each: each.number, keys = sorted(found)",
        "tokens: 48231, max_tokens=4096, next_token: Token = Token.COMMA",
        "CACHE_KEY = 'user_profile_by_name'",
        "for each in found: pass\n    pass  # passes = 3, first_pass = 0.75, N_PASS = 12",
        "GEOMETRY_PASS = 'geometry'; LOW_PASS=filters.low2; pass = render(scene2)",
        "BASIC_AUTH=enabled, REQUIRE_AUTH = True, auth=HTTPBasicAuth(user, password)",
        "DB_PASS=$DB_PASS db_pass = get_password(2) client_secret=settings.client_secret2",
        "curl -u $USER:$PASSWORD https://ci.internal:8080 && docker run -u node:node -p 80:80 web",
        "mysql -u root -p orders; sshpass -p $SSHPASS ssh app@db; chown --user www:www",
        "deploy --token --verbose2x --secret -v22222 --api-key $API_KEY22 --token <token12>",
        "deploy --token secrets/token2.txt --secret ~/t0ken12 --token-file t0k3n1 --key-size rsa2",
        "build --secret id=npm2token --token @t0ken22 --api-key env:API2KEY --token $(cat t0k3)",
        "the --token option2 and the --password flag; --max-tokens 4096000; --token your-token2",
        "token = lexer2next; parse(token=TokenReader10, secret=self.secret2)",
        "Cookie: a small text; Set-Cookie: theme=dark; 'Cookie': f'sid={session}'",
        "12:30:45:AArdvark eyJ is how base64 of JSON begins",
        "OLDPWD=/root\nPWD=/srv/project9/a-1\nSHLVL=1",
    ],
)
def test_what_is_no_secret_stays_as_it_is(text: str) -> None:
    assert MASKER.text(text) is text


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Driver=FreeTDS;UID=sa;PWD=/s3cr3t;", "/s3cr3t"),  # of ODBC, begins like a path
        ("PGPASSWORD=hunter22 psql", "hunter22"),
    ],
)
def test_a_short_password_is_masked_by_its_name(text: str, secret: str) -> None:
    assert secret not in MASKER.text(text)


def test_the_same_secret_has_the_same_mark_and_another_another() -> None:
    one, other = SECRETS["groq key"], SECRETS["groq key"][:-1] + "Z"
    mark = MASKER.text(one)
    assert MASKER.text(f"{one}\n{other}") == f"{mark}\n{MASKER.text(other)}"
    assert MASKER.text(other) != mark
    assert Masker(Secrets(), b"another key").text(one) != mark


@pytest.mark.parametrize("text", [*SECRETS.values(), *(a.format(s) for a, s in NAMED.values())])
def test_masking_again_changes_nothing(text: str) -> None:
    masked = MASKER.text(text)
    assert MASKER.text(masked) == masked


def test_the_values_of_the_process_itself_are_masked_in_every_form() -> None:
    value = 'wo-der ist/"es"?'
    masker = Masker(known_secrets({"DEPLOY_TOKEN": value}), b"key")
    for form in known_values({"DEPLOY_TOKEN": value}):
        assert masker.text(f"<{form}>").startswith("<[masked: DEPLOY_TOKEN ")
    assert json.dumps(value)[1:-1] not in masker.text(json.dumps({"say": value}))


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("OPENAI_API_KEY", "plain-words", True),
        ("AWS_SECRET_ACCESS_KEY", "plain-words", True),
        ("SECRET_KEY_BASE", "plain-words", True),
        ("PGPASSWORD", "plain-words", True),
        ("MIDWATCH_MQTT_PASSWORD", "plain-words", True),
        ("DATABASE_URL", "postgres://app:plain-words@db/x", True),
        ("MIDWATCH_JOURNAL", "postgresql://app:plain-words@db/x", True),
        ("PWD", "/srv/project", False),
        ("AWS_REGION", "eu-central-1", False),
        ("SSH_AUTH_SOCK", "/run/agent.sock", False),
        ("TLS_KEY_FILE", "certificates/own.pem", False),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/etc/keys/app.json", False),
        ("MAX_TOKENS", "1234567890", False),
        ("SHORT_TOKEN", "abc", False),
        ("KEYBOARD", "international", False),
    ],
)
def test_a_variable_is_known_by_name_or_by_password(name: str, value: str, secret: bool) -> None:
    known = known_values({name: value})
    assert known.get("plain-words") == name if secret else known == {}


def test_a_record_is_masked_in_all_its_texts_and_in_no_digest() -> None:
    secret = SECRETS["anthropic key"]
    step = Step(
        number=1,
        kind=StepKind.TOOL,
        tool="run_command",
        args=f'{{"command": "echo {secret}"}}',
        path=f"{secret}.txt",
        edits=(Edit(path=f"a/{secret}", digest=secret),),
        output=secret,
        output_digest=secret,
        text=f"I use {secret}",
        call=secret,
        checkpoint=Checkpoint(progress_percent=1, confidence=2, notes=secret, blockers=(secret,)),
    )
    mark = MASKER.text(secret)
    masked = MASKER.record(step)
    assert repr(masked) == (
        repr(step)
        .replace(secret, mark)
        .replace(f"digest='{mark}'", f"digest='{secret}'")
        .replace(f"call='{mark}'", f"call='{secret}'")
    )
    assert MASKER.record(masked) is masked


@pytest.mark.parametrize(
    "record",
    [
        Step(number=1, kind=StepKind.MESSAGE, text="I run the tests now."),
        Plan(steps=(PlanStep(title="Write the parser"),)),
    ],
)
def test_a_record_without_secrets_is_the_same_object(record: Record) -> None:
    assert MASKER.record(record) is record


def test_half_a_surrogate_pair_is_no_reason_to_leave_a_secret() -> None:
    secret = SECRETS["npm token"]
    assert MASKER.text(f"\ud800 {secret} ü") == f"? {MASKER.text(secret)} ü"


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN RSA PRIVATE KEY-----\n" * 30_000,
        "sk-" * 300_000,
        "eyJ-" * 200_000,
        "password " * 100_000,
        "password for " * 70_000,
        'token: "' * 100_000,
        "://a:" * 200_000,
        "key=" + "a" * 1_000_000,
        "secret is " + "a" * 1_000_000,
        "Bearer " * 150_000,
        "1234567890:A" * 80_000,
        "Authorization: Bearer " * 50_000,
        "curl -u a:b " * 80_000,
        "curl mysql -u " * 70_000,
        "Cookie: a=b; " * 80_000,
        "DB_PASS=" * 120_000,
        "--token " * 120_000,
        "token='a b " * 90_000,
    ],
    ids=lambda text: str(text)[:24],
)
def test_a_text_made_to_stall_the_masking_takes_little_longer_than_any_other(text: str) -> None:
    began = time.process_time()
    MASKER.text(text[:300_000])
    assert time.process_time() - began < 5


def test_what_a_pattern_of_a_user_says_takes_linear_time_too() -> None:
    masker = Masker(Secrets(patterns={"ours": "(a+)+b", "theirs": "th_[0-9]{4}"}), b"key")
    assert masker.text("a" * 100_000 + " th_1234").endswith("]")


BODY = "q7Zx" + "Lm2Rk9Tw4Vb8" * 3


BEFORE_A_KEY = ["\x1b[31m", "\x1b[01;31m\x1b[K", "q%3D", "\\x00", "\\u000a"]
PROVIDERS = ["nvapi-", "pplx-", "csk-", "hvs.", "dckr_pat_", "glrt-"]


@pytest.mark.parametrize(
    "text",
    [
        *(f"{before}sk-proj-{BODY}" for before in BEFORE_A_KEY),
        *(f"using {prefix}{BODY}{BODY[:8]}" for prefix in PROVIDERS),
        *(f"https://{login}{BODY}@host/x" for login in ("", "u:p@")),
        f"[masked: xai-{BODY} 123456]",
    ],
)
def test_nothing_around_a_key_hides_it(text: str) -> None:
    assert BODY not in MASKER.text(text)


@pytest.mark.parametrize("prefix", ["id_rsa:", "12:01:02 INFO ", "keys/my-key.pem:3:"])
def test_a_private_key_is_masked_behind_a_prefix_in_each_line(prefix: str) -> None:
    lines = [f"-----BEGIN {'RSA PRIVATE'} KEY-----", *[BODY + BODY[:24]] * 3, "-----END KEY-----"]
    said = "\n".join(prefix + line for line in lines)
    assert BODY not in MASKER.text(said)
    assert "def total(): return 1" in MASKER.text(f"{said}\ndef total(): return 1")
    assert BODY not in MASKER.text(json.dumps("\n".join(lines)))


@pytest.mark.parametrize("unit", ["[masked: xai key 7f3a19] xai-{} ", "\u00e9 xai-{} "])
def test_many_marks_or_letters_beyond_ascii_take_linear_time(unit: str) -> None:
    def seconds(times: int) -> float:
        text = unit.format(BODY) * times
        begun = time.process_time()
        assert BODY not in MASKER.text(text)
        return time.process_time() - begun

    seconds(10)
    # Four times as much takes four times as long, and would take sixteen times if it were squared.
    assert min(seconds(12000) for _ in range(2)) < 10 * max(seconds(3000) for _ in range(2))


# -- what must not become a fact ------------------------------------------------------------------

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
        "The password is: " + "hunter2",
        'The password for the test server is "' + 'correct horse"',
        "The password for root is now `" + "letmein`",
        "The password was changed to " + "Sommer24 last week",
        "Passwords are " + "Winter2024! and Summer2024!",
        "The password is " + "correct-Tr0ub4dor-3",
        "The deploy token is " + "abcDEF1234567890abcd",
        "The token is " + "123e4567-e89b-12d3-a456-426614174000",
        f"Use the aws secret {AWS}",
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
        "The password is PBKDF2-hashed before it is stored",
        "The password is SHA-256 hashed",
        "password: sha256 of the salt",
        "The password is base64-encoded in the header",
        "The password is 12chars",
        "The token is UUIDv4 and lives for an hour",
        "The password v2 form replaces the old one",
        "The password field1 and field2 must match",
        "The password is argon2id with 64MB",
        "The password is in app/auth2.py",
        "The password for the admin is `settings.ADMIN_PW`",
        "The password for tests is `TEST_PW`",
        "The password for the login is `hashed` there",
        "The token is test_a_long_name_of_a_test_2",
        "The secret TokenReader10FactoryBuilder reads it",
        "The password is PasswordHasherV2 in code",
        "The password is 8-64 characters long",
        "The token of the parser is `NUMBER_LITERAL`",
        "The token for the lexer is src/app/lexer2/token_reader10.py",
        "The access key is read from AWS_ACCESS_KEY_ID",
        "The secret to fast tests is pytest-xdist2000",
        "password: varchar255",
        "The token in line 12 is Identifier42",
        "The password to the vault is kept in 1Password",
        "The password policy is NIST80063",
        "The password reset mail goes to user2024 at once",
        "The token count is 4096000 for gpt4omini2024",
        "The secret is mounted at /run/secrets/db_password2",
        "Tokens: 1234567890123456",
        "The password is TestPassword1-free",
        "The password is sent to auth2.example.com",
        "token in the request is Bearer2024",
        "The password of user admin2024 is hashed",
        "password-protected2 zip",
    ],
)
def test_talk_about_secrets_and_words_of_the_trade_behind_their_names_are_none(text: str) -> None:
    assert secret_in(text) == ""
