"""The timeline of an attempt: everything that happened to it, the newest at the end."""

from collections.abc import Callable, Collection, Sequence
from datetime import tzinfo

from midwatch_monitor.records import Step
from midwatch_supervisor.tui.screens.attempt_tab import Facet, tone_style
from midwatch_supervisor.tui.state.attempt_timeline import AttemptTimeline, Item
from midwatch_supervisor.tui.widgets.columns import Column
from midwatch_supervisor.tui.widgets.line_list import Cell
from midwatch_supervisor.tui.widgets.palette import Palette

EVIDENCE = "◀"
"""Stands at the steps that an alert is grounded on."""


def clock(zone: tzinfo | None) -> Callable[[Item, Palette], Cell]:
    """When it happened, in a time zone; `None` is this machine's."""

    def at(item: Item, colours: Palette) -> Cell:
        return f"{item.at.astimezone(zone):%H:%M:%S}", colours.dim

    return at


def number(item: Item, colours: Palette) -> Cell:
    """The step at which it happened."""
    return f"{item.step or '-':>4}", colours.dim


def sign(item: Item, colours: Palette) -> Cell:
    """What it is in one sign."""
    told = item.told
    return told.sign, tone_style(told.tone, colours)


def _what(item: Item, colours: Palette) -> Cell:
    told = item.told
    return told.what, tone_style(told.tone, colours)


def text(item: Item, colours: Palette) -> Cell:
    """What it says."""
    told = item.told
    return told.text, tone_style(told.tone, colours)


class Timeline(Facet[Item]):
    """Steps, checkpoints, alerts and what was done, in the order of the journal."""

    def __init__(self, zone: tzinfo | None) -> None:
        self.evidence: Collection[int] = ()
        """The steps that are marked as an alert's evidence."""
        super().__init__(
            [
                Column(title="time", width=8, rank=2, draw=clock(zone)),
                Column(title="step", width=4, rank=1, draw=number),
                Column(title="", width=1, rank=0, draw=self._marked),
                Column(title="", width=1, rank=0, draw=sign),
                Column(title="what", width=12, rank=1, draw=_what),
                Column(title="", width=20, rank=0, grow=1, draw=text),
            ],
            id="timeline",
            detail=lambda item: item.detail,
            empty="Nothing has happened yet.",
            follow=True,
        )

    def _marked(self, item: Item, colours: Palette) -> Cell:
        of_step = isinstance(item.record, Step) and item.record.number in self.evidence
        return (EVIDENCE if of_step else " "), colours.warn

    def show_story(self, story: AttemptTimeline) -> None:
        """Show what is known; the cursor stays on its item, or at the end if it is there."""
        before, items = self.under_cursor, story.items
        following = self.roll.cursor >= self.roll.count - 1
        cursor = None
        if before is not None and not following:
            cursor = _index(items, before, self.roll.cursor)
        self.show(items, cursor=cursor)

    def jump(self, story: AttemptTimeline, step: int) -> bool:
        """Put the cursor on a step; answers whether the timeline has it."""
        index = story.index_of(step)
        if index is not None:
            self.show(story.items, cursor=index)
            self.roll.go(index)
        return index is not None


def _index(items: Sequence[Item], item: Item, guess: int) -> int:
    """Where an item is; the oldest ones may have been dropped since."""
    if guess < len(items) and items[guess].id == item.id:
        return guess
    return next((n for n, each in enumerate(items) if each.id == item.id), 0)
