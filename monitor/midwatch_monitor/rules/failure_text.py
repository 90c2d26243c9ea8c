"""Whether an act failed, how, and whether the environment is to blame."""

import re
from collections.abc import Sequence
from functools import lru_cache

from midwatch_monitor.patterns import Pattern, PatternSet
from midwatch_monitor.records import Step
from midwatch_monitor.rules.identity import command, digest, mask, mask_lines
from midwatch_monitor.shell.claimed_edits import changes_unnamed, changing, refused
from midwatch_monitor.shell.tools import is_shell

_TAIL = 4_000
_MAX_LINES = 12
_END = 1_000
_BEGINNING = 200
"""Characters at the beginning in which an editor says why it refused."""

_TELLING = Pattern(
    r"(?m)^(?:Traceback \(most recent call last\):"
    r"|(?:E {2,})?[\w.]*(?:Error|Exception|Failure|Fault|Interrupt)\b.*"
    r"|[ \t]+(?:-+ )?FAIL(?:ED)?\b[:\[( \t!].*"
    r"|(?:-+ )?(?:FAILED|ERROR|FAIL|error|fatal|panic|Error|Failed)\b(?:[:\[( \t!]).*"
    r"|\[(?:ERROR|FATAL|FAIL)\].*|[\w./:-]+: FAIL(?:ED)?\b.*"
    r"|\S+:\d+(?::\d+)?: (?:fatal )?error\b.*|\S+\(\d+,\d+\): error\b.*"
    r"|\W*[1-9]\d* problems? \(.*|[\w./-]+: error: .*|No file open\b.*"
    r"|(?:/\S+: )?(?:ba|z|da)?sh: .*"
    r"|.*: (?:command not found|No such file or directory|Permission denied)\b.*"
    r"|=+ .*\b\d+ (?:failed|errors?)\b.*"
    r"|.*\b[1-9]\d* (?:failed|failures?|failing)\b.*"
    r"|npm ERR!.*|make: \*\*\* .*|curl: \(\d+\) .*|HTTP(?:/[\d.]+)? [45]\d\d\b.*"
    r")$"
)
"""Lines of an output that report a failure."""
_REACHED = Pattern(r"\b\d{1,6} (?:out )?of \d{1,6}\b")
"""How far a run got before it failed."""
_COUNTED = Pattern(
    r"(?i)\b\d{1,6} (?:\w+ )?(?:failed|failures?|failing|errors?)\b"
    r"|\b(?:failures|errors|failed)[=:] ?\d{1,6}\b"
    r"|\b\d{1,6} (?:\w+ )?(?:problems?|violations?|offen[cs]es?|issues?)\b"
)
"""Where an output states the number of failures."""
_NUMBER = re.compile(r"\d+")

_THERE = r"(?:cd \S+\s*(?:&&|;)\s*)*"
"""A change of folder before the actual command."""
_SHOWS = re.compile(
    r"(?i)(?:^|[_.])(?:read|view|open|cat|grep|search|find|list|ls|glob|fetch|goto)"
)
"""Tools whose output quotes other texts: an error in it may not be their own."""
_LOOKS_FOR = re.compile(
    _THERE + r"(?:\S*/)?(?:grep|egrep|rg|ag|diff|cmp|test|\[|git (?:grep|diff))\b"
)
"""Commands for which exit code 1 means "not found" or "different"."""

_PRINTS = re.compile(
    _THERE + r"(?:cat|head|tail|less|nl|sed -n|grep|rg|git (?:show|log|diff))\b[^;&|]*$"
)
"""Commands that quote other texts, like those tools."""
_OWN_WORDS = re.compile(r"\s*(?:\S+: )*(?:cat|head|tail|less|nl|sed|grep|rg|fatal|cd): ")
"""Start of the output when such a command reports an error of its own."""

