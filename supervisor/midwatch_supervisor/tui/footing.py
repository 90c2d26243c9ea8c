"""The line of keys below: those of the screen in front, and always the one for all the others."""

from textual.app import ComposeResult
from textual.widgets import Footer
from textual.widgets._footer import FooterKey  # Textual offers no other way to dock a key


class Footing(Footer):
    """Textual's footer, with the help where no width can push it out."""

    def __init__(self) -> None:
        super().__init__(show_command_palette=False)

    def compose(self) -> ComposeResult:
        """The keys that act here, and the help at the right."""
        yield from super().compose()
        for _, binding, enabled, tooltip in self.screen.active_bindings.values():
            if binding.action == "help":
                yield FooterKey(
                    binding.key,
                    self.app.get_key_display(binding),  # pyright: ignore[reportUnknownMemberType]
                    "Help",
                    binding.action,
                    disabled=not enabled,
                    tooltip=tooltip,
                    classes="-command-palette",  # Textual's name for what is docked right
                )
                return
