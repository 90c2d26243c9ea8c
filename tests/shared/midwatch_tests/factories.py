"""Records and values for tests: good defaults, and any field by its name.

What most tests name stands in the signature; every other field of the record is a keyword too:
`step(3, tool="bash", ok=False)`. A field that does not exist is a `TypeError`.
"""

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from midwatch_monitor import records as r
from midwatch_monitor.state.intervention import InterventionState

if TYPE_CHECKING:
    from midwatch_agents.scripted import Call, Turn

AT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
"""When whatever a test tells of begins."""


def after(seconds: float = 0, *, minutes: float = 0) -> datetime:
    """So long after `AT`."""
    return AT + timedelta(seconds=seconds, minutes=minutes)


WHOSE = {"worker": "coder", "model": "m", "node": "here", "workspace": "/w"}
"""What `Journal.add_attempt` is told besides, where nothing depends on it."""

# Work.


def run(id: int = 1, **fields: Any) -> r.Run:
    """A run of a task file."""
    return replace(r.Run(id=id, started_at=AT, source="tasks.yaml", settings="{}"), **fields)


def task(id: int = 1, name: str = "fix", **fields: Any) -> r.Task:
    """A task of run 1; its specification says no more than its name and a goal."""
    spec = json.dumps({"id": name, "goal": "x"})
    return replace(r.Task(id=id, run=1, name=name, title=name, spec=spec), **fields)


def attempt(id: int = 1, **fields: Any) -> r.Attempt:
    """The first attempt of task 1."""
    made = r.Attempt(
        id=id,
        task=1,
        number=1,
        worker="coder",
        model="scripted",
        node="here",
        workspace="/w",
        started_at=AT,
    )
    return replace(made, **fields)


def task_transition(
    lifecycle: r.Lifecycle = r.Lifecycle.WORKING, **fields: Any
) -> r.TaskTransition:
    """A task that begins to be worked at."""
    return r.TaskTransition(lifecycle=lifecycle, **fields)


def transition(lifecycle: r.Lifecycle = r.Lifecycle.WORKING, **fields: Any) -> r.AttemptTransition:
    """An attempt that begins to work."""
    return r.AttemptTransition(lifecycle=lifecycle, **fields)


def ended(ending: r.Ending = r.Ending.DONE, **fields: Any) -> r.AttemptTransition:
    """The end of an attempt: completed or canceled where its ending says so, failed otherwise."""
    lifecycles = {
        r.Ending.DONE: r.Lifecycle.COMPLETED,
        r.Ending.UNCHECKED: r.Lifecycle.COMPLETED,
        r.Ending.CANCELED: r.Lifecycle.CANCELED,
    }
    made = r.AttemptTransition(lifecycle=lifecycles.get(ending, r.Lifecycle.FAILED), ending=ending)
    return replace(made, **fields)


def acceptance(*, passed: bool = True, check: str = "make test", **fields: Any) -> r.Acceptance:
    """The result of an acceptance check."""
    return r.Acceptance(check=check, passed=passed, **fields)


# Steps.


def step(number: int = 1, tool: str = "bash", **fields: Any) -> r.Step:
    """A successful tool call."""
    return replace(r.Step(number=number, kind=r.StepKind.TOOL, tool=tool, ok=True), **fields)


def message(number: int = 1, text: str = "I think.", **fields: Any) -> r.Step:
    """A model turn without a tool call."""
    return r.Step(number=number, kind=r.StepKind.MESSAGE, text=text, **fields)


def edit(path: str = "a.py", digest: str = "", **fields: Any) -> r.Edit:
    """A file that the worker changed."""
    return r.Edit(path=path, digest=digest, **fields)


def editing(number: int, *paths: str, **fields: Any) -> r.Step:
    """A tool call that gave each file a content that it never had."""
    edits = tuple(r.Edit(path=path, digest=f"{path}-{number}") for path in paths)
    path = paths[0] if paths else ""
    return replace(step(number, "edit_file", path=path, edits=edits), **fields)


def checkpoint(progress: int = 40, confidence: int = 70, **fields: Any) -> r.Checkpoint:
    """A worker's report that goes on as before."""
    return r.Checkpoint(progress_percent=progress, confidence=confidence, **fields)


