"""Asks a worker that says it is done to look at its own result once more.

The number of looks is read from the history, so a resumed attempt is not asked twice. A worker that
changed nothing after a look is not asked again, nor is one whose budget is nearly used up: it must
still be able to look, fix and end.
"""

import re
from collections.abc import Sequence
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.tools import RunContext
from pydantic_graph import End

from midwatch_monitor.budget import share_used
from midwatch_monitor.config.settings import CompletionSettings
from midwatch_monitor.records import Budget
from midwatch_tools.observation import prompt_texts
from midwatch_tools.tools.toolset import NAMES

NOTHING = "NOTHING TO FIX"
"""What a worker says if it is satisfied with its result."""
_CONTENT = re.compile(f"{NOTHING}|NOTHING TO MEND", re.IGNORECASE)
"""`MEND` is the word in the question to attempts that an older version began."""
_ASKED = "Before this counts as done"
_MARK = re.compile(rf"\[midwatch(?: [0-9a-f]{{8}})?\] {_ASKED}")
_MOST_USED = 0.85
"""Used share of the tightest limit from which a worker is not asked to do more."""
_LEAST_REQUESTS = 3
"""Requests needed to look, fix and say so."""


def ask_before_end(
    ctx: RunContext[Any],
    result: object,
    settings: CompletionSettings,
    budget: Budget | None,
    code: str,
) -> None:
    """If the run is about to end, continue it with a question; `result` is its next node."""
    if not settings.refine or not isinstance(result, End):
        return
    question = refine_question(ctx.messages, settings, budget, code)
    if question:
        ctx.enqueue(question, priority="when_idle")


def refine_question(
    messages: Sequence[ModelMessage], settings: CompletionSettings, budget: Budget | None, code: str
) -> str:
    """Return the question to a worker that says it is done; empty if none is asked. Pure."""
    asked = [index for index, message in enumerate(messages) if _is_asked(message)]
    if len(asked) >= settings.refine or (budget is not None and _nearly_gone(budget)):
        return ""
    if asked and not _acted_since(messages[asked[-1] + 1 :]):
        return ""
    return (
        f"[midwatch {code}] {_ASKED} (look {len(asked) + 1} of {settings.refine}): read what you "
        "have changed as somebody else's work. Go through the goal and every acceptance check one "
        "by one: what is missing, wrong, untested, or more than was asked for? Fix it, and verify "
        f"that. If there is nothing to fix, change nothing, and say {NOTHING}."
    )


def _is_asked(message: ModelMessage) -> bool:
    return any(map(_MARK.match, prompt_texts([message])))


def _nearly_gone(budget: Budget) -> bool:
    limit = budget.requests.limit
    few = limit is not None and limit - budget.requests.used < _LEAST_REQUESTS
    return few or share_used(budget) >= _MOST_USED


def _acted_since(since: Sequence[ModelMessage]) -> bool:
    """Whether a worker did something after it was asked, and did not say it had nothing to fix."""
    said = [message for message in since if isinstance(message, ModelResponse)]
    if any(_CONTENT.search(message.text or "") for message in said):
        return False
    return any(call.tool_name not in NAMES for message in said for call in message.tool_calls)
