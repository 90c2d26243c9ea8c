"""The help: every key that is in force, and what it does."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from midwatch_supervisor.tui.keymap import in_force, spoken
from midwatch_supervisor.tui.keys import Key
from midwatch_supervisor.tui.widgets.closing import ClosesOnce

Group = tuple[str, Sequence[Key]]


def lines(groups: Sequence[Group], keymap: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Each key as keys, act and id; a group's title stands alone in the first place."""
    said: list[tuple[str, str, str]] = []
    for title, keys in groups:
        if not keys:
            continue
        said.append((title, "", ""))
        for key in keys:
            names = " ".join(spoken(name) for name in in_force(key, keymap))
            said.append((names, key.does, key.id))
    return said


class HelpScreen(ModalScreen[None], ClosesOnce[None]):
    """All keys in force. What is shown comes from the tables of keys, and from nowhere else."""

    CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > VerticalScroll {
        width: 90%; max-width: 96; height: 90%; border: round $primary; padding: 0 1;
    }
    HelpScreen Static { height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1,enter", "dismiss", "Close", id="help.close"),
        Binding("j,down", "scroll(1)", show=False, id="help.down"),
        Binding("k,up", "scroll(-1)", show=False, id="help.up"),
    ]

    def __init__(
        self, groups: Sequence[Group], keymap: Mapping[str, str], about: Sequence[str] = ()
    ) -> None:
        """Show `groups` of keys as a key map has them, under lines about what is watched."""
        super().__init__()
        self._lines = lines(groups, keymap)
        self._about = about

    def compose(self) -> ComposeResult:
        """One scrolling text."""
        with VerticalScroll() as scroll:
            scroll.border_title = "Midwatch: keys"
            scroll.border_subtitle = "esc closes"
            if self._about:
                yield Static("\n".join(self._about) + "\n", markup=False)
            for keys, does, id in self._lines:
                if does:
                    yield Static(_line(keys, does, id))
                else:
                    yield Static(Text(f"\n{keys}", style="bold underline"))

    def action_scroll(self, lines: int) -> None:
        """Move the text by some lines."""
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)


def _line(keys: str, does: str, id: str) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(width=14)
    table.add_column(ratio=1)
    table.add_column(width=max(14, len(id)))
    table.add_row(Text(keys, style="bold"), Text(does), Text(id, style="dim"))
    return table
