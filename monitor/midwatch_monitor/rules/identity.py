"""When two acts are the same act, and two results the same result.

Parts of a text that vary between two runs of the same thing are removed first. This is narrow on
purpose: a number of failures or items shows progress and is kept.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from json.encoder import encode_basestring_ascii as quoted
from typing import NamedTuple, cast

from midwatch_monitor.patterns import PatternSet
from midwatch_monitor.records import Step
from midwatch_monitor.shell import command_line, normal
from midwatch_monitor.shell.tools import is_shell

_MONTH = (
    "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    "|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*"
_UNIT = "(?:ns|us|µs|ms|s|secs?|seconds?|mins?|minutes?|hours?)"
_SPEED = "[kKMG]i?B/s"
_AGO = "(?:[mhdw]|days?|weeks?) ago"


class _Mask(NamedTuple):
    """A pattern that is removed from texts.

    Each pattern starts by naming the characters it can begin with. Without that, `re` tries the
    whole pattern at every position of a text, which takes two to ten times as long.
    """

    instead: str
    pattern: str
    rough: str
    """An RE2 pattern that matches wherever the pattern does, and rarely elsewhere."""


_HEX = (
    r"[0-9a-f](?<=\b[0-9a-f])(?=[0-9a-f]{6,63}\b)"
    r"(?=(?<=\d)\d*[a-f]|(?<=[a-f])[a-f]*\d)[0-9a-f]+"
)
_BEFORE_PORT = r"(?:pid|process(?: id)?|thread(?: id)?|port|seed|nonce|localhost|127\.0\.0\.1)"
_BEFORE_COUNT = (
    r"(?:(?:attempt|retry|try|rev(?:ision)?|patch ?set|hop)(?: (?:id|no\.?|number))?[\"' =:#]*"
    r"|(?:request|call)(?:[\"']? ?[=:#]| ?(?:id|no\.?|number)\b[\"']? ?[=:#]?) ?)"
)
_MASKS = (
    _Mask(
        "<time>",
        r"\d(?<=\b\d)\d{3}-\d\d-\d\d"
        r"(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?Z| ?[+-]\d\d:?\d\d)?)?",
        r"\d{4}-\d\d-\d\d",
    ),
    _Mask(
        "<time>",
        rf"(?=[A-Z\d])\b(?:{_DAY},? )?"
        rf"(?:\d{{1,2}}[ /]{_MONTH}[ /]\d{{4}}|{_MONTH} +\d{{1,2}}(?:,? \d{{4}})?)"
        r"(?:[ :,]+\d{1,2}:\d\d(?::\d\d)?)?(?: \d{4})?\b",
        rf"\d[ /]{_MONTH}[ /]\d{{4}}|{_MONTH} +\d",
    ),
    _Mask(
        "<time>",
        r"\d(?<![\w:.]\d)\d?:\d\d"
        r"(?::\d\d(?:[.,]\d+)?\b|(?<=[0-2]\d:[0-5]\d)(?![\w:.]))",
        r"\d:\d\d",
    ),
    _Mask("<time>", r"\b1[5-9]\d{8}(?:\d{3})?(?:\.\d+)?\b", r"1[5-9]\d{8}"),
    _Mask(
        "<duration>",
        # Remaining time shows progress and is kept.
        r"\d(?<=\b\d)(?<!emaining \d)(?<!emaining: \d)(?<!left: \d)"
        r"(?<!ETA \d)(?<!ETA: \d)(?<!eta \d)(?<!eta: \d)"
        r"(?:\d*h ?(?:\d+m(?:in)? ?)?\d+|\d*m(?:in)? ?\d+|\d*)"
        rf"(?:\.\d+)? ?(?:{_UNIT}|{_SPEED}|{_AGO})\b"
        r"(?! (?:left|remaining|to go)\b)",
        rf"\d ?(?:{_UNIT}|{_SPEED}|{_AGO})\b",
    ),
    _Mask(
        r"\1<duration>",
        # A line of a `docker build` step, with the seconds since the step began.
        r"(?m)^(#\d+ )\d+\.\d+\b",
        r"(?m)^#\d+ \d+\.\d",
    ),
    _Mask(
        "<duration>",
        # The age in the last column of a table.
        r"(?m)(?<=  )\d+[dhm](?:\d+[hms])?$",
        r"(?m)  \d+[dhm](?:\d+[hms])?$",
    ),
    _Mask(
        "<duration>",
        # A duration after `for` or `since`, or in brackets.
        r"(?:(?<=\bfor )|(?<=\bsince )|(?<=\())\d+[mhd](?:\d+[hms])?\b",
        r"(?:\bfor |\bsince |\()\d+[mhd]",
    ),
    _Mask(
        "<duration>",
        r"(?i:\b(?:elapsed|took|duration|uptime|age|latency|ms)(?:_\w+)?\b[\"' :=]*)"
        rf"\d+(?:[.:]\d+)*(?: ?{_UNIT}\b)?",
        r"(?i)\b(?:elapsed|took|duration|uptime|age|latency|ms)(?:_\w+)?[\"' :=]*\d",
    ),
    _Mask("<name>", r"0x(?<=\b0x)[0-9a-fA-F]+\b", r"0x[0-9a-fA-F]+\b"),
    _Mask(
        "<name>",
        r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b",
        r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-",
    ),
    _Mask("<name>", _HEX, r"\b[0-9a-f]{7,64}\b"),
    _Mask(
        "<name>",
        r"\b(?:req|trace|span|sess|session|msg|txn)[_-](?=[A-Za-z0-9]*\d)[A-Za-z0-9]{8,}\b",
        r"(?:req|trace|span|sess|session|msg|txn)[_-][A-Za-z0-9]{8}",
    ),
    _Mask(
        "<name>",
        rf"(?=[pPtTsSnNlL1])(?i:\b{_BEFORE_PORT}\b[\"' =:#]*)\d+",
        rf"(?i){_BEFORE_PORT}[\"' =:#]*\d",
    ),
    _Mask(
        r"\1<name>",
        # A parameter that a page adds to its address to make each request unique.
        r"((?<=[\w/])[#?&](?:_|t|ts|rand|nonce|cb|sid|token)=)[\w.-]*\d[\w.-]*",
        r"[#?&](?:_|t|ts|rand|nonce|cb|sid|token)=\S*\d",
    ),
    _Mask(
        "<name>",
        r"(?<=[\w.-])\[\d{3,7}\](?=:)|(?<=\] )\[\d{3,7}\](?= \[)|(?m:^\[\d{3,7}\](?= ))",
        r"\[\d{3,7}\]",
    ),
    _Mask(
        r"\1<name>",
        # A shell's message about a background job.
        r"(?m)^(\[\d+\] )\d+$",
        r"(?m)^\[\d+\] \d+$",
    ),
    _Mask(
        "<name>",
        r"(?=:\d{4})(?:(?<=[\]\s])|(?<=\.\d)|(?<=\.\d\d)|(?<=\.\d\d\d)):\d{4,5}\b",
        r":\d{4,5}\b",
    ),
    _Mask(
        "<name>",
        r"(?:[Tt]hread-|\bgoroutine |\btid[ =:]+)\d+",
        r"(?:[Tt]hread-|goroutine |tid[ =:]+)\d",
    ),
    _Mask("<name>", rf"(?i:\b{_BEFORE_COUNT})\d+\b", rf"(?i){_BEFORE_COUNT}\d"),
    # References to parts of a page, which are renumbered in each snapshot.
    _Mask("<name>", r"(?i:\bref[ =])e\d+\b", r"(?i)ref[ =]e\d"),
    _Mask(
        "<place>",
        r"/(?<![\w.]/)(?:(?:private/)?var/folders/[\w+]+/[\w+]+/T|(?:private/)?(?:var/)?tmp)"
        r"/(?:pytest-of-[\w.-]+/pytest-\d+|[\w.+-]+)"
        r"|/pytest-of-[\w.-]+/pytest-\d+"
        r"|t(?<=\bt)mp[a-z0-9_]{8}\b",
        r"/var/folders/|/tmp/|/pytest-of-|tmp[a-z0-9_]{8}",
    ),
)
_LINES = (
    _Mask(
        "<line>",
        r"[\d:Ll](?:(?<=\b[Ll])[Ii][Nn][Ee] \d+"
        r"|(?<=[(\[]\d)\d*,\d+(?=[)\]])"
        r"|(?:(?<=\.[a-z]:)|(?<=\.[a-z]{2}:)|(?<=\.[a-z]{3}:)|(?<=\.[a-z]{4}:))\d+(?::\d+)?)",
        r"(?i:line )\d|[(\[]\d+,\d+[)\]]|\.[a-z]{1,4}:\d",
    ),
    # In Java, the line number follows the method.
    _Mask(r"\1:<line>", r"(\.[A-Za-z_]\w*):\d+\b", r"\.[A-Za-z_]\w*:\d+\b"),
)


_ANY = re.compile(r"\d|tmp|/var/folders/")
"""Matches in every text that has anything to mask."""


class _Masks:
    """Masks a text after a single search for all patterns at once."""

    def __init__(self, masks: Sequence[_Mask]) -> None:
        self._masks = [(re.compile(each.pattern), each.instead) for each in masks]
        self._rough = PatternSet(*(each.rough for each in masks))

    def sub(self, text: str) -> str:
        if _ANY.search(text) is None:
            return text
        for place in self._rough.within(text):
            pattern, instead = self._masks[place]
            text = pattern.sub(instead, text)
        return text


_ALWAYS = _Masks(_MASKS)
_WITH_LINES = _Masks((*_MASKS, *_LINES))


def mask(text: str) -> str:
    """Return a text without times, durations, addresses, process numbers and temporary paths."""
    return _ALWAYS.sub(text)


def mask_lines(text: str) -> str:
    """Return a masked text without line numbers: an edit above a failure only moves it."""
    return _WITH_LINES.sub(text)


Arguments = Mapping[str, object]

NO_WORK = frozenset(
    {"reflect", "report_error", "check_plan", "complete_step", "set_plan", "request_budget"}
    | {"read_board", "record_fact", "search_facts", "finish_plan_step"}
)
"""Midwatch's own tools for reporting and planning: calling them moves nothing.

