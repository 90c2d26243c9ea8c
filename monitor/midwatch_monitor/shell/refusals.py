"""The words in which a tool for editing files refuses."""

import re

_HEAD = 400
"""Characters of an output that are looked at: what follows may quote a file."""
_ERROR = re.compile(r"(?i)\s*(?:(?:<tool_use_error>|\[error\]|error(?: \w+){0,3}:)\s*)+")
_REFUSED = re.compile(
    r"(?i)\bno replacement (?:was|were) (?:performed|made)"
    r"|\bdid not appear verbatim"
    r"|\b(?:string|text|block|snippet|context|pattern|lines?|old_\w+)\b.{0,120}\bnot found\b"
    r"|^not found in\b|\bnot unique\b|\bdoes not match\b"
    r"|\b(?:could not|couldn't|cannot|failed to|did not|unable to) "
    r"(?:apply|create|edit|find|insert|locate|match|replace|write)\b"
    r"|\b(?:0|multiple) occurrences\b|\bfound \d+ (?:matches|occurrences) of\b"
    r"|\byour proposed edit has introduced"
    r"|\bfile\b.{0,200}\balready exists\b"
    r"|\b(?:path|file|directory)\b.{0,200}\b(?:not found|does not exist)\b"
    r"|\bno such file or directory\b|\bpermission denied\b|\bis a directory\b|\[errno \d+\]"
    r"|\bfile has (?:not been read yet|been modified since)\b"
    r"|\bno changes (?:to make|were made)\b|\bare (?:exactly )?the same\b|\bare identical\b"
    r"|\bno file (?:is )?open\b|\binvalid `?\w+`? parameter\b"
    r"|\bpatch (?:failed|does not apply)\b|\bverification failed\b|\binvalid patch\b"
)
_MADE = r"(?:added|applied|created|edited|inserted|modified|replaced|saved|updated|written|wrote)\b"
_DONE = re.compile(
    rf"(?i)\s*(?:successfully |text )?{_MADE}"
    rf"|\s*(?:the )?(?:file |text )?(?:at |in )?\S+ (?:ha(?:s|ve) been|was|were) (?:\w+ )?{_MADE}"
)
"""How an output begins that says what was done; it may quote what was written."""


def refused(output: str) -> bool:
    """Whether the output of an editor begins by saying that nothing was changed.

    Only the first line counts: after it editors show the file, which may hold the same words.
    """
    head = output[:_HEAD]
    error = _ERROR.match(head)
    line = head[error.end() if error else 0 :].lstrip().split("\n", 1)[0]
    return _DONE.match(line) is None and (error is not None or _REFUSED.search(line) is not None)
