"""Secrets in a text, by their form. Pure."""

import math
import re
from collections import Counter

_FORMS = (
    (re.compile(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"), "a private key"),
    (re.compile(r"\b(?:AKIA|ASIA|AROA|AIDA)[0-9A-Z]{16}\b"), "a cloud access key"),
    (
        re.compile(r"\b(?:gh[opusr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{22,255})"),
        "a code host's token",
    ),
    (re.compile(r"\bglpat-[A-Za-z0-9_-]{20,}"), "a code host's token"),
    (re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"), "a chat token"),
    (re.compile(r"hooks\.slack\.com/services/T\w+/B\w+/\w{16,}"), "a web hook"),
    (re.compile(r"\bsk-(?:ant-|proj-|or-)?[A-Za-z0-9_-]{20,}"), "a provider's key"),
    (re.compile(r"\b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}"), "a payment key"),
    (re.compile(r"\bAIza[0-9A-Za-z_-]{35}"), "a provider's key"),
    (re.compile(r"\bnpm_[A-Za-z0-9]{36}\b|\bpypi-[A-Za-z0-9_-]{50,}"), "a package token"),
    (
        re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
        "a signed token",
    ),
    (
        re.compile(r"\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@]{1,100}:(?P<value>[^\s/@]{3,100})@", re.I),
        "a password",
    ),
)
_NAMED = re.compile(
    r"""(?<![A-Za-z0-9])
    (?P<name>(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key|apikey
       |access[_-]?key|secret[_-]?key|private[_-]?key|client[_-]?secret|credentials?))
    (?:["'`]?\s*(?P<sign>=>|:=|=(?!=)|:(?!:))\s*|\s+is\s+(?=["'`]))
    (?P<quote>["'`]?)(?P<value>[^\s"'`,;)}\]]{4,})
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Something called a secret, and what it is set to."""
_BEARER = re.compile(
    r"\b(?:authorization\s*:\s*)?(?:bearer|basic)\s+(?P<value>[\w.~+/=-]{16,})", re.I
)
_NO_VALUE = re.compile(
    r"""^(?:
        [<$%{\[(*.x-].*          # <token>, $TOKEN, ${TOKEN}, {{token}}, ****, xxxx
      | (?:none|null|nil|true|false|str|string|bytes|int|bool|any|optional.*|secretstr.*)
      | (?:your|my|the|a|an|some|any|example|sample|dummy|fake|test|placeholder|changeme|redacted)
        (?:[-_].*)?
      | .*(?:os\.environ|getenv|process\.env|settings\.|config\.|self\.|request\.|args\.).*
      | [\w.]+[(\[].*            # a call or a look-up
    )$""",
    re.IGNORECASE | re.VERBOSE,
)
_SECRET_BITS = 3.0
"""Bits a character from which a value is no word or name (Shannon)."""
_SECRET_LENGTH = 16


def secret_in(text: str) -> str:
    """What kind of secret stands in a text, never the secret itself; empty if there is none.

    Digests and commit hashes are none by themselves, nor is a word that only names a secret.
    """
    for pattern, kind in _FORMS:
        if any(_given(found.groupdict().get("value") or "?") for found in pattern.finditer(text)):
            return kind
    if any(_assigned(found) for found in _NAMED.finditer(text)):
        return "a password or key with its value"
    if any(_random(found["value"]) for found in _BEARER.finditer(text)):
        return "a token"
    return ""


def _given(value: str) -> bool:
    return not _NO_VALUE.match(value)


def _assigned(found: re.Match[str]) -> bool:
    """Whether what is called a secret is set to one, and not to a word of prose or a variable."""
    value = found["value"].rstrip(".")
    if not _given(value) or value.casefold().endswith(found["name"].casefold()):
        return False  # `password=password` hands on a variable
    password = found["name"].casefold().endswith(("password", "passwd", "passphrase", "pwd"))
    if found["quote"] or (password and found["sign"] != ":"):
        return len(value) >= 4 and (password or _random(value) or _mixed(value))
    return _random(value) or (password and _mixed(value))


def _mixed(value: str) -> bool:
    """Whether letters and digits or signs are mixed as in no word."""
    kinds = {
        "upper"
        if char.isupper()
        else "lower"
        if char.isalpha()
        else "digit"
        if char.isdigit()
        else ""
        for char in value
    }
    return len(value) >= 6 and len(kinds) >= 3


def _random(value: str) -> bool:
    """Whether a value looks drawn by lot: long, of many different characters, digits among them."""
    if len(value) < _SECRET_LENGTH or not any(map(str.isdigit, value)):
        return False
    counts = Counter(value)
    bits = -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())
    return bits >= _SECRET_BITS and not re.search(r"[/\\].*\.\w{1,5}$", value)
