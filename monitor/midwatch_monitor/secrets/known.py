"""The secrets that a process itself was given, to be found wherever they appear. Pure."""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from urllib.parse import quote, unquote

from midwatch_monitor.secrets.masking import Secrets
from midwatch_monitor.secrets.shapes import BUILT_IN

SHORTEST = 8
"""Characters of a value that is looked for: shorter ones are words too often."""

_NAME = re.compile(
    r"(?:^|_)(?:(?:API)?KEY|ACCESS_KEY_ID|\w*TOKEN|\w*SECRET(?:_\w+)?|\w*PASSWORD|PASSWD|PASSPHRASE"
    r"|PASS|CREDENTIALS?)$",
    re.IGNORECASE,
)
"""How variables are called that hold secrets; not those that name a file, as `…_KEY_FILE` does."""
_IN_URL = re.compile(r"://[^\s/:@]*:([^\s/@]+)@")


def sought(environ: Mapping[str, str], patterns: Mapping[str, str] = BUILT_IN) -> Secrets:
    """What is masked: what has the shape of a secret, and what a process was given as one."""
    return Secrets(patterns=patterns, values=known_values(environ))


def known_values(environ: Mapping[str, str]) -> dict[str, str]:
    """The secret texts in an environment, in every form looked for, and their variables' names."""
    known: dict[str, str] = {}
    for name, value in environ.items():
        for secret in _secrets(name, value.strip()):
            if len(secret) >= SHORTEST:
                known |= dict.fromkeys(_forms(secret), name)
    return known


def _secrets(name: str, value: str) -> Iterator[str]:
    if in_url := _IN_URL.search(value):
        yield in_url[1]
        yield unquote(in_url[1])
    elif _NAME.search(name) and not value.startswith(("/", "~/", "./")):
        yield value


def _forms(secret: str) -> Iterator[str]:
    """A secret as it stands, in a URL, in JSON, and in base64 wherever it begins there."""
    yield secret
    yield quote(secret, safe="")
    yield json.dumps(secret)[1:-1]
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for shift in range(3):
            told = encode(b"\0" * shift + secret.encode("utf-8", "replace")).decode().rstrip("=")
            # The characters at both ends also tell something of what stands beside it.
            yield told[(0, 2, 3)[shift] : len(told) - 1]
