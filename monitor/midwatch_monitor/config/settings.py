"""The whole configuration file, with its built-in defaults."""

import re
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationError

from midwatch_monitor.config.fleet import FleetSettings
from midwatch_monitor.config.learning import LearningSettings
from midwatch_monitor.config.modes import Mode, Sandbox, Synchronous
from midwatch_monitor.config.notify import NotifySettings
from midwatch_monitor.config.policy import PolicySettings
from midwatch_monitor.config.rules import Rules
from midwatch_monitor.config.section import Count, Percent, Refusal, Seconds, Section
from midwatch_monitor.errors import JournalTooNewError
from midwatch_monitor.patterns import fault
from midwatch_monitor.records import Cause, Run
from midwatch_monitor.secrets.masking import BUILT_IN

_ADDRESS = re.compile(r"https?://[^\s/@?#]+(/[^\s@?#]*)?")


def _check_address(text: str) -> str:
    if text and not _ADDRESS.fullmatch(text):
        raise Refusal("must be an http or https address, without a user, a query or a fragment")
    return text.rstrip("/")


class TelemetrySettings(Section):
    """Spans of attempts and their steps for a collector; nothing is sent without one."""

    endpoint: Annotated[str, AfterValidator(_check_address)] = ""
    """The collector's address for OTLP over HTTP; spans are sent to `/v1/traces` there. Empty is
    off.
    """
    headers_env: Annotated[str, Field(pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$")] = ""
    """The environment variable with headers for the collector: `name=value,name=value`."""
    content: bool = False
    """Whether arguments, outputs, texts, paths and names of people are sent too."""


class Approver(StrEnum):
    """Who approves a plan revision proposed by a worker."""

    POLICY = "policy"
    """Immediately, as long as the limits allow it."""
    SUPERVISOR = "supervisor"
    """The supervisor's model, if there is one; else the policy."""


class Unproven(StrEnum):
    """What happens to a plan step claimed as done without evidence."""

    REFUSE = "refuse"
    """It stays open until there is evidence."""
    FLAG = "flag"
    """It is done with a flag, for a later check."""


class PlanSettings(Section):
    """The plan, and the check of it between two plan steps."""

    require_check: bool = True
    """Whether the first work on a new plan step must wait for `check_plan`."""
    approval: Approver = Approver.POLICY
    """Who approves a revision proposed by a worker."""
    max_revisions: Annotated[int, Field(ge=0, le=100)] = 5
    """Revisions by workers in one task, over all its attempts; more are refused."""
    min_requests: Annotated[int, Field(ge=1, le=1000)] = 2
    """The fewest of the task's model requests that a plan step is given."""


class ErrorSettings(Section):
    """The analysis of a failure before the next try."""

    require_analysis: bool = True
    """Whether an analysis is required before a failed act is repeated without an edit in between,
    after `equal_failures` equal failures, and before a new attempt begins its work.
    """
    equal_failures: Count = 3
    """From this many equal failures on, an analysis is required even after edits; 0 is off."""
    unknown: Cause = Cause.PERMANENT
    """How an error of unknown cause is treated: `transient`, `permanent`, or `unknown`. `unknown`
    allows one more try, and is then treated as permanent.
    """
    transient_tries: Annotated[int, Field(ge=1, le=100)] = 3
    """How often the same act may be retried after one analysis that calls the cause transient."""
    backoff_seconds: Annotated[float, Field(ge=0, le=3600)] = 1.0
    """The wait before the first such retry; it doubles with each."""
    max_backoff_seconds: Annotated[float, Field(ge=0, le=3600)] = 60.0
    """The longest such wait."""


class CompletionSettings(Section):
    """What is required before a plan step counts as done."""

    unproven: Unproven = Unproven.FLAG
    """What happens to a plan step whose claims have only part of their evidence."""
    run_acceptance: bool = True
    """Whether the plan step's own acceptance commands are run immediately."""
    min_confidence: Percent = 50
    """Below this overall confidence a plan step is done only with a flag."""
    refine: Annotated[int, Field(ge=0, le=3)] = 0
    """How often a worker that says it is done is first asked to check its own result."""


class ProviderSettings(Section):
    """The circuit breaker that spares a provider that keeps failing."""

    breaker_failures: Annotated[int, Field(ge=0, le=1000)] = 5
    """Consecutive failed requests, over all attempts, that open it; 0 is off."""
    breaker_seconds: Seconds = 30.0
    """How long no request is sent to a provider then; afterwards one request tests it."""
    max_outages: Annotated[int, Field(ge=1, le=100_000)] = 240
    """How often in a row an attempt may find the provider failing, after all `tries` of its model,
    before it ends; until then it waits `breaker_seconds` and tries again. 1 never waits. The
    default is some hours; long before that, `silence` alerts the supervisor (`rate_limited`).
    """
    wait_for_first_answer: bool = False
    """Whether to wait that long for a provider that has never answered. If not, `midwatch run`
    ends, and can be resumed.
    """


def _check_pattern(pattern: str) -> str:
    if reason := fault(pattern):
        raise Refusal(f"is not a pattern that RE2 knows: {reason}")
    return pattern


Kind = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,79}$")]
SecretPattern = Annotated[str, Field(max_length=1000), AfterValidator(_check_pattern)]


class SecretsSettings(Section):
    """Secrets in what workers do and say, masked before anything is judged and recorded."""

    patterns: dict[Kind, SecretPattern] = Field(default_factory=lambda: dict(BUILT_IN))
    """What secrets look like, by kind. A file's patterns are added; an empty one turns it off."""


def _read_path(text: str) -> str:
    below = text.removeprefix("~")
    if below.startswith("/") and below.strip("/") and ".." not in below.split("/"):
        return text.rstrip("/")
    raise ValueError(
        "an absolute path, or one that begins with `~/`; not `/` or `~`, which would defeat the "
        "sandbox: name the folders that are needed"
    )


ReadPath = Annotated[str, AfterValidator(_read_path)]
"""A folder or file that commands in the sandbox may read."""


class ReflectSettings(Section):
    """The `reflect` tool, and how often a worker is reminded of it."""

    remind_every: Annotated[int, Field(ge=0, le=1000)] = 3
    """Remind the worker after this many requests without a checkpoint; 0 for never."""
    steady_confidence: Percent = 70
    """From this confidence on, two checkpoints with progress and without alerts count as steady."""
    steady_doublings: Annotated[int, Field(ge=0, le=8)] = 2
    """How often the interval may double while the worker is steady (2: up to 4 times as long)."""
    high_confidence: Percent = 70
    """From this confidence on, the tool's answer is to continue."""
    medium_confidence: Percent = 40
    """From this confidence on, the tool's answer is to check the approach. Below, it is to stop and
    think.
    """
    useful_confidence: Annotated[float, Field(ge=0.5, le=1)] = 0.7
    """How often the successful one of two attempts, one successful and one failed, must have the
    higher confidence (the area under the ROC curve) for a model's confidence to be useful. If a
    model's value is shown to be lower, and may be chance, `low_confidence` and
    `declining_confidence` ignore it.
    """
    max_reflections: Annotated[int, Field(ge=1, le=1000)] = 20
    """Checkpoints accepted per plan step; more are refused, which ends any loop of reflecting."""


class MonitorSettings(Section):
    """The monitor's loop."""

    tick_seconds: Seconds = 30.0
    """How often the loop looks without a hint; only then does it notice the passing of time."""
    poll_seconds: Seconds = 0.5
    """How often the journal is polled for other processes' entries."""
    outcome_after: Annotated[int, Field(ge=1, le=1000)] = 8
    """How many steps after its delivery an intervention's outcome is judged."""


class SupervisorSettings(Section):
    """The supervisor agent, and its limits."""

    timeout_seconds: Seconds = 120.0
    """How long one decision may take before the policy table decides."""
    tries: Annotated[int, Field(ge=1, le=10)] = 3
    """How often the supervisor's model is tried before the policy table decides."""
    max_wait_seconds: Annotated[float, Field(ge=0, le=3600)] = 20.0
    """The longest pause between two tries."""
    cooldown: Annotated[int, Field(ge=0, le=1000)] = 3
    """Steps after a recovery, or after no action, before the next escalation. After an intervention
    that did not help there is no pause: the next action follows at once.
    """
    max_requests: Annotated[int, Field(ge=1, le=10_000)] = 60
    """Model requests for all decisions about one attempt; afterwards the policy table decides."""
    max_evidence_chars: Annotated[int, Field(ge=1000, le=1_000_000)] = 20_000
    """The most evidence shown for one decision, in characters."""


class RunSettings(Section):
    """How tasks are run."""

    concurrency: Annotated[int, Field(ge=1, le=1000)] = 4
    """Concurrent attempts."""
    check_seconds: Seconds = 600.0
    """How long one acceptance check may take."""
    grace_seconds: Seconds = 10.0
    """How long a canceled attempt may take to end before it is given up."""
    sandbox: Sandbox = Sandbox.DEFAULT
    """The sandbox for workers' commands."""
    sandbox_read: tuple[ReadPath, ...] = ()
    """What those commands may read, besides their workspace and the system's programs."""
    network: bool = False
    """Whether commands in the sandbox have network access."""
    max_output_chars: Annotated[int, Field(ge=200, le=10_000_000)] = 20_000
    """How much of a step's output the journal keeps (head and tail)."""
    max_watched_files: Count = 20_000
    """In workspaces with more files, only the paths in a call's arguments are watched."""


class JournalSettings(Section):
    """The journal: the record of everything."""

    synchronous: Synchronous = Synchronous.NORMAL
    """What SQLite waits for at a commit."""
    max_batch: Annotated[int, Field(ge=1, le=10_000)] = 200
    """Commits that the writer may group into one transaction."""
    patience_seconds: Annotated[float, Field(ge=0, le=86_400)] = 120.0
    """How long to wait for a lost database connection before a write or read fails."""


class ConsoleSettings(Section):
    """The operator's console: its appearance, and how it calls a person."""

    theme: str = "midwatch"
    """The initial theme."""
    bell: bool = True
    """Whether the terminal's bell rings when something begins to need a person."""
    desktop_notify: bool = False
    """Whether there is a desktop notification too."""
    hertz: Annotated[float, Field(ge=1, le=10)] = 10.0
    """The largest number of screen updates per second."""
    stale_seconds: Seconds = 60.0
    """The console warns after this long without a journal entry while attempts work."""
    keys: dict[str, str] = Field(default_factory=dict[str, str])
    """Other keys for the console's actions: `{id: keys}`; several are separated by commas."""


class Settings(Section):
    """Everything that a configuration file may contain."""

    mode: Mode = Mode.ACT
    """How far Midwatch acts by itself."""
    reflect: ReflectSettings = ReflectSettings()
    plan: PlanSettings = PlanSettings()
    errors: ErrorSettings = ErrorSettings()
    completion: CompletionSettings = CompletionSettings()
    provider: ProviderSettings = ProviderSettings()
    rules: Rules = Rules()
    monitor: MonitorSettings = MonitorSettings()
    supervisor: SupervisorSettings = SupervisorSettings()
    policy: PolicySettings = PolicySettings()
    learning: LearningSettings = LearningSettings()
    run: RunSettings = RunSettings()
    journal: JournalSettings = JournalSettings()
    secrets: SecretsSettings = SecretsSettings()
    fleet: FleetSettings = FleetSettings()
    console: ConsoleSettings = ConsoleSettings()
    notify: NotifySettings = NotifySettings()
    telemetry: TelemetrySettings = TelemetrySettings()

    def for_run(self) -> str:
        """Return the settings as JSON, for a run to keep, without notification targets and their
        secrets.
        """
        return self.model_dump_json(exclude={"notify"})


def settings_of(run: Run) -> Settings:
    """Return the settings in force when a run was submitted.

    Raises JournalTooNewError if another version of Midwatch wrote them and this one cannot read
    them.
    """
    try:
        return Settings.model_validate_json(run.settings)
    except ValidationError as error:
        raise JournalTooNewError(f"cannot read the settings of run {run.id}") from error
