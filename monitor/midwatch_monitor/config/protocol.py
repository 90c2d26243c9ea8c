"""What a worker has to say before it goes on: of its plan, of errors, of finished work."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from midwatch_monitor.config.section import Count, Percent, Section
from midwatch_monitor.config.span import Seconds
from midwatch_monitor.records import Cause


class Approver(StrEnum):
    """Who approves the revision of a plan that a worker proposes."""

    POLICY = "policy"
    """At once, as long as the caps allow it."""
    SUPERVISOR = "supervisor"
    """The supervisor's model, where there is one; else the policy."""


class Unproven(StrEnum):
    """What becomes of a plan step that is claimed without evidence."""

    REFUSE = "refuse"
    """It stays open until there is evidence."""
    FLAG = "flag"
    """It is done with a flag, for a later check to look at."""


class PlanSettings(Section):
    """The plan, and the look at it between two plan steps."""

    require_check: bool = True
    """Whether the first work of a new plan step waits for `check_plan`."""
    approval: Approver = Approver.POLICY
    """Who approves a revision that a worker proposes."""
    max_revisions: Annotated[int, Field(ge=0, le=100)] = 5
    """Revisions that a worker may make in one task, over all its attempts; more are refused."""
    min_requests: Annotated[int, Field(ge=1, le=1000)] = 2
    """The least share of the task's model requests that a plan step is given."""


class ErrorSettings(Section):
    """The analysis of an error before the next try."""

    require_analysis: bool = True
    """Whether the same act again, the third equal failure and a new attempt wait for one."""
    equal_failures: Count = 3
    """From this many equal failures on, edits between them do not help either; 0 is off."""
    unknown: Cause = Cause.PERMANENT
    """What an error of unknown cause is treated as: `transient`, `permanent`, or `unknown`.

    `unknown` allows one more try, and then takes it for permanent.
    """
    transient_tries: Annotated[int, Field(ge=1, le=100)] = 3
    """How often the same act may be tried again after one analysis that calls it transient."""
    backoff_seconds: Annotated[float, Field(ge=0, le=3600)] = 1.0
    """The wait before the first such try; it doubles with each."""
    max_backoff_seconds: Annotated[float, Field(ge=0, le=3600)] = 60.0
    """The longest such wait."""


class CompletionSettings(Section):
    """What is asked for before a plan step counts as done."""

    unproven: Unproven = Unproven.FLAG
    """What becomes of a plan step whose claims have some, but not all, of their evidence."""
    run_acceptance: bool = True
    """Whether the plan step's own acceptance commands are run then and there."""
    min_confidence: Percent = 50
    """Below this overall confidence a plan step is done with a flag only."""
    refine: Annotated[int, Field(ge=0, le=3)] = 0
    """How often a worker that says it is done is asked to look at its own result again first."""


class ProviderSettings(Section):
    """The circuit breaker that spares a provider which keeps failing."""

    breaker_failures: Annotated[int, Field(ge=0, le=1000)] = 5
    """Failed requests in a row, over all attempts, that open it; 0 is off."""
    breaker_seconds: Seconds = 30.0
    """How long nobody asks the provider then; after that one request tries it."""
    max_outages: Annotated[int, Field(ge=1, le=100_000)] = 240
    """How often in a row an attempt may find it failing before it ends; 1 never waits.

    An outage lasts longer than a model's `tries`; the attempt waits `breaker_seconds`, and goes on.
    The default is some hours: long before, `silence` calls the supervisor (`rate_limited`).
    """
