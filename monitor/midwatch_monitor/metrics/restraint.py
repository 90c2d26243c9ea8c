"""How often attempts that came to a good end were disturbed."""

from collections import defaultdict
from dataclasses import dataclass

from midwatch_monitor.metrics.detection import Detection
from midwatch_monitor.metrics.recovery import Course, Recovery
from midwatch_monitor.metrics.roster import Roster
from midwatch_monitor.replay.tune.figures import Share

_NONE = Share(hits=0, of=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestraintFigures:
    """Alarms and interventions on attempts that succeeded.

    Whether an attempt would have succeeded by itself, nobody knows of a real run. What is counted
    as *in vain* are attempts that succeeded though no intervention on them was judged to have
    helped: they most likely needed none. Those that an intervention did help may have needed none
    either, so this is a lower bound.
    """

    alarmed: Share = _NONE
    """Attempts that succeeded: those with a warning or a critical alert at any time."""
    disturbed: Share = _NONE
    """Those on which an intervention that answers an alert was delivered; observing is none."""
    in_vain: Share = _NONE
    """Those disturbed, and no intervention helped."""
    false_alarms: Share = _NONE
    """Those of which a decision said that the alarm was false."""
    interventions: int = 0
    """Delivered to attempts that succeeded."""
    interventions_in_vain: int = 0
    """Of these, those to the attempts that were disturbed in vain."""


def restraint(detection: Detection, recovery: Recovery, roster: Roster) -> RestraintFigures:
    """What was done to attempts that succeeded."""
    disturbing: dict[int, list[Course]] = defaultdict(list)
    for course in recovery.courses:
        if course.disturbs and course.attempt is not None:
            disturbing[course.attempt].append(course)
    well = [
        id for task in roster.tasks.values() for id in task.attempts if roster.succeeded(id) is True
    ]
    disturbed = [id for id in well if id in disturbing]
    vain = [id for id in disturbed if not any(each.helped for each in disturbing[id])]
    return RestraintFigures(
        alarmed=Share(hits=sum(detection.alarmed(id) for id in well), of=len(well)),
        disturbed=Share(hits=len(disturbed), of=len(well)),
        in_vain=Share(hits=len(vain), of=len(well)),
        false_alarms=Share(hits=sum(recovery.false_alarms(id) > 0 for id in well), of=len(well)),
        interventions=sum(len(disturbing[id]) for id in disturbed),
        interventions_in_vain=sum(len(disturbing[id]) for id in vain),
    )
