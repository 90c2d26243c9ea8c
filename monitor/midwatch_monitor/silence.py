"""Alerts of one attempt that only the passing of time shows; the same live and replayed."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from midwatch_monitor.alerts import Holding, Moment, advance, resolve
from midwatch_monitor.config.rules import Rules, RuleSettings
from midwatch_monitor.records import Alert, AlertKey, AlertState, Event
from midwatch_monitor.rules.detector import Clear, Moved, RuleAnswer
from midwatch_monitor.rules.silence import SILENT, SilenceDetector

Alerts = Mapping[AlertKey, Alert]


class SilenceAlerts:
    """Follows the signs of life of one attempt, and returns alerts about their absence.

    `began` is when watching began. An attempt last heard from before that may just not have been
    watched, so its whole limit counts from `began`.
    """

    def __init__(self, rules: Rules, *, began: datetime | None = None) -> None:
        self._settings = rules.silence
        self._began = began
        self._silence = SilenceDetector(rules.silence) if rules.silence.enabled else None

    def observe(self, event: Event, moved: Moved) -> None:
        """Take in an event."""
        if self._silence is not None:
            self._silence.observe(event, moved)

    @property
    def due_at(self) -> datetime | None:
        """When the next alert changes if nothing is heard until then; `None` for never."""
        due = None if self._silence is None else self._silence.due
        awaited = None if self._silence is None else self._grace_until(self._silence)
        return due if due is None or awaited is None else max(due, awaited)

    def due(self, now: datetime) -> bool:
        """Return whether it is time to look."""
        at = self.due_at
        return at is not None and now >= at

    def look(self, now: Moment, alerts: Alerts) -> tuple[Alert, ...]:
        """Return the alerts that have begun, risen or ended by now, given those of the attempt."""
        if self._silence is None or now.at is None or self._is_early(self._silence, now.at):
            return ()
        answers = self._silence.look(now.at)
        since = {each.key: _silence_start(each.key, self._silence, alerts, now) for each in answers}
        return tuple(follow(answers, since, self._settings, alerts, now))

    def _is_early(self, silence: SilenceDetector, now: datetime) -> bool:
        awaited = self._grace_until(silence)
        return awaited is not None and now < awaited

    def _grace_until(self, silence: SilenceDetector) -> datetime | None:
        """Return when an attempt not heard from since `began` may be judged; `None` if at once."""
        began, heard, due = self._began, silence.heard_at, silence.since(SILENT)
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
