"""Implied verdicts, with git: what a person did with merged work."""

import logging
import os
import subprocess
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from midwatch_monitor.config.learning import FeedbackSettings
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Ending, Feedback, Origin, Sign
from midwatch_stage.factories import AT
from midwatch_stage.harness import PastAttempts, assigned
from midwatch_supervisor.learning.implied_feedback import scan
from midwatch_supervisor.present.assignment import branch_of
from midwatch_supervisor.workspaces.merge import merge_branch, plan_merge
from midwatch_supervisor.workspaces.workspace import reopen_workspace

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
MERGED = AT + HOUR
Who = tuple[str, str]
MIDWATCH = ("Midwatch", "midwatch@localhost")
ADA = ("Ada", "ada@localhost")
SETTINGS = FeedbackSettings()


class Repository:
    """A repository on `main` whose owner is Ada; each call of git has its own time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
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

    def worktree(self, name: str, at: datetime = AT) -> Path:
        folder = self.folder.parent / "work" / "r1" / name
        branch = f"midwatch/r1/{name}"
        self.git("worktree", "add", "--quiet", "-b", branch, str(folder), "HEAD", at=at)
        return folder

    def merge(self, name: str = "fix-1", *options: str, at: datetime = MERGED) -> None:
        self.git("merge", "--quiet", "--no-edit", *options, f"midwatch/r1/{name}", at=at)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


Attempted = Callable[..., Awaitable[Path]]
Scan = Callable[..., Awaitable[list[Feedback]]]


@pytest.fixture
def attempted(past: PastAttempts, repository: Repository) -> Attempted:
    """An attempt of a task of its own that wrote files in its worktree and ended."""

    async def attempt(
        name: str = "fix", ending: Ending = Ending.DONE, at: datetime = AT, **files: str
    ) -> Path:
        folder = repository.worktree(f"{name}-1", at)
        for stem, text in (files or {"a": "one\nTWO\nthree\n"}).items():
            repository.write(f"{stem}.py", text, at=at, who=MIDWATCH, into=folder)
        past.at = at
        task = assigned(name, workspace=repository.folder, project="p")
        await past.end(await past.attempt("", task=task, workspace=str(folder)), ending)
        return folder

    return attempt


@pytest.fixture
def look(journal: Journal) -> Scan:
    """Looks some time after the merge; the verdicts that are new."""

    async def verdicts(
        after: timedelta = HOUR, settings: FeedbackSettings = SETTINGS
    ) -> list[Feedback]:
        entries = await scan(journal, settings=settings, now=MERGED + after)
        return [each.record for each in entries if isinstance(each.record, Feedback)]

    return verdicts


async def signs(look: Scan, after: timedelta = HOUR) -> list[Sign]:
    return [each.sign for each in await look(after)]


# -- kept ----------------------------------------------------------------------------------


async def test_r41_work_that_is_unchanged_for_a_day_after_its_merge_is_accepted(
    repository: Repository, attempted: Attempted, look: Scan
) -> None:
    await attempted()
    repository.merge()
    assert await look(DAY - HOUR) == []
    assert await look(DAY) == [
        Feedback(
            accepted=True,
            comment="unchanged on main for 24h and more since it was merged: a.py",
            origin=Origin.IMPLIED,
            author="midwatch",
            sign=Sign.KEPT,
        )
    ]
    assert await look(2 * DAY) == []


async def test_r11_a_merge_by_midwatch_is_followed_even_when_the_branch_is_gone(
    journal: Journal, repository: Repository, attempted: Attempted
) -> None:
    folder = await attempted()
    ground = await reopen_workspace(folder, repository.folder, branch=branch_of(folder))
    await merge_branch(await plan_merge(ground, repository.folder))
    repository.git("worktree", "remove", "--force", str(folder))
    repository.git("branch", "-D", "midwatch/r1/fix-1")
    long = FeedbackSettings.model_validate({"watched_for": "3650d"})
    soon, later = datetime.now(UTC) + HOUR, datetime.now(UTC) + DAY
    assert await scan(journal, settings=long, now=soon) == []
    (kept,) = await scan(journal, settings=long, now=later)
    assert isinstance(kept.record, Feedback)
    assert kept.record.sign is Sign.KEPT


@pytest.mark.parametrize("options", [(), ("--no-ff",), ("--squash",)])
async def test_r11_every_way_of_merging_by_hand_is_seen(
    repository: Repository, attempted: Attempted, look: Scan, options: tuple[str, ...]
) -> None:
    await attempted(a="new\n", c="c\n")
    repository.merge("fix-1", *options)
    if "--squash" in options:
        repository.git("commit", "--quiet", "-m", "Fix it (squashed)", at=MERGED)
    assert await signs(look, DAY - HOUR) == []
    assert await signs(look, DAY) == [Sign.KEPT]


async def test_r11_work_that_was_put_on_top_of_others_is_seen(
    repository: Repository, attempted: Attempted, look: Scan
) -> None:
    await attempted(a="new\n", c="c\n")
    repository.write("z.py", "z\n", at=AT + HOUR / 2)
    repository.git("cherry-pick", "main..midwatch/r1/fix-1", at=MERGED)
    assert await signs(look, DAY) == [Sign.KEPT]


async def test_r11_the_time_of_the_merge_counts_and_not_that_of_the_work(
    repository: Repository, attempted: Attempted, look: Scan
) -> None:
    await attempted(at=MERGED - 3 * DAY)
    repository.merge()
    assert await signs(look) == []


# -- silence -------------------------------------------------------------------------------


async def test_r45_silence_is_no_verdict(attempted: Attempted, look: Scan) -> None:
    await attempted()
    assert await look(20 * DAY) == []


async def test_r44_only_attempts_that_ended_well_are_looked_at(
    repository: Repository, attempted: Attempted, look: Scan
) -> None:
    await attempted(ending=Ending.STUCK)
    repository.merge()
    assert await look(2 * DAY) == []


async def test_implied_verdicts_can_be_switched_off(
    repository: Repository, attempted: Attempted, look: Scan
) -> None:
    await attempted()
    repository.merge()
    assert await look(2 * DAY, FeedbackSettings(implied=False)) == []


# -- edited --------------------------------------------------------------------------------


async def test_r42_an_edit_by_a_person_is_a_rejection_with_the_persons_diff(
    repository: Repository, attempted: Attempted, look: Scan
) -> None:
    await attempted()
    repository.merge()
    commit = repository.write("a.py", "one\nTWO!\nthree\n", at=MERGED + HOUR)
    (verdict,) = await look(2 * HOUR)
    assert verdict.comment == (
        f"Write a.py (changed on main after it was merged, in {commit[:12]}: a.py)"
    )
    assert (verdict.accepted, verdict.origin, verdict.sign, verdict.author) == (
        *(False, Origin.IMPLIED),
        *(Sign.EDITED, "Ada"),
    )
    assert "-TWO\n+TWO!\n" in verdict.diff


async def test_r10_what_a_person_changes_elsewhere_is_no_rejection(
    repository: Repository, attempted: Attempted, look: Scan
) -> None:
    await attempted()
    repository.merge()
    repository.write("b.py", "mine\n", at=MERGED + HOUR)
    assert await signs(look, DAY) == [Sign.KEPT]


async def test_r10_an_edit_on_a_branch_of_the_persons_own_counts_once_it_is_merged(
    repository: Repository, attempted: Attempted, look: Scan
) -> None:
    await attempted()
    repository.merge()
    repository.git("checkout", "--quiet", "-b", "side")
    repository.write("a.py", "mine\n", at=MERGED + HOUR)
    repository.git("checkout", "--quiet", "main")
    assert await signs(look, 2 * HOUR) == []
    repository.git("merge", "--quiet", "--no-ff", "--no-edit", "side", at=MERGED + 3 * HOUR)
    assert await signs(look, 4 * HOUR) == [Sign.EDITED]


async def test_r42_a_file_that_was_only_renamed_is_kept_and_followed(
    repository: Repository, attempted: Attempted, look: Scan
) -> None:
    await attempted()
    repository.merge()
    repository.git("mv", "a.py", "moved.py")
    repository.git("commit", "--quiet", "-m", "Rename", at=MERGED + HOUR)
    assert await signs(look, 2 * HOUR) == []
    repository.write("moved.py", "one\nTWO\nfour\n", at=MERGED + 3 * HOUR)
    (verdict,) = await look(4 * HOUR)
    assert (verdict.sign, "-three\n+four" in verdict.diff) == (Sign.EDITED, True)


async def test_r42_a_long_diff_is_cut_to_what_a_prompt_can_hold(
    repository: Repository, attempted: Attempted, look: Scan
) -> None:
    await attempted()
    repository.merge()
    repository.write("a.py", "".join(f"{n}\n" for n in range(5000)), at=MERGED + HOUR)
    (verdict,) = await look(2 * HOUR)
    assert (len(verdict.diff), verdict.diff.startswith("diff --git a/a.py")) == (4000, True)


async def test_r42_what_is_not_committed_does_not_count(
    repository: Repository, attempted: Attempted, look: Scan
) -> None:
    await attempted()
    repository.merge()
    (repository.folder / "a.py").write_text("mine\n")
    assert await signs(look, DAY) == [Sign.KEPT]


# -- taken back ----------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--ff", "--no-ff"])
async def test_r43_a_revert_is_a_rejection_of_its_own_sign_and_never_explicit(
    repository: Repository, attempted: Attempted, look: Scan, option: str
) -> None:
    await attempted()
    repository.merge("fix-1", option)
    main = ("-m", "1") if option == "--no-ff" else ()
    repository.git("revert", "--no-edit", *main, "HEAD", at=MERGED + HOUR)
    (verdict,) = await look(2 * HOUR)
    assert (verdict.accepted, verdict.origin, verdict.sign) == (
        *(False, Origin.IMPLIED),
        Sign.REVERTED,
    )
    assert "-TWO\n+two\n" in verdict.diff


async def test_r43_the_files_as_they_were_before_are_a_revert_too(
    repository: Repository, attempted: Attempted, look: Scan
) -> None:
    await attempted()
    repository.merge()
    repository.write("a.py", "one\ntwo\nthree\n", at=MERGED + HOUR)
    assert await signs(look, 2 * HOUR) == [Sign.REVERTED]


# -- agents --------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [("--no-ff",), ("--squash",)])
async def test_c17_what_another_attempt_changes_is_no_persons_edit(
    repository: Repository, attempted: Attempted, look: Scan, options: tuple[str, ...]
) -> None:
    await attempted()
    repository.merge()
    later = MERGED + HOUR
    await attempted("more", at=later, a="one\nTWO\nTHREE\n")
    repository.merge("more-1", *options, at=later)
    if "--squash" in options:
        repository.git("commit", "--quiet", "-m", "More", at=later)
    assert await signs(look, DAY) == [Sign.KEPT]


async def test_c17_midwatchs_own_commits_are_no_persons_edit(
    repository: Repository, attempted: Attempted, look: Scan
) -> None:
    await attempted()
    repository.merge()
    repository.write("a.py", "one\nTWO\nIII\n", at=MERGED + HOUR, who=MIDWATCH)
    assert await signs(look, DAY) == [Sign.KEPT]


async def test_c17_a_person_who_edits_before_another_attempt_begins_is_still_a_person(
    repository: Repository, attempted: Attempted, look: Scan
) -> None:
    await attempted()
    repository.merge()
    repository.write("a.py", "mine\n", at=MERGED + HOUR)
    await attempted("more", at=MERGED + HOUR, c="c\n")
    repository.merge("more-1", at=MERGED + HOUR)
    assert await signs(look, 2 * HOUR) == [Sign.EDITED]


@pytest.mark.parametrize("options", [(), ("--no-ff",)])
async def test_c17_a_person_who_edits_on_the_branch_before_the_merge_is_still_a_person(
    repository: Repository, attempted: Attempted, look: Scan, options: tuple[str, ...]
) -> None:
    folder = await attempted()
    repository.write("a.py", "mine\n", at=AT + HOUR / 2, into=folder)
    repository.merge("fix-1", *options)
    (edited,) = await look(2 * HOUR)
    assert (edited.sign, edited.author, "+mine" in edited.diff) == (Sign.EDITED, "Ada", True)


# -- what goes wrong -----------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["gone", "HEAD", "shallow"])
async def test_a_repository_that_is_gone_broken_or_shallow_is_passed_over_with_a_warning(
    repository: Repository,
    attempted: Attempted,
    look: Scan,
    caplog: pytest.LogCaptureFixture,
    damage: str,
) -> None:
    await attempted()
    repository.merge()
    if damage == "gone":
        repository.folder.rename(repository.folder.with_name("elsewhere"))
    else:
        text = "nothing" if damage == "HEAD" else repository.git("rev-parse", "HEAD")
        (repository.folder / ".git" / damage).write_text(f"{text}\n")
    assert await look(2 * DAY) == []
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
