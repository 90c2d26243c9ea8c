"""Other thresholds for some workers and some tools."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from midwatch_monitor.config.rules import Graded, Rules, RuleSettings
from midwatch_monitor.records import Change, Event, Finding
from midwatch_monitor.rules.detector import Answer, Clear, Detector, Seen

_THRESHOLDS = ("notice_after", "warn_after", "critical_after")


def for_worker(rules: Rules, worker: str) -> Rules:
    """The rules as they hold for one worker; raises pydantic's ValidationError for a wrong key."""
    changed = {
        name: merged(settings, settings.workers[worker])
        for name, settings in rule_settings(rules).items()
        if worker in settings.workers
    }
    return rules.model_copy(update=changed) if changed else rules


def rule_settings(rules: Rules) -> dict[str, RuleSettings]:
    """The settings of every rule under its name, in the order of the configuration."""
    return {
        name: value
        for name in type(rules).model_fields
        if isinstance(value := getattr(rules, name), RuleSettings)
    }


def merged(settings: RuleSettings, changes: Mapping[str, object]) -> RuleSettings:
    """Settings with some of them changed; raises pydantic's ValidationError for a wrong key."""
    return type(settings).model_validate({**settings.model_dump(), **changes})


class ToolTuning:
    """The settings of one rule, by the tool of the step that it judges.

    The detector counts with the widest thresholds of them all, and what it finds is graded anew by
    those of the tool.
    """

    __slots__ = ("_base", "_by_tool")

    def __init__(self, settings: RuleSettings) -> None:
        self._base = settings
        self._by_tool: Mapping[str, RuleSettings] = MappingProxyType(
            {tool: merged(settings, changes) for tool, changes in settings.tools.items()}
        )

    @property
    def widest(self) -> RuleSettings:
        """Settings under which whatever one of the tools calls for is found."""
        graded = [
            each for each in (self._base, *self._by_tool.values()) if isinstance(each, Graded)
        ]
        if not graded:
            return self._base
        lowest = {
            name: min((value for each in graded if (value := getattr(each, name))), default=0)
            for name in _THRESHOLDS
        }
        return self._base.model_copy(update=lowest)

    def hears(self, tool: str) -> bool:
        """Whether the rule is fed the steps of a tool."""
        return self._by_tool.get(tool, self._base).enabled

    def grade(self, answer: Answer, tool: str) -> Answer:
        """A finding as the thresholds of the tool have it; a clear where they are not reached."""
        settings = self._by_tool.get(tool, self._base)
        if isinstance(answer, Clear) or not isinstance(settings, Graded):
            return answer
        severity = settings.grade(answer.value)
        if severity is None:
            return Clear(key=answer.key)
        return Finding(
            key=answer.key,
            severity=severity,
            value=answer.value,
            summary=answer.summary,
            evidence=answer.evidence,
        )


class TunedDetector:
    """A detector that keeps to the thresholds of the tool of each step."""

    __slots__ = ("_detector", "_tuning")

    def __init__(self, detector: Detector, tuning: ToolTuning) -> None:
        self._detector = detector
        self._tuning = tuning

    @property
    def hears(self) -> int:
        """The facets of events that it is fed."""
        return self._detector.hears

    @property
    def awake(self) -> bool:
        """Whether it must be fed the next event, whatever that is."""
        return self._detector.awake

    @property
    def windowed(self) -> bool:
        """Whether a restart of the windows concerns it."""
        return self._detector.windowed

    def observe(self, event: Event, seen: Seen) -> Sequence[Answer]:
        """What the detector finds, graded anew; nothing of a tool that it is off for."""
        if isinstance(event, Change):
            return self._detector.observe(event, seen)
        if not self._tuning.hears(event.tool):
            return ()
        return [
            self._tuning.grade(each, event.tool) for each in self._detector.observe(event, seen)
        ]

    def restart(self) -> None:
        self._detector.restart()
