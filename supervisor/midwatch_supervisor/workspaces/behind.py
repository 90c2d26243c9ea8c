"""What the history of a moved attempt says was done, and its files do not show."""

from collections.abc import Callable, Iterable

from midwatch_monitor.records import Action, Actor, Edit, Intervention, Step, Writer

_MAX_NAMES = 20
"""Files that a worker is told by name."""
DEPOT = "depot"
"""Who tells a worker of its files: no answer to an alert, so no decision learns from it."""


def missing(steps: Iterable[Step], digest: Callable[[str], str]) -> tuple[str, ...]:
    """The files that are not as the last of these steps left them.

    `digest` is the content of a file now, as edits name it; empty if there is no such file.
    """
    last: dict[str, Edit] = {}
    for step in steps:
        last |= {edit.path: edit for edit in step.edits if edit.writer is Writer.WORKER}
    return tuple(
        sorted(
            path
            for path, edit in last.items()
            if digest(path) != ("" if edit.deleted else edit.digest)
        )
    )


def notice(names: tuple[str, ...], *, saved: int, last: int) -> Intervention:
    """What a worker is told whose files are as of step `saved`, and not as of its `last` one."""
    listed = ", ".join(names[:_MAX_NAMES])
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    since = f"steps {saved + 1} to {last}" if last > saved + 1 else f"step {last}"
    state = f"as of step {saved}" if saved else "as they were at the beginning"
    return Intervention(
        action=Action.NUDGE,
        by=Actor.POLICY,
        author=DEPOT,
        message=(
            f"This attempt goes on on another machine. Its files are {state}; {since} changed: "
            f"{listed}{more}; look before you rely on them."
        ),
    )
