"""Every key of the console: what it does, where, and what it is called in a key map. Pure."""

from dataclasses import dataclass

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
    def binding(self) -> Binding:
        """The key as Textual wants it; its id lets a key map change it."""
        return Binding(
            self.keys,
            self.action,
            self.short or self.does,
            show=bool(self.short),
            id=self.id,
            tooltip=self.does,
        )


EVERYWHERE = (
    Key(id="fleet", keys="1", action="pane('fleet-pane')", does="Show the fleet", short="Fleet"),
    Key(
        id="checkpoints",
        keys="2",
        action="pane('checkpoints-pane')",
        does="Show the checkpoints of all attempts as they come",
        short="Checkpoints",
    ),
    Key(
        id="attention",
        keys="3",
        action="pane('attention-pane')",
        does="Show what waits for a person",
        short="Attention",
    ),
    Key(
        id="overview",
        keys="4",
        action="pane('overview-pane')",
        does="Show the sums and the rates",
        short="Overview",
    ),
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
    Key(id="help", keys="question_mark,f1", action="help", does="Show all keys", short="Help"),
    Key(id="theme", keys="T", action="next_theme", does="Change the theme"),
    Key(id="quit", keys="q,ctrl+q", action="leave", does="Leave the console", short="Quit"),
)
"""Keys that work on every screen."""