def reflecting(number: int = 1, progress: int = 40, confidence: int = 70, **fields: Any) -> r.Step:
    """The step that carries a checkpoint; the fields are the checkpoint's."""
    given = checkpoint(progress, confidence, **fields)
    return r.Step(number=number, kind=r.StepKind.CHECKPOINT, tool="reflect", checkpoint=given)


def change(**fields: Any) -> r.Change:
    """A change around an attempt: only what is named."""
    return r.Change(**fields)


def away(*, since: float = 0, seconds: float = 30, **fields: Any) -> r.Change:
    """A provider's outage `since` so many seconds after `AT`; it is asked again `seconds` later."""
    known: dict[str, Any] = {"url": "http://far.test/v1", "reason": "HTTP 503", **fields}
    known.setdefault("next_try", None if known.get("over") else after(since + seconds))
    return r.Change(at=after(since), outage=r.Outage(since=AT, **known))


# Plans and failures.


def plan(*titles: str, done: int = 0, revision: int = 0) -> r.Plan:
    """A plan of these steps (`a`, `b`, `c` where none is named); the first `done` are done."""
    states = [r.PlanStepState.DONE] * done
    steps = tuple(
        r.PlanStep(title=title, state=states[at] if at < done else r.PlanStepState.OPEN)
        for at, title in enumerate(titles or ("a", "b", "c"))
    )
    return r.Plan(steps=steps, revision=revision)


def analysis(about: int = 1, cause: r.Cause = r.Cause.PERMANENT, **fields: Any) -> r.Analysis:
    """A worker's analysis of a failed step."""
    made = r.Analysis(what="it failed", cause=cause, root="a typo", remedy="mend it", about=about)
    return replace(made, **fields)


# Alerts, and what is done about them.


def finding(
    rule: str = "cycle", severity: r.Severity = r.Severity.WARNING, **fields: Any
) -> r.Finding:
    """What a rule found."""
    made = r.Finding(
        key=r.AlertKey(rule=rule), severity=severity, value=5, summary=f"{rule} was seen"
    )
    return replace(made, **fields)


def alert(
    rule: str = "cycle",
    severity: r.Severity = r.Severity.WARNING,
    state: r.AlertState = r.AlertState.FIRING,
    *,
    subject: str = "",
    step: int = 1,
    **fields: Any,
) -> r.Alert:
    """A warning that fires since its step."""
    made = r.Alert(
        key=r.AlertKey(rule=rule, subject=subject),
        severity=severity,
        state=state,
        value=5,
        summary=f"{rule} was seen",
        since_step=step,
        step=step,
    )
    return replace(made, **fields)


def escalation(
    id: int = 1,
    *rules: str,
    state: r.EscalationState = r.EscalationState.OPEN,
    attempt: int = 1,
    **fields: Any,
) -> r.Escalation:
    """An escalation of the alerts of these rules (`cycle` where none is named)."""
    keys = tuple(r.AlertKey(rule=rule) for rule in rules or ("cycle",))
    return r.Escalation(id=id, attempt=attempt, state=state, alerts=keys, **fields)


def decision(action: r.Action = r.Action.NUDGE, escalation: int = 1, **fields: Any) -> r.Decision:
    """An answer of the policy table."""
    made = r.Decision(
        escalation=escalation,
        action=action,
        diagnosis=r.Diagnosis.WRONG_APPROACH,
        message="Try another way.",
        rationale="It went in circles.",
        by=r.Actor.POLICY,
    )
    return replace(made, **fields)


def intervention(
    action: r.Action = r.Action.NUDGE, by: r.Actor = r.Actor.POLICY, **fields: Any
) -> r.Intervention:
    """An intervention that needs no approval."""
    return r.Intervention(action=action, by=by, **fields)


def delivery(
    intervention: int = 1, state: r.DeliveryState = r.DeliveryState.DELIVERED, **fields: Any
) -> r.Delivery:
    """An intervention that arrived."""
    return r.Delivery(intervention=intervention, state=state, **fields)


def outcome(
    intervention: int = 1, outcome: r.Outcome = r.Outcome.RECOVERED, **fields: Any
) -> r.OutcomeReport:
    """An intervention that helped."""
    made = r.OutcomeReport(intervention=intervention, outcome=outcome, step=9, reason="it moves")
    return replace(made, **fields)


