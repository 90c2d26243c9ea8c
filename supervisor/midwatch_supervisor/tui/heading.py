"""The line on top of the console: what is watched, and with which models."""

from collections.abc import Sequence

from textual.widgets import Static

from midwatch_supervisor.tui.plain import one_line


class Heading(Static):
    """One line; what does not fit stands in the help."""

    DEFAULT_CSS = """
    Heading {
        height: 1; padding: 0 1; background: $panel; color: $foreground;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    """

    def __init__(self, about: Sequence[str]) -> None:
        super().__init__(" · ".join(["Midwatch", *map(one_line, about)]), markup=False)
