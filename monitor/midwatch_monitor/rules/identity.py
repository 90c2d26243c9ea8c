"""When two acts are the same act, and two results the same result.

What differs between two runs of the same thing is taken out of a text first. Narrow on purpose: a
count of failures or of items says how the work stands, and stays.
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

_MONTH = (
    "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    "|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*"
_UNIT = "(?:ns|us|µs|ms|s|secs?|seconds?|mins?|minutes?|hours?)"
_SPEED = "[kKMG]i?B/s"
_AGO = "(?:[mhdw]|days?|weeks?) ago"


class _Mask(NamedTuple):
    """What is taken out of a text.

    Patterns begin with the characters that they can begin with: otherwise `re` tries them at every
    place of a text, which takes two to ten times as long.
    """

    instead: str
    pattern: re.Pattern[str]
    rough: str
    """In the syntax of RE2, what is wherever the pattern is, and elsewhere seldom."""


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
        re.compile(
            r"\d(?<=\b\d)\d{3}-\d\d-\d\d"
            r"(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?Z| ?[+-]\d\d:?\d\d)?)?"
        ),
        r"\d{4}-\d\d-\d\d",
    ),
    _Mask(
        "<time>",
        re.compile(
            rf"(?=[A-Z\d])\b(?:{_DAY},? )?"
            rf"(?:\d{{1,2}}[ /]{_MONTH}[ /]\d{{4}}|{_MONTH} +\d{{1,2}}(?:,? \d{{4}})?)"
            r"(?:[ :,]+\d{1,2}:\d\d(?::\d\d)?)?(?: \d{4})?\b"
        ),
        rf"\d[ /]{_MONTH}[ /]\d{{4}}|{_MONTH} +\d",
    ),
    _Mask(
        "<time>",
        re.compile(
            r"\d(?<![\w:.]\d)\d?:\d\d"
            r"(?::\d\d(?:[.,]\d+)?\b|(?<=[0-2]\d:[0-5]\d)(?![\w:.]))"
        ),
        r"\d:\d\d",
    ),
    _Mask("<time>", re.compile(r"\b1[5-9]\d{8}(?:\d{3})?(?:\.\d+)?\b"), r"1[5-9]\d{8}"),
    _Mask(
        "<duration>",
        # What is still to come shows how the work stands, and stays.
        re.compile(
            r"\d(?<=\b\d)(?<!emaining \d)(?<!emaining: \d)(?<!left: \d)"
            r"(?<!ETA \d)(?<!ETA: \d)(?<!eta \d)(?<!eta: \d)"
            r"(?:\d*h ?(?:\d+m(?:in)? ?)?\d+|\d*m(?:in)? ?\d+|\d*)"
            rf"(?:\.\d+)? ?(?:{_UNIT}|{_SPEED}|{_AGO})\b"
            r"(?! (?:left|remaining|to go)\b)"
        ),
        rf"\d ?(?:{_UNIT}|{_SPEED}|{_AGO})\b",
    ),
    _Mask(
        r"\1<duration>",
        # A line of a step of `docker build`, with the seconds since that began.
        re.compile(r"(?m)^(#\d+ )\d+\.\d+\b"),
        r"(?m)^#\d+ \d+\.\d",
    ),
    _Mask(
        "<duration>",
        # The last column of a table that tells how long ago.
        re.compile(r"(?m)(?<=  )\d+[dhm](?:\d+[hms])?$"),
        r"(?m)  \d+[dhm](?:\d+[hms])?$",
    ),
    _Mask(
        "<duration>",
        # How long it has lasted, in words or in brackets.
        re.compile(r"(?:(?<=\bfor )|(?<=\bsince )|(?<=\())\d+[mhd](?:\d+[hms])?\b"),
        r"(?:\bfor |\bsince |\()\d+[mhd]",
    ),
    _Mask(
        "<duration>",
        re.compile(
            r"(?i:\b(?:elapsed|took|duration|uptime|age|latency|ms)(?:_\w+)?\b[\"' :=]*)"
            rf"\d+(?:[.:]\d+)*(?: ?{_UNIT}\b)?"
        ),
        r"(?i)\b(?:elapsed|took|duration|uptime|age|latency|ms)(?:_\w+)?[\"' :=]*\d",
    ),
    _Mask("<name>", re.compile(r"0x(?<=\b0x)[0-9a-fA-F]+\b"), r"0x[0-9a-fA-F]+\b"),
    _Mask(
        "<name>",
        re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"),
        r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-",
    ),
    _Mask("<name>", re.compile(_HEX), r"\b[0-9a-f]{7,64}\b"),
    _Mask(
        "<name>",
        re.compile(
            r"\b(?:req|trace|span|sess|session|msg|txn)[_-](?=[A-Za-z0-9]*\d)[A-Za-z0-9]{8,}\b"
        ),
        r"(?:req|trace|span|sess|session|msg|txn)[_-][A-Za-z0-9]{8}",
    ),
    _Mask(
        "<name>",
        re.compile(rf"(?=[pPtTsSnNlL1])(?i:\b{_BEFORE_PORT}\b[\"' =:#]*)\d+"),
        rf"(?i){_BEFORE_PORT}[\"' =:#]*\d",
    ),
    _Mask(
        r"\1<name>",
        # What a page puts behind its address to tell one look from another.
        re.compile(r"((?<=[\w/])[#?&](?:_|t|ts|rand|nonce|cb|sid|token)=)[\w.-]*\d[\w.-]*"),
        r"[#?&](?:_|t|ts|rand|nonce|cb|sid|token)=\S*\d",
    ),
    _Mask(
        "<name>",
        re.compile(
            r"(?<=[\w.-])\[\d{3,7}\](?=:)|(?<=\] )\[\d{3,7}\](?= \[)|(?m:^\[\d{3,7}\](?= ))"
        ),
        r"\[\d{3,7}\]",
    ),
    _Mask(
        r"\1<name>",
        # What a shell says of a job in the background.
        re.compile(r"(?m)^(\[\d+\] )\d+$"),
        r"(?m)^\[\d+\] \d+$",
    ),
    _Mask(
        "<name>",
        re.compile(r"(?=:\d{4})(?:(?<=[\]\s])|(?<=\.\d)|(?<=\.\d\d)|(?<=\.\d\d\d)):\d{4,5}\b"),
        r":\d{4,5}\b",
    ),
    _Mask(
        "<name>",
        re.compile(r"(?:[Tt]hread-|\bgoroutine |\btid[ =:]+)\d+"),
        r"(?:[Tt]hread-|goroutine |tid[ =:]+)\d",
    ),
    _Mask("<name>", re.compile(rf"(?i:\b{_BEFORE_COUNT})\d+\b"), rf"(?i){_BEFORE_COUNT}\d"),
    # What a snapshot of a page calls its parts, anew each time.
    _Mask("<name>", re.compile(r"(?i:\bref[ =])e\d+\b"), r"(?i)ref[ =]e\d"),
    _Mask(
        "<place>",
        re.compile(
            r"/(?<![\w.]/)(?:(?:private/)?var/folders/[\w+]+/[\w+]+/T|(?:private/)?(?:var/)?tmp)"
            r"/(?:pytest-of-[\w.-]+/pytest-\d+|[\w.+-]+)"
            r"|/pytest-of-[\w.-]+/pytest-\d+"
            r"|t(?<=\bt)mp[a-z0-9_]{8}\b"
        ),
        r"/var/folders/|/tmp/|/pytest-of-|tmp[a-z0-9_]{8}",
    ),
)
_LINES = (
    _Mask(
        "<line>",
        re.compile(
            r"[\d:Ll](?:(?<=\b[Ll])[Ii][Nn][Ee] \d+"
            r"|(?<=[(\[]\d)\d*,\d+(?=[)\]])"
            r"|(?:(?<=\.[a-z]:)|(?<=\.[a-z]{2}:)|(?<=\.[a-z]{3}:)|(?<=\.[a-z]{4}:))\d+(?::\d+)?)"
        ),
        r"(?i:line )\d|[(\[]\d+,\d+[)\]]|\.[a-z]{1,4}:\d",
    ),
    # Java names the method, and its line after it.
    _Mask(r"\1:<line>", re.compile(r"(\.[A-Za-z_]\w*):\d+\b"), r"\.[A-Za-z_]\w*:\d+\b"),
)


_ANY = re.compile(r"\d|tmp|/var/folders/")
"""What stands in each text that has something to be masked."""


class _Masks:
    """Masks a text, looking only once for all that may be in it."""

    def __init__(self, masks: Sequence[_Mask]) -> None:
        self._masks = masks
        self._rough = PatternSet([each.rough for each in masks])

    def sub(self, text: str) -> str:
        if _ANY.search(text) is None:
            return text
        for place in self._rough.within(text):
            found = self._masks[place]
            text = found.pattern.sub(found.instead, text)
        return text


_ALWAYS = _Masks(_MASKS)
_WITH_LINES = _Masks((*_MASKS, *_LINES))


def mask(text: str) -> str:
    """A text without times, durations, addresses, process numbers and temporary paths."""
    return _ALWAYS.sub(text)


def mask_lines(text: str) -> str:
    """A text without line numbers too: an edit above a failure moves it, and changes nothing."""
    return _WITH_LINES.sub(text)


Arguments = Mapping[str, object]

NO_WORK = frozenset(
    {"reflect", "report_error", "check_plan", "complete_step", "set_plan", "request_budget"}
    | {"read_board", "record_fact", "search_facts", "finish_plan_step"}
)
"""Tools that Midwatch itself gives to workers to report and to plan: calling them moves nothing.

