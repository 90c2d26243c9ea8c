"""Every key of the console: what it does, where, and what it is called in a key map. Pure."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.binding import Binding


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One act of the console with its default keys."""

    id: str
    """The name in `console.keys` of the configuration."""
    keys: str
    """Default keys, separated by commas."""
    action: str
    """Textual's action."""
    does: str
    """What it does, for the help and the footer."""
    short: str = ""
    """Two words for the footer; without them it is not in the footer."""

    @property
    def binding(self) -> "Binding":
        """The key as Textual wants it; its id lets a key map change it."""
        from textual.binding import Binding  # configuration is checked without Textual

        return Binding(
            self.keys,
            self.action,
            self.short or self.does,
            show=bool(self.short),
            id=self.id,
            tooltip=self.does,
        )


def _key(id: str, keys: str, action: str, does: str, short: str = "") -> Key:
    return Key(id=id, keys=keys, action=action, does=does, short=short)


EVERYWHERE = (
    _key("fleet", "1", "pane('fleet-pane')", "Show the fleet"),
    _key("checkpoints", "2", "pane('checkpoints-pane')", "Show the checkpoints of all attempts"),
    _key("attention", "3", "pane('attention-pane')", "Show what waits for a person"),
    _key("overview", "4", "pane('overview-pane')", "Show the sums and the rates"),
    _key("learned", "5", "pane('learned-pane')", "Show lessons, facts and guidelines"),
    _key("nodes", "6", "pane('nodes-pane')", "Show the nodes of a fleet"),
    _key("next", "n", "next_attention", "Open the next attempt that needs a person", "Next"),
    _key("filter", "slash", "filter", "Filter the lines", "Filter"),
    _key("group", "v", "group", "Group the fleet by need, task or node"),
    _key("back", "escape", "back", "Close the filter, or go back"),
    _key("help", "question_mark,f1", "help", "Show all keys"),
    _key("theme", "T", "next_theme", "Change the theme"),
    _key("palette", "ctrl+p", "command_palette", "Find an act by its name"),
    # ctrl+q is Textual's own, and comes to the same.
    _key("quit", "q", "leave", "Leave the console", "Quit"),
)
"""Keys that work on every screen."""

ROLL = (
    _key("roll.down", "j,down", "move(1)", "Go to the next line"),
    _key("roll.up", "k,up", "move(-1)", "Go to the line before"),
    _key("roll.first", "g,home", "first", "Go to the first line"),
    _key("roll.last", "G,end", "last", "Go to the last line"),
    _key("roll.pagedown", "pagedown,ctrl+d", "page(1)", "Go a page down"),
    _key("roll.pageup", "pageup,ctrl+u", "page(-1)", "Go a page up"),
    _key("roll.open", "enter", "open", "Open the line", "Open"),
)
"""Keys of every list."""

ACTS = (
    _key("guide", "i", "act('guide')", "Send guidance to the worker", "Guide"),
    _key("pause", "p", "pause", "Pause or resume the attempt", "Pause"),
    _key("stop", "x", "act('stop')", "Stop the attempt", "Stop"),
    _key("restart", "b", "act('restart')", "Restart the task in a new attempt, with a note"),
    _key("grant", "B", "act('grant')", "Grant the attempt more budget"),
    _key("switch", "M", "act('switch')", "Continue the attempt with another model"),
    _key("approve", "a", "act('approve')", "Approve a decision or a worker's request", "Approve"),
    _key("modify", "m", "act('modify')", "Approve the decision in your own words"),
    _key("reject", "r", "act('reject')", "Reject a decision or a worker's request"),
    _key("accept", "A", "act('accept')", "Accept the result of an attempt that is over"),
    _key("refuse", "R", "act('refuse')", "Reject the result of an attempt that is over"),
    _key("acknowledge", "c", "act('acknowledge')", "Acknowledge the firing alerts"),
    _key("silence", "s", "act('silence')", "Silence the firing alerts for the rest of the attempt"),
)
"""Keys that act on the chosen attempt. Each says so where its act makes no sense."""

ATTEMPT = (
    _key("attempt.next", "l,right", "turn(1)", "Show the next side", "Side"),
    _key("attempt.previous", "h,left", "turn(-1)", "Show the side before"),
    _key("attempt.detail", "space", "detail", "Show or hide the details of the line", "Detail"),
    _key("attempt.evidence", "e", "evidence", "Go to the next evidence step of the opened alert"),
    _key("attempt.timeline", "f2", "side('timeline')", "Show the timeline"),
    _key("attempt.alerts", "f3", "side('alerts')", "Show its alerts"),
    _key("attempt.chart", "f4", "side('chart')", "Show confidence and progress as a chart"),
    _key("attempt.plan", "f5", "side('plan')", "Show its plan"),
    _key("attempt.diff", "f6", "side('diff')", "Show its changes in the workspace"),
    _key(
        "attempt.messages",
        "f7",
        "side('messages')",
        "Show what was said to it, and what came of it",
    ),
    _key("attempt.checks", "f8", "side('checks')", "Show the acceptance checks"),
)
"""Keys of the view of one attempt."""

LEARNED = (
    _key("learned.next", "l,right", "turn(1)", "Show the next part"),
    _key("learned.previous", "h,left", "turn(-1)", "Show the part before"),
    _key("learned.detail", "space", "detail", "Show or hide the details of the line"),
    _key(
        "learned.approve",
        "a",
        "mark('approve')",
        "Approve guidelines, a lesson or a fact",
        "Approve",
    ),
    _key("learned.reject", "r", "mark('reject')", "Reject the proposed guidelines", "Reject"),
    _key("learned.rollback", "b", "mark('roll back')", "Roll back to the guidelines before"),
    _key("learned.rate", "s", "mark('rate')", "Rate the lesson, from 1 to 5", "Rate"),
    _key("learned.retire", "x", "mark('retire')", "Retire the lesson or the fact", "Retire"),
    _key("learned.restore", "u", "mark('restore')", "Bring a lesson or a fact back"),
    _key("learned.source", "o", "source", "Show the attempt that it comes from"),
    _key("learned.lessons", "f2", "part('lessons')", "Show the lessons"),
    _key("learned.facts", "f3", "part('facts')", "Show the facts"),
    _key("learned.guidelines", "f4", "part('guidelines')", "Show the guidelines"),
    _key(
        "learned.statistics", "f5", "part('statistics')", "Show the statistics of what was learned"
    ),
)
"""Keys of the view of what was learned, on the line of its cursor."""


def key_groups() -> tuple[tuple[str, tuple[Key, ...]], ...]:
    """All tables of keys with what they are called in the help. A new table is added here."""
    return (
        ("On every screen", EVERYWHERE),
        ("On the chosen attempt", ACTS),
        ("In the view of one attempt", ATTEMPT),
        ("In the view of what was learned", LEARNED),
        ("In a list", ROLL),
    )


def all_keys() -> tuple[Key, ...]:
    """Every key of every table."""
    return tuple(key for _, keys in key_groups() for key in keys)
