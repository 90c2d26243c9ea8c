"""Screens in front that close once, however fast the keys come."""

from typing import TypeVar

from textual import on
from textual.await_complete import AwaitComplete
from textual.command import CommandPalette
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Button, Input, OptionList

T = TypeVar("T")


class ClosesOnce(Screen[T]):
    """A screen whose second answer counts for nothing.

    A key that is pressed twice is heard twice before the screen is gone. Textual would take the
    second time what is in front then: an attempt that is looked at, or the last screen there is.
    """

    def dismiss(self, result: T | None = None) -> AwaitComplete:
        """Answer and close, if that is not done yet."""
        return super().dismiss(result) if self.is_active else AwaitComplete.nothing()


class Palette(CommandPalette):
    """Textual's command palette; it closes once too, and a command is carried out once."""

    def dismiss(self, result: None = None) -> AwaitComplete:
        """Close, if that is not done yet."""
        return super().dismiss(result) if self.is_active else AwaitComplete.nothing()

    @on(Input.Submitted)
    @on(Button.Pressed)
    @on(OptionList.OptionSelected)
    def _pass_over(self, message: Message) -> None:
        if not self.is_active:
            message.prevent_default()
            message.stop()
