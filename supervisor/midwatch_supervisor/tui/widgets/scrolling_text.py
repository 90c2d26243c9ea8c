"""Texts that the list keys scroll, and a one-line text field."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.geometry import Size
from textual.reactive import Reactive
from textual.widget import Widget
from textual.widgets import Input, Static

from midwatch_supervisor.tui.keys import LIST

SCROLL_KEYS: list[BindingType] = [key.binding for key in LIST if key.action != "open"]


class ScrollActions(Widget):
    """Actions of `SCROLL_KEYS`. Textual takes styles only from the first base class: use this
    second.
    """

    def action_move(self, lines: int) -> None:
        self.scroll_relative(y=lines, animate=False)

    def action_page(self, pages: int) -> None:
        self.action_move(pages * max(1, self.scrollable_content_region.height - 1))

    def action_first(self) -> None:
        self.scroll_home(animate=False)

    def action_last(self) -> None:
        self.scroll_end(animate=False)


class ScrollingText(VerticalScroll, ScrollActions, can_focus=True):
    """A text that the list keys scroll."""

    BINDINGS: ClassVar[list[BindingType]] = SCROLL_KEYS
    DEFAULT_CSS = """
    ScrollingText { padding: 0 1; scrollbar-size-vertical: 1; }
    ScrollingText > Static { width: 1fr; height: auto; }
    ScrollingText:focus { outline-left: heavy $accent; }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.text = ""
        """The shown text, without its colours."""
        self._static = Static(markup=False)

    def compose(self) -> ComposeResult:
        yield self._static

    def show_text(self, text: Text) -> None:
        """Show a text, keeping the scroll position."""
        self.text = text.plain
        self._static.update(text)


class Detail(ScrollingText):
    """The detail of a line, in the lower part of a screen. Texts must be free of escapes."""

    DEFAULT_CSS = """
    Detail {
        display: none; height: 50%; min-height: 5; border-top: solid $primary;
    }
    Detail.open { display: block; }
    """

    def __init__(self) -> None:
        super().__init__(id="detail")
        self.border_title = "details · tab: scroll · esc: close"

    @property
    def open(self) -> bool:
        return self.has_class("open")

    @open.setter
    def open(self, wanted: bool) -> None:
        self.set_class(wanted, "open")

    def show_detail(self, text: str) -> None:
        """Show a text from its beginning; the same text keeps its scroll position."""
        if text != self.text:
            self.show_text(Text(text or "(nothing)"))
            self.text = text
            self.scroll_home(animate=False)


class TextField(Input):
    """An `Input` whose size does not depend on its text.

    Textual's own requests a new layout of the screen for each letter, which takes twice as long as
    everything else.
    """

    virtual_size = Reactive(Size(0, 0))
