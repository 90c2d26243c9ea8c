"""Masks secrets in texts and records: text in, masked text out. Pure.

A mark names the kind of the secret with a keyed digest: `[masked: xai key 7f3a19]`. The same secret
always has the same mark, so that masked texts can still be compared.
"""

import base64
import dataclasses
import hashlib
import hmac
import json
import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar, cast
from urllib.parse import quote, unquote

from midwatch_monitor.patterns import Pattern, PatternSet, escape
from midwatch_monitor.secrets.named import HINTS, is_placeholder, named_values

_BODY = (
    r"(?:[^A-Za-z+/=-]{0,20}(?:[A-Za-z-]{4,12}: [^\n]{1,80}\s+){0,3}"
    r"[A-Za-z0-9+/=]{16}[^-]*(?:-----END[^-\n]*-----)?"
    r"|(?:\r?\n[^\n]{0,120}[A-Za-z0-9+/]{40}[^\n]{0,60})+"
    r"(?:\r?\n[^\n]{0,160}(?:\r?\n[^\n]{0,120})?-----END[^-\n]*-----)?)?"
)
"""The lines of a key block: plain, numbered or quoted, with or without headers. The last
alternative has a file name or a time before each line, as `grep` and logs write it.
"""

BUILT_IN: Mapping[str, str] = MappingProxyType(
    {
        "private key": rf"-----BEGIN [A-Z0-9 ]{{0,40}}PRIVATE KEY[A-Z ]{{0,6}}-----{_BODY}",
        "private key id": r"private_key_id[\"'\\]*\s*[:=]\s*[\"'\\]*(?P<secret>[0-9a-f]{40})\b",
        "age key": r"\bAGE-SECRET-KEY-[0-9A-Za-z-]{20,}",
        "anthropic key": r"\bsk-ant-[A-Za-z0-9_-]{20,}",
        "openrouter key": r"\bsk-or-[A-Za-z0-9_-]{20,}",
        "openai key": r"\bsk-[A-Za-z0-9_-]{20,}",
        "google key": r"\bAIza[0-9A-Za-z_-]{35}",
        "google token": r"\b(?:ya29\.|GOCSPX-)[A-Za-z0-9_-]{20,}",
        "aws key": r"\b(?:AKIA|ASIA|AROA|AIDA)[0-9A-Z]{16}\b",
        "bedrock key": r"\bABSK[A-Za-z0-9+/]{40,}={0,2}",
        "azure key": r"\b(?:Account|SharedAccess)Key=(?P<secret>[A-Za-z0-9+/]{40,}={0,2})",
        "groq key": r"\bgsk_[A-Za-z0-9]{20,}",
        "xai key": r"\bxai-[A-Za-z0-9]{20,}",
        "hugging face token": r"\bhf_[A-Za-z0-9]{30,}",
        "digitalocean token": r"\bdo[opr]_v1_[0-9a-f]{40,}",
        "sendgrid key": r"\bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}",
        "telegram token": r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}",
        "slack token": r"\b(?:xox[abeoprs]|xapp)[.-][A-Za-z0-9.-]{10,}",
        "web hook": r"hooks\.slack\.com/services/(?P<secret>T\w+/B\w+/\w{16,})",
        "github token": r"\b(?:gh[opusr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,})",
        "gitlab token": r"\bgl(?:pat|rt|dt|ptt|ft|soat)-[A-Za-z0-9_.-]{20,}",
        "npm token": r"\bnpm_[A-Za-z0-9]{36}\b",
        "pypi token": r"\bpypi-[A-Za-z0-9_-]{50,}",
        "stripe key": r"\b(?:[rs]k_(?:live|test)_|whsec_)[A-Za-z0-9]{16,}",
        "json web token": r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
        "perplexity key": r"\bpplx-[A-Za-z0-9]{32,}",
        "nvidia key": r"\bnvapi-[A-Za-z0-9_-]{40,}",
        "cerebras key": r"\bcsk-[A-Za-z0-9]{32,}",
        "replicate token": r"\br8_[A-Za-z0-9]{37}\b",
        "tavily key": r"\btvly-(?:dev-|prod-)?[A-Za-z0-9]{24,}",
        "vault token": r"\bhv[sb]\.[A-Za-z0-9_-]{24,}",
        "docker token": r"\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}",
        "databricks token": r"\bdapi[0-9a-f]{32}\b",
        "shopify token": r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}\b",
        "atlassian token": r"\bATATT3[A-Za-z0-9_=-]{40,}",
        "grafana token": r"\bglsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}\b",
        "url password": r"://[^\s/:@\"'<>]*:(?P<secret>[^\s/\"'<>]{3,200})@",
        "url token": r"://(?P<secret>[A-Za-z0-9_]{32,200})@",
        "authorization": r"(?i)authorization[\"'\\]*\s*[:=]\s*[\"'\\]*"
        r"(?:bearer|basic|token|digest|apikey)\s+(?P<secret>[\w.~+/=:-]{8,})",
        "cookie": r"(?i)\bcookie[\"'\\]*:\s*[\"'\\]*(?:[\w.-]+=[^\s;\"'\\]*;\s?)*[\w.-]+="
        r"(?P<secret>[\w%.~+/=-]{16,}(?:;\s?[\w.-]+=[^\s;\"'\\]*)*)",
        "password of a command": r"\b(?:sshpass\s+-p\s*|mysql(?:dump|admin)?\s(?:[^\n|;&]*?\s)?-p"
        r"|curl\s(?:(?:[^\n|;&]|&[^\n&]|\\\r?\n)*?\s)?(?:-[A-Za-z]*u\s*|--(?:proxy-)?user[\s=])"
        r"[\"']?[^\s:\"']+:)[\"']?(?P<secret>[^\s\"']{2,200})",
    }
)
"""The patterns that need no configuration, by the kind that a mark names."""


