"""Attempts and their steps as spans, in OpenTelemetry's conventions for generative AI. Pure.

There is one trace for each attempt. Ids are derived from the journal, so that a span that is sent
again is recognised as the same.
"""

import re
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from importlib.metadata import version

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import Link, SpanContext, Status, StatusCode, TraceFlags
from opentelemetry.util.types import AttributeValue

from midwatch_monitor.records import (
    Attempt,
    AttemptTransition,
    Entry,
    Lifecycle,
    Run,
    Step,
    StepKind,
    Task,
)
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.task import TaskState
from midwatch_monitor.state.usage import Usage
from midwatch_supervisor.present.json_lines import JsonLine, Transcript

_MOST_EVENTS = 256
"""Number of events of an attempt; the oldest are left out."""
_TOLD = frozenset({"alert", "escalation", "decision", "intervention"})
"""The lines that become events of an attempt's span."""
_HEAD = frozenset({"type", "at", "task", "attempt", "number"})
_PLAIN = frozenset(
    {"rule", "severity", "state", "value", "step", "resolution", "rules", "answers", "action"}
    | {"diagnosis", "by", "escalation", "id", "outcome", "steps", "kind", "ok", "exit_code"}
    | {"tokens", "progress_percent", "confidence", "decision", "status"}
)
"""Fields of a line that reveal nothing that was said, written or read."""
_CONTENT = {"args": "gen_ai.tool.call.arguments", "output": "gen_ai.tool.call.result"}
_FOREIGN = re.compile(r"span ([0-9a-f]{32}) ([0-9a-f]{16})")
"""The call of a step that was read from a span of the agent itself."""


