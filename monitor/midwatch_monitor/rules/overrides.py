"""Different thresholds for some workers and some tools."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from midwatch_monitor.config.rules import Graded, Rules, RuleSettings
from midwatch_monitor.records import Change, Event
from midwatch_monitor.rules.detector import Clear, Detector, RuleAnswer, Seen

_THRESHOLDS = ("notice_after", "warn_after", "critical_after")


def for_worker(rules: Rules, worker: str) -> Rules:
    """Return the rules for one worker; raises pydantic's ValidationError for a wrong key."""
    if not worker:
        return rules
    changed = {
        name: _with_changes(settings, settings.workers[worker])
        for name, settings in rule_settings(rules).items()
        if worker in settings.workers
    }
    return rules.model_copy(update=changed) if changed else rules


def rule_settings(rules: Rules) -> dict[str, RuleSettings]:
    """Return the settings of every rule by name, in the order of the configuration."""
    return {name: getattr(rules, name) for name in _rule_names(type(rules))}


@lru_cache
def _rule_names(kind: type[Rules]) -> tuple[str, ...]:
    return tuple(
        name
        for name, field in kind.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, RuleSettings)
    )


def _with_changes(settings: RuleSettings, changes: Mapping[str, object]) -> RuleSettings:
    return type(settings).model_validate({**settings.model_dump(), **changes})


class ToolDetector(Detector):
    """A detector that uses the thresholds of each step's tool.

    It counts with the lowest of all the thresholds, then regrades each finding by those of the
    tool. Raises pydantic's ValidationError for a wrong key.
    """

    __slots__ = ("_by_tool", "_detector", "_settings", "hears", "rule", "windowed")

    def __init__(
        self, detector: Callable[[RuleSettings], Detector], settings: RuleSettings
    ) -> None:
        self._settings = settings
        self._by_tool = {
            tool: _with_changes(settings, each) for tool, each in settings.tools.items()
        }
        self._detector = detector(self._lowest_thresholds())
        self.rule = self._detector.rule
        self.hears = self._detector.hears
        self.windowed = self._detector.windowed

    def _lowest_thresholds(self) -> RuleSettings:
        """Return settings with the lowest thresholds of all tools, so that no finding is missed."""
        every = (self._settings, *self._by_tool.values())
        graded = [each for each in every if isinstance(each, Graded)]
        if not graded:
            return self._settings
        lowest = {
            name: min((value for each in graded if (value := getattr(each, name))), default=0)
            for name in _THRESHOLDS
        }
        return self._settings.model_copy(update=lowest)

    @property
    def awake(self) -> bool:
        return self._detector.awake

    def observe(self, event: Event, seen: Seen) -> Sequence[RuleAnswer]:
        """Return the detector's answers, regraded; none if the rule is off for the tool."""
        if isinstance(event, Change):
            return self._detector.observe(event, seen)
        settings = self._by_tool.get(event.tool, self._settings)
        if not settings.enabled:
            return ()
        return [_regrade(each, settings) for each in self._detector.observe(event, seen)]

    def restart(self) -> None:
        self._detector.restart()


def _regrade(answer: RuleAnswer, settings: RuleSettings) -> RuleAnswer:
    """Return a finding regraded by these thresholds, or a clear if they are not reached."""
    if isinstance(answer, Clear) or not isinstance(settings, Graded):
        return answer
    severity = settings.grade(answer.value)
    return Clear(key=answer.key) if severity is None else replace(answer, severity=severity)
