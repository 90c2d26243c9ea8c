"""What a worker says through `report_error` and `check_plan`, and whether that says anything."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError
from pydantic_ai.messages import ToolCallPart

from midwatch_monitor.records import Cause
from midwatch_tools.tools.arguments import SomeTexts, TextArgument, Texts

_WORD = re.compile(r"[^\W_]+")
_NO_NEWS = """
a again an and at be been bug but by cause did does doesn error errored errors exception fail failed
fails failing failure fix fixed fixing for had happened has have i in is issue it its just know more
my n no none not nothing now of on once one or please problem problems really retry retrying root
same so some something still sure t tbd test tests that the there thing this time to todo tool tried
tries try trying unclear unexpected unknown was went will work worked working works wrong
"""
_EMPTY = frozenset(_NO_NEWS.split())
"""Words that say nothing of what failed, nor of why."""


class ErrorReport(BaseModel):
    """The arguments of `report_error`."""

    what_happened: TextArgument
    category: Cause
    root_cause: TextArgument
    change: TextArgument

    def lacks(self) -> str:
        """What is missing in it, in words; empty where it says enough.

        Of a cause that is unknown, the root cause may be; what passes by itself needs no change.
        """
        if _empty(self.what_happened):
            return (
                "`what_happened` is too general: name the act and the message with which it failed"
            )
        if self.category is not Cause.UNKNOWN and _empty(self.root_cause):
            return (
                "`root_cause` is too general: name the belief that was wrong, or what was missing; "
                "if you do not know it, the category is `unknown`"
            )
        if self.category is not Cause.TRANSIENT and _empty(self.change):
            return "`change` is too general: name what will be different in the next try"
        return ""


class PlanReview(BaseModel):
    """The arguments of `check_plan`."""

    assumption: TextArgument
    reality: TextArgument
    impact: TextArgument
    options: Texts
    choice: TextArgument
    remaining: SomeTexts = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """What the turn of a call says itself, beside the call."""

    cause: Cause | None = None
    """Of an analysis."""
    checked: bool = False
    """Whether it holds a plan check."""


def statements_in(calls: Sequence[ToolCallPart]) -> Statements:
    """What the calls of one turn say; a report that would be refused says nothing."""
    cause, checked = None, False
    for call in calls:
        try:
            if call.tool_name == "report_error":
                report = ErrorReport.model_validate(call.args_as_dict())
                cause = cause if report.lacks() else report.category
            elif call.tool_name == "check_plan":
                PlanReview.model_validate(call.args_as_dict())
                checked = True
        except (ValidationError, ValueError, AssertionError):
            continue  # the model is told so by the tool itself
    return Statements(cause=cause, checked=checked)


def _empty(text: str) -> bool:
    return all(word in _EMPTY for word in _WORD.findall(text.lower()))
