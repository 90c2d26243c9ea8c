"""Options shared by the commands for what was learned: the project, and how to mark something."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from midwatch_monitor.command_hint import command
from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import KnownFact, KnownGuidelines, KnownLesson
from midwatch_supervisor.cli.journals import (
    DryRunOption,
    FromOption,
    JournalOption,
    journal_to_write,
)
from midwatch_supervisor.cli.output import write_either, write_line
from midwatch_supervisor.cli.settings import JsonOption
from midwatch_supervisor.operator.actions import (
    FACT_ACTS,
    GUIDELINES_ACTS,
    LESSON_ACTS,
    LearningMark,
    OperatorActions,
    marked_state,
    operator_name,
    refusal,
)
from midwatch_supervisor.present.known_text import Known, KnownFields, known_name
from midwatch_supervisor.present.text_line import Parts
from midwatch_tools.journal_location import main_worktree

if TYPE_CHECKING:
    from midwatch_monitor.journal.learned.learned import Learned

# -- the project ---------------------------------------------------------------------------

ProjectOption = Annotated[
    str | None,
    Parameter(
        name="--project",
        help="The project: its name, a unique prefix of it, or its folder's name. "
        "Default: that of this folder, else the only one there is.",
    ),
]


async def project_named(learned: "Learned", option: str | None) -> str:
    """Return the project that an option names, else the one of this folder, or the only one.

    Raises UsageError with the projects there are.
    """
    known = await learned.projects()
    here = await asyncio.to_thread(lambda: str(main_worktree(Path.cwd())))
    return choose_project(known, option, here=here)


def choose_project(known: Sequence[str], option: str | None, *, here: str) -> str:
    """Return the project that an option names; `here` is the name of this folder's. Pure.

    An exact name wins over a folder's name, and both over a prefix. Raises UsageError.
    """
    if not known:
        raise UsageError(f"nothing has been learned yet: start with `{command('run FILE')}`")
    names = ", ".join(known)
    if option is None:
        if here in known or len(known) == 1:
            return here if here in known else known[0]
        raise UsageError(f"name the project with --project; known: {names}")
    for found in _matching_projects(known, option):
        if len(found) == 1:
            return found[0]
        if found:
            raise UsageError(f"`{option}` could mean any of {', '.join(found)}")
    raise UsageError(f"there is no project `{option}`; known: {names}")


def _matching_projects(known: Sequence[str], option: str) -> tuple[list[str], ...]:
    """Return the projects that an option may mean, in groups, the surest first."""
    bare = option.rstrip("/")
    return (
        [name for name in known if name == option],
        [name for name in known if bare and Path(name).name == bare],
        [name for name in known if option and name.startswith(option)],
    )


# -- marking -------------------------------------------------------------------------------


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class MarkOptions:
    """Author and reason of a mark, and whether it is a dry run."""

    comment: Annotated[str, Parameter(help="The reason, for `list` and `show`.")] = ""
    author: FromOption = None
    dry_run: DryRunOption = False
    journal: JournalOption = None
    json: JsonOption = False

    async def open_journal(self) -> Journal:
        """Open the journal, read-only in a dry run. Raises JournalError and UsageError."""
        return await journal_to_write(self.journal, dry_run=self.dry_run)

    async def mark(
        self, journal: Journal, mark: LearningMark, known: Known, *, rating: int = 0
    ) -> None:
        """Store a mark, unless this is a dry run, and print it. Raises UsageError."""
        name = known_name(known)
        if isinstance(known, KnownGuidelines):
            name = f"version {known.guidelines.version} of {known.project}"
        if why := refusal(mark, known):
            raise UsageError(f"{name}: {why}")
        kind, fields = _mark_fields(mark, known, rating)
        await self.store(
            journal,
            lambda actions: actions.mark(mark, known, self.comment, rating=rating),
            kind=kind,
            fields=fields,
            text=lambda id: (
                f"{name} {'is' if id else 'would be'} {marked_state(mark, known, rating)}"
            ),
        )

    async def store(
        self,
        journal: Journal,
        write: Callable[[OperatorActions], Awaitable[int]],
        *,
        kind: str,
        fields: Mapping[str, object],
        text: Callable[[int | None], str],
    ) -> None:
        """Store something, unless this is a dry run, and print what was done.

        Args:
            journal: As returned by `open_journal`.
            write: Stores it and returns its journal id.
            kind: The `type` of the JSON object.
            fields: The other fields of the object.
            text: Makes the line for people; it receives no id if nothing was stored.
        """
        actions = OperatorActions(journal, author=operator_name(self.author))
        id = None if self.dry_run else await write(actions)
        fields = {"type": kind, "id": id, **fields, "dry_run": self.dry_run}
        write_either(fields, text(id), json=self.json)


def _mark_fields(mark: LearningMark, known: Known, rating: int) -> tuple[str, KnownFields]:
    """Return the `type` of a mark's JSON object and its fields."""
    match known:
        case KnownLesson():
            act = LESSON_ACTS[mark].value
            return "lesson_mark", {"lesson": known.id, "act": act, "rating": rating or None}
        case KnownFact():
            return "fact_mark", {"fact": known.id, "act": FACT_ACTS[mark].value}
        case KnownGuidelines():
            return "guidelines_mark", {
                "guidelines": known.id,
                "project": known.project,
                "version": known.guidelines.version,
                "act": GUIDELINES_ACTS[mark].value,
            }


UNMARKED = MarkOptions()
"""The default options."""


def write_parts(parts: Parts) -> None:
    """Print paragraphs, each below its name, leaving out empty ones."""
    for name, text in parts:
        for line in (f"{name}:", *(f"  {each}" for each in text.splitlines())) if text else ():
            write_line(line)


def write_note(text: str, *, json: bool) -> None:
    """Print a line that is only for people."""
    if not json:
        write_line(text)