class TaskSpans:
    """The spans of one task so far. Takes the task's entries in order, from its first."""

    def __init__(self, run: Run, task: Task, *, content: bool) -> None:
        """With `content`, what was said and done is included."""
        of_session = run.of_session
        own = f"midwatch-{run.id}-{task.id}"
        self._about: dict[str, AttributeValue] = {
            "gen_ai.conversation.id": run.source.rpartition(" ")[2] if of_session else own,
            "midwatch.run": run.id,
            "midwatch.task": task.name,
        }
        self._resource = Resource.create(
            {"service.name": "midwatch", "service.version": version("midwatch")}
        )
        self._content = content
        self._transcript = Transcript([task])
        self._events: dict[int, deque[Event]] = {}
        self._links: dict[int, Sequence[Link]] = {}
        self._times: dict[int, tuple[datetime, datetime]] = {}
        """The last two different times of each attempt's entries."""
        self._before: dict[int, Usage] = {}
        """What the task had used when an attempt began."""

    @property
    def _task_state(self) -> TaskState:
        return self._transcript.tasks[0]

    @property
    def over(self) -> bool:
        """Whether everything has ended."""
        return self._task_state.over and all(
            each.over for each in self._task_state.attempts.values()
        )

    def lacks(self, entry: Entry) -> bool:
        """Whether the entry's attempt must be added first."""
        return self._task_state.lacks(entry)

    def meet(self, attempt: Attempt) -> None:
        """Add an attempt."""
        self._task_state.meet(attempt)
        self._before[attempt.id] = self._task_state.used
        self._events[attempt.id] = deque(maxlen=_MOST_EVENTS)
        self._links[attempt.id] = ()

    def take(self, entry: Entry) -> Sequence[ReadableSpan]:
        """Take in the next entry; return the spans it completes."""
        state = self._task_state.attempts.get(entry.attempt or 0)
        since = self._note_time(state, entry.at) if state else entry.at
        line = self._transcript.line(entry)
        if state is None or line is None:
            return ()
        match entry.record:
            case Step() as step:
                return (self._step_span(state, step, line, since, step.at or entry.at),)
            case AttemptTransition(lifecycle=lifecycle) if lifecycle.over:
                return (self._attempt_span(state, entry.at),)
            case _ if line["type"] in _TOLD:
                event = Event(
                    f"midwatch.{line['type']}", self._field_attributes(line), _unix_nanos(entry.at)
                )
                self._events[state.id].append(event)
            case _:
                pass
        return ()

    def _note_time(self, state: AttemptState, at: datetime) -> datetime:
        """Return when what ends at this time began; the journal has no start times.

        That is the attempt's previous entry. Entries of the same time, such as the change of
        activity beside a step, end together.
        """
        before, last = self._times.get(state.id, (state.attempt.started_at,) * 2)
        if at > last:
            before, last = last, at
            self._times[state.id] = before, last
        return before

    def _step_span(
        self, state: AttemptState, step: Step, line: JsonLine, since: datetime, at: datetime
    ) -> ReadableSpan:
        more = self._field_attributes(line)
        if step.kind is StepKind.MESSAGE:
            operation, about = "chat", state.model
        else:
            about = step.tool or ("reflect" if step.checkpoint else "unknown")
            operation, more["gen_ai.tool.name"] = "execute_tool", about
        links = _trace_links(step.call)
        self._links[state.id] = self._links[state.id] or links
        if step.call and not links:
            more["gen_ai.tool.call.id"] = step.call
        if step.ok is False:
            more["error.type"] = "tool_error"
        key = f"step {step.number}"
        return self._build_span(
            state, operation, about, more, key, (min(since, at), at), links=links
        )

    def _attempt_span(self, state: AttemptState, at: datetime) -> ReadableSpan:
        attempt, before, used = state.attempt, self._before[state.id], self._task_state.used
        more: dict[str, AttributeValue] = {
            "midwatch.number": attempt.number,
            "midwatch.status": state.status,
            "midwatch.steps": state.last_step,
            "midwatch.usage.requests": used.requests - before.requests,
            "midwatch.usage.tokens": used.tokens - before.tokens,
            "midwatch.usage.cost_usd": used.cost_usd - before.cost_usd,
        }
        if state.lifecycle is Lifecycle.FAILED:
            more["error.type"] = state.transition.ending or "failed"
        times = min(attempt.started_at, at), at
        events, links = tuple(self._events[state.id]), self._links[state.id]
        return self._build_span(
            state, "invoke_agent", attempt.worker, more, "", times, events=events, links=links
        )

    def _field_attributes(self, line: JsonLine) -> dict[str, AttributeValue]:
        """Return a line's fields as attributes; without content, only those that reveal none."""
        return {
            _CONTENT.get(name, f"midwatch.{name}"): value
            for name, value in line.items()
            if name not in _HEAD and (self._content or name in _PLAIN)
            if isinstance(value, str | int | float | tuple) and value != ()
        }

    def _build_span(
        self,
        state: AttemptState,
        operation: str,
        about: str,
        more: Mapping[str, AttributeValue],
        key: str,
        times: tuple[datetime, datetime],
        *,
        events: Sequence[Event] = (),
        links: Sequence[Link] = (),
    ) -> ReadableSpan:
        """Return a span of an attempt: the attempt's own without a key, else one below it."""
        own: dict[str, AttributeValue] = {
            "gen_ai.operation.name": operation,
            "gen_ai.agent.name": state.attempt.worker,
            "midwatch.attempt": state.id,
        }
        own |= _model_attributes(state.model)
        failed = "error.type" in more
        return ReadableSpan(
            f"{operation} {about}".rstrip(),
            context=_span_context(state.attempt, key),
            parent=_span_context(state.attempt, "") if key else None,
            resource=self._resource,
            attributes={**self._about, **own, **more},
            events=events,
            links=links,
            status=Status(StatusCode.ERROR if failed else StatusCode.UNSET),
            start_time=_unix_nanos(times[0]),
            end_time=_unix_nanos(times[1]),
        )


_PROVIDERS = {
    "openai-chat": "openai",
    "openai-responses": "openai",
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "google": "gcp.gemini",
    "google-gla": "gcp.gemini",
    "google-vertex": "gcp.vertex_ai",
    "grok": "x_ai",
    "xai": "x_ai",
    "mistral": "mistral_ai",
}
"""OpenTelemetry's names of providers, by pydantic-ai's where they differ."""


def _model_attributes(name: str) -> dict[str, AttributeValue]:
    """Return the attributes of a model called `provider:model`, or by its name alone."""
    provider, _, model = name.rpartition(":")
    if not provider:
        return {"gen_ai.request.model": model} if model else {}
    known = _PROVIDERS.get(provider, provider)
    return {"gen_ai.provider.name": known, "gen_ai.request.model": model}


def _span_context(attempt: Attempt, key: str) -> SpanContext:
    own = f"{attempt.started_at.timestamp()} {attempt.id} {attempt.node} {attempt.workspace}"
    trace, span = sha256(own.encode()).digest(), sha256(f"{own} {key}".encode()).digest()
    ids = int.from_bytes(trace[:16], "big"), int.from_bytes(span[:8], "big")
    return SpanContext(*ids, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _trace_links(call: str) -> Sequence[Link]:
    found = _FOREIGN.fullmatch(call)
    if found is None:
        return ()
    return (Link(SpanContext(int(found[1], 16), int(found[2], 16), is_remote=True)),)


def _unix_nanos(at: datetime) -> int:
    return round(at.timestamp() * 1_000_000) * 1_000
