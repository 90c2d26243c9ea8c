"""What only time shows of one attempt, as alerts: the same live and replayed."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from midwatch_monitor.alerts import Holding, Moment, advance, resolve
from midwatch_monitor.config.rules import Rules, RuleSettings
from midwatch_monitor.records import Alert, AlertKey, AlertState, Event
from midwatch_monitor.rules.detector import Clear, Moved, RuleAnswer
from midwatch_monitor.rules.silence import SILENT, SilenceDetector

Alerts = Mapping[AlertKey, Alert]


class SilenceAlerts:
    """Follows the signs of life of one attempt, and says what their absence means.

    `began` is when the watching itself began: who was not heard since then may only have been
    unwatched, and has its whole limit from there.
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
        """When there will be something to see, if nothing is heard until then."""
        due = None if self._silence is None else self._silence.due
        awaited = None if self._silence is None else self._grace_until(self._silence)
        return due if due is None or awaited is None else max(due, awaited)

    def due(self, now: datetime) -> bool:
        """Whether it is time to look."""
        at = self.due_at
        return at is not None and now >= at

    def look(self, now: Moment, alerts: Alerts) -> tuple[Alert, ...]:
        """The alerts that begin, rise or end by this moment; `alerts` are those of the attempt."""
        if self._silence is None or now.at is None or self._early(self._silence, now.at):
            return ()
        answers = self._silence.look(now.at)
        since = {each.key: _since(each.key, self._silence, alerts, now) for each in answers}
        return tuple(follow(answers, since, self._settings, alerts, now))

    def _early(self, silence: SilenceDetector, now: datetime) -> bool:
        awaited = self._grace_until(silence)
        return awaited is not None and now < awaited

    def _grace_until(self, silence: SilenceDetector) -> datetime | None:
        """Until when nothing is said of who was not heard since the watching began."""
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
    """The alerts that change by the answers of a rule that is not judged event by event.

    `since` says when that began of which an answer tells.
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
        if after is not None and (before is None or _differ(before, after)):
            yield after


def _since(key: AlertKey, silence: SilenceDetector, alerts: Alerts, now: Moment) -> Moment:
    at, before = silence.since(key), alerts.get(key)
    # A pending alert vanishes without a word, so one with another beginning is of another time.
    same = before is not None and before.state is AlertState.PENDING and before.since_at == at
    return Moment(step=before.since_step if same and before else now.step, at=at)


def _differ(one: Alert, other: Alert) -> bool:
    return (one.state, one.severity, one.since_at) != (other.state, other.severity, other.since_at)
