"""The lines of a run for other programs, made from its journal in order. Pure.

A line is one JSON object: first `type`, `at`, `task`, `attempt` and `number`, then the fields of
its type. The first line of a run has type `run`, the last one `done`.
"""

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from midwatch_monitor.records import (
    Alert,
    AlertKey,
    Attempt,
    AttemptTransition,
    Change,
    Decision,
    Delivery,
    Diagnosis,
    Entry,
    Escalation,
    Fact,
    Fault,
    Feedback,
    Intervention,
    Lesson,
    Outage,
    OutcomeReport,
    Recall,
    Recalled,
    Step,
    Study,
    StudyState,
    Summary,
    Task,
    TaskTransition,
)
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.attempt_details import Awaited
from midwatch_monitor.state.intervention import Interventions, InterventionState
from midwatch_monitor.state.run import RunState
from midwatch_monitor.state.task import TaskState
from midwatch_supervisor.present.intervention_text import terms_text
from midwatch_supervisor.present.learning_text import GivenLearning
from midwatch_tools.data_blocks import cut

JsonLine = dict[str, object]
"""One line, with its fields in the order of the output."""

MAX_TEXT = 500
"""Characters of an output, an argument or a text in a line; the journal has all of it."""


_TOLD_AGAIN = timedelta(minutes=10)
"""How often an ongoing outage is reported."""


