"""All of one line, to be read: a text that scrolls, as it was written and harmless."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from midwatch_supervisor.tui.keys import ROLL

_ACTIONS = {
    "roll.down": "scroll_down",
    "roll.up": "scroll_up",
    "roll.first": "scroll_home",
    "roll.last": "scroll_end",
    "roll.pagedown": "page_down",
    "roll.pageup": "page_up",
}


class Detail(VerticalScroll, can_focus=True):
    """The lower part of a screen. Takes texts that have lost their escapes already."""

    DEFAULT_CSS = """
    Detail {
        display: none; height: 50%; min-height: 5; border-top: solid $primary; padding: 0 1;
    }
    Detail.open { display: block; }
    Detail:focus { border-top: heavy $accent; }
    Detail > Static { height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key.keys, _ACTIONS[key.id], key.does, show=False, id=key.id)
        for key in ROLL
        if key.id in _ACTIONS
    ]

    def __init__(self) -> None:
        super().__init__(id="detail")
        self.border_title = "detail: tab to scroll it, escape closes it"
        self.text = ""
        """What is shown."""

    def compose(self) -> ComposeResult:
        """The text."""
        yield Static(markup=False)

    @property
    def open(self) -> bool:
        """Whether it can be seen."""
        return self.has_class("open")

    @open.setter
    def open(self, wanted: bool) -> None:
        self.set_class(wanted, "open")

    def tell(self, text: str) -> None:
        """Show a text from its beginning; the same again stays where it was scrolled to."""
        if text == self.text:
            return
        self.text = text
        self.query_one(Static).update(Text(text or "(nothing)"))
        self.scroll_home(animate=False)
