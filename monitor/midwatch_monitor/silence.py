"""What only the passing of time shows: nothing is heard from an attempt, or nothing moves."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from midwatch_monitor.alerts import Holding, Moment, advance, resolve
from midwatch_monitor.config.rules import Rules, RuleSettings, Silence
from midwatch_monitor.config.section import Length
from midwatch_monitor.records import (
    Activity,
    Alert,
    AlertKey,
    AlertState,
    Change,
    Event,
    Finding,
    Lifecycle,
    Severity,
    Step,
    StepKind,
)
from midwatch_monitor.rules.detector import Clear, Moved, RuleAnswer

SILENT = AlertKey(rule="silence")
UNMOVED = AlertKey(rule="silence", subject="no movement")

_WORDS = {
    Activity.MODEL: "waiting for the model",
    Activity.COMMAND: "a command is running",
    Activity.RATE_LIMITED: "rate-limited by the provider",
    Activity.IDLE: "nothing is known to be running",
}


class SilenceDetector:
    """Measures how long nothing was heard, with limits by activity, and how long nothing moved.

    It is given the time, since no event reports silence. A parked attempt is never silent, and
    events without a time are not judged.
    """

    __slots__ = ("_activity", "_heard_at", "_moved_at", "_settings", "_step", "_waits")

    def __init__(self, settings: Silence) -> None:
        self._settings = settings
        self._activity: Activity | None = None
        self._waits = False
        self._heard_at: datetime | None = None
        self._moved_at: datetime | None = None
        self._step = 0

    def observe(self, event: Event, moved: Moved) -> None:
        """Take in a sign of life, and note whether something moved."""
        anew = self._waits or self._moved_at is None
        limited = self._activity is Activity.RATE_LIMITED
        if isinstance(event, Step):
            self._step = event.number
            # If no source reports activity, a turn without a call means waiting for a person.
            if self._activity is None:
                self._waits = event.kind is StepKind.MESSAGE
        else:
            self._apply_change(event.lifecycle, event.activity)
            anew = anew or begins(event)
        if event.at is None:
            return
        # Another pause by the provider is not a sign of work.
        if not (limited and isinstance(event, Change) and event.activity is Activity.RATE_LIMITED):
            self._heard_at = event.at
        if moved.kinds or anew:
            self._moved_at = event.at

    def _apply_change(self, lifecycle: Lifecycle | None, activity: Activity | None) -> None:
        if activity is not None:
            self._activity = activity
            self._waits = activity is Activity.WAITING
        if lifecycle is not None:
            self._waits = lifecycle is Lifecycle.INPUT_REQUIRED

    @property
    def due(self) -> datetime | None:
        """When the next threshold is reached if nothing is heard until then."""
        if self._waits:
            return None
        ends = [end for key in (SILENT, UNMOVED) if (end := self.since(key))]
        return min(ends, default=None)

    def since(self, key: AlertKey) -> datetime | None:
        """Return when a subject starts to hold if nothing changes; `None` for never."""
        began, limit = self._began(key), self._limit(key)
        if not began or not limit.seconds:
            return None
        try:
            return began + timedelta(seconds=limit.seconds)
        except OverflowError:  # a journal may hold any time
            return None

    @property
    def heard_at(self) -> datetime | None:
        """The last sign of life."""
        return self._heard_at

    def look(self, now: datetime) -> Sequence[RuleAnswer]:
        """Return the answers about both subjects now."""
        return self._check(SILENT, now), self._check(UNMOVED, now)

    def _check(self, key: AlertKey, now: datetime) -> RuleAnswer:
        began, limit = self._began(key), self._limit(key).seconds
        seconds = (now - began).total_seconds() if began else 0.0
        if self._waits or not limit or seconds < limit:
            return Clear(key=key)
        if key == SILENT:
            doing = _WORDS.get(self._activity or Activity.IDLE, "")
            severity, summary = self._settings.severity, f"heard for {_minutes(seconds)}; {doing}"
        else:
            severity = Severity.NOTICE
            summary = f"moved for {_minutes(seconds)} although it is working"
        return Finding(
            key=key,
            severity=severity,
            value=round(seconds),
            summary=f"nothing {summary}",
            evidence=(self._step,) if self._step else (),
        )

    def _began(self, key: AlertKey) -> datetime | None:
        return self._heard_at if key == SILENT else self._moved_at

    def _limit(self, key: AlertKey) -> Length:
        settings = self._settings
        if not settings.enabled:
            return Length()
        if key == UNMOVED:
            return settings.unmoved
        limits = {
            Activity.MODEL: settings.model,
            Activity.RATE_LIMITED: settings.rate_limited,
            Activity.IDLE: settings.idle,
        }
        # A command, or a source that does not say.
        return limits.get(self._activity or Activity.COMMAND, settings.command)


def begins(event: Event) -> bool:
    """Whether an attempt starts or resumes here, with nobody working on it before."""
    return isinstance(event, Change) and event.lifecycle is Lifecycle.WORKING


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"


Alerts = Mapping[AlertKey, Alert]


class SilenceAlerts:
    """Follows the signs of life of one attempt, and returns alerts about their absence.

    `began` is when watching began. An attempt last heard from before that may just not have been
    watched, so its whole limit counts from `began`.
    """

    def __init__(self, rules: Rules, *, began: datetime | None = None) -> None:
        self._settings = rules.silence
        self._began = began
        self._silence = SilenceDetector(rules.silence)

    def observe(self, event: Event, moved: Moved) -> None:
        """Take in an event."""
        self._silence.observe(event, moved)

    @property
    def due_at(self) -> datetime | None:
        """When the next alert changes if nothing is heard until then; `None` for never."""
        due, awaited = self._silence.due, self._grace_until()
        return due if due is None or awaited is None else max(due, awaited)

    def due(self, now: datetime) -> bool:
        """Return whether it is time to look."""
        at = self.due_at
        return at is not None and now >= at

    def look(self, now: Moment, alerts: Alerts) -> tuple[Alert, ...]:
        """Return the alerts that have begun, risen or ended by now, given those of the attempt."""
        if now.at is None or ((awaited := self._grace_until()) and now.at < awaited):
            return ()
        answers = self._silence.look(now.at)
        since = {each.key: _silence_start(each.key, self._silence, alerts, now) for each in answers}
        return tuple(follow(answers, since, self._settings, alerts, now))

    def _grace_until(self) -> datetime | None:
        """Return when an attempt not heard from since `began` may be judged; `None` if at once."""
        began, heard, due = self._began, self._silence.heard_at, self._silence.since(SILENT)
        if began is None or heard is None or due is None or heard >= began:
            return None
        return began + (due - heard)


def follow(
    answers: Iterable[RuleAnswer],
    since: Mapping[AlertKey, Moment],
    settings: RuleSettings,
    alerts: Alerts,
    now: Moment,
) -> Iterator[Alert]:
    """Yield the alerts changed by the answers of a rule that is not judged event by event.

    `since` maps the key of an answer to the moment when its condition began.
    """
    for answer in answers:
        before = alerts.get(answer.key)
        if not isinstance(answer, Clear):
            holding = Holding(finding=answer, since=since[answer.key])
            after = advance(settings, before, holding, now)
        elif before is None or before.state is AlertState.RESOLVED:
            continue
        else:
            after = resolve(before, answer.resolution, now)
        if after is not None and (before is None or _alerts_differ(before, after)):
            yield after


def _silence_start(key: AlertKey, silence: SilenceDetector, alerts: Alerts, now: Moment) -> Moment:
    at, before = silence.since(key), alerts.get(key)
    # A pending alert is dropped without a record: one with another start is from another silence.
    same = before is not None and before.state is AlertState.PENDING and before.since_at == at
    return Moment(step=before.since_step if same and before else now.step, at=at)


def _alerts_differ(one: Alert, other: Alert) -> bool:
    return (one.state, one.severity, one.since_at) != (other.state, other.severity, other.since_at)
