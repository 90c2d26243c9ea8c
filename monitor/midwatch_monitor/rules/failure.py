"""Whether an act failed, how, and whether the surroundings are to blame."""

import re

from midwatch_monitor.patterns import Pattern, PatternSet
from midwatch_monitor.records import Step
from midwatch_monitor.rules.identity import command, digest, mask, mask_lines
from midwatch_monitor.shell.claimed_edits import changing, refused

_TAIL = 4_000
_MAX_LINES = 12
_END = 1_000
_BEGINNING = 200
"""Characters in which an editor says why it refused."""

_TELLING = Pattern(
    r"(?m)^(?:Traceback \(most recent call last\):"
    r"|(?:E {2,})?[\w.]*(?:Error|Exception|Failure|Fault|Interrupt)\b.*"
    r"|(?:-+ )?(?:FAILED|ERROR|FAIL|error|fatal|panic|Error|Failed)\b(?:[:\[( \t!]).*"
    r"|\[(?:ERROR|FATAL|FAIL)\].*"
    r"|\S+:\d+(?::\d+)?: (?:fatal )?error\b.*|\S+\(\d+,\d+\): error\b.*"
    r"|\W*[1-9]\d* problems? \(.*|[\w./-]+: error: .*|No file open\b.*"
    r"|(?:/\S+: )?(?:ba|z|da)?sh: .*"
    r"|.*: (?:command not found|No such file or directory|Permission denied)\b.*"
    r"|=+ .*\b\d+ (?:failed|errors?)\b.*"
    r"|.*\b[1-9]\d* (?:failed|failures?|failing)\b.*"
    r"|npm ERR!.*|make: \*\*\* .*|curl: \(\d+\) .*|HTTP(?:/[\d.]+)? [45]\d\d\b.*"
    r")$"
)
"""Lines of an output that tell of a failure."""
_REACHED = Pattern(r"\b\d{1,6} (?:out )?of \d{1,6}\b")
"""How far it came before it failed."""
_COUNTED = Pattern(
    r"(?i)\b\d{1,6} (?:\w+ )?(?:failed|failures?|failing|errors?)\b"
    r"|\b(?:failures|errors|failed)[=:] ?\d{1,6}\b"
)
"""Where an output says how many fail."""
_NUMBER = re.compile(r"\d+")

_THERE = r"(?:cd \S+\s*(?:&&|;)\s*)*"
"""A change of the folder before the command that counts."""
_SHOWS = re.compile(r"(?i)(?:^|_)(?:read|view|open|cat|grep|search|find|list|ls|glob|fetch|goto)")
"""Tools whose output quotes what others wrote: an error in it need not be theirs."""
_LOOKS_FOR = re.compile(
    _THERE + r"(?:\S*/)?(?:grep|egrep|rg|ag|diff|cmp|test|\[|git (?:grep|diff))\b"
)
"""Commands that say "no" by exit code 1."""

_PRINTS = re.compile(
    _THERE + r"(?:cat|head|tail|less|nl|sed -n|grep|rg|git (?:show|log|diff))\b[^;&|]*$"
)
"""Commands that quote like those tools."""
_OWN_WORDS = re.compile(r"\s*(?:\S+: )*(?:cat|head|tail|less|nl|sed|grep|rg|fatal|cd): ")
"""How an output begins in which such a command speaks for itself."""

_BLOCKED = {
    "missing program": r"([\w.+/-]+): (?:command )?not found",
    "permission": r"(?i)permission denied|operation not permitted|read-only file system|EACCES",
    "network": r"(?i)connection (?:refused|reset|timed out)|could not resolve host"
    r"|network is unreachable|temporary failure in name resolution|name or service not known"
    r"|max retries exceeded",
    "disk": r"(?i)no space left on device|disk quota exceeded",
    "memory": r"(?i)out of memory|cannot allocate memory|MemoryError",
    "credentials": r"(?i)\b401 unauthorized|\b403 forbidden|authentication failed|invalid api key"
    r"|could not read username|permission denied \(publickey",
    "environment": r"JAVA_HOME (?:is )?not (?:set|defined)"
    r"|(?i:environment variable \S+ (?:is )?not set)",
}
_SURROUNDINGS = PatternSet(tuple(_BLOCKED.values()))
_KINDS = tuple(_BLOCKED)
_PROGRAM = re.compile(_BLOCKED["missing program"])


def has_failed(step: Step) -> bool | None:
    """Whether the act failed; `None` where nothing says so. The exit code counts before words."""
    if step.exit_code not in (0, None) or step.ok is False:
        return True
    if step.exit_code == 0 or step.ok:
        return False
    return True if _words_fail(step) else None


def says_no(step: Step, line: str) -> bool:
    """Whether an exit code of 1 only means that a search or a comparison found nothing."""
    if step.exit_code != 1:
        return False
    return not step.output.strip() or _LOOKS_FOR.match(line.lstrip()) is not None


def _words_fail(step: Step) -> bool:
    if changing(step.tool):
        return refused(step.output)
    if _SHOWS.search(step.tool) or not failure_lines(step.output):
        return False
    prints = _PRINTS.match(command(step).lstrip()) is not None
    return not prints or _OWN_WORDS.match(step.output) is not None


def failure_lines(output: str) -> list[str]:
    """The lines at the end of an output that tell of a failure."""
    return _TELLING.findall(output[-_TAIL:])


def signature(step: Step) -> int:
    """What failed, as far as the lines tell that speak of it; 0 where nothing does.

    Line numbers, times and the like do not count; "3 failed" and "2 failed" are two failures. Where
    only the exit code says that it failed, the end of the output stands for it.
    """
    output = step.output
    lines = failure_lines(output)
    if not lines:
        if changing(step.tool):
            end = output[:_BEGINNING].strip()
        else:
            end = output[-_END:].strip() if step.exit_code not in (0, None) else ""
        return digest(mask_lines(end)) if end else 0
    words = [line.strip() for line in lines[-_MAX_LINES:]]
    return digest(mask_lines("\n".join([*words, *_REACHED.findall(output[-_TAIL:])[-1:]])))


def failure_line(output: str) -> str:
    """The last line that tells of a failure, for people."""
    lines = failure_lines(output) or output[-_END:].strip().splitlines()
    return lines[-1].strip()[:120] if lines else ""


def surroundings(output: str) -> str:
    """What of the surroundings stands in the way: its kind and name, or nothing."""
    tail = output[-_TAIL:]
    blocked = _SURROUNDINGS.within(tail)
    if not blocked:
        return ""
    program = _PROGRAM.search(tail)
    kind = _KINDS[blocked[0]]
    return f"{kind} {mask(program[1])}" if program else kind


def count_failing(output: str) -> int | None:
    """How many tests or checks fail, where the output counts them."""
    counts = _COUNTED.findall(output[-_TAIL:])
    return max((int(_NUMBER.findall(each)[0]) for each in counts), default=None)
