"""The words in which a tool for editing files refuses."""

import re

_HEAD = 400
"""Characters of an output that are looked at: what follows may quote a file."""
_PREFIX = re.compile(r"\s*(?:<tool_use_error>\s*|\[?error\]?(?: \w+){0,3}:?\s+|error:)*", re.I)
_REFUSED = re.compile(
    r"no replacement (?:was|were) (?:performed|made)"
    r"|did not appear verbatim"
    r"|\b(?:string|text|block|snippet|context|pattern|lines?|old_\w+)\b.{0,120}\bnot found\b"
    r"|\b(?:could not|couldn't|cannot|failed to|did not|unable to) (?:find|locate|match)\b"
    r"|\bdoes not match\b"
    r"|your proposed edit has introduced"
    r"|\bfile\b.{0,200}\balready exists"
    r"|no such file or directory"
    r"|\b(?:path|file|directory)\b.{0,200}\b(?:not found|does not exist)"
    r"|multiple occurrences of|\bfound \d+ (?:matches|occurrences) of"
    r"|file has (?:not been read yet|been modified since)"
    r"|no changes to make|are (?:exactly )?the same|are identical"
    r"|no file (?:is )?open|invalid `?\w+`? parameter"
    r"|patch (?:verification )?failed|patch does not apply|verification failed|invalid patch",
    re.IGNORECASE,
)
_SUCCEEDED = re.compile(
    r"(?i)(?:the )?(?:file|text|\S+)\b.{0,200}\b(?:has been|was|were|is) "
    r"(?:\w+ )?(?:created|edited|inserted|replaced|saved|updated|written)\b"
)
"""How an output begins that says what was done; it may quote what was written."""


def refused(output: str) -> bool:
    """Whether an editor's output begins by saying that nothing was changed.

    Only the first line counts: after it editors show the file, which may hold the same words.
    """
    head = output[:_HEAD]
    start = _PREFIX.match(head)
    line = head[start.end() if start else 0 :].split("\n", 1)[0]
    return _REFUSED.search(line) is not None and _SUCCEEDED.match(line) is None
