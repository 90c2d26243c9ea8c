"""Implied verdicts, with git: what a person did with merged work."""

import logging
import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from midwatch_monitor.config.learning import FeedbackSettings
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Ending, Feedback, Origin, VerdictBasis
from midwatch_supervisor.learning.implied_feedback import scan
from midwatch_supervisor.present.assignment import branch_of
from midwatch_supervisor.workspaces.merge import merge_branch, plan_merge
from midwatch_supervisor.workspaces.workspace import reopen_workspace
from midwatch_tests.factories import AT
from midwatch_tests.harness import PastAttempts, assigned

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
MERGED = AT + HOUR
Who = tuple[str, str]
MIDWATCH = ("Midwatch", "midwatch@localhost")
ADA = ("Ada", "ada@localhost")
SETTINGS = FeedbackSettings()


class ProjectRepository:
    """A repository on `main` whose owner is Ada, and what a look at attempts' work comes to.

    Each call of git has its own time.
    """

    def __init__(self, folder: Path, past: PastAttempts) -> None:
        self.folder = folder
        self.past = past
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch", "main")
        self.write("a.py", "one\ntwo\nthree\n")
        self.write("b.py", "b\n")

    def git(self, *argv: str, at: datetime = AT, who: Who = ADA, into: Path | None = None) -> str:
        environ = {key: value for key, value in os.environ.items() if key[:4] != "GIT_"}
        for role in ("AUTHOR", "COMMITTER"):
            environ[f"GIT_{role}_DATE"] = at.isoformat()
            environ[f"GIT_{role}_NAME"], environ[f"GIT_{role}_EMAIL"] = who
        done = subprocess.run(
            ["git", "-c", "commit.gpgsign=false", *argv],
            cwd=into or self.folder,
            env=environ,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def write(
        self, file: str, text: str, *, at: datetime = AT, who: Who = ADA, into: Path | None = None
    ) -> str:
        """Commit a file; the id of the commit."""
        ((into or self.folder) / file).write_text(text)
        self.git("add", "--all", at=at, into=into)
        self.git("commit", "--quiet", "--message", f"Write {file}", at=at, who=who, into=into)
        return self.git("rev-parse", "HEAD", into=into)

    def merge(self, name: str = "fix-1", *options: str, at: datetime = MERGED) -> None:
        self.git("merge", "--quiet", "--no-edit", *options, f"midwatch/r1/{name}", at=at)

    async def attempt(
        self, name: str = "fix", ending: Ending = Ending.DONE, at: datetime = AT, **files: str
    ) -> Path:
        """An attempt of a task of its own that wrote files in its worktree and ended."""
        folder = self.folder.parent / "work" / "r1" / f"{name}-1"
        branch = f"midwatch/r1/{name}-1"
        self.git("worktree", "add", "--quiet", "-b", branch, str(folder), "HEAD", at=at)
        for stem, text in (files or {"a": "one\nTWO\nthree\n"}).items():
            self.write(f"{stem}.py", text, at=at, who=MIDWATCH, into=folder)
        self.past.at = at
        task = assigned(name, workspace=self.folder, project="p")
        await self.past.end(await self.past.attempt("", task=task, workspace=str(folder)), ending)
        return folder

    async def look(
        self, after: timedelta = HOUR, settings: FeedbackSettings = SETTINGS
    ) -> list[Feedback]:
        """The verdicts that are new some time after the merge."""
        entries = await scan(self.past.journal, settings=settings, now=MERGED + after)
        return [each.record for each in entries if isinstance(each.record, Feedback)]

    async def signs(self, after: timedelta = HOUR) -> list[VerdictBasis]:
        return [each.sign for each in await self.look(after)]


@pytest.fixture
def unmerged_repository(tmp_path: Path, past: PastAttempts) -> ProjectRepository:
    return ProjectRepository(tmp_path / "repository", past)


@pytest.fixture
async def merged_repository(unmerged_repository: ProjectRepository) -> ProjectRepository:
    """Where the work of an attempt is merged already."""
    await unmerged_repository.attempt()
    unmerged_repository.merge()
    return unmerged_repository


# -- kept ----------------------------------------------------------------------------------


async def test_r41_work_unchanged_for_a_day_after_its_merge_is_accepted(
    merged_repository: ProjectRepository,
) -> None:
    # What is not committed does not count (R42).
    (merged_repository.folder / "a.py").write_text("mine\n")
    assert await merged_repository.look(DAY - HOUR) == []
    assert await merged_repository.look(DAY, FeedbackSettings(implied=False)) == []
    assert await merged_repository.look(DAY) == [
        Feedback(
            accepted=True,
            comment="unchanged on main for at least 24h since it was merged: a.py",
            origin=Origin.IMPLIED,
            author="midwatch",
            sign=VerdictBasis.KEPT,
        )
    ]
    assert await merged_repository.look(2 * DAY) == []


async def test_r44_only_attempts_that_ended_well_are_looked_at(
    unmerged_repository: ProjectRepository,
) -> None:
    await unmerged_repository.attempt(ending=Ending.STUCK)
    unmerged_repository.merge()
    assert await unmerged_repository.look(2 * DAY) == []


async def test_r11_a_merge_by_midwatch_is_followed_even_when_the_branch_is_gone(
    unmerged_repository: ProjectRepository, journal: Journal
) -> None:
    folder = await unmerged_repository.attempt()
    ground = await reopen_workspace(folder, unmerged_repository.folder, branch=branch_of(folder))
    await merge_branch(await plan_merge(ground, unmerged_repository.folder))
    unmerged_repository.git("worktree", "remove", "--force", str(folder))
    unmerged_repository.git("branch", "-D", "midwatch/r1/fix-1")
    long = FeedbackSettings.model_validate({"watched_for": "3650d"})
    soon, later = datetime.now(UTC) + HOUR, datetime.now(UTC) + DAY
    assert await scan(journal, settings=long, now=soon) == []
    (kept,) = await scan(journal, settings=long, now=later)
    assert isinstance(kept.record, Feedback)
    assert kept.record.sign is VerdictBasis.KEPT


@pytest.mark.parametrize(
    "commands",
    [
        ["merge --quiet midwatch/r1/fix-1"],
        ["merge --quiet --no-ff --no-edit midwatch/r1/fix-1"],
        ["merge --quiet --squash midwatch/r1/fix-1", "commit --quiet -m Squashed"],
        ["cherry-pick main..midwatch/r1/fix-1"],
    ],
    ids=["by its commits alone", "by a merge", "squashed", "put on top"],
)
async def test_r11_each_way_of_merging_is_seen_and_its_time_counts(
    unmerged_repository: ProjectRepository, commands: list[str]
) -> None:
    await unmerged_repository.attempt(at=MERGED - 3 * DAY, a="new\n", c="c\n")
    assert await unmerged_repository.look(-HOUR / 2) == []  # silence is no verdict (R45)
    for command in commands:
        unmerged_repository.git(*command.split(), at=MERGED)
    assert await unmerged_repository.signs(DAY - HOUR) == []
    assert await unmerged_repository.signs(DAY) == [VerdictBasis.KEPT]


# -- silence -------------------------------------------------------------------------------


# -- edited --------------------------------------------------------------------------------


async def test_r42_an_edit_by_a_person_is_a_rejection_with_the_persons_diff(
    merged_repository: ProjectRepository,
) -> None:
    long = "".join(f"{n}\n" for n in range(5000))
    commit = merged_repository.write("a.py", f"one\nTWO!\nthree\n{long}", at=MERGED + HOUR)
    (verdict,) = await merged_repository.look(2 * HOUR)
    assert verdict.comment == (
        f"Write a.py (changed on main after it was merged, in {commit[:12]}: a.py)"
    )
    known = (verdict.accepted, verdict.origin, verdict.sign, verdict.author)
    assert known == (False, Origin.IMPLIED, VerdictBasis.EDITED, "Ada")
    assert verdict.diff.startswith("diff --git a/a.py")
    assert "-TWO\n" in verdict.diff
    assert "+TWO!\n" in verdict.diff
    assert len(verdict.diff) == 4000, "what a prompt can hold"


async def test_r10_what_a_person_changes_elsewhere_is_no_rejection(
    merged_repository: ProjectRepository,
) -> None:
    merged_repository.write("b.py", "mine\n", at=MERGED + HOUR)
    assert await merged_repository.signs(DAY) == [VerdictBasis.KEPT]


async def test_r10_an_edit_on_a_persons_own_branch_counts_once_merged(
    merged_repository: ProjectRepository,
) -> None:
    merged_repository.git("checkout", "--quiet", "-b", "side")
    merged_repository.write("a.py", "mine\n", at=MERGED + HOUR)
    merged_repository.git("checkout", "--quiet", "main")
    assert await merged_repository.signs(2 * HOUR) == []
    merged_repository.git("merge", "--quiet", "--no-ff", "--no-edit", "side", at=MERGED + 3 * HOUR)
    assert await merged_repository.signs(4 * HOUR) == [VerdictBasis.EDITED]


async def test_r42_a_file_that_was_only_renamed_is_kept_and_followed(
    merged_repository: ProjectRepository,
) -> None:
    merged_repository.git("mv", "a.py", "moved.py")
    merged_repository.git("commit", "--quiet", "-m", "Rename", at=MERGED + HOUR)
    assert await merged_repository.signs(2 * HOUR) == []
    merged_repository.write("moved.py", "one\nTWO\nfour\n", at=MERGED + 3 * HOUR)
    (verdict,) = await merged_repository.look(4 * HOUR)
    assert (verdict.sign, "-three\n+four" in verdict.diff) == (VerdictBasis.EDITED, True)


# -- taken back ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "commands",
    [
        ["merge --quiet --ff", "revert --no-edit HEAD"],
        ["merge --quiet --no-ff --no-edit", "revert --no-edit -m 1 HEAD"],
        ["merge --quiet", "checkout HEAD~1 -- a.py", "commit --quiet -m Back"],
    ],
    ids=["of its commit", "of its merge", "the files as they were before"],
)
async def test_r43_a_revert_is_a_rejection_of_its_own_sign(
    unmerged_repository: ProjectRepository, commands: list[str]
) -> None:
    await unmerged_repository.attempt()
    merge, *back = commands
    unmerged_repository.git(*merge.split(), "midwatch/r1/fix-1", at=MERGED)
    for command in back:
        unmerged_repository.git(*command.split(), at=MERGED + HOUR)
    (verdict,) = await unmerged_repository.look(2 * HOUR)
    known = (verdict.accepted, verdict.origin, verdict.sign)
    assert known == (False, Origin.IMPLIED, VerdictBasis.REVERTED)
    assert "-TWO\n+two\n" in verdict.diff


