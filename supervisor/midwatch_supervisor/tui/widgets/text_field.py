"""A field for a line of text that costs little to type in."""

from textual.geometry import Size
from textual.reactive import Reactive
from textual.widgets import Input


class TextField(Input):
    """An `Input` whose size does not depend on its text.

    Textual's own asks for a new layout of the whole screen at each letter, which takes twice as
    long as all the rest of it.
    """

    virtual_size = Reactive(Size(0, 0))
