"""Made-up secrets of every kind, put together here so that no scanner takes them for real ones."""

import base64
import hashlib


def drawn(seed: str, length: int, *, hexadecimal: bool = False) -> str:
    """Characters that look drawn by lot, always the same for a seed."""
    told = hashlib.sha512(seed.encode())
    text = told.hexdigest() if hexadecimal else base64.b64encode(told.digest() * 4).decode()
    return "".join(filter(str.isalnum, text))[:length]


def key_block(kind: str, *, newline: str = "\n") -> str:
    """A private key in PEM; its lines say nothing."""
    lines = [drawn(f"{kind}{n}", 64) for n in range(3)]
    return newline.join(
        [f"-----BEGIN {kind}-----", *lines, drawn(kind, 30), f"-----END {kind}-----"]
    )


def _jwt() -> str:
    parts = ['{"alg":"HS256"}', '{"sub":"1234567890"}']
    head, body = (base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)
    return f"{head}.{body}.{drawn('jwt', 43)}"


SECRETS: dict[str, str] = {
    "openai key": "sk-" + "proj-" + drawn("openai", 48),
    "anthropic key": "sk-" + "ant-api03-" + drawn("anthropic", 80),
    "openrouter key": "sk-" + "or-v1-" + drawn("openrouter", 64, hexadecimal=True),
    "deepseek key": "sk-" + drawn("deepseek", 32, hexadecimal=True),
    "google key": "AI" + "za" + drawn("google", 35),
    "aws key": "AK" + "IA" + drawn("aws", 60).upper()[:16],
    "bedrock key": "AB" + "SK" + drawn("bedrock", 120),
    "groq key": "gs" + "k_" + drawn("groq", 52),
    "xai key": "xa" + "i-" + drawn("xai", 80),
    "hugging face token": "hf" + "_" + drawn("hf", 34),
    "digitalocean token": "dop" + "_v1_" + drawn("do", 64, hexadecimal=True),
    "sendgrid key": "S" + "G." + drawn("sg", 22) + "." + drawn("sendgrid", 43),
    "telegram token": "123456789" + ":A" + "A" + drawn("telegram", 33),
    "age key": "AGE-SECRET" + "-KEY-1" + drawn("age", 58).upper(),
    "slack token": "xo" + "xb-" + "1234567890-" + drawn("slack", 24),
    "github token": "gh" + "p_" + drawn("github", 36),
    "github fine token": "github" + "_pat_" + drawn("github2", 60),
    "gitlab token": "gl" + "pat-" + drawn("gitlab", 20),
    "npm token": "np" + "m_" + drawn("npm", 36),
    "pypi token": "py" + "pi-" + drawn("pypi", 80),
    "stripe key": "sk" + "_live_" + drawn("stripe", 24),
    "json web token": _jwt(),
}
"""Secrets that are known wherever they stand."""

NAMED: dict[str, tuple[str, str]] = {
    "azure key": ("AccountName=app;AccountKey={};", drawn("azure", 86) + "=="),
    "private key id": ('"private_key_id": "{}"', drawn("gcp", 40, hexadecimal=True)),
    "url password": ("postgres://app:{}@db.internal/orders", "tr0ub4dor"),
    "cache password": ("redis://:{}@cache:6379/0", "hunter2x"),
    "header": ("Authorization: Bearer {}", drawn("bearer", 40)),
    "header in JSON": ('{{"Authorization": "Basic {}"}}', drawn("basic", 24)),
    "mistral key": ("MISTRAL_API_KEY={}", drawn("mistral", 32)),
    "cohere key": ("export COHERE_API_KEY='{}'", drawn("cohere", 40)),
    "aws secret": ("aws_secret_access_key = {}", drawn("aws2", 40)),
    "azure api key": ("AZURE_OPENAI_API_KEY={}", drawn("azure2", 32, hexadecimal=True)),
    "password": ("DB_PASSWORD={}", "correct-horse"),
    "signing key": ("SIGNING_KEY={}", drawn("signing", 40)),
    "token in code": ("accessToken = '{}'", drawn("access", 32)),
    "password of a configuration": ("dbPassword: '{}'", "letmein-2"),
    "short variable": ("export DB_PASS={}", "kJ8#mQ2!vX9z"),
    "short variable in quotes": ("MYSQL_PASS='{}'", "zebra11x"),
    "short variable in lower case": ("db_pass: {}", "zebra12x"),
    "user of curl": ("curl -s -u admin:{} https://ci.internal", "zebra13x"),
    "user of curl over lines": ("curl 'https://ci/?a=1&b=2' \\\n  --user 'admin:{}'", "zebra14x"),
    "password of ssh": ("sshpass -p {} ssh app@db.internal", "zebra15x"),
    "password of mysql": ("mysqldump -u root -p{} orders", "zebra16x"),
    "cookie": ("curl -H 'Cookie: theme=dark; sid={}'", drawn("cookie", 32, hexadecimal=True)),
    "authority": ("TWILIO_AUTH={}", drawn("twilio", 32, hexadecimal=True)),
    "short secret of a client": ("client_secret={}", "s3same0pen"),
    "secret that is short": ("secret={} x", "zebra17x"),
    "token that is short, in JSON": ('{{"token": "{}"}}', "zebra18x"),
    "token with spaces": ("export TOKEN='{}'", "zebra19x with space"),
    "token with spaces in JSON": (r'{{"run": "TOKEN=\"{}\" x"}}', "zebra20x with space"),
    "option": ("deploy --token {} --verbose", "zebra21x"),
    "option of two words": ("deploy --api-key {}", "abcd1234efgh5678"),
    "option with a sign": ("deploy --auth-token={}", "zebra22x"),
    "option in quotes": ("deploy --db-password '{}'", "zebra23x with space"),
    "option in a list": ('["deploy", "--token", "{}"]', "zebra24x"),
    "option in JSON": (r'{{"run": "deploy --token \"{}\" -v"}}', "zebra25x"),
    "password in JSON in JSON in JSON": (
        r"{{\"a\": \"{{\\\"passwd\\\": \\\"{}\\\"}}\"}}",
        "0pen-s3same",
    ),
    "password in JSON in JSON": ('{{"text": "{{\\"password\\": \\"{}\\"}}"}}', "s3same-0pen"),
}
"""Secrets that are known by what stands around them, which stays."""
