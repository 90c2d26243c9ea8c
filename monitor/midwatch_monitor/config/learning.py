"""What is learned from attempts, and what of it stands in prompts."""

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, cast

from pydantic import Field, field_validator, model_validator

from midwatch_monitor.config.section import Duration, Length, Seconds, Section

Share = Annotated[float, Field(ge=0, le=1)]

_HOURS = re.compile(r"([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d")

FAILURE_CLASSES = (
    "missed_requirement",
    "wrong_location",
    "broke_existing",
    "weakened_check",
    "untested",
    "loop",
    "environment",
    "overreach",
    "style",
    "budget",
    "wrong_result",
)
"""Classes of failure in coding work."""


class FeedbackSettings(Section):
    """Verdicts that nobody spoke."""

    implied: bool = True
    """Whether every `run` looks for merged work that a person kept, edited or took back."""
    kept_after: Duration = Length(seconds=86_400.0, text="24h")
    """How long merged files must stay as they are to count as accepted."""
    watched_for: Duration = Length(seconds=2_592_000.0, text="30d")
    """How long after its merge an attempt's work is looked at."""


class LessonSettings(Section):
    """Lessons of failed attempts and rejections."""

    gone: ClassVar[Mapping[str, str]] = {
        "failure_classes": "its names are taken for `learning.lessons.classes`, its words are not"
    }

    enabled: bool = True
    """Whether lessons are written and given to workers."""
    in_prompt: Annotated[int, Field(ge=0, le=5)] = 3
    """How many lessons one attempt is given at most."""
    adaptive: bool = False
    """Whether that number falls where lessons do not help, and rises to 5 where they do."""
    archive_unused_after: Duration = Length()
    """Lessons that nobody was given for so long are archived; 0 never."""
    control_share: Share = 0.0
    """Share of the tasks that are given no lessons, to see what lessons are worth."""
    classes: tuple[str, ...] = FAILURE_CLASSES
    """Classes of failure, by name."""

    @model_validator(mode="before")
    @classmethod
    def _named_before(cls, value: object) -> object:
        """The names of `failure_classes`, which had words with each, where `classes` says none."""
        if not isinstance(value, Mapping):
            return value
        said = cast("Mapping[str, object]", value)
        before = said.get("failure_classes")
        if not isinstance(before, Mapping) or said.get("classes") not in (None, [*FAILURE_CLASSES]):
            return said
        return {**said, "classes": [*cast("Mapping[str, object]", before)]}


class GuidelinesSettings(Section):
    """The bounded document of working principles."""

    gone: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("auto", "trial_minutes", "held_out", "min_gain", "regressions"),
        "a person approves each new version",
    )

    enabled: bool = False
    """Whether the end of a run looks back at attempts and proposes new versions.

    A version that was approved is in force whatever this says.
    """
    min_runs: Annotated[int, Field(ge=1, le=1000)] = 1
    """Fewest attempts for a look back."""
    min_turns: Annotated[int, Field(ge=1, le=1000)] = 3
    """Fewest answers of its model for an attempt to count."""
    max_runs: Annotated[int, Field(ge=1, le=1000)] = 50
    """Most attempts that one look back is shown, the oldest first."""
    max_words: Annotated[int, Field(ge=50, le=2000)] = 600
    """Longest document; a longer one is cut at a sound place."""
    with_lessons: bool = False
    """Whether a look back is also shown the lessons of its attempts, where summaries are thin."""
    with_operators: bool = False
    """Whether it is also shown what operators told and answered in these attempts."""
    quiet_hours: str = ""
    """`02:00-05:00`: `midwatch learn --wait` looks back in these hours of local time."""

    @field_validator("quiet_hours")
    @classmethod
    def _hours(cls, value: str) -> str:
        if value and not _HOURS.fullmatch(value):
            raise ValueError("write two times of day, such as 02:00-05:00, or nothing")
        return value


class FactSettings(Section):
    """What workers find out about a workspace."""

    gone: ClassVar[Mapping[str, str]] = {
        "alike": "two facts are the same where their texts are, but for case and white space"
    }

    enabled: bool = True
    """Whether workers may record facts, and are given them."""
    extract: bool = True
    """Whether facts are taken out of finished attempts, where the reflector has a model."""
    review: bool = False
    """Whether a model looks at new facts before they are shared."""
    review_prompt: str = ""
    """Instructions for the review instead of the built-in ones."""
    review_prompts: dict[str, str] = Field(default_factory=dict[str, str])
    """The same for single projects, by their names."""
    in_prompt: Annotated[int, Field(ge=0, le=100)] = 12
    """How many facts one attempt is given at most; the rest is found by `search_facts`."""
    max_per_attempt: Annotated[int, Field(ge=1, le=1000)] = 30
    """Facts that one attempt may record; more are refused."""


class LearningSettings(Section):
    """What is learned from attempts. Nothing of it ever holds up the work."""

    feedback: FeedbackSettings = FeedbackSettings()
    lessons: LessonSettings = LessonSettings()
    guidelines: GuidelinesSettings = GuidelinesSettings()
    facts: FactSettings = FactSettings()
    prompt_tokens: Annotated[int, Field(ge=0, le=20_000)] = 1500
    """Most tokens of guidelines, lessons and facts together in one prompt; 0 gives none."""
    timeout_seconds: Seconds = 60.0
    """How long one question to the reflector or the review may take."""
    end_seconds: Annotated[float, Field(ge=0, le=3600)] = 60.0
    """How long the end of a run waits for what is still to be learned; the next run goes on."""
    tries: Annotated[int, Field(ge=1, le=10)] = 3
    """How often something that failed is tried, over all runs."""
    look_back: Annotated[int, Field(ge=1, le=100_000)] = 200
    """How many unstudied attempts one run takes up at most, the newest first."""
