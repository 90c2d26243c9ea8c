"""`midwatch guidelines`: read a project's working principles, and decide on new versions."""

from dataclasses import dataclass
from typing import Annotated

from cyclopts import App, Parameter

from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.records import GuidelinesState, KnownGuidelines
from midwatch_supervisor.cli.journals import JournalOption, journal_to_read
from midwatch_supervisor.cli.learn.options import (
    UNMARKED,
    MarkOptions,
    ProjectOption,
    project_named,
    write_note,
)
from midwatch_supervisor.cli.output import write_diff, write_either, write_json, write_line
from midwatch_supervisor.cli.settings import JsonOption
from midwatch_supervisor.operator.actions import LearningMark
from midwatch_supervisor.present.known_text import version_diff, version_fields, version_line

app = App(name="guidelines")

VersionOption = Annotated[
    int | None,
    Parameter(name="VERSION", help="The version: its number in the project, or its journal id."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Versions:
    """All versions of a project, newest first."""

    project: str
    known: tuple[KnownGuidelines, ...]

    @property
    def live(self) -> KnownGuidelines | None:
        """The version in force."""
        return self._first_version(GuidelinesState.LIVE)

    @property
    def proposed(self) -> KnownGuidelines | None:
        """The newest version that is waiting for a decision."""
        return self._first_version(GuidelinesState.PROPOSED)

    @property
    def former(self) -> tuple[KnownGuidelines, ...]:
        """Versions that were in force before."""
        return tuple(each for each in self.known if each.state is GuidelinesState.FORMER)

    def _first_version(self, state: GuidelinesState) -> KnownGuidelines | None:
        return next((each for each in self.known if each.state is state), None)

    def find(self, version: int) -> KnownGuidelines:
        """Return the version with that number or journal id. Raises UsageError."""
        by_number = [each for each in self.known if each.guidelines.version == version]
        if found := by_number or [each for each in self.known if each.id == version]:
            return found[0]
        there = ", ".join(str(each.guidelines.version) for each in self.known) or "none yet"
        raise UsageError(f"{self.project} has no version {version} of guidelines; it has: {there}")


async def _read_versions(journal: Journal, project: str | None) -> _Versions:
    learned = Learned(journal)
    name = await project_named(learned, project)
    return _Versions(project=name, known=tuple(await learned.guidelines(name)))


# -- reading -------------------------------------------------------------------------------


@app.command(name="list")
async def list_versions(
    *, project: ProjectOption = None, journal: JournalOption = None, json: JsonOption = False
) -> None:
    """Print all versions of a project's guidelines, newest first, with their states."""
    async with await journal_to_read(journal) as opened:
        if project is None and not await Learned(opened).projects():
            write_note(f"no guidelines yet in {opened.name}", json=json)
            return
        versions = await _read_versions(opened, project)
    for known in versions.known:
        write_either(version_fields(known), version_line(known), json=json)
    if not versions.known:
        write_note(f"{versions.project} has no guidelines yet", json=json)


@app.command
async def show(
    version: VersionOption = None,
    /,
    *,
    project: ProjectOption = None,
    journal: JournalOption = None,
    json: JsonOption = False,
) -> None:
    """Print a version; by default the one in force."""
    async with await journal_to_read(journal) as opened:
        versions = await _read_versions(opened, project)
    known = versions.live if version is None else versions.find(version)
    if known is None:
        write_note(_none_in_force(versions), json=json)
    elif json:
        write_json(version_fields(known, text=True))
    else:
        write_line(version_line(known))
        write_line("")
        for line in known.guidelines.text.splitlines():
            write_line(f"  {line}".rstrip())


@app.command
async def diff(
    version: VersionOption = None,
    /,
    *,
    project: ProjectOption = None,
    journal: JournalOption = None,
    json: JsonOption = False,
) -> None:
    """Print what a version would change; by default the newest one waiting for a decision."""
    async with await journal_to_read(journal) as opened:
        versions = await _read_versions(opened, project)
    if version is None and versions.proposed is None:
        write_note(f"no version of {versions.project} is waiting", json=json)
        return
    known = _find_waiting(versions, version)
    changes = version_diff(versions.live, known)
    if json:
        write_json(_change_fields(versions.live, known, changes))
        return
    write_diff(changes or "it is the same text as the one in force")
    if _is_outdated(known, versions.live):
        write_line(_OUTDATED)


def _change_fields(
    before: KnownGuidelines | None, after: KnownGuidelines, changes: str
) -> dict[str, object]:
    body = [line for line in changes.splitlines() if not line.startswith(("+++", "---"))]
    return {
        "type": "diff",
        "project": after.project,
        "from": before.guidelines.version if before else None,
        "to": after.guidelines.version,
        "added": sum(line.startswith("+") for line in body),
        "removed": sum(line.startswith("-") for line in body),
        "diff": changes,
    }


_OUTDATED = "It is based on a version that is no longer in force."


def _is_outdated(known: KnownGuidelines, live: KnownGuidelines | None) -> bool:
    """Whether a version is a proposal based on one that is no longer in force."""
    base = live.id if live else None
    return known.state is GuidelinesState.PROPOSED and known.guidelines.base != base


def _none_in_force(versions: _Versions) -> str:
    waiting = versions.proposed
    hint = f"; version {waiting.guidelines.version} is waiting" if waiting else ""
    return f"no guidelines are in force in {versions.project}{hint}"


# -- deciding ------------------------------------------------------------------------------


@app.command
async def approve(
    version: VersionOption = None,
    /,
    *,
    project: ProjectOption = None,
    options: MarkOptions = UNMARKED,
) -> None:
    """Put a version in force; by default the newest one waiting for a decision."""
    async with await options.open_journal() as opened:
        versions = await _read_versions(opened, project)
        chosen = _find_waiting(versions, version)
        if _is_outdated(chosen, versions.live):
            write_note(_OUTDATED, json=options.json)
        await options.mark(opened, LearningMark.APPROVE, chosen)


@app.command
async def reject(
    version: VersionOption = None,
    /,
    *,
    project: ProjectOption = None,
    options: MarkOptions = UNMARKED,
) -> None:
    """Reject a version; by default the newest one waiting for a decision."""
    async with await options.open_journal() as opened:
        chosen = _find_waiting(await _read_versions(opened, project), version)
        await options.mark(opened, LearningMark.REJECT, chosen)


@app.command
async def rollback(
    version: VersionOption = None,
    /,
    *,
    project: ProjectOption = None,
    options: MarkOptions = UNMARKED,
) -> None:
    """Go back to the version before the one in force."""
    async with await options.open_journal() as opened:
        versions = await _read_versions(opened, project)
        await options.mark(opened, LearningMark.ROLL_BACK, _in_force(versions, version))
        if not options.dry_run:
            now = (await _read_versions(opened, versions.project)).live
            number = f"version {now.guidelines.version} is" if now else "no guidelines are"
            write_note(f"{number} in force", json=options.json)


@app.command
async def retire(
    version: VersionOption = None,
    /,
    *,
    project: ProjectOption = None,
    options: MarkOptions = UNMARKED,
) -> None:
    """Retire the guidelines in force and all before them; or reject VERSION, if it is waiting."""
    async with await options.open_journal() as opened:
        versions = await _read_versions(opened, project)
        chosen: KnownGuidelines | None = _in_force(versions, version)
        if chosen.state is GuidelinesState.PROPOSED:
            await options.mark(opened, LearningMark.REJECT, chosen)
            return
        while chosen is not None:
            await options.mark(opened, LearningMark.ROLL_BACK, chosen)
            again = (await _read_versions(opened, versions.project)).live
            chosen = None if options.dry_run else again
        if options.dry_run and versions.former:
            numbers = ", ".join(str(each.guidelines.version) for each in versions.former)
            write_note(f"so would all versions before it: {numbers}", json=options.json)


def _find_waiting(versions: _Versions, version: int | None) -> KnownGuidelines:
    """Return the named version, by default the one waiting for a decision. Raises UsageError."""
    chosen = versions.proposed if version is None else versions.find(version)
    if chosen is None:
        raise UsageError(f"no version of {versions.project} is waiting")
    return chosen


def _in_force(versions: _Versions, version: int | None) -> KnownGuidelines:
    """Return the named version, by default the one in force. Raises UsageError."""
    chosen = versions.live if version is None else versions.find(version)
    if chosen is None:
        raise UsageError(_none_in_force(versions))
    return chosen
