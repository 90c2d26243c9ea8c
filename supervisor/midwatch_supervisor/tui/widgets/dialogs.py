"""Modal screens: questions, text input, the help, the command palette."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from rich.table import Table
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.command import CommandPalette
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.message import Message
from textual.screen import ModalScreen, Screen
from textual.widgets import Button, Input, OptionList, Static, TextArea

from midwatch_supervisor.present.text_line import one_line, plain
from midwatch_supervisor.tui.keys import Key, in_force, key_text
from midwatch_supervisor.tui.operator_command import DialogQuestion

T = TypeVar("T")


class ClosesOnce(Screen[T]):
    """A screen that ignores a second answer.

    A key pressed twice is handled twice before the screen is gone. Textual would then close the
    screen in front: an attempt's view, or even the last screen.
    """

    def dismiss(self, result: T | None = None) -> AwaitComplete:
        """Answer and close, unless already done."""
        return super().dismiss(result) if self.is_active else AwaitComplete.nothing()


_NEW_LINE = frozenset({"ctrl+j", "shift+enter"})
"""Many terminals cannot distinguish shift+enter from enter; ctrl+j works in all of them."""


class QuestionDialog(ModalScreen[T], ClosesOnce[T]):
    DEFAULT_CSS = """
    QuestionDialog { align: center middle; }
    QuestionDialog > .box {
        width: 76; max-width: 96%; height: auto; max-height: 100%;
        overflow-y: auto; padding: 0 1; border: round $primary; background: $surface;
    }
    QuestionDialog .title { text-style: bold; height: auto; }
    QuestionDialog .quote {
        height: auto; max-height: 30vh; margin: 1 0 0 0; color: $text-muted;
    }
    QuestionDialog .quote:focus { border-left: heavy $accent; }
    QuestionDialog .quote Static { height: auto; }
    QuestionDialog TextArea {
        height: auto; min-height: 3; max-height: 30vh; margin: 1 0 0 0; background: $background;
    }
    QuestionDialog .hint { height: auto; color: $text-muted; }
    QuestionDialog .buttons { height: auto; align-horizontal: right; }
    QuestionDialog Button { margin: 0 0 0 2; }
    """

    def __init__(self, question: DialogQuestion) -> None:
        super().__init__()
        self._question = question

    def _compose_head(self) -> ComposeResult:
        """Yield the question, and the quoted text to read first, which may be long."""
        yield Static(one_line(self._question.title), classes="title", markup=False)
        if self._question.quote:
            yield VerticalScroll(Static(plain(self._question.quote), markup=False), classes="quote")


class AnswerArea(TextArea):
    """A few lines of text: enter sends them, ctrl+j inserts a line break."""

    @dataclass
    class Sent(Message):
        text: str

    def on_key(self, event: events.Key) -> None:
        """Handle enter before the text area turns it into a line break."""
        if event.key != "enter" and event.key not in _NEW_LINE:
            return
        event.stop()
        event.prevent_default()
        if event.key == "enter":
            self.post_message(self.Sent(self.text))
        else:
            self.insert("\n")


class TextDialog(QuestionDialog[str | None]):
    """Asks for a text; returns it stripped, or `None` if canceled."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", "Cancel")]

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield from self._compose_head()
            yield AnswerArea(plain(self._question.text), show_line_numbers=False, compact=True)
            yield Static(self._hint_text(), classes="hint", markup=False)
            with Horizontal(classes="buttons"):
                yield Button(self._question.send, id="send", variant="primary", compact=True)
                yield Button("Cancel", id="cancel", compact=True)

    def _hint_text(self) -> str:
        may = "" if self._question.required else ", even without text"
        return f"enter: {self._question.send.lower()}{may} · ctrl+j: new line · esc: cancel"

    def on_mount(self) -> None:
        words = self.query_one(AnswerArea)
        words.focus()
        words.move_cursor(words.document.end)

    @on(AnswerArea.Sent)
    def _send_text(self, message: AnswerArea.Sent) -> None:
        self._submit_text(message.text)

    @on(Button.Pressed, "#send")
    def _after_press(self) -> None:
        self._submit_text(self.query_one(AnswerArea).text)

    @on(Button.Pressed, "#cancel")
    def action_give_up(self) -> None:
        self.dismiss(None)

    def _submit_text(self, text: str) -> None:
        text = text.strip()
        asked = self._question
        problem = "" if text or not asked.required else "write something first"
        if not problem and asked.check is not None:
            problem = asked.check(text)
        if not problem:
            self.dismiss(text)
            return
        self.query_one(".hint", Static).update(one_line(f"{problem}, or esc to cancel"))
        self.query_one(AnswerArea).focus()