The last one is from older journals.
"""

_GOES_BACK = re.compile(r"(?i)(?:^|_)(?:go|navigate|history|browser)_?back$")
"""Tools that take a browser back a page."""
_KEYS = re.compile(r"(?i)(?:^|_)(?:computer|keys?|press|hotkey)(?:_|$)")
"""Tools that press keys."""
_BACK_KEYS = re.compile(r'(?i)"(?:alt|cmd|meta)\+(?:arrow)?left"')
"""Keys that take a browser back a page."""
_KEYS_IN = 80
"""Characters of the arguments that are searched for them."""

HELD_BACK = "[midwatch] refused: "
"""Start of the result of a call that was refused and never ran."""

UNREPORTED = "The agent does not report the output."
"""The output of a third-party agent's call whose real output is unknown."""
END_UNKNOWN = "It was interrupted, and how it ended is unknown."
"""The output of a call that may have succeeded or failed, or may never have started."""

_WAITING = re.compile(
    r"(?i)^(?:sleep|wait|await)(?:_\w+)?$|_wait$|^(?:BashOutput|TaskOutput|ask_(?:user|human)\w*)$"
)
_AWAITS = re.compile(
    r"(?i)^a?wait_?(?:for)?_?(?:\w+_)?(?:messages?|reply|response|answer|results?|agents?)$"
    r"|(?:^|[_.])(?:e?mail|mailbox|inbox|messages?)[_.](?:check|poll|refresh|new|unread)$"
    r"|(?:^|[_.])(?:check|poll|refresh)_(?:e?mails?|mailbox|inbox|messages?|repl(?:y|ies))$"
)
"""Tools that wait for somebody's message, or check for new ones."""
_NO_COMMAND = re.compile(r'\s*|\{\s*"(?:command|cmd)"\s*:\s*"\s*"[^{}]*\}')
"""An empty command only asks a running one for more output."""
_ONLY_SLEEP = re.compile(r"\s*sleep\s+[\d.]+[smhd]?\s*;?\s*")
_AFTER_SLEEP = re.compile(r"^sleep\s+[\d.]+[smhd]?\s*(?:&&|;)\s*")
"""A wait before an act does not make it a different act, however long."""
_KEEPS = re.compile(r"(?i)(?:^|[_.])(?:push|commit|publish)(?:_|$)")
"""Tools that store work and answer with its name."""
_HANDLES = re.compile(
    r"(?i)(?:^|[_.])(?:add|create|insert|post|submit|send|order|register|import|upload"
    r"|move|label|tag|archive|mark|delete|remove|close|override|replace|set|update|put|book"
    r"|reserve|cancel|dm|mail|notify|(?:re)?assign)(?:_|$)"
)
"""Tools that handle one of many items and answer with a receipt, perhaps with its number."""
_SAYS_DONE = re.compile(
    r"(?i)\W*(?:\w+ ){0,3}(?:saved|created|updated|posted|submitted|added|booked|uploaded|sent)\b"
)
"""Start of a receipt, whatever the tool's name."""
_NUMBERED = re.compile(r"[\w-]*\d[\w-]*")
_RECEIPT = 80
"""Longest receipt, in characters."""
_COMMAND_KEYS = ("command", "cmd", "script")
_SHELL_KEYS = ("input", "line", "code")
"""Names of the command argument in known shells."""
_QUOTED_KEYS = ('"command"', '"cmd"', '"script"')
_TELLING_KEYS = frozenset(
    {
        "description",
        "explanation",
        "reason",
        "reasoning",
        "thought",
        "thoughts",
        "comment",
        "intent",
    }
)
"""Arguments that only give a reason for the call: they vary and have no effect."""
_CODE_KEYS = frozenset({"code", "source", "query", "sql"})
_COMMENT = re.compile(r"(?m)(?:^|(?<=\s))(?:#|//|--)(?:\s.*|)$")
_DECODER = json.JSONDecoder()
_SORTED = json.JSONEncoder(sort_keys=True)
_BLANK = " \t\n\r"
"""What may follow a JSON value."""
_UNWRITTEN = blake2b(digest_size=8)
"""Copied for each digest: creating a new one takes half as long again because of its options."""
LOOKED_AT = 20_000
"""Characters of an output that are compared: of a longer one, its head and tail."""
SHORT = 512
"""Outputs up to this length are masked at once, which is faster than checking whether they must be.
"""


