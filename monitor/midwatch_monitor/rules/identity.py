"""When two acts are the same act, and two results the same result."""

import json
import re
from hashlib import blake2b

from midwatch_monitor.rules.masks import mask
from midwatch_monitor.shell import normal
from midwatch_monitor.words import Step

NO_WORK = frozenset(
    {"reflect", "report_error", "check_plan", "complete_step", "set_plan", "request_budget"}
    | {"read_board", "record_fact", "search_facts", "finish_plan_step"}
)
"""Tools that Midwatch itself gives to workers to report and to plan: calling them moves nothing.

The last one is that of older journals.
"""

HELD_BACK = "[midwatch] refused: "
"""How the result of a call begins that the watch turned away: it never ran."""

_WAITING = re.compile(
    r"(?i)^(?:sleep|wait|await)(?:_\w+)?$|_wait$|^(?:BashOutput|TaskOutput|ask_(?:user|human)\w*)$"
)
_NO_COMMAND = re.compile(r'\s*|\{\s*"(?:command|cmd)"\s*:\s*"\s*"[^{}]*\}')
"""An empty command only asks a running one for more output."""
_ONLY_SLEEP = re.compile(r"\s*sleep\s+[\d.]+[smhd]?\s*;?\s*")
_COMMAND_KEYS = ("command", "cmd", "script")
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
"""Arguments that only say why: they differ from call to call, and do nothing."""
SHELLS = frozenset(
    {"bash", "shell", "run_command", "execute_bash", "terminal", "sh", "exec", "run_shell_command"}
)
"""Tools whose one argument is a command of a shell."""

_CODE_KEYS = frozenset({"code", "source", "query", "sql"})
_COMMENT = re.compile(r"(?m)(?:^|(?<=\s))(?:#|//|--)(?:\s.*|)$")
_SPACE = re.compile(r"\s+")
_SORTED = json.JSONEncoder(sort_keys=True)
LOOKED_AT = 20_000
"""Characters of an output that are compared; of a longer one its head and its tail."""
SHORT = 512
"""Up to this many characters an output is masked at once: cheaper than to look whether it must."""


def held_back(step: Step) -> bool:
    """Whether the watch turned the call away."""
    return step.ok is False and step.output.startswith(HELD_BACK)


def waits(step: Step) -> bool:
    """Whether an act only lets time pass, or asks for what another does."""
    if _WAITING.search(step.tool):
        return True
    if step.tool.lower() in SHELLS and _NO_COMMAND.fullmatch(step.args):
        return True
    return "sleep" in step.args and _ONLY_SLEEP.fullmatch(command(step)) is not None


def command(step: Step) -> str:
    """The shell command of a step; empty for a tool that has none."""
    args = step.args
    if not args.startswith("{"):
        return args if step.tool.lower() in SHELLS else ""
    if not any(f'"{key}"' in args for key in _COMMAND_KEYS):
        return ""
    raw = _arguments(args)
    found = next((raw[key] for key in _COMMAND_KEYS if key in raw), "")
    return found if isinstance(found, str) else ""


def identify(step: Step, line: str) -> int:
    """What was done: the tool with its arguments, without comments and white space.

    `line` is the step's command. What is written to a file counts as it is.
    """
    args = step.args
    if args.startswith("{"):
        args = _cleaned(_arguments(args), step, line) or args
    elif not step.edits:
        args = "" if line else _SPACE.sub(" ", args).strip()
    return digest(f"{step.tool}\0{normal(line) if line else ''}\0{args}\0{step.path}")


def _cleaned(raw: dict[str, object], step: Step, line: str) -> str:
    """The arguments that do something, as far as the command does not hold them."""
    kept = {
        key: value
        for key, value in raw.items()
        if key not in _TELLING_KEYS and not (line and key in _COMMAND_KEYS)
    }
    if not step.edits:
        kept = {key: _clean(key, value) for key, value in kept.items()}
    return _SORTED.encode(kept)


def _clean(key: str, value: object) -> object:
    if not isinstance(value, str):
        return value
    code = _COMMENT.sub("", value) if key in _CODE_KEYS else value
    return _SPACE.sub(" ", code).strip()


def result(step: Step, *, precise: bool = True) -> int:
    """What came of it; 0 where the output says nothing.

    The precise one is masked. The other is cheap, and equal to it where nothing had to be masked.
    """
    output = looked_at(step.output).strip()
    if not output:
        return digest(step.output_digest) if step.output_digest else 0
    return digest(mask(output) if precise or len(output) <= SHORT else output)


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
    raw = blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(raw)


def _arguments(args: str) -> dict[str, object]:
    try:
        raw: object = json.loads(args)
    except ValueError:
        return {}
    return raw if isinstance(raw, dict) else {}  # pyright: ignore[reportUnknownVariableType]