The last one is that of older journals.
"""

_GOES_BACK = re.compile(r"(?i)(?:^|_)(?:go|navigate|history|browser)_?back$")
"""Tools by which a browser goes back a page."""
_KEYS = re.compile(r"(?i)(?:^|_)(?:computer|keys?|press|hotkey)(?:_|$)")
"""Tools that press keys."""
_BACK_KEYS = re.compile(r'(?i)"(?:alt|cmd|meta)\+(?:arrow)?left"')
"""Keys by which it does."""
_KEYS_IN = 80
"""Characters of arguments in which they stand."""

HELD_BACK = "[midwatch] refused: "
"""How the result of a call begins that the watch turned away: it never ran."""

_WAITING = re.compile(
    r"(?i)^(?:sleep|wait|await)(?:_\w+)?$|_wait$|^(?:BashOutput|TaskOutput|ask_(?:user|human)\w*)$"
)
_AWAITS = re.compile(
    r"(?i)^a?wait_?(?:for)?_?(?:\w+_)?(?:messages?|reply|response|answer|results?|agents?)$"
    r"|(?:^|[_.])(?:e?mail|mailbox|inbox|messages?)[_.](?:check|poll|refresh|new|unread)$"
    r"|(?:^|[_.])(?:check|poll|refresh)_(?:e?mails?|mailbox|inbox|messages?|repl(?:y|ies))$"
)
"""Tools that wait for somebody's words, or look whether they have come."""
_NO_COMMAND = re.compile(r'\s*|\{\s*"(?:command|cmd)"\s*:\s*"\s*"[^{}]*\}')
"""An empty command only asks a running one for more output."""
_ONLY_SLEEP = re.compile(r"\s*sleep\s+[\d.]+[smhd]?\s*;?\s*")
_AFTER_SLEEP = re.compile(r"^sleep\s+[\d.]+[smhd]?\s*(?:&&|;)\s*")
"""To wait longer before the same act makes it no other one."""
_KEEPS = re.compile(r"(?i)(?:^|[_.])(?:push|commit|publish)(?:_|$)")
"""Tools that keep what was done, and answer with its name."""
_HANDLES = re.compile(
    r"(?i)(?:^|[_.])(?:add|create|insert|post|submit|send|order|register|import|upload"
    r"|move|label|tag|archive|mark|delete|remove|close|override|replace|set|update|put|book"
    r"|reserve|cancel|dm|mail|notify|(?:re)?assign)(?:_|$)"
)
"""Tools that handle one thing of many, and answer with a receipt, perhaps with its number."""
_SAYS_DONE = re.compile(
    r"(?i)\W*(?:\w+ ){0,3}(?:saved|created|updated|posted|submitted|added|booked|uploaded|sent)\b"
)
"""How a receipt begins, whatever the tool is called."""
_NUMBERED = re.compile(r"[\w-]*\d[\w-]*")
_RECEIPT = 80
"""Characters up to which such an answer only says so."""
_COMMAND_KEYS = ("command", "cmd", "script")
_SHELL_KEYS = ("input", "line", "code")
"""What shells call it that are known as such."""
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
"""Arguments that only say why, beside others: they differ from call to call, and do nothing."""
SHELLS = frozenset(
    {"bash", "shell", "run_command", "execute_bash", "terminal", "sh", "exec", "run_shell_command"}
)
"""Tools whose one argument is a command of a shell."""

