"""Finds the values of what a text calls a password, a token or a key. Pure.

Digests and commit hashes alone are not secrets, nor is a word that only names one.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise

from midwatch_monitor.patterns import Pattern

HINTS = (
    r"(?i)(?:pass(?:word|wd|phrase)?s?|pwd|secret|token|key|credentials?|(?-i:_AUTH))"
    r"[\"'`\\]{0,8}\s{0,9}(?:=>|:=|=|:|is\s)\s{0,9}\\{0,7}[\"'`]?[^\s\"'`,;)}\]\\=:]{4}"
    r"|\b(?:pw|pwd|pass(?:word|wd|phrase)|secret|token|credential"
    r"|(?:api|access|secret|private)[\s_-]?key)s?\s"
    r"|--?(?:[a-z]{1,20}-)*(?:pass(?:word|wd|phrase)?|secret|token|key)[\"'\\]{1,8},\s"
    r"|\b(?:bearer|basic)\s+[\w.~+/=-]{16,}"
)
"""A text that this does not match contains no named secret, and is not searched further. RE2."""
_BEFORE, _AFTER, _LONGEST = 24, 100, 600
"""Characters searched before and after a hint, and those of the longest value."""
_SPACE = re.compile(r"\s")
_VALUE = r"""
    \\{0,7}(?P<quote>["'`])?
    (?P<value>(?P<word>[^\s"'`,;)}\]\\]{4,500})
       (?(quote)(?:[^"'`\n\\]{1,200}(?=\\{0,7}(?P=quote)))?))
"""
"""A word, and the rest of what is within the same quotes."""
_NAMED = re.compile(
    r"""(?:(?<![A-Za-z0-9])|(?-i:(?<=[a-z0-9])(?=[A-Z])))
    (?P<name>(?:(?:pg)?password|passwd|passphrase|pwd|secret|token|api[_-]?key|apikey
       |access[_-]?key|secret[_-]?key|private[_-]?key|client[_-]?secret|credentials?
       |(?:db|(?:my)?sql|smtp|user)_pass|(?-i:[A-Z0-9_]{1,40}_(?:KEY|PASS|AUTH))))
    (?:["'`\\]{0,8}\s{0,9}(?P<sign>=>|:=|=(?!=)|:(?!:))\s{0,9}|\s{1,9}is\s{1,9}(?=["'`]))
    """
    + _VALUE,
    re.IGNORECASE | re.VERBOSE,
)
"""Something called a secret, and its assigned value."""
_OPTION = re.compile(
    r"""(?<![\w-])--?(?:[a-z]{1,20}-){0,3}
    (?:password|passwd|passphrase|pass|secret|token|(?:api|access|secret|private)-?key)
    (?:\s{1,9}|["'\\]{1,8},\s{1,9})
    """
    + _VALUE,
    re.IGNORECASE | re.VERBOSE,
)
"""An option of a command and its value, as in a shell or as two items of a list."""
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
"""The same in prose: "the password for the test server is ..."."""
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
"""A value directly after the name; with an `end`, no noun follows that both would describe."""
_BEARER = re.compile(
    r"\b(?:authorization\s*:\s*)?(?:bearer|basic)\s+(?P<value>[\w.~+/=-]{16,})", re.I
)
_NO_VALUE = re.compile(
    r"""^(?:
        (?:[<$%{\[(*.-]|x{3}).*   # <token>, $TOKEN, ${TOKEN}, {{token}}, ****, xxxx
      | (?:none|null|nil|true|false|str|string|bytes|int|bool|any|optional.*|secretstr.*)
      | (?:your|my|the|a|an|some|any|example|sample|dummy|fake|test|placeholder|changeme|redacted)
        (?:[-_].*)?
      | .*(?:os\.environ|getenv|process\.env|settings\.|config\.|self\.|request\.|args\.).*
      | [\w.]+[(\[].*            # a call or a look-up
    )$""",
    re.IGNORECASE | re.VERBOSE,
)
_SECRET_BITS = 3.0
"""Shannon bits per character from which a value is not a word or a name."""
_SECRET_LENGTH = 16
_BESIDE_LENGTH = 20
_BESIDE_TURNS = 0.3
"""Share of characters at which a random value changes to another kind; names have fewer changes."""
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
"""A technical term with digits: an algorithm, a numbered thing, an amount."""
_HUMPS = re.compile(
    r"^(?:[a-z]{2,}\d{0,2}|[A-Z][a-z]{2,}\d{0,2})"
    r"(?:[A-Z][a-z]{2,}\d{0,2}|[A-Z]{1,5}\d{0,2}(?=[A-Z]|$))+$"
)
"""A name in code: `TokenReader10`."""
_ABOUT = re.compile(
    r"^(?:(?:un)?hashed|salted|encrypted|encoded|required|optional|empty|blank|stored|missing"
    r"|invalid|expired|wrong|masked|hidden|rotated|kept|only|always|never|read|not"
    r"|[a-z_]\w*(?:[.:]\w+)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|\S*/\S+\.\w{1,5})\b(?!-)",
)
"""Words about a password that do not reveal it: a state, a variable, a file."""


def named_values(text: str) -> Iterator[tuple[int, int]]:
    """Return the positions of values that a text assigns to what it calls a secret."""
    tests: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], bool]], ...] = (
        (_NAMED, _is_assigned_secret),
        (_OPTION, _is_option_secret),
        (_SAID, _in_prose),
        (_BESIDE, _is_secret_beside),
        (_BEARER, lambda found: _is_random(found["value"])),
    )
    for begin, end in _surroundings(text):
        for pattern, holds in tests:
            for found in pattern.finditer(text, begin, end):
                if holds(found):
                    yield found.span("value")


def _surroundings(text: str) -> Iterator[tuple[int, int]]:
    """Return the parts of a text in which a secret may be named; they do not overlap."""
    begin, end = 0, 0
    for first, last in _hint_pattern().spans(text):
        if first - _BEFORE > end:
            if end:
                yield begin, end
            begin = max(0, first - _BEFORE)
        end = _to_space(text, last + _AFTER)
    if end:
        yield begin, end


def _to_space(text: str, place: int) -> int:
    """Return the position of the next white space, so that no value is cut."""
    found = _SPACE.search(text, place, place + _LONGEST)
    return found.start() if found else min(len(text), place + _LONGEST)


@cache
def _hint_pattern() -> Pattern:
    return Pattern(HINTS)


def is_placeholder(value: str) -> bool:
    """Whether a value only stands for a secret: a variable, `<token>`, `your-key`."""
    return _NO_VALUE.match(value) is not None


def _is_assigned_secret(found: re.Match[str]) -> bool:
    """Whether a name is assigned a secret rather than a word of prose or a variable."""
    value = found["word"].rstrip(".")
    if is_placeholder(value) or value.casefold().endswith(found["name"].casefold()):
        return False  # `password=password` passes on a variable
    before = found.string[max(0, found.start("name") - 1) : found.start("name")]
    if found["name"] == "PWD" and value.startswith("/") and before in {"", "\n", " "}:
        return False  # a shell's current directory
    bare = found.string[found.end("name") : found.start("value")] == "="  # no name in code
    known = found["name"].casefold().endswith(("_pass", "client_secret"))
    if (known or bare or found["quote"]) and _made_up(value):
        return True
    password = found["name"].casefold().endswith(("password", "passwd", "passphrase", "pwd"))
    if found["quote"] or (password and found["sign"] != ":"):
        return len(value) >= 4 and (password or _is_random(value) or _is_mixed(value))
    return _is_random(value) or (password and _is_mixed(value))


def _is_option_secret(found: re.Match[str]) -> bool:
    """Whether an option is given a secret rather than another option, a path, or a word."""
    value = found["word"].rstrip(".")
    if is_placeholder(value) or value.startswith(("@", "env:", "file:")):
        return False
    return _made_up(value) or _looks_random(value)


def _in_prose(found: re.Match[str]) -> bool:
    """Whether prose gives the value of a secret it names."""
    value = found["value"].rstrip(".!?")
    if is_placeholder(value) or value.casefold().endswith(found["name"].casefold()):
        return False
    if not _of_password(found):
        return _looks_random(value)
    if found["quote"]:
        return len(value) >= 4 and not _ABOUT.match(value)
    return _made_up(value) or _looks_random(value)


def _is_secret_beside(found: re.Match[str]) -> bool:
    """Whether a secret's name is followed by its value; often another name follows."""
    value = found["value"].rstrip(".!?:")
    if is_placeholder(value):
        return False
    if found["end"] is not None and _of_password(found) and _made_up(value):
        return True
    turns = sum(_character_kind(one) != _character_kind(other) for one, other in pairwise(value))
    return (
        len(value) >= _BESIDE_LENGTH
        and turns >= _BESIDE_TURNS * len(value)
        and _looks_random(value)
    )


def _of_password(found: re.Match[str]) -> bool:
    return found["name"].casefold().startswith(("pass", "pw"))


def _made_up(value: str) -> bool:
    """Whether letters and digits are combined as in a password that somebody made up."""
    if re.search(r"[_/\\.(=\[<>]|^\d{4}-\d\d", value):
        return False
    return any(
        len(part) >= 6
        and any(map(str.isdigit, part))
        and any(map(str.isalpha, part))
        and not _is_term(part)
        for part in re.split("[-:]", value)
    )


def _looks_random(value: str) -> bool:
    """Whether a value looks random rather than composed of words and numbers."""
    parts = [part for part in re.split(r"[._/:-]+", value) if part]
    return _is_random(value) and not all(map(_is_word, parts))


def _is_word(part: str) -> bool:
    return (
        part.isalpha()
        or _is_term(part)
        or re.fullmatch(r"[A-Za-z]?[a-z]{2,}\d{1,4}", part) is not None
    )


def _is_term(part: str) -> bool:
    """Whether a part of a value is a word or a name with digits."""
    return _TERM.match(part) is not None or _HUMPS.match(part) is not None


def _character_kind(char: str) -> str:
    if char.isdigit():
        return "digit"
    return ("upper" if char.isupper() else "lower") if char.isalpha() else ""


def _is_mixed(value: str) -> bool:
    """Whether letters are mixed with digits or signs as they never are in words."""
    return len(value) >= 6 and len({_character_kind(char) for char in value}) >= 3


def _is_random(value: str) -> bool:
    """Whether a value looks random: long, with many distinct characters, including digits."""
    if len(value) < _SECRET_LENGTH or not any(map(str.isdigit, value)):
        return False
    counts = Counter(value)
    bits = -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())
    return bits >= _SECRET_BITS and not re.search(r"[/\\].*\.\w{1,5}$", value)
