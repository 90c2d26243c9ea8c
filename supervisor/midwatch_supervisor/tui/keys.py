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


EVERYWHERE = (
    Key(id="fleet", keys="1", action="pane('fleet-pane')", does="Show the fleet"),
    Key(
        id="checkpoints",
        keys="2",
        action="pane('checkpoints-pane')",
        does="Show the checkpoints of all attempts as they come",
    ),
    Key(
        id="attention",
        keys="3",
        action="pane('attention-pane')",
        does="Show what waits for a person",
    ),
    Key(
        id="overview",
        keys="4",
        action="pane('overview-pane')",
        does="Show the sums and the rates",
    ),
    Key(
        id="learned",
        keys="5",
        action="pane('learned-pane')",
        does="Show what was learned: lessons, facts, guidelines",
    ),
    Key(id="nodes", keys="6", action="pane('nodes-pane')", does="Show the nodes of a fleet"),
    Key(
        id="next",
        keys="n",
        action="next_attention",
        does="Open the next attempt that needs a person",
        short="Next",
    ),
    Key(id="filter", keys="slash", action="filter", does="Filter the lines", short="Filter"),
    Key(id="group", keys="v", action="group", does="Group the fleet by need, task or node"),
    Key(id="back", keys="escape", action="back", does="Close the filter, or go back"),
    Key(id="help", keys="question_mark,f1", action="help", does="Show all keys"),
    Key(id="theme", keys="T", action="next_theme", does="Change the theme"),
    Key(id="palette", keys="ctrl+p", action="command_palette", does="Find an act by its name"),
    # ctrl+q is Textual's own, and comes to the same.
    Key(id="quit", keys="q", action="leave", does="Leave the console", short="Quit"),
)
"""Keys that work on every screen."""

ROLL = (
    Key(id="roll.down", keys="j,down", action="move(1)", does="Go to the next line"),
    Key(id="roll.up", keys="k,up", action="move(-1)", does="Go to the line before"),
    Key(id="roll.first", keys="g,home", action="first", does="Go to the first line"),
    Key(id="roll.last", keys="G,end", action="last", does="Go to the last line"),
    Key(id="roll.pagedown", keys="pagedown,ctrl+d", action="page(1)", does="Go a page down"),
    Key(id="roll.pageup", keys="pageup,ctrl+u", action="page(-1)", does="Go a page up"),
    Key(id="roll.open", keys="enter", action="open", does="Open the line", short="Open"),
)
"""Keys of every list."""

ACTS = (
    Key(
        id="guide",
        keys="i",
        action="act('guide')",
        does="Send guidance to the worker",
        short="Guide",
    ),
    Key(
        id="pause",
        keys="p",
        action="pause",
        does="Pause the attempt, or let it go on",
        short="Pause",
    ),
    Key(
        id="stop",
        keys="x",
        action="act('stop')",
        does="Stop the attempt, after a question",
        short="Stop",
    ),
    Key(
        id="restart",
        keys="b",
        action="act('restart')",
        does="Begin the task again in a new attempt, with a note",
    ),
    Key(
        id="grant",
        keys="B",
        action="act('grant')",
        does="Grant the attempt more budget",
    ),
    Key(
        id="switch",
        keys="M",
        action="act('switch')",
        does="Let another model go on with the attempt",
    ),
    Key(
        id="approve",
        keys="a",
        action="act('approve')",
        does="Approve what waits: a decision or a worker's wish",
        short="Approve",
    ),
    Key(
        id="modify",
        keys="m",
        action="act('modify')",
        does="Issue the decision that waits in your own words",
    ),
    Key(
        id="reject",
        keys="r",
        action="act('reject')",
        does="Reject what waits: a decision or a worker's wish",
    ),
    Key(
        id="accept",
        keys="A",
        action="act('accept')",
        does="Accept the result of an attempt that is over, with a comment",
    ),
    Key(
        id="refuse",
        keys="R",
        action="act('refuse')",
        does="Reject the result of an attempt that is over, with a comment",
    ),
    Key(
        id="acknowledge",
        keys="c",
        action="act('acknowledge')",
        does="Acknowledge the firing alerts: they no longer count as attention",
    ),
    Key(
        id="silence",
        keys="s",
        action="act('silence')",
        does="Silence the firing alerts: they are not escalated again in this attempt",
    ),
)
"""Keys that act on the chosen attempt. Each says so where its act makes no sense."""

ATTEMPT = (
    Key(
        id="attempt.next", keys="l,right", action="turn(1)", does="Show the next side", short="Side"
    ),
    Key(id="attempt.previous", keys="h,left", action="turn(-1)", does="Show the side before"),
    Key(
        id="attempt.detail",
        keys="space",
        action="detail",
        does="Show all of the line of the cursor, or close that",
        short="Detail",
    ),
    Key(
        id="attempt.evidence",
        keys="e",
        action="evidence",
        does="Go to the next step of the evidence of the alert that was opened",
    ),
    Key(id="attempt.timeline", keys="f2", action="side('timeline')", does="Show the timeline"),
    Key(id="attempt.alerts", keys="f3", action="side('alerts')", does="Show its alerts"),
    Key(
        id="attempt.chart",
        keys="f4",
        action="side('chart')",
        does="Show confidence and progress as a chart",
    ),
    Key(id="attempt.plan", keys="f5", action="side('plan')", does="Show its plan"),
    Key(
        id="attempt.diff",
        keys="f6",
        action="side('diff')",
        does="Show what it has changed in its workspace",
    ),
    Key(
        id="attempt.messages",
        keys="f7",
        action="side('messages')",
        does="Show what was said to it, by whom, and what came of it",
    ),
    Key(id="attempt.checks", keys="f8", action="side('checks')", does="Show the acceptance checks"),
)
"""Keys of the view of one attempt."""


LEARNED = (
    Key(id="learned.next", keys="l,right", action="turn(1)", does="Show the next part"),
    Key(id="learned.previous", keys="h,left", action="turn(-1)", does="Show the part before"),
    Key(
        id="learned.detail",
        keys="space",
        action="detail",
        does="Show all of the line of the cursor, or close that",
    ),
    Key(
        id="learned.approve",
        keys="a",
        action="mark('approve')",
        does="Put guidelines in force, or let a lesson or fact that waits be given",
        short="Approve",
    ),
    Key(
        id="learned.reject",
        keys="r",
        action="mark('reject')",
        does="Reject the proposed guidelines, with a comment",
        short="Reject",
    ),
    Key(
        id="learned.rollback",
        keys="b",
        action="mark('roll back')",
        does="Roll the guidelines in force back to those before",
    ),
    Key(
        id="learned.rate",
        keys="s",
        action="mark('rate')",
        does="Say what the lesson is worth, from 1 to 5",
        short="Rate",
    ),
    Key(
        id="learned.retire",
        keys="x",
        action="mark('retire')",
        does="Retire the lesson or the fact: no worker gets it any more",
        short="Retire",
    ),
    Key(
        id="learned.restore",
        keys="u",
        action="mark('restore')",
        does="Bring a lesson or a fact back",
    ),
    Key(
        id="learned.source",
        keys="o",
        action="source",
        does="Show the attempt that it comes from",
    ),
    Key(id="learned.lessons", keys="f2", action="part('lessons')", does="Show the lessons"),
    Key(id="learned.facts", keys="f3", action="part('facts')", does="Show the facts"),
    Key(
        id="learned.guidelines", keys="f4", action="part('guidelines')", does="Show the guidelines"
    ),
    Key(
        id="learned.statistics",
        keys="f5",
        action="part('statistics')",
        does="Show verdicts, classes of failure, and what lessons are worth",
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