# -- agents --------------------------------------------------------------------------------


async def test_c17_what_midwatch_or_another_attempt_changes_is_no_persons_edit(
    merged_repository: ProjectRepository,
) -> None:
    merged_repository.write("a.py", "one\nTWO\nIII\n", at=MERGED + HOUR, who=MIDWATCH)
    await merged_repository.attempt("more", at=MERGED + HOUR, a="one\nTWO\nTHREE\n")
    merged_repository.merge("more-1", "--squash", at=MERGED + HOUR)
    merged_repository.git("commit", "--quiet", "-m", "More", at=MERGED + HOUR)
    assert await merged_repository.signs(DAY) == [VerdictBasis.KEPT]


async def test_c17_a_person_who_edits_before_another_attempt_is_a_person(
    merged_repository: ProjectRepository,
) -> None:
    merged_repository.write("a.py", "mine\n", at=MERGED + HOUR)
    await merged_repository.attempt("more", at=MERGED + HOUR, c="c\n")
    merged_repository.merge("more-1", at=MERGED + HOUR)
    assert await merged_repository.signs(2 * HOUR) == [VerdictBasis.EDITED]


@pytest.mark.parametrize("options", [(), ("--no-ff",)])
async def test_c17_a_person_who_edits_on_the_branch_before_the_merge_is_still_a_person(
    unmerged_repository: ProjectRepository, options: tuple[str, ...]
) -> None:
    folder = await unmerged_repository.attempt()
    unmerged_repository.write("a.py", "mine\n", at=AT + HOUR / 2, into=folder)
    unmerged_repository.merge("fix-1", *options)
    (edited,) = await unmerged_repository.look(2 * HOUR)
    assert (edited.sign, edited.author) == (VerdictBasis.EDITED, "Ada")
    assert "+mine" in edited.diff


# -- what goes wrong -----------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["gone", "HEAD", "shallow"])
async def test_a_repository_that_is_gone_broken_or_shallow_is_passed_over_with_a_warning(
    merged_repository: ProjectRepository, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    if damage == "gone":
        merged_repository.folder.rename(merged_repository.folder.with_name("elsewhere"))
    else:
        text = "nothing" if damage == "HEAD" else merged_repository.git("rev-parse", "HEAD")
        (merged_repository.folder / ".git" / damage).write_text(f"{text}\n")
    assert await merged_repository.look(2 * DAY) == []
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
