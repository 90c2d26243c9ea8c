"""What the form of a text reveals, in any language. Pure.

The form does not reveal whether a text gives orders. So before another attempt gets a model's free
text, a person must approve it, or another model must review it and say what it is about.
"""

import re
import unicodedata

from midwatch_monitor.secrets.masking import secret_in
from midwatch_tools.data_blocks import readable

BY_A_MODEL = "a model wrote it"
"""The reason for a lesson to wait for a person."""

_PERSONAL = re.compile(
    r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+\b|(?<![\w.])\+\d[\d ()/-]{7,16}\d\b"
)
"""Email addresses, and phone numbers with a country code."""
_EXAMPLES = re.compile(r"@(?:[\w-]+\.)*(?:example(?:\.\w+)?|test|invalid|localhost)$", re.I)
_COMMAND = re.compile(
    r"[`$|]|&&|>>|\w://|\bwww\."  # code, prompts and variables, pipes, addresses
    r"|(?:^|[\s('\"])(?:--?[a-z]|(?:~|\.{1,2})?/\w)"  # options, and paths outside the project
    r"|\.(?:sh|bash|bat|cmd|ps1|exe|msi|vbs|jar)\b",
    re.IGNORECASE | re.MULTILINE,
)


def objection(*texts: str) -> str:
    """Return why texts must not be stored: a secret, an email address, a phone number; empty if
    they may.

    The answer never repeats the offending text.
    """
    seen = _fold("\n".join(texts))
    if kind := secret_in(seen):
        return f"it holds a secret: {kind}"
    if any(not _EXAMPLES.search(each[0]) for each in _PERSONAL.finditer(seen)):
        return "it holds personal data"
    return ""


def names_a_command(text: str) -> bool:
    """Whether a text seems to contain something to run or open."""
    return _COMMAND.search(_fold(text)) is not None


def _fold(text: str) -> str:
    """Return the text as a reader sees it: no invisible characters, one form for each letter."""
    return unicodedata.normalize("NFKC", readable(text))
