"""What a command prints: plain lines, or one JSON object a line."""

import json
import os
import re
import sys
from collections.abc import Mapping
from typing import TextIO

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def write_line(text: str) -> None:
    """Print text for people. Control characters in it are shown, never sent to the terminal."""
    _write(sys.stdout, _CONTROL.sub(_shown, text))


def write_json(fields: Mapping[str, object]) -> None:
    """Print one object on one line; where the stream knows only ASCII, with JSON's own escapes."""
    utf = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    _write(sys.stdout, json.dumps(fields, ensure_ascii=not utf, allow_nan=False))


def write_error(text: str) -> None:
    """Print text for people on stderr."""
    _write(sys.stderr, _CONTROL.sub(_shown, text))


def drop_output() -> None:
    """Send the rest of stdout nowhere, so that the interpreter's last flush cannot fail."""
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - devnull is no path of ours
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _shown(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def _write(stream: TextIO, line: str) -> None:
    """File names may hold bytes that are no text, and a terminal may not know every letter."""
    encoding = stream.encoding or "utf-8"
    stream.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")
