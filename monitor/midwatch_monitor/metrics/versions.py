"""What came of looking back: versions of the guidelines, and their trials."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from midwatch_monitor.metrics.verdicts import Verdicts
from midwatch_monitor.records import (
    Entry,
    Guidelines,
    GuidelinesAct,
    GuidelinesMark,
    Origin,
    Reflection,
    Trial,
)
from midwatch_monitor.replay.tune.figures import Share


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderFigures:
    """What became of the attempts under one version, by the verdicts of one origin.

    Other things changed with the versions: a difference between two need not come from them.
    """

    guidelines: int
    """By journal id."""
    version: int
    """Within its project; 0 where the version is not among what is counted."""
    origin: Origin
    accepted: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidelinesFigures:
    """Looks back, and the versions that came of them."""

    reflections: int = 0
    skipped: int = 0
    """Of those, the ones that had too little to ask about."""
    failed: int = 0
    insights: int = 0
    """Lessons that came of them."""
    versions: int = 0
    approved: int = 0
    rejected: int = 0
    rolled_back: int = 0
    """Versions, by what was done about them; one that was approved may be rolled back later."""
    trials: int = 0
    adopted: int = 0
    """Of those, the ones after which the policy approved the version."""
    gain: float | None = None
    """The mean gain of a tried task, from -1 to 1; `None` where no task was tried."""
    under: tuple[UnderFigures, ...] = ()


class Versions:
    """Follows looks back, versions and trials."""

    def __init__(self) -> None:
        self._reflections: list[Reflection] = []
        self._versions: dict[int, int] = {}
        self._acts: set[tuple[int, GuidelinesAct]] = set()
        self._trials: list[Trial] = []

    def observe(self, entry: Entry) -> None:
        """Take in the next entry of a task."""
        match entry.record:
            case Reflection() as reflection:
                self._reflections.append(reflection)
            case Guidelines(version=version):
                self._versions[entry.id] = version
            case GuidelinesMark(guidelines=id, act=act):
                self._acts.add((id, act))
            case Trial() as trial:
                self._trials.append(trial)
            case _:
                pass

    def figures(self, under: Mapping[int, Sequence[int]], verdicts: Verdicts) -> GuidelinesFigures:
        """How it stands; `under` are the attempts by the version that they worked under."""
        acts = Counter(act for _, act in self._acts)
        gains = [score.after - score.before for trial in self._trials for score in trial.scores]
        return GuidelinesFigures(
            reflections=len(self._reflections),
            skipped=sum(bool(each.skipped) for each in self._reflections),
            failed=sum(bool(each.error) for each in self._reflections),
            insights=sum(each.insights for each in self._reflections),
            versions=len(self._versions),
            approved=acts[GuidelinesAct.APPROVED],
            rejected=acts[GuidelinesAct.REJECTED],
            rolled_back=acts[GuidelinesAct.ROLLED_BACK],
            trials=len(self._trials),
            adopted=sum(trial.adopted for trial in self._trials),
            gain=fmean(gains) if gains else None,
            under=tuple(
                UnderFigures(
                    guidelines=id,
                    version=self._versions.get(id, 0),
                    origin=origin,
                    accepted=accepted,
                )
                for id in sorted(under)
                for origin in Origin
                if (accepted := verdicts.share(under[id], origin)).of
            ),
        )