def was_refused(step: Step) -> bool:
    """Whether Midwatch refused the call."""
    return step.ok is False and step.output.startswith(HELD_BACK)


def only_waits(step: Step) -> bool:
    """Whether an act only waits, or asks what another one is doing."""
    tool = tool_traits(step.tool)
    if tool.only_waits or (tool.shell and _NO_COMMAND.fullmatch(step.args)):
        return True
    return "sleep" in step.args and _ONLY_SLEEP.fullmatch(command(step)) is not None


def goes_back(step: Step) -> bool:
    """Whether a call only takes a browser back a page."""
    tool = tool_traits(step.tool)
    return tool.back or (tool.keys and _BACK_KEYS.search(step.args, 0, _KEYS_IN) is not None)


class _Tool(NamedTuple):
    """What a tool's name says about its calls."""

    only_waits: bool
    awaits_message: bool
    """Whether it waits for somebody's message."""
    shell: bool
    back: bool
    keys: bool
    stores_work: bool
    """Whether it stores work under a name that it answers with."""
    handles_one_item: bool
    """Whether it handles one of many items and answers only with a receipt."""


@lru_cache(maxsize=512)
def tool_traits(name: str) -> _Tool:
    """Return what a tool's name says."""
    return _Tool(
        only_waits=_WAITING.search(name) is not None and _AWAITS.search(name) is None,
        awaits_message=_AWAITS.search(name) is not None,
        shell=is_shell(name),
        back=_GOES_BACK.search(name) is not None,
        keys=_KEYS.search(name) is not None,
        stores_work=_KEEPS.search(name) is not None,
        handles_one_item=_HANDLES.search(name) is not None,
    )


