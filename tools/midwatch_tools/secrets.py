"""Secrets in a text, by their form. Pure."""

import math
import re
from collections import Counter
from itertools import pairwise

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
_SAID = re.compile(
    r"""(?<![A-Za-z0-9])
    (?P<name>(?:passwords?|passwd|passphrase|pwd|pw|secret|token|credentials?
       |(?:api|access|secret|private)[\s_-]?key|client[\s_-]secret))
    (?:\s+(?:for|of|to|on|at|in|from)(?:\s+(?!(?:is|was|are)\b)[^\s:;!?]+){1,5}?)?
    (?:\s+(?:is|was|are|=)(?:\s+(?:now|still|always))?
       (?:\s+(?:set|changed|reset|equal)\s+to)?|\s*:(?!:))
    (?::\s*|\s+)
    (?P<quote>["'`]?)(?P<value>(?<=["'`])[^"'`\n]{4,}(?=["'`](?![\w-]))|[^\s"'`,;)}\]]{4,})
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""The same as it is said in prose: "the password for the test server is ..."."""
_BESIDE = re.compile(
    r"""(?<![A-Za-z0-9])
    (?P<name>password|passwd|passphrase|pw|(?:secret\s+)?(?:api|access|secret|private)[\s_-]?key
       |secret|token)
    \s+(?P<quote>["'`]?)(?P<value>[^\s"'`,;)}\]]{6,})["'`]?
    (?P<end>[.,;:!?)]*(?:$|\n)|[.,;:!?)]+\s
       |\s(?:and|or|for|on|in|at|to|as|when|if|works?|until|with)\b)?
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""A value right behind the name; with an `end`, what follows is no word that the two describe."""
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
_BESIDE_LENGTH = 20
_BESIDE_TURNS = 0.3
"""The share of characters at which a value drawn by lot goes to another kind; less in names."""
_FIRST_TERMS = r"""
    sha|md|pbkdf|base|utf|bcrypt|argon|scrypt|rsa|aes|hmac|blake|crc|ed|x|curve|chacha|poly|ripemd
    |keccak|oauth|http|tls|ssl|ipv|uuidv?|ecma|es|node|python|py|java|sqlite|mysql|mariadb
    |postgres(?:ql)?|redis|windows|ubuntu|debian|django|react|vue|latin|iso|rfc|pkcs|totp|hotp
    |n?varchar2?|char|u?int|float|issue|ticket|bug|pr|v
"""
_NOUNS = r"""
    field|step|test|form|input|hash|version|column|part|phase|page|rule|policy|user|line|param|arg
    |group|level|option|item|case|stage|slot|type|mode|table|model|view|handler|service|server
    |worker|client|host|node|value|token|secret|key|password|module|section|chapter|figure|example
"""
_TERM = re.compile(
    rf"""^(?:
        (?:{_FIRST_TERMS})\d+[a-z]{{0,2}}\d{{0,4}}[a-z]?  # SHA256, argon2id, secp256k1
      | secp\d+\w+ | (?:{_NOUNS})s?\d{{1,2}} | (?-i:[A-Z]{{2,10}}\d{{1,5}})
      | \d+[a-z]{{0,10}} | 0x[0-9a-f]{{1,8}}
    )$""",
    re.IGNORECASE | re.VERBOSE,
)
"""A word of the trade that has digits: an algorithm, a numbered thing, an amount."""
_HUMPS = re.compile(
    r"^(?:[a-z]{2,}\d{0,2}|[A-Z][a-z]{2,}\d{0,2})"
    r"(?:[A-Z][a-z]{2,}\d{0,2}|[A-Z]{1,5}\d{0,2}(?=[A-Z]|$))+$"
)
"""A name of code: `TokenReader10`."""
_ABOUT = re.compile(
    r"^(?:(?:un)?hashed|salted|encrypted|encoded|required|optional|empty|blank|stored|missing"
    r"|invalid|expired|wrong|masked|hidden|rotated|kept|only|always|never|read|not"
    r"|[a-z_]\w*(?:[.:]\w+)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|\S*/\S+\.\w{1,5})\b(?!-)",
)
"""What is said of a password without giving it: a state, a variable, a file."""


def secret_in(text: str) -> str:
    """What kind of secret stands in a text, never the secret itself; empty if there is none.

    Digests and commit hashes are none by themselves, nor is a word that only names a secret.
    """
    for pattern, kind in _FORMS:
        if any(_given(found.groupdict().get("value") or "?") for found in pattern.finditer(text)):
            return kind
    if (
        any(_assigned(found) for found in _NAMED.finditer(text))
        or any(_told(found) for found in _SAID.finditer(text))
        or any(_beside(found) for found in _BESIDE.finditer(text))
    ):
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


def _told(found: re.Match[str]) -> bool:
    """Whether prose gives the value of what it calls a secret."""
    value = found["value"].rstrip(".!?")
    if not _given(value) or value.casefold().endswith(found["name"].casefold()):
        return False
    if not _of_password(found):
        return _drawn(value)
    if found["quote"]:
        return len(value) >= 4 and not _ABOUT.match(value)
    return _made_up(value) or _drawn(value)


def _beside(found: re.Match[str]) -> bool:
    """Whether a value stands behind its name, which a name for something else often does."""
    value = found["value"].rstrip(".!?:")
    if not _given(value):
        return False
    if found["end"] is not None and _of_password(found) and _made_up(value):
        return True
    turns = sum(_kind(one) != _kind(other) for one, other in pairwise(value))
    return len(value) >= _BESIDE_LENGTH and turns >= _BESIDE_TURNS * len(value) and _drawn(value)


def _of_password(found: re.Match[str]) -> bool:
    return found["name"].casefold().startswith(("pass", "pw"))


def _made_up(value: str) -> bool:
    """Whether letters and digits stand together as in a password that somebody made up."""
    if re.search(r"[_/\\.(=\[<>]|^\d{4}-\d\d", value):
        return False
    return any(
        len(part) >= 6
        and any(map(str.isdigit, part))
        and any(map(str.isalpha, part))
        and not _term(part)
        for part in re.split("[-:]", value)
    )


def _drawn(value: str) -> bool:
    """Whether a value looks drawn by lot, and not put together from words and numbers."""
    parts = [part for part in re.split(r"[._/:-]+", value) if part]
    return _random(value) and not all(map(_worded, parts))


def _worded(part: str) -> bool:
    return (
        part.isalpha()
        or _term(part)
        or re.fullmatch(r"[A-Za-z]?[a-z]{2,}\d{1,4}", part) is not None
    )


def _term(part: str) -> bool:
    """Whether one part of a value is a word or a name that has digits."""
    return _TERM.match(part) is not None or _HUMPS.match(part) is not None


def _kind(char: str) -> str:
    if char.isdigit():
        return "digit"
    return ("upper" if char.isupper() else "lower") if char.isalpha() else ""


def _mixed(value: str) -> bool:
    """Whether letters and digits or signs are mixed as in no word."""
    return len(value) >= 6 and len({_kind(char) for char in value}) >= 3


def _random(value: str) -> bool:
    """Whether a value looks drawn by lot: long, of many different characters, digits among them."""
    if len(value) < _SECRET_LENGTH or not any(map(str.isdigit, value)):
        return False
    counts = Counter(value)
    bits = -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())
    return bits >= _SECRET_BITS and not re.search(r"[/\\].*\.\w{1,5}$", value)