_JSON_ERROR = re.compile(r'\s*\{\s*"(?:error|errors)"\s*:\s*(?:"[^"]|\{|\[\s*[^\]\s])')
"""How an HTTP API reports an error."""
_CHECKS = re.compile(
    r"\b(?:pytest|tox|nox|unittest|jest|vitest|mocha|rspec|phpunit|ctest|gradlew?|mvnw?|make|cmake"
    r"|ninja|cargo|go|npm|npx|yarn|pnpm|bun|tsc|mypy|pyright|ruff|flake8|eslint|gcc|clang|javac"
    r"|dotnet|terraform|docker|python[\d.]*|node|ruby|perl|php|java)\s"
)
"""Commands that build or run a part of the project."""
_FILTERED = re.compile(
    r"(?:\|&?\s*(?:tail|head|e?grep|rg|tee|cat|less|sed|awk|sort|uniq|wc|cut|tr)\b[^|;&\n]*"
    r"|\|\|\s*(?:true|echo|:)(?:\s[^|;&\n]*)?)$"
)
"""End of a command whose exit code is not that of its first program."""

_BLOCKED = {
    "missing program": r"([\w.+/-]+): (?:command )?not found",
    "permission": r"(?i)permission denied|operation not permitted|read-only file system|EACCES",
    "network": r"(?i)connection (?:refused|reset|timed out)|could not resolve host"
    r"|network is unreachable|temporary failure in name resolution|name or service not known"
    r"|max retries exceeded",
    "disk": r"(?i)no space left on device|disk quota exceeded",
    "memory": r"(?i)out of memory|cannot allocate memory|MemoryError",
    "credentials": r"(?i)\b401 unauthorized|\b403 forbidden|\bHTTP 40[13]\b|: 40[13]$"
    r"|authentication failed|invalid api key|could not read username|permission denied \(publickey"
    r"|\bpermission (?:to \S+ )?denied to\b|not accessible by|access \S+ \S+ not granted",
    "environment": r"JAVA_HOME (?:is )?not (?:set|defined)"
    r"|(?i:environment variable \S+ (?:is )?not set)",
}
_SURROUNDINGS = PatternSet(*_BLOCKED.values())
_KINDS = tuple(_BLOCKED)
_PROGRAM = re.compile(_BLOCKED["missing program"])