def command(step: Step) -> str:
    """Return the shell command of a step; empty if its tool has none."""
    return shell_call(step)[0]


def shell_call(step: Step) -> tuple[str, Arguments | None]:
    """Return the shell command of a step, and its arguments if they had to be parsed."""
    args = step.args
    if not args.startswith("{"):
        return args if tool_traits(step.tool).shell else "", None
    runs = step.exit_code is not None or tool_traits(step.tool).shell
    if not (runs or _may_command(args)):
        return "", None
    raw = _parse_arguments(args)
    found = next((raw[key] for key in _COMMAND_KEYS if key in raw), "")
    if not found and runs:
        found = next((raw[key] for key in _SHELL_KEYS if key in raw), "")
    if isinstance(found, list):
        return command_line([str(word) for word in cast("list[object]", found)]), raw
    return found if isinstance(found, str) else "", raw


def _may_command(args: str) -> bool:
    first, second, third = _QUOTED_KEYS  # a loop over them takes twice as long
    return first in args or second in args or third in args


def identify(step: Step, line: str, arguments: Arguments | None = None) -> int:
    """Return a digest of the act: the tool with its arguments, without comments and white space.

    `line` is the step's command, `arguments` its arguments if already parsed. Text written to a
    file is not normalised.
    """
    args = step.args
    known = _parse_arguments(args) if arguments is None and args.startswith("{") else arguments
    if known:
        args = _effective_arguments(known, step, line)
    elif not step.edits:
        args = "" if line else " ".join(args.split())
    line = _AFTER_SLEEP.sub("", line) if line.startswith("sleep") else line
    done = normal(line) if line else ""
    return digest(f"{step.tool}\0{done}\0{args}\0{step.path}")


