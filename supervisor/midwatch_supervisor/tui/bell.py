"""Calls a person when something begins to need one: bell, notice, desktop notification."""

import asyncio
import html
import os
import shutil
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import datetime

from midwatch_supervisor.present.text_line import one_line
from midwatch_supervisor.tui.state.attention import QueueItem

_LONGEST = 160
"""Maximum characters of a notice, which is read in passing."""


def call_text(new: Sequence[QueueItem]) -> str:
    """Return the call as one line, with agents' text sanitized."""
    said = new[0].call
    if len(new) > 1:
        what = "attempts" if all(each.row is not None for each in new) else "things"
        said = f"{len(new)} {what} need you; {said}"
    said = one_line(said)
    return said if len(said) <= _LONGEST else f"{said[: _LONGEST - 1]}…"


class Bell:
    """Remembers what was announced: each need of an attempt is announced once."""

    def __init__(self, opened_at: datetime) -> None:
        self._opened_at = opened_at
        self._announced: set[Hashable] = set()
        self._known: set[Hashable] = set()

    def next_call(self, waiting: Sequence[QueueItem]) -> str | None:
        """Return what to announce now, if anything. A need that passed may be announced again."""
        told = self._announced | self._known
        # Needs from before the console was opened are visible, and no reason to ring.
        new = [
            each
            for each in waiting
            if each.call and each.mark not in told and each.began(self._opened_at)
        ]
        self._announced = {each.mark for each in waiting}
        self._known.update(*(each.known for each in waiting))
        return call_text(new) if new else None


def notifier(
    environ: Mapping[str, str] = os.environ, which: Callable[[str], str | None] = shutil.which
) -> str | None:
    """Return the program for desktop notifications; `None` if only the terminal can notify."""
    if not environ.keys() & {"DISPLAY", "WAYLAND_DISPLAY"}:
        return None
    return which("notify-send")


def escape(said: str) -> str:
    """Return the escape sequence for a notification by the terminal, if supported (OSC 9)."""
    return f"\x1b]9;Midwatch: {one_line(said)}\x07"


async def notify_desktop(program: str, said: str) -> None:
    """Run the notification program, ignoring failures."""
    try:
        process = await asyncio.create_subprocess_exec(
            *(program, "--app-name=Midwatch", "--", "Midwatch"),
            html.escape(said),  # desktops parse it as markup
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return
    await process.wait()
