"""Settings for what is learned from attempts, and how much of it is put into prompts."""

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
    """Implied verdicts."""

    implied: bool = True
    """Whether every `run` looks for merged work that a person kept, edited or reverted."""
    kept_after: Duration = Length(seconds=86_400.0, text="24h")
    """How long merged files must be unchanged to count as accepted."""
    watched_for: Duration = Length(seconds=2_592_000.0, text="30d")
    """How long to wait for a merge, and to watch the work after it; 0 never watches."""


class LessonSettings(Section):
    """Lessons from failed attempts and rejections."""

    gone: ClassVar[Mapping[str, str]] = {
        "failure_classes": "its names become `learning.lessons.classes`; its words are ignored"
    }

    enabled: bool = True
    """Whether lessons are written and given to workers."""
    in_prompt: Annotated[int, Field(ge=0, le=5)] = 3
    """The most lessons given to one attempt."""
    adaptive: bool = False
    """Whether that number falls if lessons do not help, and rises to 5 if they do."""
    archive_unused_after: Duration = Length()
    """Lessons not used for this long are archived; 0 means never."""
    control_share: Share = 0.0
    """Share of the tasks that are given no lessons, to measure the value of lessons."""
    classes: tuple[str, ...] = FAILURE_CLASSES
    """Names of the classes of failure."""

    @model_validator(mode="before")
    @classmethod
    def _named_before(cls, value: object) -> object:
        """Take the names from the older `failure_classes`, which had descriptions, if `classes` is
        not set.
        """
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
    """Whether the end of a run looks back at attempts and proposes new versions. An approved
    version is in force regardless.
    """
    min_runs: Annotated[int, Field(ge=1, le=1000)] = 1
    """The fewest attempts for a look back."""
    min_turns: Annotated[int, Field(ge=1, le=1000)] = 3
    """The fewest model answers for an attempt to count."""
    max_runs: Annotated[int, Field(ge=1, le=1000)] = 50
    """The most attempts in one look back, the oldest first."""
    max_words: Annotated[int, Field(ge=50, le=2000)] = 600
    """The longest document; a longer one is cut at a suitable place."""
    with_lessons: bool = False
    """Whether a look back is also shown the attempts' lessons, as summaries are short."""
    with_operators: bool = False
    """Whether it is also shown operators' messages and answers in these attempts."""
    quiet_hours: str = ""
    """`02:00-05:00`: `midwatch learn --wait` looks back during these hours of local time."""

    @field_validator("quiet_hours")
    @classmethod
    def _check_hours(cls, value: str) -> str:
        if value and not _HOURS.fullmatch(value):
            raise ValueError("write two times of day, such as 02:00-05:00, or nothing")
        return value


class FactSettings(Section):
    """Facts that workers find out about a workspace."""

    gone: ClassVar[Mapping[str, str]] = {
        "alike": "two facts are the same if their texts are, apart from case and white space"
    }

    enabled: bool = True
    """Whether workers may record facts, and are given them."""
    extract: bool = True
    """Whether facts are extracted from finished attempts, if the reflector has a model."""
    review: bool = False
    """Whether a model reviews new facts before they are shared."""
    review_prompt: str = ""
    """Instructions for the review that replace the built-in ones."""
    review_prompts: dict[str, str] = Field(default_factory=dict[str, str])
    """The same for single projects, by their names."""
    in_prompt: Annotated[int, Field(ge=0, le=100)] = 12
    """The most facts given to one attempt; others are found by `search_facts`."""
    max_per_attempt: Annotated[int, Field(ge=1, le=1000)] = 30
    """The most facts that one attempt may record; more are refused."""


class LearningSettings(Section):
    """What is learned from attempts. It never delays the work."""

    feedback: FeedbackSettings = FeedbackSettings()
    lessons: LessonSettings = LessonSettings()
    guidelines: GuidelinesSettings = GuidelinesSettings()
    facts: FactSettings = FactSettings()
    prompt_tokens: Annotated[int, Field(ge=0, le=20_000)] = 1500
    """The most tokens of guidelines, lessons and facts together in one prompt; 0 for none."""
    timeout_seconds: Seconds = 60.0
    """How long one question to the reflector or the review may take."""
    end_seconds: Annotated[float, Field(ge=0, le=3600)] = 60.0
    """How long the end of a run waits for learning; the next run continues."""
    tries: Annotated[int, Field(ge=1, le=10)] = 3
    """How often a failed step of learning is tried, over all runs."""
    look_back: Annotated[int, Field(ge=1, le=100_000)] = 200
    """The most older attempts, not studied yet, that one run takes up, the newest first."""
