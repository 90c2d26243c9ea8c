"""The line on top of the console: what is watched, and with which models."""

from collections.abc import Sequence

from textual.widgets import Static

from midwatch_supervisor.present.plain import one_line


class Heading(Static):
    """One line; what does not fit stands in the help."""

    DEFAULT_CSS = """
    Heading {
        height: 1; padding: 0 1; background: $panel; color: $foreground;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    """

    def __init__(self, about: Sequence[str]) -> None:
        self._about = " · ".join(["Midwatch", *map(one_line, about)])
        self._mark = ""
        super().__init__(self._about, markup=False)

    def mark(self, text: str) -> None:
        """Say something small before the rest, where it is not cut; nothing if empty."""
        if text != self._mark:
            self._mark = text
            self.update(f"({text}) {self._about}" if text else self._about)
