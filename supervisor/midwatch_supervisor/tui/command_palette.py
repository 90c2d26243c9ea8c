"""The command palette: whatever a key does on the screen below, by its name."""

from collections.abc import Iterator
from functools import partial

from textual import on
from textual.await_complete import AwaitComplete
from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.message import Message
from textual.widgets import Button, Input, OptionList

from midwatch_supervisor.tui.keys import LIST, all_keys, spoken


class OnceCommandPalette(CommandPalette):
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


class ConsoleCommands(Provider):
    """Finds the panes and acts of the console, as the keys in force reach them."""

    async def discover(self) -> Hits:
        """Everything, before a word is typed."""
        for each in self._commands():
            yield each

    async def search(self, query: str) -> Hits:
        """What the typed letters fit."""
        matcher = self.matcher(query)
        for each in self._commands():
            does = str(each.text)
            if (score := matcher.match(does)) > 0:
                yield Hit(score, matcher.highlight(does), each.command, help=each.help)

    def _commands(self) -> Iterator[DiscoveryHit]:
        """By the order of the tables of keys; moving in a list is left to the keys."""
        active = self.screen.active_bindings
        reached: dict[str, list[str]] = {}
        for key, each in active.items():
            reached.setdefault(each.binding.id or "", []).append(key)
        for key in all_keys():
            if key.id not in reached or key in LIST:
                continue
            keys = reached[key.id]
            found = active[keys[0]]
            run = partial(self.app.run_action, found.binding.action, found.node)
            said = " or ".join(spoken(each) for each in keys)
            yield DiscoveryHit(key.does, run, help=f"key {said}")
