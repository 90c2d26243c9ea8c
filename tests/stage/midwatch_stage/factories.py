"""Records and values for tests: good defaults, and any field by its name.

What most tests name stands in the signature; every other field of the record is a keyword too:
`step(3, tool="bash", ok=False)`. A field that does not exist is a `TypeError`.
"""

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from midwatch_monitor.records import (
    Acceptance,
    Action,
    Actor,
    Alert,
    AlertKey,
    AlertState,
    Analysis,
    Attempt,
    AttemptTransition,
    Cause,
    Change,
    Checkpoint,
    Commit,
    Decision,
    Delivery,
    DeliveryState,
    Diagnosis,
    Draft,
    Edit,
    Ending,
    Entry,
    Escalation,
    EscalationState,
    Fact,
    FactState,
    Feedback,
    Finding,
    Guidelines,
    Intervention,
    KnownFact,
    KnownLesson,
    Lesson,
    Lifecycle,
    Outage,
    Outcome,
    OutcomeReport,
    Plan,
    PlanStep,
    PlanStepState,
    Record,
    Run,
    Severity,
    Step,
    StepKind,
    Summary,
    Task,
    TaskTransition,
)
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


def run(id: int = 1, **fields: Any) -> Run:
    """A run of a task file."""
    return replace(Run(id=id, started_at=AT, source="tasks.yaml", settings="{}"), **fields)


def task(id: int = 1, name: str = "fix", **fields: Any) -> Task:
    """A task of run 1; its specification says no more than its name and a goal."""
    spec = json.dumps({"id": name, "goal": "x"})
    return replace(Task(id=id, run=1, name=name, title=name, spec=spec), **fields)