_CODE_KEYS = frozenset({"code", "source", "query", "sql"})
_COMMENT = re.compile(r"(?m)(?:^|(?<=\s))(?:#|//|--)(?:\s.*|)$")
_DECODER = json.JSONDecoder()
_SORTED = json.JSONEncoder(sort_keys=True)
_BLANK = " \t\n\r"
"""What may stand after a JSON value."""
_UNWRITTEN = blake2b(digest_size=8)
"""Copied for each digest: a new one takes half as long again, for its options."""
LOOKED_AT = 20_000
"""Characters of an output that are compared; of a longer one its head and its tail."""
SHORT = 512
"""Up to this many characters an output is masked at once: cheaper than to look whether it must."""


def held_back(step: Step) -> bool:
    """Whether the watch turned the call away."""
    return step.ok is False and step.output.startswith(HELD_BACK)


def waits(step: Step) -> bool:
    """Whether an act only lets time pass, or asks for what another does."""
    tool = _tool(step.tool)
    if tool.waits or (tool.shell and _NO_COMMAND.fullmatch(step.args)):
        return True
    return "sleep" in step.args and _ONLY_SLEEP.fullmatch(command(step)) is not None


def handles(tool: str) -> bool:
    """Whether a tool handles one thing of many, and answers with no more than a receipt."""
    return _tool(tool).handles


