"""A script: what the scripted model says, its place found from the history alone."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

_GUIDANCE = re.compile(r"\[midwatch (?:[0-9a-f]{8} )?#(\d+)")
_ATTEMPT = re.compile(r"This is attempt (\d+) of this task")
_COUNT = re.compile(r"interventions so far: (\d+)", re.IGNORECASE)


class Cue(StrEnum):
    """What begins the next phase of a script."""

    GUIDANCE = "guidance"
    """A message `[midwatch … #…]` to the worker; a plain reminder is none."""
    COUNT = "count"
    """The first prompt says `interventions so far: N`: phase N, counted from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call."""

    tool: str = ""
    """Empty for the agent's output tool, whatever its name."""
    args: str = "{}"
    """A JSON object; in a repeating turn `{n}` stands for the count of the repetition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One answer of the model. Without a call its text is the last word of the run."""

    say: str = ""
    calls: tuple[Call, ...] = ()

    def __post_init__(self) -> None:
        if not self.say and not self.calls:
            raise ValueError("a turn must say or call something")


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Turns in a row."""

    turns: tuple[Turn, ...]
    repeat: int = 1
    """How many of the last turns are given over and over once all have been given."""

    def __post_init__(self) -> None:
        if not 1 <= self.repeat <= len(self.turns):
            raise ValueError(f"repeat is {self.repeat}, and there are {len(self.turns)} turns")


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What one model says. After the last phase further cues change nothing."""

    phases: tuple[Phase, ...]
    again: tuple[Phase, ...] = ()
    """The phases of a second and later attempt; empty for the same ones."""
    taught: tuple[Phase, ...] = ()
    """The phases of a first attempt that is given a lesson which it heeds; empty for the same."""
    heeds: str = ""
    """A regular expression that finds such a lesson in the first prompt."""
    cue: Cue = Cue.GUIDANCE

    def __post_init__(self) -> None:
        if not self.phases:
            raise ValueError("a script needs a phase")
        if self.taught and not self.heeds:
            raise ValueError("a script that can be taught must say which lesson it heeds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the model was told in one request: prompts only, no result of a tool."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replied:
    """One answer that the model gave."""


Line = Told | Replied
"""One message of a history, as far as a script looks at it."""


def next_turn(script: Script, lines: Sequence[Line]) -> Turn:
    """The turn that follows a history; the same history always gives the same turn."""
    opening = _opening(lines)
    phases = _phases(script, opening)
    if script.cue is Cue.COUNT:
        index, given = _number(_COUNT, opening, 0), replies(lines)
    else:
        index, given = _guided(lines, last=len(phases) - 1)
    return _turn(phases[min(index, len(phases) - 1)], given)


def _phases(script: Script, opening: str) -> tuple[Phase, ...]:
    if script.again and _number(_ATTEMPT, opening, 1) > 1:
        return script.again
    if script.taught and re.search(script.heeds, opening):
        return script.taught
    return script.phases


def replies(lines: Sequence[Line]) -> int:
    """How often the model has answered."""
    return sum(isinstance(line, Replied) for line in lines)


def _opening(lines: Sequence[Line]) -> str:
    """What the model was told before it said anything."""
    texts: list[str] = []
    for line in lines:
        if isinstance(line, Replied):
            break
        texts.append(line.text)
    return "\n".join(texts)


def _number(pattern: re.Pattern[str], text: str, default: int) -> int:
    match = pattern.search(text)
    return int(match[1]) if match else default


def _guided(lines: Sequence[Line], *, last: int) -> tuple[int, int]:
    """The phase, and how many of its turns were given.

    Guidance that comes with the opening belongs to it. The same guidance may be given twice, after
    a crash: it counts once.
    """
    phase, given, begun = 0, 0, False
    seen: set[str] = set()
    for line in lines:
        if isinstance(line, Replied):
            begun, given = True, given + 1
            continue
        new = set(_GUIDANCE.findall(line.text)) - seen
        seen |= new
        if new and begun and phase < last:
            phase, given = phase + 1, 0
    return phase, given


def _turn(phase: Phase, given: int) -> Turn:
    steady = len(phase.turns) - phase.repeat
    if given < steady:
        return phase.turns[given]
    turns, index = divmod(given - steady, phase.repeat)
    return _counted(phase.turns[steady + index], turns + 1)


def _counted(turn: Turn, count: int) -> Turn:
    return Turn(
        say=turn.say.replace("{n}", str(count)),
        calls=tuple(
            Call(tool=call.tool, args=call.args.replace("{n}", str(count))) for call in turn.calls
        ),
    )
