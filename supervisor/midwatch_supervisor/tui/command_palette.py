"""The command palette: whatever a key does on the screen below, by its name."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.dom import DOMNode

from midwatch_supervisor.tui.keys import LIST, all_keys, spoken


@dataclass(slots=True, kw_only=True)
class _Command:
    """What can be done on the screen, with the keys that do it."""

    does: str
    action: str
    owner: DOMNode
    keys: list[str]

    @property
    def help(self) -> str:
        return "key " + " or ".join(spoken(key) for key in self.keys)


class ConsoleCommands(Provider):
    """Finds the panes and acts of the console, as the keys in force reach them."""

    async def discover(self) -> Hits:
        """Everything, before a word is typed."""
        for each in self._commands():
            yield DiscoveryHit(each.does, partial(self._run, each), help=each.help)

    async def search(self, query: str) -> Hits:
        """What the typed letters fit."""
        matcher = self.matcher(query)
        for each in self._commands():
            score = matcher.match(each.does)
            if score > 0:
                said = matcher.highlight(each.does)
                yield Hit(score, said, partial(self._run, each), help=each.help)

    def _commands(self) -> Iterator[_Command]:
        """By the order of the tables of keys; moving in a list is left to the keys."""
        found: dict[str, _Command] = {}
        for key, active in self.screen.active_bindings.items():
            binding = active.binding
            if binding.id is not None:
                command = _Command(
                    does=active.tooltip or binding.tooltip or binding.description,
                    action=binding.action,
                    owner=active.node,
                    keys=[],
                )
                found.setdefault(binding.id, command).keys.append(key)
        moves = {key.id for key in LIST}
        for key in all_keys():
            if key.id in found and key.id not in moves:
                yield found[key.id]

    async def _run(self, command: _Command) -> None:
        await self.app.run_action(command.action, default_namespace=command.owner)