def _effective_arguments(raw: Arguments, step: Step, line: str) -> str:
    """Return the arguments that have an effect and are not in the command, as sorted JSON.

    Most are plain words and are encoded here, because an encoder is slow to set up for each object.
    """
    written: list[str] = []
    for key in sorted(raw):
        telling = key in _TELLING_KEYS and len(raw) > 1
        if telling or (line and key in _COMMAND_KEYS):
            continue
        value = raw[key]
        if isinstance(value, str):
            value = quoted(value if step.edits else _clean_text(key, value))
        elif type(value) is not int:  # an int needs no encoding, but a bool does
            value = _SORTED.encode(value)
        written.append(f"{quoted(key)}: {value}")
    return f"{{{', '.join(written)}}}"


def _clean_text(key: str, value: str) -> str:
    code = _COMMENT.sub("", value) if key in _CODE_KEYS else value
    return " ".join(code.split())


def answer(step: Step, *, precise: bool = True, whole: bool = False) -> str:
    """Return the output in the form that is compared.

    The precise form is masked. The other form is cheap, and the same if there is nothing to mask.
    `whole` is for acts that measure times or that answer with the name of stored work: nothing is
    masked.
    """
    if step.output == UNREPORTED:
        return ""
    output = looked_at(step.output).strip()
    if whole:
        return output
    return mask(output) if precise or len(output) <= SHORT else output


def result(step: Step, said: str) -> int:
    """Return a digest of the result, given its `answer`; 0 if it is unknown or says nothing.

    Numbers in a receipt are ignored: creating or sending something again gives the same result.
    """
    if len(said) <= _RECEIPT and (
        tool_traits(step.tool).handles_one_item or _SAYS_DONE.match(said)
    ):
        said = _NUMBERED.sub("", said)
    told = said or (step.output_digest if step.output != UNREPORTED else "")
    return digest(told) if told else 0


def looked_at(text: str) -> str:
    """Return the part of a text that is compared."""
    if len(text) <= LOOKED_AT:
        return text
    half = LOOKED_AT // 2
    return text[:half] + text[-half:]


def digest(text: str) -> int:
    """Return a text as a 64-bit number that is the same in every process.

    Python's own `hash` differs in each process. What a full memory forgets, and so the alerts,
    would then differ between the live run, its replay and a rebuild.
    """
    written = _UNWRITTEN.copy()
    written.update(text.encode(errors="surrogatepass"))
    return int.from_bytes(written.digest())


def _parse_arguments(args: str) -> Arguments:
    """Return the object in a text that begins like one; empty if it is not one."""
    try:
        raw, end = _DECODER.raw_decode(args)
    except (ValueError, RecursionError):  # a worker may call a tool with anything
        return {}
    return {} if args[end:].strip(_BLANK) else raw