def judged(
    action: r.Action = r.Action.NUDGE,
    found: r.Outcome | None = None,
    *,
    reason: str = "",
    **fields: Any,
) -> InterventionState:
    """An intervention that arrived, and what it came to, if it is judged."""
    issued = intervention(action, **fields)
    state = InterventionState.begin(entry(1, issued), issued)
    state.fold(AT, delivery())
    if found is not None:
        state.fold(AT, outcome(outcome=found, reason=reason))
    return state


# What is learned.


def feedback(*, accepted: bool = True, comment: str = "", **fields: Any) -> r.Feedback:
    """A person's verdict."""
    return r.Feedback(accepted=accepted, comment=comment, **fields)


def lesson(text: str = "The tests need a database.", **fields: Any) -> r.Lesson:
    """A lesson from a rejected attempt."""
    return r.Lesson(text=text, **fields)


def known_lesson(
    id: int = 1, text: str = "The tests need a database.", **fields: Any
) -> r.KnownLesson:
    """A lesson as it stands in project `p`; `lesson` replaces it as a whole."""
    made = r.KnownLesson(
        id=id, at=AT, project="p", task="fix", attempt=1, lesson=r.Lesson(text=text)
    )
    return replace(made, **fields)


def fact(text: str = "Tests run with make.", **fields: Any) -> r.Fact:
    """A fact that a worker wrote down."""
    return r.Fact(text=text, **fields)


def known_fact(id: int = 1, text: str = "Tests run with make.", **fields: Any) -> r.KnownFact:
    """A reviewed fact as it stands in project `p`; `fact` replaces it as a whole."""
    made = r.KnownFact(
        id=id,
        at=AT,
        project="p",
        task="fix",
        attempt=1,
        fact=r.Fact(text=text),
        state=r.FactState.REVIEWED,
    )
    return replace(made, **fields)


def guidelines(version: int = 1, text: str = "- Read first.", **fields: Any) -> r.Guidelines:
    """A proposed version."""
    return r.Guidelines(version=version, text=text, **fields)


def summary(text: str = "It mended the parser.", **fields: Any) -> r.Summary:
    """The summary of an ended attempt."""
    return r.Summary(text=text, topics=("parser",), **fields)


# The journal.


def entry(id: int, record: r.Record, *, attempt: int | None = 1, **fields: Any) -> r.Entry:
    """A record in the journal, as many seconds after `AT` as its id says."""
    made = r.Entry(id=id, record=record, at=after(id), task=1, attempt=attempt)
    return replace(made, **fields)


def entries(*records: r.Record, first: int = 1, **fields: Any) -> list[r.Entry]:
    """Records in the journal, one after the other, with ids from `first`."""
    return [entry(id, record, **fields) for id, record in enumerate(records, start=first)]


def draft(record: r.Record, *, attempt: int | None = 1, **fields: Any) -> r.Draft:
    """A record on its way into the journal."""
    return replace(r.Draft(record=record, at=AT, task=1, attempt=attempt), **fields)


def drafts(
    of: r.Attempt, records: Iterable[r.Record], *, seq: int | None = None
) -> tuple[r.Draft, ...]:
    """Records about an attempt on their way into the journal; `seq` is that of the first."""
    return tuple(
        r.Draft(
            record=record,
            at=of.started_at,
            task=of.task,
            attempt=of.id,
            seq=None if seq is None else seq + at,
        )
        for at, record in enumerate(records)
    )


def commit(of: r.Attempt, *records: r.Record, seq: int | None = None, **fields: Any) -> r.Commit:
    """What a process writes of an attempt at once; `seq` is that of the first record."""
    return r.Commit(drafts=drafts(of, records, seq=seq), attempt=of.id, **fields)


# A scripted worker: its models come with pydantic-ai, which most tests do without.


def call(tool: str, **args: object) -> "Call":
    """A tool call of a scripted model."""
    from midwatch_agents.scripted import Call

    return Call(tool=tool, args=json.dumps(args))


def turn(*calls: "Call", say: str = "") -> "Turn":
    """One answer of a scripted model."""
    from midwatch_agents.scripted import Turn

    return Turn(calls=calls, say=say)
