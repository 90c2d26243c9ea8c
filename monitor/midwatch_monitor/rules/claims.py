"""What a worker says of its tests."""

import re

from midwatch_monitor.records import Step

_HINTS = ("pass", "green", "succe")
_CLAIM = re.compile(
    r"(?i)\b(?:all|every|the)(?: of)?(?: the| my| our)?(?: \w+){0,2} (?:tests?|checks?|suite)"
    r"(?: \w+){0,2} (?:now |all |still )?(?:pass(?:es|ed|ing)?|succeed(?:s|ed)?|(?:is|are) green)\b"
    r"|\b(?:tests?|checks?|test suite) (?:is|are) (?:now |all )*(?:green|passing)\b"
    r"|\ball \d+ (?:\w+ )?(?:pass(?:ed|ing)?|green)\b"
    r"|\b(?:tests?|pytest|(?:test )?suite) (?:now pass(?:es)?|pass(?:es)? now)\b"
    r"|\bno (?:more )?(?:failing tests|test failures)\b"
)
_DOUBT = re.compile(
    r"(?i)\b(?:not|n't|no|until|unless|if|whether|should|would|will|could|can|may|might|must|to|"
    r"make sure|ensure|verify|check|see|hope(?:fully)?|expect|before|once|when|after|want|need|"
    r"confirm|so that|except|but|only|other|existing|previous(?:ly)?|were|were?n't|criteri(?:on|a)|"
    r"goal|requirement)\b"
)
"""Words before a claim, in its sentence, by which it is none."""
_DOUBT_WITHIN = re.compile(
    r"(?i)\b(?:should|would|will|could|can|may|might|must|to|not|other|existing|previous(?:ly)?)\b"
    r"|n't\b"
)
_SENTENCE = re.compile(r"[.!?;\n]\s|\n")
_ASKED = re.compile(r"^[^.!\n]{0,60}\?")
_EXCEPT = re.compile(
    r"(?i)^[^.!\n]{0,60}\b(?:fail\w*|broken)\b"
    r"|^[^\n]{0,40}\b(?:except|but|besides|apart|other than|although|though)\b"
    r"|^ (?:before|until|unless|if|when|once)\b"
)


def claims(step: Step) -> bool:
    """Whether what is said with a step, or in its notes, claims that the tests pass."""
    text = step.text if step.checkpoint is None else step.checkpoint.notes
    if not text:
        return False
    lower = text.lower()
    return any(hint in lower for hint in _HINTS) and claims_success(text)


def claims_success(text: str) -> bool:
    """Whether a text says that the tests pass, and not only that they should."""
    for match in _CLAIM.finditer(text):
        before = _SENTENCE.split(text[max(0, match.start() - 200) : match.start()])[-1]
        doubted = _DOUBT.search(before) or _DOUBT_WITHIN.search(match[0])
        after = text[match.end() : match.end() + 60]
        if not (doubted or _EXCEPT.search(after) or _ASKED.search(after)):
            return True
    return False
