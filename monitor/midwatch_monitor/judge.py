"""All rules of one attempt: an event in, a judgement out, the same live, replayed and rebuilt."""

from collections.abc import Collection, Iterable
from datetime import datetime

from midwatch_monitor.alerts import Holding, Moment, advance, agree, resolve
from midwatch_monitor.config.rules import Rules, RuleSettings
from midwatch_monitor.rules import DETECTORS, Answer, Clear, Detector, Moved, rule_settings
from midwatch_monitor.rules.detector import remember
from midwatch_monitor.rules.movement import Movements
from midwatch_monitor.rules.windows import Windows
from midwatch_monitor.words import (
    Alert,
    AlertKey,
    AlertState,
    Change,
    Event,
    Fault,
    Health,
    Judgement,
    Lifecycle,
    Resolution,
    Severity,
)

_RESTING = 256
"""Resolved alerts kept for their cooldown, the oldest goes first; more than are open at once."""


def for_worker(rules: Rules, worker: str) -> Rules:
    """The rules as they hold for one worker; raises pydantic's ValidationError for a wrong key."""
    changed: dict[str, RuleSettings] = {}
    for name, settings in rule_settings(rules).items():
        if worker in settings.workers:
            merged = {**settings.model_dump(), **settings.workers[worker]}
            changed[name] = type(settings).model_validate(merged)
    return rules.model_copy(update=changed) if changed else rules


class Judge:
    """Judges one attempt. Constant work and bounded memory for each event, and no clock."""

    def __init__(self, rules: Rules, *, worker: str = "") -> None:
        rules = for_worker(rules, worker)
        self._settings = rule_settings(rules)
        self._agreement = rules.agreement
        self._detectors: dict[str, Detector] = {
            name: make(rules) for name, make in DETECTORS.items() if self._settings[name].enabled
        }
        self._movement = Movements()
        self._windows = Windows()
        self._now = Moment(step=0)
        self._parked = False
        self._holding: dict[AlertKey, Holding] = {}
        self._open: dict[AlertKey, Alert] = {}
        self._resting: dict[AlertKey, Alert] = {}
        self._raised: set[AlertKey] = set()

    @property
    def firing(self) -> tuple[Alert, ...]:
        """The alerts that fire now, with their newest values."""
        return tuple(alert for alert in self._open.values() if alert.firing)

    @property
    def health(self) -> Health:
        """What the firing alerts say of the attempt. A parked one is well, whatever fires."""
        severities = {alert.severity for alert in self.firing}
        if self._parked or not severities - {Severity.NOTICE}:
            return Health.OK
        return Health.STUCK if Severity.CRITICAL in severities else Health.SUSPECT

    @property
    def size(self) -> int:
        """How many alerts and movements are remembered; bounded."""
        kept = len(self._holding) + len(self._open) + len(self._resting) + len(self._raised)
        return kept + self._movement.size

    def observe(self, event: Event) -> Judgement:
        """What this event changes: alerts, movements, and rules that broke over it."""
        self._look(event)
        before = dict(self._open)
        moved = self._movement.observe(event)
        restart = self._windows.restart(event)
        faults: list[Fault] = []
        fresh: set[AlertKey] = set()
        for rule, detector in tuple(self._detectors.items()):
            try:
                if restart and detector.windowed:
                    detector.restart()
                    self._close(rule, Resolution.RESTARTED)
                answers = detector.observe(event, moved)
            except Exception as error:
                # A broken rule is switched off and shown; the work and the other rules go on.
                del self._detectors[rule]
                self._close(rule, Resolution.ENDED)
                faults.append(Fault(part=rule, error=f"{type(error).__name__}: {error}"))
            else:
                fresh |= self._take(answers)
        self._advance(fresh)
        return self._judgement(before, moved, faults)

    def end(self, at: datetime | None) -> Judgement:
        """The attempt is over: what fires or pends is resolved as ended."""
        self._now = Moment(step=self._now.step, at=at)
        before = dict(self._open)
        for rule in self._settings:
            self._close(rule, Resolution.ENDED)
        return self._judgement(before, Moved(), ())

    def _look(self, event: Event) -> None:
        if isinstance(event, Change):
            self._now = Moment(step=self._now.step, at=event.at)
            if event.lifecycle is not None:
                self._parked = event.lifecycle is Lifecycle.INPUT_REQUIRED
        else:
            self._now = Moment(step=event.number, at=event.at)

    def _take(self, answers: Iterable[Answer]) -> set[AlertKey]:
        """Keep what now holds; answers what was found to hold at this event."""
        found: set[AlertKey] = set()
        for answer in answers:
            if isinstance(answer, Clear):
                self._resolve(answer.key, answer.resolution)
                continue
            known = self._holding.get(answer.key)
            since = known.since if known else self._now
            self._holding[answer.key] = Holding(finding=answer, since=since)
            found.add(answer.key)
        return found

    def _close(self, rule: str, resolution: Resolution) -> None:
        for key in [key for key in self._holding if key.rule == rule]:
            self._resolve(key, resolution)

    def _resolve(self, key: AlertKey, resolution: Resolution) -> None:
        self._holding.pop(key, None)
        self._raised.discard(key)
        before = self._open.pop(key, None)
        after = resolve(before, resolution, self._now) if before else None
        if after is not None:
            remember(self._resting, key, after, _RESTING)

    def _advance(self, fresh: Collection[AlertKey]) -> None:
        """Let hold and cooldown run, also for what was not looked at in this event."""
        for key, holding in self._holding.items():
            before = self._open.get(key) or self._resting.get(key)
            if before is not None and before.firing and key not in fresh:
                continue
            alert = advance(self._settings[key.rule], before, holding, self._now)
            if alert.state is not AlertState.RESOLVED:
                self._open[key] = alert
                self._resting.pop(key, None)
        if not self._agreement:
            return
        for alert in agree(self.firing, self._raised, self._now):
            self._open[alert.key] = alert
            self._raised.add(alert.key)

    def _judgement(
        self, before: dict[AlertKey, Alert], moved: Moved, faults: Iterable[Fault]
    ) -> Judgement:
        changed = [
            alert
            for key, alert in self._open.items()
            if key not in before or _differ(before[key], alert)
        ]
        gone = [
            self._resting[key] for key in before if key not in self._open and key in self._resting
        ]
        return Judgement(
            alerts=(*gone, *changed),
            movements=moved.kinds,
            moved_paths=moved.paths,
            faults=tuple(faults),
        )


def _differ(one: Alert, other: Alert) -> bool:
    return (one.state, one.severity) != (other.state, other.severity)
