"""The footer: the keys of the current screen, and always the help.

It is drawn as one line. Textual's own footer is a row of widgets that is rebuilt whenever the focus
moves, which costs more than everything else a key does.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.binding import Binding
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from midwatch_supervisor.tui.keys import ACTS, MARKS
from midwatch_supervisor.tui.operator_command import Offer
from midwatch_supervisor.tui.widgets.palette import app_of, on_theme_change, palette_of

_ACTS = MARKS.union(key.id for key in ACTS)
_HELP = "help"
_LEAVE = "leave"


@dataclass(frozen=True, slots=True)
class ShownKey:
    press: str
    """The key by Textual's name."""
    key: str
    does: str
    action: str
    id: str = ""
    """The name in a key map."""

    @property
    def width(self) -> int:
        """Its width in cells, including the following space."""
        return cell_len(self.key) + cell_len(self.does) + 3


def fit_keys(keys: Sequence[ShownKey], width: int) -> list[ShownKey]:
    """Return the keys that fit; help and quit stay, the others are dropped from the end."""
    kept = list(keys)
    while sum(key.width for key in kept) > width:
        spare = [key for key in kept if key.action not in {_HELP, _LEAVE}]
        if not spare:
            break
        kept.remove(spare[-1])
    return kept


@runtime_checkable
class Offering(Protocol):
    """An app that says which actions on the selected row are possible now."""

    def offers(self) -> tuple[Offer, ...]:
        """The actions, the most likely first."""
        ...


def arrange_keys(keys: Iterable[ShownKey], offers: Sequence[Offer]) -> list[ShownKey]:
    """Return offered actions in their order, then all other keys, with the help last."""
    acts = {key.id: key for key in keys if key.id in _ACTS}
    others = [key for key in keys if key.id not in _ACTS]
    found = [replace(acts[each.key], does=each.does) for each in offers if each.key in acts]
    return sorted((*found, *others), key=lambda key: key.action == _HELP)


def _binding_text(binding: Binding) -> str:
    return "Help" if binding.action == _HELP else binding.description


class Footer(Widget):
    """The keys of its screen. A click on one does what the key does."""

    DEFAULT_CSS = """
    Footer { height: 1; dock: bottom; background: $footer-background; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._active: list[ShownKey] = []
        """All keys of the screen that can be shown."""
        self._offers: tuple[Offer, ...] = ()
        self._keys: list[ShownKey] = []

    def on_mount(self) -> None:
        on_theme_change(self, self.refresh)
        screen = self.screen
        screen.bindings_updated_signal.subscribe(self, self._read_bindings)  # pyright: ignore[reportUnknownMemberType] - it has no type argument
        self._read_bindings(screen)

    def _read_bindings(self, screen: Screen[object]) -> None:
        app = app_of(self)
        active = [each.binding for each in screen.active_bindings.values() if each.enabled]
        shown = (
            ShownKey(
                binding.key,
                app.get_key_display(binding),
                _binding_text(binding),
                binding.action,
                binding.id or "",
            )
            for binding in reversed(active)
            if binding.show or binding.action == _HELP or binding.id in _ACTS
        )
        # The first key of each action is shown.
        self._active = [*{key.action: key for key in shown}.values()][::-1]
        self._set_offers(app.offers() if isinstance(app, Offering) else ())

    def offer(self, offers: tuple[Offer, ...]) -> None:
        """Show these actions on the selected row, and no others."""
        if offers != self._offers:
            self._set_offers(offers)

    def _set_offers(self, offers: tuple[Offer, ...]) -> None:
        self._offers, self._keys = offers, arrange_keys(self._active, offers)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        del y
        colours, base, width = palette_of(self), self.rich_style, self.size.width
        pieces: list[Segment] = []
        for key in fit_keys(self._keys, width):
            room = width - sum(cell_len(piece.text) for piece in pieces) - key.width
            if key.action == _HELP and room > 0:
                pieces.append(Segment(" " * room, base))
            pieces.append(Segment(f" {key.key} ", base + colours.accent))
            pieces.append(Segment(f"{key.does} ", base + colours.text))
        return Strip(pieces).adjust_cell_length(width, base)

    def on_click(self, event: events.Click) -> None:
        """Press the key under the pointer."""
        shown = fit_keys(self._keys, self.size.width)
        at = 0
        for key in shown:
            if key.action == _HELP:
                at = max(at, self.size.width - key.width)
            if at <= event.x < at + key.width:
                app_of(self).simulate_key(key.press)
                return
            at += key.width
