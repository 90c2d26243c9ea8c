"""Judges one attempt by all rules, in the same way whether live, replayed or rebuilt."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from functools import lru_cache

from midwatch_monitor.alerts import (
    Holding,
    Moment,
    advance,
    health,
    is_cooled_down,
    raise_agreeing,
    resolve,
)
from midwatch_monitor.config.rules import Rules, RuleSettings
from midwatch_monitor.records import (
    Alert,
    AlertKey,
    AlertState,
    Change,
    CheckpointDecision,
    Event,
    Fault,
    Health,
    Judgement,
    Resolution,
)
from midwatch_monitor.rules import DETECTORS, EVIDENCE, Clear, Detector, Moved, RuleAnswer, Seen
from midwatch_monitor.rules.act import Act, Facet, Normaliser
from midwatch_monitor.rules.detector import NO_ECHO, UNMOVED, Echo, Movements, Repeats
from midwatch_monitor.rules.overrides import ToolDetector, for_worker, rule_settings
from midwatch_monitor.rules.plain_output import unwrap

MAX_PIVOTS = 2
"""Pivots that restart the windows in one plan step; a worker with more is going in circles."""


class Windows:
    """Follows plan step, plan revision and pivots to decide when an event restarts the windows."""

    __slots__ = ("_pivots", "_place")

    def __init__(self) -> None:
        self._place: tuple[int | None, int] = (None, 0)
        """Plan step, if any is known, and revision of the plan."""
        self._pivots = 0

    def restart(self, event: Event) -> bool:
        """Return whether the counts so far belong to something that is over.

        The checkpoint of a pivot that ends the old window belongs to no window.
        """
        before, (plan_step, revision) = self._place, self._place
        if isinstance(event, Change):
            plan_step = plan_step if event.plan_step is None else event.plan_step
            self._place = plan_step, revision if event.revision is None else event.revision
            moved_on = self._place != before
        elif event.checkpoint is None:
            return False
        else:
            self._place = event.checkpoint.plan_step, revision
            moved_on = plan_step is not None and self._place != before
            if not moved_on and event.checkpoint.decision is CheckpointDecision.PIVOT:
                self._pivots += 1
                return self._pivots <= MAX_PIVOTS
        self._pivots = 0 if moved_on else self._pivots
        return moved_on


@lru_cache(maxsize=4096)
def _hearing(hears: tuple[int, ...], facets: int) -> tuple[int, ...]:
    """Return the positions of the detectors that hear one of these facets, for all attempts."""
    return tuple(place for place, each in enumerate(hears) if each & facets)


class AttemptDetectors:
    """The detectors of one attempt. Each event goes to those that hear it or are awake."""

    __slots__ = ("_awake", "_detectors", "_hears", "broken")

    def __init__(self, rules: Rules) -> None:
        self._awake: Sequence[Detector] = ()
        self.broken: tuple[Fault, ...] = ()
        """Rules that broke since this was last emptied."""
        self._use(
            _detector(name, settings)
            for name, settings in rule_settings(rules).items()
            if settings.enabled and name in DETECTORS
        )

    def _use(self, detectors: Iterable[Detector]) -> None:
        self._detectors = tuple(detectors)
        self._hears = tuple(each.hears for each in self._detectors)

    def detectors_for(self, facets: int) -> Sequence[Detector]:
        """Return the detectors that hear an event with these facets (`Facet`), or are awake."""
        places, awake = _hearing(self._hears, facets), self._awake
        if not places:
            return awake
        detectors = self._detectors
        hearing = [detectors[place] for place in places]
        return hearing + [each for each in awake if not each.hears & facets] if awake else hearing

    def ask(self, asked: Sequence[Detector], event: Event, seen: Seen) -> Sequence[RuleAnswer]:
        """Return the detectors' answers; drop a detector that raises, and note it in `broken`."""
        awake: list[Detector] = []
        answers: list[RuleAnswer] = []
        for detector in asked:
            try:
                answers += detector.observe(event, seen)
            except Exception as error:  # switch off and report a broken rule; the others continue
                self._drop_detector(detector, error)
                continue
            if detector.awake:
                awake.append(detector)
        self._awake = awake
        return answers

    def restart(self) -> Sequence[str]:
        """Empty all windows, and return the names of the rules that have one."""
        windowed = [each for each in self._detectors if each.windowed]
        for detector in windowed:
            try:
                detector.restart()
            except Exception as error:  # as above
                self._drop_detector(detector, error)
        self._awake = tuple(each for each in self._detectors if each.awake)
        return [each.rule for each in windowed]

    def _drop_detector(self, detector: Detector, error: Exception) -> None:
        self._use(each for each in self._detectors if each is not detector)
        fault = Fault(part=detector.rule, error=f"{type(error).__name__}: {error}")
        self.broken = (*self.broken, fault)


