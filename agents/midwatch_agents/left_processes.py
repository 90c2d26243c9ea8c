"""Finds processes that an attempt left behind, by mark and descent, and ends them."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from midwatch_agents.sandbox import MARK

_PROC = Path("/proc")
_LAST_SECONDS = 5.0
"""How long to wait for killed processes."""
_LOOK_SECONDS = 0.005


def process_mark(place: str, incarnation: int) -> str:
    """Return the mark of the processes that one incarnation of an attempt starts in a place."""
    return f"{place}#{incarnation}"


async def end_leftovers(mark: str) -> int:
    """End every process with the mark, and its descendants; return their number.

    Needs `/proc`; elsewhere it finds nothing.
    """
    return await _kill_processes(lambda borne: borne == mark)


async def end_all_leftovers(place: str) -> int:
    """End processes that any incarnation started in a place; for use before a new one begins."""
    return await _kill_processes(lambda borne: borne.rpartition("#")[0] == place)


async def end_leftovers_below(folder: Path) -> int:
    """End processes that attempts started anywhere below a folder where nothing works now."""
    return await _kill_processes(lambda borne: folder in Path(borne.rpartition("#")[0]).parents)


async def _kill_processes(ours: Callable[[str], bool]) -> int:
    found: set[int] = set()
    # Stopped first, so that none can fork or leave its parent during the search for the others.
    while fresh := await asyncio.to_thread(_marked_processes, ours) - found:
        _signal(fresh, signal.SIGSTOP)
        found |= fresh
    _signal(found, signal.SIGKILL)
    await asyncio.to_thread(_wait_for_end, found)
    return len(found)


def _signal(processes: Iterable[int], sign: signal.Signals) -> None:
    for process in processes:
        with suppress(OSError):  # it has ended, or belongs to somebody else
            os.kill(process, sign)


def _marked_processes(ours: Callable[[str], bool]) -> set[int]:
    """Return the processes with a matching mark, and all their descendants.

    A descendant may have dropped the mark, but its `orphan_parent` still has it.
    """
    if not _PROC.is_dir():
        return set()
    processes = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]
    found = {process for process in processes if any(map(ours, _marks(process)))}
    found.discard(os.getpid())
    if not found:
        return found
    children: dict[int, list[int]] = {}
    for process in processes:
        children.setdefault(int(_state(process)[1]), []).append(process)
    below = list(found)
    while below:
        fresh = {*children.get(below.pop(), ())} - found - {os.getpid()}
        found |= fresh
        below += fresh
    return found


def _marks(process: int) -> list[str]:
    named = f"{MARK}=".encode()
    try:
        environ = (_PROC / str(process) / "environ").read_bytes()
    except OSError:  # gone, or not ours to look at
        return []
    borne = [each for each in environ.split(b"\0") if each.startswith(named)]
    return [os.fsdecode(each.removeprefix(named)) for each in borne]


def _wait_for_end(processes: Iterable[int]) -> None:
    last = time.monotonic() + _LAST_SECONDS  # a process waiting for a device cannot end before
    while any(_state(each)[0] not in "ZX" for each in processes) and time.monotonic() < last:
        time.sleep(_LOOK_SECONDS)


def _state(process: int) -> tuple[str, str]:
    """Return the letter of a process's state, and its parent's id."""
    state, parent, *_ = process_fields(process) or ("X", "0")
    return state, parent


def process_fields(process: int) -> list[str]:
    """Return the fields of `/proc/N/stat` from the state on; empty if the process is gone."""
    try:
        stat = (_PROC / str(process) / "stat").read_text(errors="replace")
    except OSError:
        return []
    return stat.rpartition(")")[2].split()  # a name may contain spaces and brackets
