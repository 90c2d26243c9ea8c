"""What flows from one command to the next."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

CRAFTING = frozenset(
    [
        *("cat", "echo", "printf", "tee", "sed", "gsed", "awk", "gawk", "mawk", "head", "tail"),
        *("tac", "tr", "cut", "paste", "sort", "uniq", "fold", "fmt", "expand", "unexpand"),
        *("base64", "envsubst", "jq", "rev", ":", "true"),
    ]
)
"""Programs whose redirected output is work; that of any other only keeps what it said."""

_OPTION = re.compile(r"-[neE]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """The input or the output of a command."""

    text: str | None = None
    """`None` where it is not known."""
    crafted: bool = False
    """Whether only `CRAFTING` programs had a hand in it."""
    source: str = ""
    """The file that it is read from."""


EMPTY = Stream(text="", crafted=True)


def echo(arguments: Sequence[str], stdin: Stream) -> Stream:
    """What `echo` says."""
    rest = list(arguments)
    newline = "\n"
    escaped = False
    while rest and _OPTION.fullmatch(rest[0]):
        option = rest.pop(0)
        newline = "" if "n" in option else newline
        escaped |= "e" in option
    text = " ".join(rest) + newline
    return Stream(text=None if escaped and "\\" in text else text, crafted=True)


def printf(arguments: Sequence[str], stdin: Stream) -> Stream:
    """What `printf` says with the plain formats; the others are not worked out."""
    form = "".join(arguments[:1]).replace("\\n", "\n")
    text = None
    if form in {"%s", "%s\n"}:
        text = "".join(form.replace("%s", word) for word in arguments[1:])
    elif "%" not in form and "\\" not in form:
        text = form
    return Stream(text=text, crafted=True)