T = TypeVar("T")
_Pairs: TypeAlias = tuple[tuple[str, str], ...]

_SHORTEST = 8
"""Minimum characters of a secret: shorter ones cannot be distinguished from words."""
_NAMED = "password or key"
_ESCAPED = re.compile(
    r"\\[nrt]|\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\x1b\[[0-9;]{0,20}[A-Za-z]|%[0-9A-Fa-f]{2}"
)
_MARK = re.compile(r"\[masked: ([^\[\]]{1,80}) [0-9a-f]{6}\]")
_KEPT = frozenset({"call", "digest", "before", "output_digest", "commit"})
"""Fields that are compared with other data: digests, and providers' ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """What to search for in texts."""

    patterns: Mapping[str, str] = field(default_factory=lambda: BUILT_IN)
    """Patterns by the kind of secret that a mark names."""
    values: Mapping[str, str] = field(default_factory=dict[str, str])
    """Secret texts, with the names used in marks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSecret:
    """The position of a secret in a text."""

    start: int
    end: int
    kind: str


class Finder:
    """Finds secrets by their shape, by their value, and by what they are called."""

    def __init__(self, secrets: Secrets) -> None:
        values = {escape(_blank_escapes(value)): name for value, name in secrets.values.items()}
        patterns = {said: kind for kind, said in secrets.patterns.items() if said}
        self._shapes = [
            (kind, Pattern(said)) for said, kind in (*values.items(), *patterns.items())
        ]
        self._values = len(values)
        self._kinds = frozenset({*values.values(), *patterns.values(), _NAMED})
        self._set = PatternSet(*values, *patterns, HINTS)

    def find(self, text: str) -> list[FoundSecret]:
        """Return all secrets in a text, in order. Raises UnicodeEncodeError for an unpaired
        surrogate.
        """
        if len(text) < _SHORTEST:
            return []
        text = _blank_escapes(text)
        if not (hits := self._set.match(text)):
            return []
        found = list(self._secrets_of_hits(text, hits))
        return _without_overlaps(self._outside_marks(text, found)) if found else found

    def _secrets_of_hits(self, text: str, hits: Collection[int]) -> Iterator[FoundSecret]:
        for hit in sorted(hits):
            if hit >= len(self._shapes):
                for start, end in named_values(text):
                    yield FoundSecret(start=start, end=end, kind=_NAMED)
                return
            kind, pattern = self._shapes[hit]
            for start, end in pattern.spans(text):
                if hit < self._values or _is_meant(text[start:end], part=pattern.is_part):
                    yield FoundSecret(start=start, end=end, kind=kind)

    def _outside_marks(self, text: str, found: list[FoundSecret]) -> list[FoundSecret]:
        """Drop secrets inside marks."""
        marks = [each.span() for each in _MARK.finditer(text) if each[1] in self._kinds]
        starts = [start for start, _ in marks]

        def in_mark(each: FoundSecret) -> bool:
            place = bisect_right(starts, each.start) - 1
            return place >= 0 and each.end <= marks[place][1]

        return [each for each in found if not in_mark(each)]


def _blank_escapes(text: str) -> str:
    """Return a text of the same length with escapes blanked out: line ends, colours, `%3D`.

    A secret must begin where a word begins, and the letters of an escape would belong to that word.
    """
    if not any(sign in text for sign in ("\\", "\x1b", "%")):
        return text
    return _ESCAPED.sub(lambda each: ("%" if each[0][0] == "%" else " ") * len(each[0]), text)


def _is_meant(secret: str, *, part: bool) -> bool:
    """Whether a text with a secret's shape is one, not a variable or words with hyphens."""
    if part:
        return not is_placeholder(secret)
    return any(map(str.isdigit, secret)) or (secret != secret.lower() != secret.upper())