def moment(at: datetime) -> str:
    """Return a time as in lines: in UTC, to the millisecond."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def pick_fields(record: object, names: str) -> JsonLine:
    """Return fields with the same names as in the record."""
    return {name: getattr(record, name) for name in names.split()}


def _rules_of(keys: Iterable[AlertKey]) -> tuple[str, ...]:
    """Return the rules of some alerts, each once: alerts about two files may share a rule."""
    return tuple(dict.fromkeys(key.rule for key in keys))


def _finite_number(value: float) -> int | float | None:
    """Return `None` for NaN and infinity, which JSON does not have."""
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) else value


def _step_fields(step: Step, plan_steps: int) -> JsonLine:
    if step.checkpoint is not None:
        names = "progress_percent confidence decision blockers files_done notes"
        told = pick_fields(step.checkpoint, f"{names} estimated_steps_left plan_step")
        if plan_steps:  # once nothing is open any more, the record is one past the end
            told["plan_step"] = min(step.checkpoint.plan_step, plan_steps)
        return {"type": "checkpoint", "step": step.number, **told}
    return {
        "type": "step",
        "step": step.number,
        **pick_fields(step, "kind tool"),
        "args": cut(step.args, MAX_TEXT),
        **pick_fields(step, "ok exit_code"),
        "output": cut(step.output, MAX_TEXT),
        "text": cut(step.text, MAX_TEXT),
        "edits": tuple(edit.path for edit in step.edits),
        "tokens": step.tokens,
    }


def _outage_fields(outage: Outage, state: str) -> JsonLine:
    return {
        "type": "provider",
        "state": state,
        **pick_fields(outage, "url reason"),
        "since": moment(outage.since),
        "next_try": None if outage.next_try is None else moment(outage.next_try),
    }


def _alert_fields(alert: Alert) -> JsonLine:
    return {
        "type": "alert",
        "rule": alert.key.rule,
        "subject": alert.key.subject,
        **pick_fields(alert, "state severity step"),
        "value": _finite_number(alert.value),
        **pick_fields(alert, "summary evidence resolution"),
    }


def _escalation_fields(asked: Escalation) -> JsonLine:
    fields = {"rules": _rules_of(asked.alerts), "reason": asked.reason}
    return {"type": "escalation", **pick_fields(asked, "id state"), **fields}


def _decision_fields(made: Decision) -> JsonLine:
    names = "escalation action diagnosis by author message rationale steps"
    terms = terms_text(made.terms)
    return {
        "type": "decision",
        **pick_fields(made, names),
        "terms": terms,
        "refused": made.refused,
    }


def _intervention_fields(about: InterventionState) -> JsonLine:
    """Return an intervention in its present state; `approve` and `reject` take its `id`."""
    issued = about.intervention
    return {
        "type": "intervention",
        "id": about.id,
        **pick_fields(issued, "action by author message"),
        "state": about.status,
        "outcome": about.outcome,
        "reason": about.reason,
        "settled_by": about.settled.author if about.settled else "",
        "comment": about.settled.comment if about.settled else "",
        "answers": _rules_of(issued.answers),
        "diagnosis": None if issued.diagnosis is Diagnosis.UNKNOWN else issued.diagnosis,
        "terms": terms_text(issued.terms),
    }


_LEARNING: Mapping[type, tuple[str, str]] = {
    Feedback: ("feedback", "accepted origin author sign comment"),
    Lesson: ("lesson", "text failure_class insights tags steps origin verdict model"),
    Summary: ("summary", "text topics turns model"),
    Fact: ("fact", "text certainty files tags state maker"),
    Study: ("study", "about chore state reason"),
}


def _learning_fields(entry: Entry, given: GivenLearning) -> JsonLine | None:
    """Return a learning record as `show` presents it; `given` is what a recall selected."""
    record = entry.record
    if isinstance(record, Recall):
        return _recall_fields(entry.id, record, given)
    kind, names = _LEARNING.get(type(record), ("", ""))
    if not kind or (isinstance(record, Study) and record.state is StudyState.DONE):
        return None  # what came of a chore has its own line
    return {"type": kind, "id": entry.id, **pick_fields(record, names)}


def _recall_fields(id: int, recall: Recall, given: GivenLearning) -> JsonLine:
    facts = {known.id: known.fact.text for known in given.facts}
    version = given.guidelines
    return {
        "type": "recall",
        "id": id,
        "lessons": tuple(_given_lesson(each, given) for each in recall.lessons),
        "facts": tuple({"id": id, "text": facts.get(id, "")} for id in recall.facts),
        "guidelines": version and {"id": version.id, "version": version.guidelines.version},
        "group": recall.group,
        "tokens": recall.tokens,
        "seconds": recall.seconds,
    }


def _given_lesson(recalled: Recalled, given: GivenLearning) -> JsonLine:
    """Return a lesson from a first prompt, without its text if it was erased since."""
    known = next((each for each in given.lessons if each.id == recalled.lesson), None)
    return {
        "id": recalled.lesson,
        "method": recalled.method,
        "score": recalled.score,
        "text": known.lesson.text if known else "",
        "failure_class": known.lesson.failure_class if known else "",
        "origin": known.lesson.origin if known else None,
        "source_attempt": known.attempt if known else None,
    }


def _task_sum(task: TaskState) -> JsonLine:
    """Return a task for the last line of its run."""
    return {
        "id": task.task.name,
        "task": task.task.name,
        "status": task.lifecycle,
        "attempts": len(task.attempts),
        "alerts": task.alerts,
        "interventions": len(task.delivered),
        "recovered": task.recovered,
        "acceptance": pick_fields(task, "passed total"),
    }


def begin_line(run: int, *, tasks: int, journal: str, at: datetime) -> JsonLine:
    """Return the first line of a run."""
    return {"type": "run", "at": moment(at), "run": run, "tasks": tasks, "journal": journal}


class Transcript:
    """The lines of a run so far. Takes the run's entries in order, from its first."""

    def __init__(self, tasks: Iterable[Task], attempts: Iterable[Attempt] = ()) -> None:
        self.run = RunState()
        """The run's state; tasks and attempts must be added before their first entries."""
        for task in tasks:
            self.run.meet_task(task)
        for attempt in attempts:
            self.run.tasks[attempt.task].meet(attempt)
        self._interventions = Interventions()
        """Of all tasks: a restart is issued on one attempt and judged on the next."""
        self._delivered: dict[int | None, Intervention] = {}
        """The newest delivered intervention of each attempt."""
        self._outages: dict[str, tuple[str, datetime]] = {}
        """Reported ongoing outages by address: the last reason, and when reported."""

    def line(self, entry: Entry, given: GivenLearning | None = None) -> JsonLine | None:
        """Take in the run's next entry; return its line, or `None` if it has none.

        Learning records have a line if `given` is known. The line of an unknown attempt lacks
        worker and number.
        """
        self.run.fold(entry)
        fields = self._entry_fields(entry)
        if fields is None and given is not None:
            fields = _learning_fields(entry, given)
        if fields is None:
            return None
        task, attempt = self.run.tasks[entry.task].task.name, self._attempt_of(entry)
        number = (attempt.attempt.number or None) if attempt else None
        head = {"type": fields["type"], "at": moment(entry.at), "task": task}
        return head | {"attempt": entry.attempt, "number": number} | fields

    def _entry_fields(self, entry: Entry) -> JsonLine | None:
        match entry.record:
            case TaskTransition() as state:
                title = self.run.tasks[entry.task].task.title
                done = pick_fields(state, "passed total")
                fields = {"status": state.lifecycle, "title": title, "reason": state.reason}
                return {"type": "task", **fields, "acceptance": done}
            case AttemptTransition() as state:
                return self._attempt_line(entry, state)
            case Change(outage=Outage() as outage):
                return self._outage_line(outage, entry.at)
            case Step() as step:
                return _step_fields(step, self.plan_steps(entry))
            case Alert() as alert:
                return _alert_fields(alert)
            case Escalation() as asked:
                return _escalation_fields(asked)
            case Decision() as made:
                return _decision_fields(made)
            case Fault() as fault:
                return {"type": "fault", **pick_fields(fault, "part error")}
            case _:
                return self._intervention_line(entry)

    def _attempt_of(self, entry: Entry) -> AttemptState | None:
        return self.run.tasks[entry.task].attempts.get(entry.attempt or 0)

    def _attempt_line(self, entry: Entry, state: AttemptTransition) -> JsonLine:
        attempt = self._attempt_of(entry)
        return {
            "type": "attempt",
            "id": entry.attempt,
            "status": state.lifecycle,
            "worker": attempt.attempt.worker if attempt else "",
            "model": attempt.model if attempt else "",
            **pick_fields(state, "reason ending"),
        }

    def _outage_line(self, outage: Outage, at: datetime) -> JsonLine | None:
        """Return the line of an ongoing outage, repeated now and then, and of its end.

        There is one for all attempts that use the same provider.
        """
        if outage.over:
            told = self._outages.pop(outage.url, None)
            return None if told is None else _outage_fields(outage, "over")
        reason, told_at = self._outages.get(outage.url, ("", at))
        known = reason == outage.reason and at - told_at < _TOLD_AGAIN
        if not outage.lasting or (known and outage.next_try is not None):
            return None
        self._outages[outage.url] = outage.reason, at
        return _outage_fields(outage, "away")

    def _intervention_line(self, entry: Entry) -> JsonLine | None:
        about = self._interventions.fold(entry)
        if about is None:
            return None
        if about.delivered:
            self._delivered[entry.attempt] = about.intervention
        return _intervention_fields(about)

    def name(self, entry: Entry) -> str:
        """Return the task of an entry, or its attempt: `totals`, `totals#2`."""
        task, attempt = self.run.tasks[entry.task].task.name, self._attempt_of(entry)
        return f"{task}#{attempt.attempt.number}" if attempt and attempt.attempt.number else task

    def worker(self, entry: Entry) -> str:
        """Return who works on it: `coder with gpt-5`; empty for an unknown attempt."""
        attempt = self._attempt_of(entry)
        names = (attempt.attempt.worker, attempt.model) if attempt else ()
        return " with ".join(filter(None, names))

    def permission(self, entry: Entry) -> int:
        """Return the id of the permission request that its attempt waits for; 0 if none."""
        attempt = self._attempt_of(entry)
        asked = attempt is not None and attempt.awaited[0] is Awaited.PERMISSION
        return attempt.interventions.permission if attempt and asked else 0

    def plan_steps(self, entry: Entry) -> int:
        """Return the number of steps in the plan of its attempt; 0 for an unknown attempt."""
        attempt = self._attempt_of(entry)
        return attempt.plan_steps if attempt else 0

    def about(self, entry: Entry) -> Intervention | None:
        """Return the intervention of a stamp or an outcome, else the newest delivered one."""
        if isinstance(entry.record, Delivery | OutcomeReport):
            about = self._interventions.get(entry.record.intervention)
            return about.intervention if about else None
        return self._delivered.get(entry.attempt)

    def done_line(self, run: int | None, *, exit_code: int, at: datetime) -> JsonLine:
        """Return the last line of the run with that id."""
        return {
            "type": "done",
            "at": moment(at),
            "run": run,
            "exit_code": exit_code,
            "tasks": tuple(map(_task_sum, self.tasks)),
        }

    @property
    def tasks(self) -> tuple[TaskState, ...]:
        """Return the state of each task so far."""
        return tuple(self.run.tasks.values())