def attempt(id: int = 1, **fields: Any) -> Attempt:
    """The first attempt of task 1."""
    made = Attempt(
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


def task_transition(lifecycle: Lifecycle = Lifecycle.WORKING, **fields: Any) -> TaskTransition:
    """A task that begins to be worked at."""
    return TaskTransition(lifecycle=lifecycle, **fields)


def transition(lifecycle: Lifecycle = Lifecycle.WORKING, **fields: Any) -> AttemptTransition:
    """An attempt that begins to work."""
    return AttemptTransition(lifecycle=lifecycle, **fields)


def ended(ending: Ending = Ending.DONE, **fields: Any) -> AttemptTransition:
    """The end of an attempt: completed or canceled where its ending says so, failed otherwise."""
    lifecycles = {
        Ending.DONE: Lifecycle.COMPLETED,
        Ending.UNCHECKED: Lifecycle.COMPLETED,
        Ending.CANCELED: Lifecycle.CANCELED,
    }
    made = AttemptTransition(lifecycle=lifecycles.get(ending, Lifecycle.FAILED), ending=ending)
    return replace(made, **fields)


def acceptance(*, passed: bool = True, check: str = "make test", **fields: Any) -> Acceptance:
    """The result of an acceptance check."""
    return Acceptance(check=check, passed=passed, **fields)


# Steps.


def step(number: int = 1, tool: str = "bash", **fields: Any) -> Step:
    """A successful tool call."""
    return replace(Step(number=number, kind=StepKind.TOOL, tool=tool, ok=True), **fields)


def message(number: int = 1, text: str = "I think.", **fields: Any) -> Step:
    """A model turn without a tool call."""
    return Step(number=number, kind=StepKind.MESSAGE, text=text, **fields)


def edit(path: str = "a.py", digest: str = "", **fields: Any) -> Edit:
    """A file that the worker changed."""
    return Edit(path=path, digest=digest, **fields)


def editing(number: int, *paths: str, **fields: Any) -> Step:
    """A tool call that gave each file a content that it never had."""
    edits = tuple(Edit(path=path, digest=f"{path}-{number}") for path in paths)
    path = paths[0] if paths else ""
    return replace(step(number, "edit_file", path=path, edits=edits), **fields)


def checkpoint(progress: int = 40, confidence: int = 70, **fields: Any) -> Checkpoint:
    """A worker's report that goes on as before."""
    return Checkpoint(progress_percent=progress, confidence=confidence, **fields)


def reflecting(number: int = 1, progress: int = 40, confidence: int = 70, **fields: Any) -> Step:
    """The step that carries a checkpoint; the fields are the checkpoint's."""
    given = checkpoint(progress, confidence, **fields)
    return Step(number=number, kind=StepKind.CHECKPOINT, tool="reflect", checkpoint=given)


def change(**fields: Any) -> Change:
    """A change around an attempt: only what is named."""
    return Change(**fields)


def away(*, since: float = 0, seconds: float = 30, **fields: Any) -> Change:
    """A provider's outage `since` so many seconds after `AT`; it is asked again `seconds` later."""
    known: dict[str, Any] = {"url": "http://far.test/v1", "reason": "HTTP 503", **fields}
    known.setdefault("next_try", None if known.get("over") else after(since + seconds))
    return Change(at=after(since), outage=Outage(since=AT, **known))


# Plans and failures.


def plan(*titles: str, done: int = 0, revision: int = 0) -> Plan:
    """A plan of these steps (`a`, `b`, `c` where none is named); the first `done` are done."""
    states = [PlanStepState.DONE] * done
    steps = tuple(
        PlanStep(title=title, state=states[at] if at < done else PlanStepState.OPEN)
        for at, title in enumerate(titles or ("a", "b", "c"))
    )
    return Plan(steps=steps, revision=revision)


def analysis(about: int = 1, cause: Cause = Cause.PERMANENT, **fields: Any) -> Analysis:
    """A worker's analysis of a failed step."""
    made = Analysis(what="it failed", cause=cause, root="a typo", remedy="mend it", about=about)
    return replace(made, **fields)


# Alerts, and what is done about them.


def finding(rule: str = "cycle", severity: Severity = Severity.WARNING, **fields: Any) -> Finding:
    """What a rule found."""
    made = Finding(key=AlertKey(rule=rule), severity=severity, value=5, summary=f"{rule} was seen")
    return replace(made, **fields)


def alert(
    rule: str = "cycle",
    severity: Severity = Severity.WARNING,
    state: AlertState = AlertState.FIRING,
    *,
    subject: str = "",
    step: int = 1,
    **fields: Any,
) -> Alert:
    """A warning that fires since its step."""
    made = Alert(
        key=AlertKey(rule=rule, subject=subject),
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
    state: EscalationState = EscalationState.OPEN,
    attempt: int = 1,
    **fields: Any,
) -> Escalation:
    """An escalation of the alerts of these rules (`cycle` where none is named)."""
    keys = tuple(AlertKey(rule=rule) for rule in rules or ("cycle",))
    return Escalation(id=id, attempt=attempt, state=state, alerts=keys, **fields)


def decision(action: Action = Action.NUDGE, escalation: int = 1, **fields: Any) -> Decision:
    """An answer of the policy table."""
    made = Decision(
        escalation=escalation,
        action=action,
        diagnosis=Diagnosis.WRONG_APPROACH,
        message="Try another way.",
        rationale="It went in circles.",
        by=Actor.POLICY,
    )
    return replace(made, **fields)


def intervention(
    action: Action = Action.NUDGE, by: Actor = Actor.POLICY, **fields: Any
) -> Intervention:
    """An intervention that needs no approval."""
    return Intervention(action=action, by=by, **fields)


def delivery(
    intervention: int = 1, state: DeliveryState = DeliveryState.DELIVERED, **fields: Any
) -> Delivery:
    """An intervention that arrived."""
    return Delivery(intervention=intervention, state=state, **fields)


def outcome(
    intervention: int = 1, outcome: Outcome = Outcome.RECOVERED, **fields: Any
) -> OutcomeReport:
    """An intervention that helped."""
    made = OutcomeReport(intervention=intervention, outcome=outcome, step=9, reason="it moves")
    return replace(made, **fields)


def judged(
    action: Action = Action.NUDGE, found: Outcome | None = None, *, reason: str = "", **fields: Any
) -> InterventionState:
    """An intervention that arrived, and what it came to, if it is judged."""
    issued = intervention(action, **fields)
    state = InterventionState.begin(entry(1, issued), issued)
    state.fold(AT, delivery())
    if found is not None:
        state.fold(AT, outcome(outcome=found, reason=reason))
    return state


# What is learned.


def feedback(*, accepted: bool = True, comment: str = "", **fields: Any) -> Feedback:
    """A person's verdict."""
    return Feedback(accepted=accepted, comment=comment, **fields)


def lesson(text: str = "The tests need a database.", **fields: Any) -> Lesson:
    """A lesson from a rejected attempt."""
    return Lesson(text=text, **fields)


def known_lesson(
    id: int = 1, text: str = "The tests need a database.", **fields: Any
) -> KnownLesson:
    """A lesson as it stands in project `p`; `lesson` replaces it as a whole."""
    made = KnownLesson(id=id, at=AT, project="p", task="fix", attempt=1, lesson=Lesson(text=text))
    return replace(made, **fields)


def fact(text: str = "Tests run with make.", **fields: Any) -> Fact:
    """A fact that a worker wrote down."""
    return Fact(text=text, **fields)


def known_fact(id: int = 1, text: str = "Tests run with make.", **fields: Any) -> KnownFact:
    """A reviewed fact as it stands in project `p`; `fact` replaces it as a whole."""
    made = KnownFact(
        id=id,
        at=AT,
        project="p",
        task="fix",
        attempt=1,
        fact=Fact(text=text),
        state=FactState.REVIEWED,
    )
    return replace(made, **fields)


def guidelines(version: int = 1, text: str = "- Read first.", **fields: Any) -> Guidelines:
    """A proposed version."""
    return Guidelines(version=version, text=text, **fields)


def summary(text: str = "It mended the parser.", **fields: Any) -> Summary:
    """The summary of an ended attempt."""
    return Summary(text=text, topics=("parser",), **fields)


# The journal.


def entry(id: int, record: Record, *, attempt: int | None = 1, **fields: Any) -> Entry:
    """A record in the journal, as many seconds after `AT` as its id says."""
    made = Entry(id=id, record=record, at=after(id), task=1, attempt=attempt)
    return replace(made, **fields)


def entries(*records: Record, first: int = 1, **fields: Any) -> list[Entry]:
    """Records in the journal, one after the other, with ids from `first`."""
    return [entry(id, record, **fields) for id, record in enumerate(records, start=first)]


def draft(record: Record, *, attempt: int | None = 1, **fields: Any) -> Draft:
    """A record on its way into the journal."""
    return replace(Draft(record=record, at=AT, task=1, attempt=attempt), **fields)


def drafts(of: Attempt, records: Iterable[Record], *, seq: int | None = None) -> tuple[Draft, ...]:
    """Records about an attempt on their way into the journal; `seq` is that of the first."""
    return tuple(
        Draft(
            record=record,
            at=of.started_at,
            task=of.task,
            attempt=of.id,
            seq=None if seq is None else seq + at,
        )
        for at, record in enumerate(records)
    )


def commit(of: Attempt, *records: Record, seq: int | None = None, **fields: Any) -> Commit:
    """What a process writes of an attempt at once; `seq` is that of the first record."""
    return Commit(drafts=drafts(of, records, seq=seq), attempt=of.id, **fields)


# A scripted worker: its models come with pydantic-ai, which most tests do without.


def call(tool: str, **args: object) -> "Call":
    """A tool call of a scripted model."""
    from midwatch_agents.scripted import Call

    return Call(tool=tool, args=json.dumps(args))


def turn(*calls: "Call", say: str = "") -> "Turn":
    """One answer of a scripted model."""
    from midwatch_agents.scripted import Turn

    return Turn(calls=calls, say=say)