def _without_overlaps(found: list[FoundSecret]) -> list[FoundSecret]:
    """Drop overlaps: of two secrets, the first one found decides the kind."""
    joined: list[FoundSecret] = []
    for each in sorted(found, key=lambda each: each.start):
        if joined and each.start < joined[-1].end:
            if each.end > joined[-1].end:
                joined[-1] = replace(joined[-1], end=each.end)
        else:
            joined.append(each)
    return joined


class Masker:
    """Masks texts and records. Its marks are made with a key that none of them reveals."""

    def __init__(self, secrets: Secrets, key: bytes) -> None:
        self._finder = _finder(secrets)
        self._key = key

    def text(self, text: str) -> str:
        """Return the text with a mark instead of each secret."""
        try:
            found = self._finder.find(text)
        except UnicodeEncodeError:  # half a surrogate pair, which the journal cannot store either
            return self.text(text.encode("utf-8", "replace").decode())
        if not found:
            return text
        parts, at = list[str](), 0
        for each in found:
            parts += (
                text[at : each.start],
                self._secret_mark(each.kind, text[each.start : each.end]),
            )
            at = each.end
        return "".join((*parts, text[at:]))

    def _secret_mark(self, kind: str, secret: str) -> str:
        told = hmac.new(self._key, secret.encode(), hashlib.sha256).hexdigest()[:6]
        return f"[masked: {kind} {told}]"

    def record(self, record: T) -> T:
        """Return the record with all its texts masked; the record itself if there is nothing to
        mask.
        """
        changed: dict[str, Any] = {}
        for name in _fields(type(record)):
            value = getattr(record, name)
            masked = self._value(value)
            if masked is not value:
                changed[name] = masked
        return cast("T", replace(cast("Any", record), **changed)) if changed else record

    def _value(self, value: object) -> object:
        # The exact type: our enums are `str` too, but contain no foreign text.
        if type(value) is str:
            return self.text(value)
        if type(value) is tuple:
            values = cast("tuple[object, ...]", value)
            masked = tuple(map(self._value, values))
            same = all(one is other for one, other in zip(values, masked, strict=True))
            return values if same else masked
        return self.record(value) if dataclasses.is_dataclass(value) else value


@cache
def _fields(kind: type[Any]) -> tuple[str, ...]:
    """Return the fields of a record in which secrets are masked."""
    return tuple(each.name for each in dataclasses.fields(kind) if each.name not in _KEPT)


def _finder(secrets: Secrets) -> Finder:
    return _compiled_finder(tuple(secrets.patterns.items()), tuple(secrets.values.items()))


@lru_cache(maxsize=8)
def _compiled_finder(patterns: _Pairs, values: _Pairs) -> Finder:
    """Cached: compiling takes milliseconds, and all journals of a process mask the same secrets."""
    return Finder(Secrets(patterns=dict(patterns), values=dict(values)))


def secret_in(text: str) -> str:
    """Return the kind of a secret in a text, never the secret itself; empty if there is none."""
    found = _finder(Secrets()).find(text.encode("utf-8", "replace").decode())
    return found[0].kind if found else ""


_NAME = re.compile(
    r"(?:^|_)(?:(?:API)?KEY|ACCESS_KEY_ID|\w*TOKEN|\w*SECRET(?:_\w+)?|\w*PASSWORD|PASSWD|PASSPHRASE"
    r"|PASS|CREDENTIALS?)$",
    re.IGNORECASE,
)
"""Names of variables that hold secrets, except those that name a file, such as `…_KEY_FILE`."""
_IN_URL = re.compile(r"://[^\s/:@]*:([^\s/@]+)@")


def known_secrets(environ: Mapping[str, str], patterns: Mapping[str, str] = BUILT_IN) -> Secrets:
    """Return what to mask: texts of a secret's shape, and secrets in a process's environment."""
    return Secrets(patterns=patterns, values=known_values(environ))


def known_values(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the secret texts in an environment, in every searched form, with their variables'
    names.
    """
    known: dict[str, str] = {}
    for name, value in environ.items():
        for secret in _secrets(name, value.strip()):
            if len(secret) >= _SHORTEST:
                known |= dict.fromkeys(_encoded_forms(secret), name)
    return known


def _secrets(name: str, value: str) -> Iterator[str]:
    if in_url := _IN_URL.search(value):
        yield in_url[1]
        yield unquote(in_url[1])
    elif _NAME.search(name) and not value.startswith(("/", "~/", "./")):
        yield value


def _encoded_forms(secret: str) -> Iterator[str]:
    """Return a secret as it is, in a URL, in JSON, and in base64 at every offset."""
    yield secret
    yield quote(secret, safe="")
    yield json.dumps(secret)[1:-1]
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for shift in range(3):
            told = encode(b"\0" * shift + secret.encode("utf-8", "replace")).decode().rstrip("=")
            # The characters at both ends also depend on the neighbouring text.
            yield told[(0, 2, 3)[shift] : len(told) - 1]
