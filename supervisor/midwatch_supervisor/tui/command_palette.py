"""The command palette: the current screen's keys and their commands by name."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.markup import escape
from textual.types import IgnoreReturnCallbackType

from midwatch_supervisor.tui.keys import ACTS, LIST, MARKS, Key, all_keys, key_text
from midwatch_supervisor.tui.operator_keys import OperatorApp


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A command in the palette's list."""

    does: str
    run: IgnoreReturnCallbackType
    help: str
    rank: float
    """Factor of its score: impossible commands, and Textual's own, are listed later."""


_OURS, _NOT_NOW, _TEXTUALS = 1.0, 0.1, 0.01


class ConsoleCommands(Provider):
    """Finds the console's panes and commands."""

    async def discover(self) -> Hits:
        """List the possible commands before anything is typed."""
        for each in self._available_commands():
            if each.rank != _NOT_NOW:
                yield DiscoveryHit(each.does, each.run, help=each.help)

    async def search(self, query: str) -> Hits:
        """Find commands that match the typed text; impossible ones say why."""
        matcher = self.matcher(query)
        for each in self._available_commands():
            if (score := matcher.match(each.does) * each.rank) > 0:
                yield Hit(score, matcher.highlight(each.does), each.run, help=each.help)

    def _available_commands(self) -> Iterator[_Found]:
        """Yield commands in the order of the key tables, `ACTS` first, then Textual's own."""
        active = self.screen.active_bindings
        reached: dict[str, list[str]] = {}
        for key, each in active.items():
            reached.setdefault(each.binding.id or "", []).append(key)
        for key in dict.fromkeys((*ACTS, *all_keys())):
            # Movements in lists are left out.
            if key.id not in reached or key in LIST:
                continue
            keys = reached[key.id]
            found = active[keys[0]]
            why = self._why_not(key)
            said = f"key {' or '.join(key_text(each) for each in keys)}"
            yield _Found(
                does=key.does,
                run=partial(self.app.run_action, found.binding.action, found.node),
                # Escaped: Textual parses it as markup, and it may quote an agent's command.
                help=escape(f"{said}; not now: {why}" if why else said),
                rank=_NOT_NOW if why else _OURS,
            )
        commands = self.app.get_system_commands(self.screen)  # pyright: ignore[reportUnknownMemberType] - a screen's type argument
        for each in commands:
            yield _Found(does=each.title, run=each.callback, help=each.help, rank=_TEXTUALS)

    def _why_not(self, key: Key) -> str:
        app = self.app
        if not isinstance(app, OperatorApp):
            return ""
        if key.id in MARKS:
            return app.operator.barred
        return app.why_not(key.id) if key in ACTS else ""