_ANSWER = 300
"""Longest output that is a reply rather than a requested text, in characters."""
_SAYS_ERROR = PatternSet(
    r"(?i)^[^\w{\"]*(?:\w+ )?(?:error|failure|exception|invalid|timeout|timed out)\b",
    r"(?i)^[\W_]*(?:\w+ )?failed(?: to|:? [a-z])|^\W*[1-9]\d* problems?:",
    r"\w+(?:Error|Exception): ",
    r"(?i)\"(?:success|ok)\"\s*:\s*false|\"(?:status|state|result|outcome)\"\s*:"
    r"\s*\"(?:error|failed|failure|rejected|denied|declined|refused|invalid)\"",
    r"(?i)\"(?:error|error_message)\"\s*:\s*(?:\"[^\"]|\{)",
    r"^\W*(?:HTTP\W{0,2}(?:\d\.\d )?)?[45]\d\d\b[\W]+[A-Z]",
    r"\b(?:E(?:CONN|TIMED|HOST|NOT|AI_)[A-Z_]+|net::ERR_\w+|ORA-\d+|\w+_(?:FAILURE|ERROR))\b",
    # A part of the infrastructure, and what happened to it.
    r"(?i)\b(?:gateway|connection|session|handshake|lock|pool|upstream|service|server)\b[^.\n]{0,30}"
    r"\b(?:time-?out|timed out|refused|reset|closed|exhausted|unavailable|failed|expired"
    r"|not found|overflow|busy)\b",
    r"(?i)\b(?:deadlock|permission denied|access denied|is locked|null pointer|unexpected end"
    r"|not (?:authori[sz]ed|permitted|allowed|accepted|sent|saved|accessible)"
    r"|please (?:enter|provide|choose|select) a valid|try again)\b",
    r"(?i)^[\W_]*(?:\w+ )?(?:conflict|bounced|rejected|declined|not applied)\b",
    r"#(?:CIRC|REF|VALUE|NAME|NUM|DIV/0)[!?]",
)
"""How a tool other than a shell reports that it failed."""
_WALL = PatternSet(
    r"(?i)\b(?:captcha|(?:verify|prove|confirm) (?:that )?you(?: are|'re) (?:a )?human"
    r"|not a robot|unusual traffic|(?:log|sign) ?in to (?:continue|proceed|see|view))\b",
)
"""Shown in place of a page that the worker may not see."""
_UNDER_WAY = PatternSet(
    r"(?i)\b(?:pending|queued|in[ _-]progress|provisioning|still [a-z]+ing|ContainerCreating"
    r"|PodInitializing|not (?:yet )?ready|[1-9]\d* remaining|\d{1,2}(?:\.\d+)? ?%"
    r"|processing)|\"run(?:ning)?\"",
)
_TELLS_STATE = re.compile(r"(?i)\"(?:status|state|phase)\"\s*:\s*\"")
_ASKS_STATE = PatternSet(
    r"(?i)(?:^|[\W_])(?:status|state|checks?|rollout|pods?|jobs?|runs|logs?|tail|poll"
    r"|progress|queue|wait|watch|ps)(?:[\W_]|$)",
)
_ASKED_IN = 160
"""Characters of a call that say what it asks for."""
_FINDS_NOTHING = PatternSet(
    r"(?i)^\W*(?:none|null|0|(?:blank|empty)(?: page)?|nothing (?:found|match\w*).{0,80})?\W*$",
    r"(?i)^\W*(?:\S+ )?\W?(?:loading|spinner)\b.{0,20}$|^\W*.{0,60}\bnot found\b.{0,40}$",
    r"(?i)^\W*(?:sorry,? )?(?:no|0|zero) (?:\w+ ){0,4}"
    r"(?:found|match\w*|results?|hits?|records?|rows?|items?|entries|offers?|data|documents?|files?"
    r"|contacts?|messages?|mails?|pages?|articles?|tickets?|flights?|rooms?|slots?|tables?)\b"
    r".{0,80}$",
    r"(?i)^\W*(?:results?|items|matches|data|hits|records|rows|offers|list)"
    r"\"?\s*[:=]\s*\[\s*\].{0,60}$",
    r"(?i)^\W*(?:total|count|found|hits|matches|results?)\"?\s*[:=]\s*0\b.{0,60}$",
)
"""Replies of a search without results or of an empty page."""


_NO_OUTPUT = "did not produce any output"
"""How a known program's shell says that a command printed nothing."""
_SILENT = 80
"""Longest output that may say only that, in characters."""


def has_failed(step: Step) -> bool | None:
    """Whether the act failed; `None` if unknown. The exit code takes precedence over words."""
    if step.exit_code not in (0, None) or step.ok is False:
        # For example, `gh pr checks` exits with 8 while checks are pending.
        return None if is_under_way(step) and not failure_lines(step.output) else True
    if step.exit_code == 0:
        if _JSON_ERROR.match(step.output) is not None:
            return True
        return "|" in step.args and _hides_exit_code(command(step)) and _words_fail(step)
    if _says_error(step) or _words_fail(step):
        return True
    return False if step.ok else None


def _hides_exit_code(line: str) -> bool:
    """Whether the exit code of a check is lost because a filter follows it."""
    filtered = _FILTERED.search(line)
    if filtered is None or "pipefail" in line:
        return False
    before = line[: filtered.start()]
    return _CHECKS.search(before, max(before.rfind("&&"), before.rfind(";")) + 1) is not None


