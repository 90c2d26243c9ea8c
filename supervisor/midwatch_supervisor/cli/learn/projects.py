"""Which project a command is about."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from midwatch_monitor.errors import UsageError
from midwatch_tools.journal_location import main_worktree

if TYPE_CHECKING:
    from midwatch_monitor.journal.learned.learned import Learned

ProjectOption = Annotated[
    str | None,
    Parameter(
        name="--project",
        help="The project: its name, the unique beginning of one, or its folder's name. "
        "Default: that of this folder, else the only one there is.",
    ),
]


async def project_named(learned: "Learned", option: str | None) -> str:
    """The project that an option names, or the one of this folder, or the only one.

    Raises UsageError with what there is.
    """
    known = await learned.projects()
    here = await asyncio.to_thread(lambda: str(main_worktree(Path.cwd())))
    return choose_project(known, option, here=here)


def choose_project(known: Sequence[str], option: str | None, *, here: str) -> str:
    """Which of the known projects is meant; `here` is the name of this folder's. Pure.

    An exact name wins over a folder's, and both over a beginning. Raises UsageError.
    """
    if not known:
        raise UsageError("nothing has been learned yet; `midwatch run FILE` begins with it")
    names = ", ".join(known)
    if option is None:
        if here in known or len(known) == 1:
            return here if here in known else known[0]
        raise UsageError(f"say which project with --project; there is: {names}")
    for found in _found(known, option):
        if len(found) == 1:
            return found[0]
        if found:
            raise UsageError(f"`{option}` may mean each of {', '.join(found)}")
    raise UsageError(f"there is no project `{option}`; there is: {names}")


def _found(known: Sequence[str], option: str) -> tuple[list[str], ...]:
    """What an option may mean, the surest first."""
    bare = option.rstrip("/")
    return (
        [name for name in known if name == option],
        [name for name in known if bare and Path(name).name == bare],
        [name for name in known if option and name.startswith(option)],
    )
