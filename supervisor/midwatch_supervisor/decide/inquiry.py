"""What the supervisor's model may look up while it decides, and how much of it."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pydantic_ai import ModelRetry, RunContext, ToolFailed

from midwatch_monitor.errors import MidwatchError
from midwatch_monitor.records import Step
from midwatch_supervisor.decide.evidence import MIN_CHARS, Case, described
from midwatch_supervisor.decide.standing import Standing
from midwatch_tools.data_blocks import DataBlocks, cut, escaped

T = TypeVar("T")


class Dossier(Protocol):
    """All that the supervisor may look up about the attempt; reading changes nothing."""

    async def timeline(self, first: int, last: int) -> tuple[Step, ...]:
        """The steps from `first` to `last`, both included."""
        ...

    async def output(self, step: int) -> str:
        """The stored output of one step."""
        ...

    async def diff(self) -> str:
        """What the attempt changed in its workspace."""
        ...

    async def checkpoints(self) -> tuple[Step, ...]:
        """Every checkpoint of the attempt, oldest first."""
        ...


@dataclass(slots=True, kw_only=True)
class Inquiry:
    """One try at a decision: what it is about, and how much may still be shown."""

    case: Case
    dossier: Dossier
    standing: Standing
    blocks: DataBlocks
    room: int
    """Characters of evidence that the tools may still return."""
    urged: bool = False
    """Whether it was asked once for the steps that the diagnosis rests on."""

    def show(self, name: str, text: str) -> str:
        """A tool's answer as a data block, counted against what may still be shown."""
        if self.room < MIN_CHARS // 4:
            raise ToolFailed("No more evidence can be shown: decide on what you have.")
        room = max(0, self.room - len(self.blocks.framed(name, "")))
        block = self.blocks.framed(name, cut(escaped(text or "(nothing)"), room))
        self.room -= len(block)
        return block


async def timeline(ctx: RunContext[Inquiry], first: int, last: int) -> str:
    """Show the steps from `first` to `last`, both included."""
    inquiry = ctx.deps
    known(inquiry.case, first)
    last = min(last, inquiry.case.last_step)
    steps = await _looked_up(inquiry.dossier.timeline(first, last))
    each = max(200, inquiry.room // max(1, len(steps)))
    return inquiry.show("timeline", described(steps, each))


async def output(ctx: RunContext[Inquiry], step: int) -> str:
    """Show the output of one step."""
    known(ctx.deps.case, step)
    return ctx.deps.show("output", await _looked_up(ctx.deps.dossier.output(step)))


async def diff(ctx: RunContext[Inquiry]) -> str:
    """Show what the attempt changed in its workspace."""
    return ctx.deps.show("diff", await _looked_up(ctx.deps.dossier.diff()))


async def checkpoints(ctx: RunContext[Inquiry]) -> str:
    """Show all checkpoints of the attempt."""
    steps = await _looked_up(ctx.deps.dossier.checkpoints())
    return ctx.deps.show("checkpoints", described(steps, max(200, ctx.deps.room)))


LOOKING = (timeline, output, diff, checkpoints)
"""The tools."""


def known(case: Case, *numbers: int) -> None:
    """Raise ModelRetry for numbers that no step has."""
    unknown = sorted({number for number in numbers if not 1 <= number <= case.last_step})
    if unknown:
        raise ModelRetry(
            f"There is no step {', '.join(map(str, unknown))}: steps go from 1 to {case.last_step}."
        )


async def _looked_up(answer: Awaitable[T]) -> T:
    try:
        return await answer
    except MidwatchError as error:
        raise ToolFailed(f"This cannot be shown: {error}") from error
