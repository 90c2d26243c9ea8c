"""Removes the wrappers that agent programs put around an output.

The same answer may come as plain text, as a content list of the Model Context Protocol, as an
object that also has the exit code, or with a trailer that names the folder. Rules that compare
outputs or read their beginning need the text inside.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from midwatch_monitor.records import Step, StepKind

_JSON = {"{": "}", "[": "]"}
"""The first character of an output that may be JSON, and the last one it then must have."""
_NESTED = 3
"""Number of nested wrappers that are removed."""
_LONGEST = 20_000
"""Longest output that is parsed as JSON, in characters; a longer one is left alone."""
_INSIDE = ("output", "data", "result", "content", "stdout")
"""Keys under which a wrapper object holds the output."""
_BESIDE = frozenset(
    {
        "metadata",
        "ok",
        "success",
        "status",
        "exit_code",
        "stderr",
        "error",
        "took_ms",
        "duration_ms",
    }
)
"""Other keys that a wrapper object may have."""
_FAILED = frozenset({"error", "failed", "failure"})
"""Values of its `status` that mean the call failed."""
_LED = re.compile(
    r"(?:Command executed\.\s*(?:Output:)?\s*"
    r"|Command: [^\n]*\n(?:Directory: [^\n]*\n)?(?:Output|Stdout): ?"
    r"|status: ?(?i:ok|success)\nresult: ?)"
)
"""Text that may precede an output."""
_TRAILED = re.compile(
    r"(?:\s*(?:\[(?:The command completed|Current working directory|Python interpreter)\b[^\n]*\]"
    r"|(?:Stderr|Error|Signal|Background PIDs|Process Group PGID): ?\((?:none|empty)\)"
    r"|(?:Exit Code|took_ms|duration_ms): ?[\d.]+))+\s*\Z"
)
"""Text that may follow an output."""
_TRAILS = ("]", ")", *"0123456789")
"""Characters such a trailer can end with."""
_TRAIL = 400
"""Characters at the end of an output that are searched for it."""


def unwrap(step: Step) -> Step:
    """Return the step with its output as the tool itself gave it."""
    if step.kind is not StepKind.TOOL:
        return step
    output = step.output
    for _ in range(_NESTED):
        inside = _unwrap_output(output)
        if inside is output:
            break
        output = inside
    return step if output is step.output else replace(step, output=output)


def _unwrap_output(output: str) -> str:
    first = output[:1]
    if first in _JSON:
        whole = len(output) <= _LONGEST and output.endswith(_JSON[first])
        return _inside_json(output) if whole else output
    if first in "Cs" and (led := _LED.match(output)):
        output = output[led.end() :]
    if not output.endswith(_TRAILS):
        return output
    end = output[-_TRAIL:]
    trailed = _TRAILED.search(end)
    return output[: len(output) - len(end) + trailed.start()] if trailed else output


def _inside_json(output: str) -> str:
    try:
        value = json.loads(output)
    except (ValueError, RecursionError):
        return output
    if isinstance(value, list):
        return _join_texts(cast("list[object]", value), output)
    raw = cast("Mapping[str, object]", value)
    inside = [key for key in _INSIDE if key in raw]
    if len(inside) != 1 or not raw.keys() - {inside[0]} <= _BESIDE:
        return output
    if _says_failure(raw):
        return output
    found = raw[inside[0]]
    if isinstance(found, list):
        return _join_texts(cast("list[object]", found), output)
    return found + str(raw.get("stderr") or "") if isinstance(found, str) else output


def _says_failure(raw: Mapping[str, object]) -> bool:
    """Whether the wrapper says that the call failed, which must not be lost."""
    bad = str(raw.get("status")).lower() in _FAILED
    return bad or raw.get("ok") is False or raw.get("success") is False or bool(raw.get("error"))


def _join_texts(parts: Sequence[object], output: str) -> str:
    """Return the texts of a content list; the output itself for any other list."""
    texts: list[str] = []
    for part in parts:
        if not isinstance(part, dict):
            return output
        text = cast("Mapping[str, object]", part).get("text")
        if not isinstance(text, str):
            return output
        texts.append(text)
    return "\n".join(texts) if texts else output
