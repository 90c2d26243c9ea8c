"""What the form of a text shows, in whatever language it is written. Pure.

No form shows whether a text gives orders. So what a model writes freely waits for a person, or for
a review by another model that says what it is about, before an attempt is given it.
"""

import re
import unicodedata

from midwatch_monitor.secrets.masking import secret_in
from midwatch_tools.data_blocks import readable

BY_A_MODEL = "a model wrote it"
"""Why a lesson waits for a person."""

_PERSONAL = re.compile(
    r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+\b|(?<![\w.])\+\d[\d ()/-]{7,16}\d\b"
)
"""Mail addresses, and phone numbers with a country."""
_EXAMPLES = re.compile(r"@(?:[\w-]+\.)*(?:example(?:\.\w+)?|test|invalid|localhost)$", re.I)
_COMMAND = re.compile(
    r"[`$|]|&&|>>|\w://|\bwww\."  # code, prompts and variables, pipes, addresses
    r"|(?:^|[\s('\"])(?:--?[a-z]|(?:~|\.{1,2})?/\w)"  # options, and paths outside the project
    r"|\.(?:sh|bash|bat|cmd|ps1|exe|msi|vbs|jar)\b",
    re.IGNORECASE | re.MULTILINE,
)


def objection(*texts: str) -> str:
    """Why texts must not be kept at all: a secret, a mail address, a phone number; empty if not.

    The answer never repeats what it objects to.
    """
    seen = _fold("\n".join(texts))
    if kind := secret_in(seen):
        return f"it holds a secret: {kind}"
    if any(not _EXAMPLES.search(each[0]) for each in _PERSONAL.finditer(seen)):
        return "it holds personal data"
    return ""


def names_a_command(text: str) -> bool:
    """Whether something in a text looks as if it were to be run or opened."""
    return _COMMAND.search(_fold(text)) is not None


def _fold(text: str) -> str:
    """The text as it is read: without what is not seen, and with one form of each letter."""
    return unicodedata.normalize("NFKC", readable(text))
