"""When two acts are the same act, and two results the same result."""

import hashlib
import re

from midwatch_monitor.words import Step

NO_WORK = frozenset({"reflect", "report_error", "set_plan", "finish_plan_step"})
"""Tools that Midwatch itself gives to workers to report and to plan: calling them moves nothing."""

_LOOKED_AT = 20_000
"""Characters of an output that are compared; of a longer one its head and its tail."""

_MASKS = (
    (
        re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"),
        "<time>",
    ),
    (re.compile(r"\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b"), "<time>"),
    (
        re.compile(
            r"\b(?:\d+h ?)?(?:\d+m(?:in)? ?)?\d+(?:\.\d+)? ?"
            r"(?:ns|us|µs|ms|s|secs?|seconds?|mins?|minutes?|hours?)\b"
        ),
        "<duration>",
    ),
    (re.compile(r"\b0x[0-9a-fA-F]{6,}\b"), "<address>"),
    (re.compile(r"/pytest-of-[\w.-]+/pytest-\d+"), "/<temp>"),
    (re.compile(r"/var/folders/[\w+]+/[\w+]+/T/[\w.+-]+"), "<temp>"),
    (re.compile(r"(?<![\w.])(?:/private)?(?:/var)?/tmp/[\w.+-]+"), "<temp>"),
    (re.compile(r"\btmp[a-z0-9_]{8}\b"), "<temp>"),
)
"""What differs between two runs of the same thing. Narrow on purpose: counts stay as they are."""


def mask(text: str) -> str:
    """An output without durations, times, addresses and temporary paths."""
    if len(text) > _LOOKED_AT:
        half = _LOOKED_AT // 2
        text = text[:half] + text[-half:]
    for pattern, instead in _MASKS:
        text = pattern.sub(instead, text)
    return text


def act(step: Step) -> str:
    """A digest of what was done: the tool with its arguments."""
    return _digest(f"{step.tool}\0{step.args}")


def result(step: Step) -> str:
    """A digest of what came of it, masked; empty where the output says nothing."""
    masked = mask(step.output).strip()
    if masked:
        return _digest(masked)
    return f"whole:{step.output_digest}" if step.output_digest else ""


def failed(step: Step) -> bool | None:
    """Whether the act failed; `None` where the source does not say. The exit code counts most."""
    if step.exit_code not in (0, None) or step.ok is False:
        return True
    return False if step.exit_code == 0 or step.ok else None


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=12).hexdigest()