def _detector(name: str, settings: RuleSettings) -> Detector:
    detector = DETECTORS[name]
    return ToolDetector(detector, settings) if settings.tools else detector(settings)


_NOTHING = Judgement()
_NO_ACT = Act(number=0, work=False)


class Judge:
    """Judges one attempt without a clock, with constant work and bounded memory for each event."""

    def __init__(self, rules: Rules, *, worker: str = "") -> None:
        self._rules = for_worker(rules, worker)
        self._panel = AttemptDetectors(self._rules)
        self._normaliser = Normaliser()
        self._repeats = Repeats()
        self._movement = Movements()
        self._windows = Windows()
        self._step = 0
        self._at: datetime | None = None
        self._holding: dict[AlertKey, Holding] = {}
        self._open: dict[AlertKey, Alert] = {}
        self._resting: dict[AlertKey, Alert] = {}
        self._raised: tuple[AlertKey, ...] = ()
        self._before: dict[AlertKey, Alert | None] = {}

    @property
    def firing(self) -> tuple[Alert, ...]:
        """Alerts that fire now, with their newest values."""
        return tuple(alert for alert in self._open.values() if alert.firing)

    @property
    def health(self) -> Health:
        """Health of the attempt, by its firing alerts."""
        return health(self.firing)

    def observe(self, event: Event) -> Judgement:
        """Return what an event changes: alerts, movements, and rules that broke."""
        if isinstance(event, Change):
            return self.judge(event, _NO_ACT)
        event = unwrap(event)  # only once: looking for wrappers costs as much as a rule
        return self.judge(event, self._normaliser.act(event))

    def judge(self, event: Event, act: Act) -> Judgement:
        """Return what an event changes, given the unwrapped event and its normalised act."""
        self._at = event.at
        fresh = False
        if act.work and not isinstance(event, Change):
            self._step = act.number
            echo = self._repeats.observe(act, event.args, event.tool)
            may_move = act.failed or act.failed_before or act.marks
            moved = self._movement.observe(act) if may_move else UNMOVED
            facets = act.facets | Facet.REPEAT if echo is not NO_ECHO else act.facets
        else:
            act, echo, moved = self._take_idle_event(event, act)
            facets = act.facets
            fresh = self._windows.restart(event)
            if fresh:
                self._restart_rules()
        if moved.kinds:
            facets |= Facet.MOVED
        if act.reverted or moved.back:
            facets |= Facet.RETURN
        asked = self._panel.detectors_for(facets)
        if not (asked or self._holding or moved.kinds or self._before):
            return _NOTHING
        repeats = self._repeats
        seen = Seen(act, moved, echo, repeats.place, repeats.changes, fresh)
        answers = self._panel.ask(asked, event, seen)
        faults = self._take_faults() if self._panel.broken else ()
        if answers or self._holding:
            self._advance_alerts(self._store_findings(answers))
        return self._judgement(moved, faults)

    def _take_idle_event(self, event: Event, act: Act) -> tuple[Act, Echo, Moved]:
        """Return act, echo and movement of an event that is not work."""
        if isinstance(event, Change):
            act = act._replace(number=self._step, facets=Facet.CHANGE)
            moved = self._movement.plan(event)
        else:
            self._step = event.number
            if act.waits:
                self._repeats.wait()
            moved = self._movement.observe(act) if act.marks else UNMOVED
        return act, NO_ECHO, moved

    def _restart_rules(self) -> None:
        for rule in self._panel.restart():
            self._close(rule, Resolution.RESTARTED)

    def _take_faults(self) -> tuple[Fault, ...]:
        broken, self._panel.broken = self._panel.broken, ()
        for fault in broken:
            self._close(fault.part, Resolution.ENDED)
        return broken

    @property
    def _current_moment(self) -> Moment:
        return Moment(step=self._step, at=self._at)

    def end(self, at: datetime | None) -> Judgement:
        """Resolve all firing and pending alerts as ended, because the attempt is over."""
        self._at = at
        for key in tuple(self._holding):
            self._resolve(key, Resolution.ENDED)
        return self._judgement(UNMOVED, ())

    def _store_findings(self, answers: Iterable[RuleAnswer]) -> set[AlertKey]:
        """Store the conditions that hold, and return the keys of those found at this event."""
        found: set[AlertKey] = set()
        for answer in answers:
            if isinstance(answer, Clear):
                if self._holding:  # otherwise nothing is open; most clears have no finding
                    self._resolve(answer.key, answer.resolution)
                continue
            known = self._holding.get(answer.key)
            since = known.since if known else self._current_moment
            self._holding[answer.key] = Holding(finding=answer, since=since)
            found.add(answer.key)
        return found

    def _close(self, rule: str, resolution: Resolution) -> None:
        for key in [key for key in self._holding if key.rule == rule]:
            self._resolve(key, resolution)

    def _resolve(self, key: AlertKey, resolution: Resolution) -> None:
        self._holding.pop(key, None)
        before = self._open.pop(key, None)
        if before is None:
            return  # then it was not raised either
        if self._raised:
            self._raised = tuple(each for each in self._raised if each != key)
        self._before.setdefault(key, before)
        after = resolve(before, resolution, self._current_moment)
        if after is not None:
            self._keep_until_cooled(key, after)

    def _keep_until_cooled(self, key: AlertKey, after: Alert) -> None:
        """Keep a resolved alert until its cooldown is over; drop those whose cooldown is over."""
        for old, alert in tuple(self._resting.items()):
            if is_cooled_down(self._settings(old.rule), alert, self._current_moment):
                del self._resting[old]
        self._resting[key] = after

    def _settings(self, rule: str) -> RuleSettings:
        settings = getattr(self._rules, rule)
        assert isinstance(settings, RuleSettings)
        return settings

    def _advance_alerts(self, fresh: Collection[AlertKey]) -> None:
        """Advance hold and cooldown of all conditions, even those without a new answer."""
        for key, holding in self._holding.items():
            before = self._open.get(key) or self._resting.get(key)
            if before is not None and before.firing and key not in fresh:
                continue
            alert = advance(self._settings(key.rule), before, holding, self._current_moment)
            if alert.state is not AlertState.RESOLVED:
                self._set_alert(key, alert)
                self._resting.pop(key, None)
        if not self._rules.agreement or len(self._open) < 2:
            return
        for alert in raise_agreeing(self.firing, self._raised, EVIDENCE, self._current_moment):
            self._set_alert(alert.key, alert)
            self._raised = (*self._raised, alert.key)

    def _set_alert(self, key: AlertKey, alert: Alert) -> None:
        self._before.setdefault(key, self._open.get(key))
        self._open[key] = alert

    def _judgement(self, moved: Moved, faults: tuple[Fault, ...]) -> Judgement:
        if not (self._before or moved.kinds or faults):
            return _NOTHING
        gone: list[Alert] = []
        changed: list[Alert] = []
        for key, before in self._before.items():
            after = self._open.get(key)
            if after is None:
                if before is not None and key in self._resting:
                    gone.append(self._resting[key])
            elif before is None or _alerts_differ(before, after):
                changed.append(after)
        self._before.clear()
        return Judgement(
            alerts=(*gone, *changed),
            movements=moved.kinds,
            moved_paths=moved.paths,
            faults=faults,
        )


def _alerts_differ(one: Alert, other: Alert) -> bool:
    return (one.state, one.severity) != (other.state, other.severity)
