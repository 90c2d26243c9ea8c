"""An output without what agents' programs put around it.

The same answer comes as a bare text, as the content list of the Model Context Protocol, as an
object with the exit code beside it, or with a trailer that names the folder. Rules that compare
outputs, or read how one begins, would be blind for what is inside.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from midwatch_monitor.records import Step, StepKind

_JSON = {"{": "}", "[": "]"}
"""How an output begins that may be JSON, and how it must end then."""
_NESTED = 3
"""Wrappings around one another that are taken off."""
_LONGEST = 20_000
"""Characters of an output that is read as JSON; a longer one is compared as it is."""
_INSIDE = ("output", "data", "result", "content", "stdout")
"""Where an object that only wraps an output has it."""
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
"""What such an object has beside it."""
_FAILED = frozenset({"error", "failed", "failure"})
"""What its `status` says where the call failed."""
_LED = re.compile(
    r"(?:Command executed\.\s*(?:Output:)?\s*"
    r"|Command: [^\n]*\n(?:Directory: [^\n]*\n)?(?:Output|Stdout): ?"
    r"|status: ?(?i:ok|success)\nresult: ?)"
)
"""What may stand before an output."""
_TRAILED = re.compile(
    r"(?:\s*(?:\[(?:The command completed|Current working directory|Python interpreter)\b[^\n]*\]"
    r"|(?:Stderr|Error|Signal|Background PIDs|Process Group PGID): ?\((?:none|empty)\)"
    r"|(?:Exit Code|took_ms|duration_ms): ?[\d.]+))+\s*\Z"
)
"""What may stand after it."""
_TRAILS = ("]", ")", *"0123456789")
"""One of these is its end."""
_TRAIL = 400
"""Characters at the end of an output in which it stands."""


def unwrap(step: Step) -> Step:
    """The step with its output as the tool itself gave it."""
    if step.kind is not StepKind.TOOL:
        return step
    output = step.output
    for _ in range(_NESTED):
        inside = _inside(output)
        if inside is output:
            break
        output = inside
    return step if output is step.output else replace(step, output=output)


def _inside(output: str) -> str:
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
        return _joined(cast("list[object]", value), output)
    raw = cast("Mapping[str, object]", value)
    inside = [key for key in _INSIDE if key in raw]
    if len(inside) != 1 or not raw.keys() - {inside[0]} <= _BESIDE:
        return output
    if _says_failure(raw):
        return output
    found = raw[inside[0]]
    if isinstance(found, list):
        return _joined(cast("list[object]", found), output)
    return found + str(raw.get("stderr") or "") if isinstance(found, str) else output


def _says_failure(raw: Mapping[str, object]) -> bool:
    """Whether what stands beside the output says that the call failed, which must not be lost."""
    bad = str(raw.get("status")).lower() in _FAILED
    return bad or raw.get("ok") is False or raw.get("success") is False or bool(raw.get("error"))


def _joined(parts: Sequence[object], output: str) -> str:
    """The texts of a content list; the output itself where it is another list."""
    texts: list[str] = []
    for part in parts:
        if not isinstance(part, dict):
            return output
        text = cast("Mapping[str, object]", part).get("text")
        if not isinstance(text, str):
            return output
        texts.append(text)
    return "\n".join(texts) if texts else output