def keeps(tool: str) -> bool:
    """Whether a tool keeps what was done, under a name that it answers."""
    return _tool(tool).keeps


def awaits(tool: str) -> bool:
    """Whether a tool waits for somebody's words."""
    return _tool(tool).awaits


def goes_back(step: Step) -> bool:
    """Whether a call only takes a browser back a page."""
    tool = _tool(step.tool)
    return tool.back or (tool.keys and _BACK_KEYS.search(step.args, 0, _KEYS_IN) is not None)


class _Tool(NamedTuple):
    """What the name of a tool says of its calls."""

    waits: bool
    awaits: bool
    shell: bool
    back: bool
    keys: bool
    keeps: bool
    handles: bool


@lru_cache(maxsize=512)
def _tool(name: str) -> _Tool:
    return _Tool(
        waits=_WAITING.search(name) is not None and _AWAITS.search(name) is None,
        awaits=_AWAITS.search(name) is not None,
        shell=name.lower() in SHELLS,
        back=_GOES_BACK.search(name) is not None,
        keys=_KEYS.search(name) is not None,
        keeps=_KEEPS.search(name) is not None,
        handles=_HANDLES.search(name) is not None,
    )


def command(step: Step) -> str:
    """The shell command of a step; empty for a tool that has none."""
    return shell_call(step)[0]


def shell_call(step: Step) -> tuple[str, Arguments | None]:
    """The shell command of a step, with the arguments if they had to be read for it."""
    args = step.args
    if not args.startswith("{"):
        return args if _tool(step.tool).shell else "", None
    runs = step.exit_code is not None or _tool(step.tool).shell
    if not (runs or _may_command(args)):
        return "", None
    raw = _arguments(args)
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
    """What was done: the tool with its arguments, without comments and white space.

    `line` is the step's command, `arguments` are its own where they were read before. What is
    written to a file counts as it is.
    """
    args = step.args
    known = _arguments(args) if arguments is None and args.startswith("{") else arguments
    if known:
        args = _effective_arguments(known, step, line)
    elif not step.edits:
        args = "" if line else " ".join(args.split())
    line = _AFTER_SLEEP.sub("", line) if line.startswith("sleep") else line
    done = normal(line) if line else ""
    return digest(f"{step.tool}\0{done}\0{args}\0{step.path}")


def _effective_arguments(raw: Arguments, step: Step, line: str) -> str:
    """The arguments that do something, as far as the command does not hold them: sorted JSON.

    Most are plain words, and written here: an encoder is set up anew for each object.
    """
    written: list[str] = []
    for key in sorted(raw):
        telling = key in _TELLING_KEYS and len(raw) > 1
        if telling or (line and key in _COMMAND_KEYS):
            continue
        value = raw[key]
        if isinstance(value, str):
            value = quoted(value if step.edits else _clean(key, value))
        elif type(value) is not int:  # those are written as they are, but not what is bool
            value = _SORTED.encode(value)
        written.append(f"{quoted(key)}: {value}")
    return f"{{{', '.join(written)}}}"


def _clean(key: str, value: str) -> str:
    code = _COMMENT.sub("", value) if key in _CODE_KEYS else value
    return " ".join(code.split())


def answer(step: Step, *, precise: bool = True, whole: bool = False) -> str:
    """What came of it, as it is compared.

    The precise one is masked. The other is cheap, and equal to it where nothing had to be masked.
    Of an act that was to measure times, or whose answer names what was kept, all counts.
    """
    output = looked_at(step.output).strip()
    if whole:
        return output
    return mask(output) if precise or len(output) <= SHORT else output


def result(step: Step, said: str) -> int:
    """What came of it, by its `answer`; 0 where the output says nothing.

    What is made or sent again is the same, whatever number the receipt has.
    """
    if len(said) <= _RECEIPT and (handles(step.tool) or _SAYS_DONE.match(said)):
        said = _NUMBERED.sub("", said)
    return digest(said or step.output_digest) if said or step.output_digest else 0


def looked_at(text: str) -> str:
    """The part of a text that is compared."""
    if len(text) <= LOOKED_AT:
        return text
    half = LOOKED_AT // 2
    return text[:half] + text[-half:]


def digest(text: str) -> int:
    """A text as a number of 64 bits, the same in every process.

    Python's own `hash` is another one at each start: what a full memory forgets, and so the alerts,
    would differ between the live run, its replay and its rebuilding.
    """
    written = _UNWRITTEN.copy()
    written.update(text.encode(errors="surrogatepass"))
    return int.from_bytes(written.digest())


def _arguments(args: str) -> Arguments:
    """The object that a text stands for which begins as one; empty where it is none."""
    try:
        raw, end = _DECODER.raw_decode(args)
    except (ValueError, RecursionError):  # what a worker calls a tool with may be anything
        return {}
    return {} if args[end:].strip(_BLANK) else raw