def _says_error(step: Step) -> bool:
    """Whether a tool other than a shell replies with an error although the call returned."""
    output = step.output
    if not output or len(output) > _ANSWER or step.edits or step.path:
        return False
    if is_shell(step.tool):
        return False
    if _SHOWS.search(step.tool):
        return _WALL.anywhere(output)
    if command(step) or changes_unnamed(step.tool, step.args):
        return False
    return _SAYS_ERROR.anywhere(output)


def is_under_way(step: Step) -> bool:
    """Whether a call asks for the state of other work and is told that it is not done yet."""
    said = step.output[-_END:]
    asks = _ASKS_STATE.anywhere(f"{step.tool} {step.args[:_ASKED_IN]}")
    return (asks or tells_state(step)) and _UNDER_WAY.anywhere(said)


def tells_state(step: Step) -> bool:
    """Whether an answer shows that the state of something was requested."""
    return _TELLS_STATE.search(step.output[-_END:]) is not None


def finds_nothing(step: Step) -> bool:
    """Whether a search or a page had nothing to show."""
    if len(step.output) > _ANSWER:
        return False
    output = step.output.strip()
    return bool(output) and _FINDS_NOTHING.anywhere(output)


def is_silent(output: str) -> bool:
    """Whether an output is empty, or only says so."""
    return not output or (len(output) <= _SILENT and (output.isspace() or _NO_OUTPUT in output))


def found_nothing_by_exit_code(step: Step, line: str) -> bool:
    """Whether an exit code of 1 only means that a search or a comparison found nothing."""
    if step.exit_code != 1:
        return False
    last = line.rpartition("|")[2] or line
    return not step.output.strip() or any(_LOOKS_FOR.match(each.lstrip()) for each in (line, last))


def _words_fail(step: Step) -> bool:
    if changing(step.tool):
        return refused(step.output)
    if _SHOWS.search(step.tool) or not failure_lines(step.output):
        return False
    prints = _PRINTS.match(command(step).lstrip()) is not None
    return not prints or _OWN_WORDS.match(step.output) is not None


def failure_lines(output: str) -> list[str]:
    """Return the lines at the end of an output that report a failure."""
    return [*_telling_parts(output[-_TAIL:])]


@lru_cache(maxsize=1)  # called twice for most outputs that fail
def _telling_parts(tail: str) -> Sequence[str]:
    return _TELLING.findall(tail)


def signature(step: Step) -> int:
    """Return a digest of what failed according to the output; 0 if the output does not say.

    Line numbers, times and the like are ignored; "3 failed" and "2 failed" are different failures.
    If only the exit code or a short reply shows the failure, the end of the output is used.
    """
    output = step.output
    lines = failure_lines(output)
    if not lines:
        if changing(step.tool):
            end = output[:_BEGINNING].strip()
        else:
            said = step.exit_code not in (0, None) or step.ok is False or _says_error(step)
            end = output[-_END:].strip() if said else ""
        return digest(mask_lines(end)) if end else 0
    words = [line.strip() for line in lines[-_MAX_LINES:]]
    return digest(mask_lines("\n".join([*words, *_REACHED.findall(output[-_TAIL:])[-1:]])))


def failure_line(output: str) -> str:
    """Return the last line that reports a failure, for people."""
    lines = failure_lines(output) or output[-_END:].strip().splitlines()
    return lines[-1].strip()[:120] if lines else ""


def environment_obstacle(output: str) -> str:
    """Return the kind and name of an obstacle in the environment; empty if there is none."""
    tail = output[-_TAIL:]
    blocked = _SURROUNDINGS.within(tail)
    if not blocked:
        return ""
    program = _PROGRAM.search(tail)
    kind = _KINDS[blocked[0]]
    return f"{kind} {mask(program[1])}" if program else kind


def count_failing(output: str) -> int | None:
    """Return how many tests or checks fail, if the output counts them."""
    counts = _COUNTED.findall(output[-_TAIL:])
    return max((int(_NUMBER.findall(each)[0]) for each in counts), default=None)
