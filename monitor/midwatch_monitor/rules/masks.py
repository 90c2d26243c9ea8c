"""What differs between two runs of the same thing, and how it is taken out of a text.

Narrow on purpose: a count of failures or of items says how the work stands, and stays.
"""

import re
from typing import NamedTuple

_MONTH = (
    "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    "|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*"
_UNIT = "(?:ns|us|µs|ms|s|secs?|seconds?|mins?|minutes?|hours?)"
_SPEED = "[kKMG]i?B/s"
_AGO = "(?:[mhdw]|days?|weeks?) ago"

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class _Mask(NamedTuple):
    """A pattern with a digit in it, and what is cheaper to look for on the lines with a digit."""

    instead: str
    pattern: re.Pattern[str]
    hints: tuple[str, ...] = ()
    """Words of which there is at least one."""
    near: re.Pattern[str] | None = None
    """Instead of hints, how a digit stands there. It begins with a certain character or a digit:
    `re` runs from one to the next, where it would try the pattern at every place of the text."""
    lower: bool = False
    """Whether the hints are looked for in lower case."""

    def may_differ(self, lines: str) -> bool:
        """Whether it is worth to look for the pattern."""
        for hint in self.hints:  # a generator takes three times as long
            if hint in lines:
                return True
        return self.near is not None and self.near.search(lines) is not None


_HEX = r"(?=[0-9a-f]{7})\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b"
_MASKS = (
    _Mask(
        "<time>",
        re.compile(
            r"\b\d{4}-\d\d-\d\d"
            r"(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?Z| ?[+-]\d\d:?\d\d)?)?"
        ),
        near=re.compile("-[01]"),
    ),
    _Mask(
        "<time>",
        re.compile(
            rf"\b(?:{_DAY},? )?"
            rf"(?:\d{{1,2}}[ /]{_MONTH}[ /]\d{{4}}|{_MONTH} +\d{{1,2}}(?:,? \d{{4}})?)"
            r"(?:[ :,]+\d{1,2}:\d\d(?::\d\d)?)?(?: \d{4})?\b"
        ),
        _MONTHS,
    ),
    _Mask(
        "<time>",
        re.compile(
            r"(?<![\w:.])\d{1,2}:\d\d"
            r"(?::\d\d(?:[.,]\d+)?\b|(?<=[0-2]\d:[0-5]\d)(?![\w:.]))"
        ),
        near=re.compile(":[0-5]"),
    ),
    _Mask(
        "<time>",
        re.compile(r"\b1[5-9]\d{8}(?:\d{3})?(?:\.\d+)?\b"),
        near=re.compile(r"1[5-9]\d{8}"),
    ),
    _Mask(
        "<duration>",
        # What is still to come shows how the work stands, and stays.
        re.compile(
            # The digit first: without it every place in a text is looked at seven times.
            r"(?=\d)\b"
            r"(?<!emaining )(?<!emaining: )(?<!left: )(?<!ETA )(?<!ETA: )(?<!eta )(?<!eta: )"
            rf"(?:\d+h ?)?(?:\d+m(?:in)? ?)?\d+(?:\.\d+)? ?(?:{_UNIT}|{_SPEED}|{_AGO})\b"
            r"(?! (?:left|remaining|to go)\b)"
        ),
        near=re.compile(rf"\d ?(?:{_UNIT}|{_SPEED}|{_AGO})"),
    ),
    _Mask(
        "<duration>",
        re.compile(
            r"(?i:\b(?:elapsed|took|duration|uptime)\b[\"' :=]*)"
            rf"\d+(?:[.:]\d+)*(?: ?{_UNIT}\b)?"
        ),
        ("elapsed", "took", "duration", "uptime"),
        lower=True,
    ),
    _Mask("<name>", re.compile(r"\b0x[0-9a-fA-F]+\b"), ("0x",)),
    _Mask(
        "<name>",
        re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"),
        near=re.compile("-[13457]"),
    ),
    _Mask("<name>", re.compile(_HEX), near=re.compile(r"\d(?:(?=[a-f])|(?<=[a-f]\d))")),
    _Mask(
        "<name>",
        re.compile(
            r"\b(?:req|trace|span|sess|session|msg|txn)[_-](?=[A-Za-z0-9]*\d)[A-Za-z0-9]{8,}\b"
        ),
        ("req", "trace", "span", "sess", "msg", "txn"),
    ),
    _Mask(
        "<name>",
        re.compile(
            r"(?i:\b(?:pid|process(?: id)?|thread(?: id)?|port|seed|nonce|localhost|127\.0\.0\.1)\b"
            r"[\"' =:#]*)\d+"
        ),
        ("pid", "process", "thread", "port", "seed", "nonce", "localhost", "127."),
        lower=True,
    ),
    _Mask(
        "<name>",
        re.compile(
            r"(?<=[\w.-])\[\d{3,7}\](?=:)|(?<=\] )\[\d{3,7}\](?= \[)|(?m:^\[\d{3,7}\](?= ))"
        ),
        near=re.compile(r"\[\d{3,7}\]"),
    ),
    _Mask(
        "<name>",
        re.compile(r"(?=:\d{4})(?:(?<=[\]\s])|(?<=\.\d)|(?<=\.\d\d)|(?<=\.\d\d\d)):\d{4,5}\b"),
        near=re.compile(r":\d{4}"),
    ),
    _Mask(
        "<name>",
        re.compile(r"(?:[Tt]hread-|\bgoroutine |\btid[ =:]+)\d+"),
        ("hread-", "goroutine", "tid"),
    ),
    _Mask(
        "<name>",
        re.compile(
            r"(?i:\b(?:(?:attempt|retry|try)(?: (?:id|no\.?|number))?[\"' =:#]*"
            r"|(?:request|call)(?:[\"']? ?[=:#]| ?(?:id|no\.?|number)\b[\"']? ?[=:#]?) ?))\d+\b"
        ),
        ("attempt", "try", "request", "call"),
        lower=True,
    ),
)
_PLACE = re.compile(
    r"(?<![\w.])(?:(?:/private)?/var/folders/[\w+]+/[\w+]+/T|(?:/private)?(?:/var)?/tmp)"
    r"/(?:pytest-of-[\w.-]+/pytest-\d+|[\w.+-]+)"
    r"|/pytest-of-[\w.-]+/pytest-\d+"
    r"|\btmp[a-z0-9_]{8}\b"
)
"""Of all that is masked only this may be without a digit."""
_LINES = re.compile(
    r"(?i:\bline )\d+"
    r"|(?<=[(\[])\d+,\d+(?=[)\]])"
    r"|(?:(?<=\.[a-z])|(?<=\.[a-z]{2})|(?<=\.[a-z]{3})|(?<=\.[a-z]{4})):\d+(?::\d+)?"
)
_METHODS = re.compile(r"(\.[A-Za-z_]\w*):\d+\b")
"""Java names the method, and its line after it."""
_WITH_DIGIT = re.compile(r"\n[^\n\d]*+\d.*")
"""A line with a digit. It begins with what ends the one before: for that `re` looks fast."""
_TEMPORARY = re.compile(r"\btmp|/tmp/")


def mask(text: str) -> str:
    """A text without times, durations, addresses, process numbers and temporary paths."""
    # No mask reaches over the end of a line: where there are no digits, nothing has to be looked
    # for, and most lines of most texts have none.
    lines = "".join(_WITH_DIGIT.findall("\n" + text))
    if lines:
        lower = lines.lower()
        for each in _MASKS:
            if each.may_differ(lower if each.lower else lines):
                text = each.pattern.sub(each.instead, text)
    elif "tmp" not in text or _TEMPORARY.search(text) is None:
        return text
    return _PLACE.sub("<place>", text) if _may_have_place(text) else text


def _may_have_place(text: str) -> bool:
    return "tmp" in text or "/var/folders" in text or "/pytest-of-" in text


def mask_lines(text: str) -> str:
    """A text without line numbers too: an edit above a failure moves it, and changes nothing."""
    return _METHODS.sub(r"\1:<line>", _LINES.sub("<line>", mask(text)))
