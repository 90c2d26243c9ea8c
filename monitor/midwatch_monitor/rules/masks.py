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
    """A pattern, and words of which its texts have at least one: looking for those is cheap."""

    instead: str
    pattern: re.Pattern[str]
    hints: tuple[str, ...]
    lower: bool = False
    """Whether the hints are looked for in lower case."""

    def may_differ(self, text: str) -> bool:
        """Whether it is worth to look for the pattern."""
        for hint in self.hints:  # a generator takes three times as long
            if hint in text:
                return True
        return not self.hints


_HEX = r"(?=[0-9a-f]{7})\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b"
_MASKS = (
    _Mask(
        "<time>",
        re.compile(
            r"\b\d{4}-\d\d-\d\d"
            r"(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?Z| ?[+-]\d\d:?\d\d)?)?"
        ),
        ("-0", "-1"),
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
        (":0", ":1", ":2", ":3", ":4", ":5"),
    ),
    _Mask(
        "<time>", re.compile(r"\b1[5-9]\d{8}(?:\d{3})?(?:\.\d+)?\b"), ("15", "16", "17", "18", "19")
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
        (),
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
        ("-4", "-1", "-7", "-5", "-3"),
    ),
    _Mask("<name>", re.compile(_HEX), ()),
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
        ("]:", "] "),
    ),
    _Mask(
        "<name>",
        re.compile(r"(?=:\d{4})(?:(?<=[\]\s])|(?<=\.\d)|(?<=\.\d\d)|(?<=\.\d\d\d)):\d{4,5}\b"),
        (":",),
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
    _Mask(
        "<place>",
        re.compile(
            r"(?<![\w.])(?:(?:/private)?/var/folders/[\w+]+/[\w+]+/T|(?:/private)?(?:/var)?/tmp)"
            r"/(?:pytest-of-[\w.-]+/pytest-\d+|[\w.+-]+)"
            r"|/pytest-of-[\w.-]+/pytest-\d+"
            r"|\btmp[a-z0-9_]{8}\b"
        ),
        ("tmp", "/var/folders", "/pytest-of-"),
    ),
)
_LINES = re.compile(
    r"(?i:\bline )\d+"
    r"|(?<=[(\[])\d+,\d+(?=[)\]])"
    r"|(?:(?<=\.[a-z])|(?<=\.[a-z]{2})|(?<=\.[a-z]{3})|(?<=\.[a-z]{4})):\d+(?::\d+)?"
)
_METHODS = re.compile(r"(\.[A-Za-z_]\w*):\d+\b")
"""Java names the method, and its line after it."""
_MAY_DIFFER = re.compile(r"\d|\btmp|/tmp/")


def mask(text: str) -> str:
    """A text without times, durations, addresses, process numbers and temporary paths."""
    if _MAY_DIFFER.search(text) is None:
        return text
    lower = text.lower()
    for each in _MASKS:
        if each.may_differ(lower if each.lower else text):
            text = each.pattern.sub(each.instead, text)
    return text


def mask_lines(text: str) -> str:
    """A text without line numbers too: an edit above a failure moves it, and changes nothing."""
    return _METHODS.sub(r"\1:<line>", _LINES.sub("<line>", mask(text)))
