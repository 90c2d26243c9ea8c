"""The console's dialogs: words that an operator writes, and a question before something ends."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Button, Static, TextArea

from midwatch_supervisor.present.plain import one_line, plain
from midwatch_supervisor.tui.action import Question
from midwatch_supervisor.tui.widgets.closing import ClosesOnce

_NEW_LINE = frozenset({"ctrl+j", "shift+enter"})
"""Many terminals cannot tell shift+enter from enter; ctrl+j works in all of them."""

_CSS = """
    $NAME { align: center middle; }
    $NAME > .box {
        width: 76; max-width: 96%; height: auto; max-height: 100%;
        overflow-y: auto; padding: 0 1; border: round $primary; background: $surface;
    }
    $NAME .title { text-style: bold; height: auto; }
    $NAME .quote { height: auto; max-height: 30vh; margin: 1 0 0 0; color: $text-muted; }
    $NAME .quote Static { height: auto; }
    $NAME TextArea {
        height: auto; min-height: 3; max-height: 30vh; margin: 1 0 0 0; background: $background;
    }
    $NAME .hint { height: auto; color: $text-muted; }
    $NAME .buttons { height: auto; align-horizontal: right; }
    $NAME Button { margin: 0 0 0 2; }
"""


def _css(name: str) -> str:
    return _CSS.replace("$NAME", name)


def _quote(text: str) -> VerticalScroll:
    """Somebody's words, to be read before one answers; they may be long."""
    return VerticalScroll(Static(plain(text), markup=False), classes="quote")


class Words(TextArea):
    """A few lines of text: enter sends them, ctrl+j begins a new line."""

    @dataclass
    class Sent(Message):
        """Enter was pressed."""

        text: str

    def on_key(self, event: events.Key) -> None:
        """Take enter before the text area makes a line of it."""
        if event.key != "enter" and event.key not in _NEW_LINE:
            return
        event.stop()
        event.prevent_default()
        if event.key == "enter":
            self.post_message(self.Sent(self.text))
        else:
            self.insert("\n")


class TextDialog(ModalScreen[str | None], ClosesOnce[str | None]):
    """Asks for a text; answers it without the space around it, or `None` if it was given up."""

    DEFAULT_CSS = _css("TextDialog")
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", "Cancel")]

    def __init__(
        self,
        title: str,
        *,
        quote: str = "",
        text: str = "",
        required: bool = True,
        send: str = "Send",
        check: Callable[[str], str] | None = None,
    ) -> None:
        """Show `quote` above, and begin with `text`; an empty answer is refused if `required`.

        `check` says what is wrong with an answer, which is refused then.
        """
        super().__init__()
        self._title = title
        self._quote = quote
        self._text = text
        self._required = required
        self._send = send
        self._check = check

    def compose(self) -> ComposeResult:
        """The title, what it answers, the text, and two buttons for the mouse."""
        with Vertical(classes="box"):
            yield Static(one_line(self._title), classes="title", markup=False)
            if self._quote:
                yield _quote(self._quote)
            yield Words(plain(self._text), show_line_numbers=False, compact=True)
            yield Static(self._hint(), classes="hint", markup=False)
            with Horizontal(classes="buttons"):
                yield Button(self._send, id="send", variant="primary", compact=True)
                yield Button("Cancel", id="cancel", compact=True)

    def _hint(self) -> str:
        may = "" if self._required else ", also without a word"
        return f"enter: {self._send.lower()}{may} · ctrl+j: new line · esc: cancel"

    def on_mount(self) -> None:
        """The keys go to the text, at its end."""
        words = self.query_one(Words)
        words.focus()
        words.move_cursor(words.document.end)

    @on(Words.Sent)
    def _sent(self, message: Words.Sent) -> None:
        self._answer(message.text)

    @on(Button.Pressed, "#send")
    def _pressed(self) -> None:
        self._answer(self.query_one(Words).text)

    @on(Button.Pressed, "#cancel")
    def action_give_up(self) -> None:
        """Close it and answer nothing."""
        self.dismiss(None)

    def _answer(self, text: str) -> None:
        text = text.strip()
        problem = "" if text or not self._required else "write something first"
        if not problem and self._check is not None:
            problem = self._check(text)
        if not problem:
            self.dismiss(text)
            return
        self.query_one(".hint", Static).update(one_line(f"{problem}, or esc to cancel"))
        self.query_one(Words).focus()


class ConfirmDialog(ModalScreen[bool], ClosesOnce[bool]):
    """Asks a question before something ends; answers whether it was agreed to."""

    DEFAULT_CSS = _css("ConfirmDialog")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "say(True)", "Yes"),
        Binding("n,escape,q", "say(False)", "No"),
        Binding("left,right,h,l", "other", "Other button", show=False),
    ]

    def __init__(
        self, question: str, *, detail: str = "", yes: str = "Yes", no: str = "No"
    ) -> None:
        """Ask `question`; `detail` says what follows. Enter means the button with the focus."""
        super().__init__()
        self._question = question
        self._detail = detail
        self._yes = yes
        self._no = no

    def compose(self) -> ComposeResult:
        """The question, what follows from yes, and two buttons."""
        with Vertical(classes="box"):
            yield Static(one_line(self._question), classes="title", markup=False)
            if self._detail:
                yield _quote(self._detail)
            with Horizontal(classes="buttons"):
                yield Button(f"{self._yes} (y)", id="yes", variant="error", compact=True)
                yield Button(f"{self._no} (n)", id="no", compact=True)

    def on_mount(self) -> None:
        """A thoughtless enter ends nothing."""
        self.query_one("#no", Button).focus()

    def action_other(self) -> None:
        """Go to the other button."""
        self.focus_next(Button)

    @on(Button.Pressed)
    def _pressed(self, message: Button.Pressed) -> None:
        self.dismiss(message.button.id == "yes")

    def action_say(self, agreed: bool) -> None:
        """Answer by a key."""
        self.dismiss(agreed)


def confirmation(asked: Question) -> ConfirmDialog:
    """The dialog of a question to which the answer is yes or no."""
    return ConfirmDialog(asked.title, detail=asked.quote, yes=asked.send, no="Leave it")


def in_words(asked: Question) -> TextDialog:
    """The dialog of a question that is answered in words."""
    return TextDialog(
        asked.title,
        quote=asked.quote,
        text=asked.text,
        required=asked.required,
        send=asked.send,
        check=asked.check,
    )
