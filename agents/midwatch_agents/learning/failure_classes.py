"""The class of failure of a lesson: named by a model, or seen from how the attempt went. Pure."""

import re
from collections.abc import Collection, Iterable

from midwatch_monitor.records import Ending

OTHER = "other"
"""Something failed in a way that is in no class."""
UNKNOWN = "unknown"
"""Nothing tells what failed."""

_BY_RULE = {
    "blocked_environment": "environment",
    "budget_burn": "budget",
    "unsupported_claim": "untested",
    **dict.fromkeys(
        ("cycle", "repeated_call", "repeated_edits", "redundant_steps", "revert_churn"), "loop"
    ),
}


def observed_class(
    classes: Collection[str], *, ending: str, rules: Iterable[str], check_failed: bool
) -> str:
    """The configured class that the end of an attempt, its alarms and its checks speak for."""
    found = [
        "budget" if ending == Ending.OUT_OF_BUDGET else "",
        *(_BY_RULE.get(rule, "") for rule in rules),
        "loop" if ending == Ending.STUCK else "",
        "wrong_result" if check_failed else "",
    ]
    return next((name for name in found if name in classes), UNKNOWN)


def named_class(name: str, classes: Collection[str]) -> str:
    """A class that somebody named, in the spelling of the configuration; else `other`."""
    known = {_plain(each): each for each in (*classes, UNKNOWN)}
    return known.get(_plain(name), OTHER)


def _plain(name: str) -> str:
    return "_".join(re.split(r"[\s_-]+", name.strip().casefold()))