class ConfirmDialog(QuestionDialog[bool]):
    """Asks for confirmation; returns whether it was given.

    Enter presses the focused button.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "say(True)", "Yes"),
        Binding("n,escape,q", "say(False)", "No"),
        Binding("left,right,h,l", "other", "Other button", show=False),
    ]

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield from self._compose_head()
            with Horizontal(classes="buttons"):
                yield Button(f"{self._question.send} (y)", id="yes", variant="error", compact=True)
                yield Button(f"{self._question.leave} (n)", id="no", compact=True)

    def on_mount(self) -> None:
        """Focus the harmless button, in case enter is pressed carelessly."""
        self.query_one("#no", Button).focus()

    def action_other(self) -> None:
        self.focus_next(Button)

    @on(Button.Pressed)
    def _after_press(self, message: Button.Pressed) -> None:
        self.dismiss(message.button.id == "yes")

    def action_say(self, agreed: bool) -> None:
        self.dismiss(agreed)


def dialog(asked: DialogQuestion) -> ConfirmDialog | TextDialog:
    """Return the dialog for a question: yes or no, or an answer in words."""
    return ConfirmDialog(asked) if asked.confirm else TextDialog(asked)


class OnceCommandPalette(CommandPalette, ClosesOnce[None]):  # pyright: ignore[reportIncompatibleMethodOverride] - in Textual itself
    """Textual's command palette, which also closes only once and runs a command only once."""

    @on(Input.Submitted)
    @on(Button.Pressed)
    @on(OptionList.OptionSelected)
    def _pass_over(self, message: Message) -> None:
        if not self.is_active:
            message.prevent_default()
            message.stop()


KeyGroup = tuple[str, Sequence[Key]]


def help_lines(groups: Sequence[KeyGroup], keymap: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return each line as keys, action and id; a group's title stands alone in the first place."""
    lines: list[tuple[str, str, str]] = []
    for title, keys in groups:
        lines += [(title, "", "")] if keys else []
        for key in keys:
            names = " ".join(key_text(name) for name in in_force(key, keymap))
            lines.append((names, key.does, key.id))
    return lines


class HelpScreen(ModalScreen[None], ClosesOnce[None]):
    """All keys in force, taken only from the tables of keys."""

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
        self, groups: Sequence[KeyGroup], keymap: Mapping[str, str], about: Sequence[str] = ()
    ) -> None:
        """Show `groups` of keys as in a key map, below lines about what is watched."""
        super().__init__()
        self.lines = help_lines(groups, keymap)
        self._about = about

    def compose(self) -> ComposeResult:
        with VerticalScroll() as scroll:
            scroll.border_title = "Midwatch: keys"
            scroll.border_subtitle = "esc: close"
            if self._about:
                yield Static("\n".join(self._about) + "\n", markup=False)
            yield from (Static(_help_line(*line)) for line in self.lines)

    def action_scroll(self, lines: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)


def _help_line(keys: str, does: str, id: str) -> Table | Text:
    if not does:
        return Text(f"\n{keys}", style="bold underline")
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(width=14)
    table.add_column(ratio=1)
    table.add_column(width=max(14, len(id)))
    table.add_row(Text(keys, style="bold"), Text(does), Text(id, style="dim"))
    return table
