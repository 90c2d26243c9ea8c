"""A scene: one little task, the fault that its worker has, and the play of that worker."""

import random
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

from turns import REPLANNED, Diary, Heard, Play, Turn, end, plan_step_done, run

from midwatch_monitor.records import Diagnosis


class Nature(StrEnum):
    """What a scene is there to show."""

    RECOVERABLE = "recoverable"
    """Good guidance mends it."""
    UNRECOVERABLE = "unrecoverable"
    """Nothing that is said mends it: the task cannot be done as it stands."""
    HEALTHY = "healthy"
    """There is nothing to mend."""


class Heed(IntEnum):
    """The gentlest thing that a stubborn worker still reacts to."""

    NUDGE = 1
    REPLAN = 2
    """Only an order to plan anew stops it."""
    RESTART = 3
    """Only a fresh context frees it from what it tried."""


@dataclass(slots=True, kw_only=True)
class Player:
    """The worker of one attempt, as its play sees it."""

    opening: str
    number: int
    """Of the attempt, from 1."""
    reactive: bool
    heed: Heed
    frank: bool
    """Whether it says how it really stands; else it is sure of itself all along."""
    seed: int
    random: random.Random
    diary: Diary = field(default_factory=Diary)
    onset: Callable[[], None]
    """To be called when the fault begins."""
    sees: bool = False
    """Whether it has understood."""

    def begin(self, *topics: str) -> None:
        """Read the opening: a later attempt learns from what it is told of those before it."""
        tried = self.opening.partition("What was tried before")[2]
        if self.number > 1 and self.reactive and about(tried, topics):
            self.sees = True

    def hear(self, heard: Heard, *topics: str) -> bool:
        """Take in what was said; answers whether the worker understands by now."""
        for text in heard.guidance:
            force = Heed.REPLAN if REPLANNED.search(text) else Heed.NUDGE
            if self.reactive and force >= self.heed and about(text, topics):
                self.sees = True
        return self.sees

    def stuck(self, step: int) -> None:
        """Say how it goes while nothing goes on: frankly, or with confidence."""
        if self.frank:
            self.diary.confidence = max(30, 80 - 4 * step)
            self.diary.progress = 30
            self.diary.notes = "It fails as before; I look for the reason."
        else:
            self.diary.confidence = 90
            self.diary.progress = min(95, 30 + 4 * step)
            self.diary.notes = "Nearly there."


def about(text: str, topics: tuple[str, ...]) -> bool:
    """Whether a text speaks of any of the topics; each is a word or the beginning of one."""
    low = text.lower()
    return any(topic in low for topic in topics)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One task with its worker."""

    fault: str
    """Its name in reports; of a healthy worker the name of its way to work."""
    nature: Nature
    seed: int
    files: Mapping[str, str]
    goal: str
    play: Callable[[Player], Play]
    acceptance: tuple[str, ...] = ("sh bin/test",)
    plan: tuple[str, ...] = ()
    causes: frozenset[Diagnosis] = frozenset()
    """The diagnoses that name the fault."""
    heed: Heed = Heed.NUDGE
    variant: str = ""
    repository: bool = False
    """Whether the workspace is a git repository."""
    outages: Mapping[int, int] = field(default_factory=dict[int, int])
    """How often in a row the provider fails, by the number of the request; -1 is for ever."""

    @property
    def key(self) -> str:
        """The id of the task."""
        parts = (self.fault, self.variant, self.nature.value, f"s{self.seed}")
        return "-".join(part for part in parts if part)


def finish(player: Player, files: tuple[str, ...], *, check: str = "sh bin/test") -> Play:
    """Run the check, claim what it showed, and end."""
    player.diary.progress = max(player.diary.progress, 95)
    player.diary.notes = "What is left is the last look."
    yield run(check)
    yield plan_step_done("The task is done", files, check)
    yield end("The check passes; the work is done.")


def then(*plays: Play) -> Generator[Turn, Heard, None]:
    """One play after another."""
    for each in plays:
        yield from each
