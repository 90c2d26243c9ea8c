"""What became of merged work, without git."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from midwatch_monitor.config.learning import FeedbackSettings
from midwatch_monitor.records import VerdictBasis
from midwatch_stage.factories import AT
from midwatch_supervisor.learning.merge_outcome import (
    BranchWork,
    CommitFileChange,
    MergePoint,
    Revision,
    agents,
    branch_history,
    judge,
    merge_point,
)

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
SETTINGS = FeedbackSettings()
WORK = BranchWork(
    attempt=1,
    tip="tip",
    begun="base",
    own=frozenset({"tip"}),
    before={"a.py": "old"},
    after={"a.py": "new"},
)
BASE = Revision(id="base", parents=(), author="Ada", email="ada@localhost", at=AT - DAY)


def commit(
    id: str,
    *parents: str,
    after: timedelta = HOUR,
    email: str = "ada@localhost",
    reverts: str = "",
    **files: tuple[str, str],
) -> Revision:
    """A commit some time after the merge; each file with its content before and after."""
    changes = [
        CommitFileChange(path=f"{stem}.py", before=before, after=now)
        for stem, (before, now) in files.items()
    ]
    return Revision(
        id=id,
        parents=parents,
        author="Ada",
        email=email,
        at=AT + after,
        reverts=frozenset({reverts} - {""}),
        changes=tuple(changes),
    )


TIP = commit("tip", "base", after=-HOUR, email="midwatch@localhost", a=("old", "new"))
MERGE = commit("merge", "base", "tip", after=timedelta(), a=("old", "new"))


def became(
    *later: Revision,
    at: timedelta = 2 * HOUR,
    stored: VerdictBasis | None = None,
    settings: FeedbackSettings = SETTINGS,
) -> VerdictBasis | None:
    """What became of the work by some time after its merge; each commit follows the one before."""
    history = [BASE, TIP, MERGE, *later]
    return judged(history, MergePoint(place=1, at=AT), at=at, stored=stored, settings=settings)


def judged(
    history: Sequence[Revision],
    merge: MergePoint,
    *,
    at: timedelta,
    stored: VerdictBasis | None = None,
    settings: FeedbackSettings = SETTINGS,
) -> VerdictBasis | None:
    """What became of work that a branch of this history took in there."""
    known = branch_history(history, history[-1].id)
    assert merge_point(WORK, known) == merge
    judgement = judge(
        WORK,
        merge,
        known,
        agents=agents([WORK], {1: merge}, known),
        stored=stored,
        settings=settings,
        now=AT + at,
    )
    return judgement.sign if judgement else None


EDIT = commit("edit", "merge", a=("new", "mine"))
REVERT = commit("revert", "merge", reverts="merge", a=("new", "old"))
AGAIN = commit("again", "revert", reverts="revert", a=("old", "new"))


@pytest.mark.parametrize(
    ("at", "sign"),
    [
        (DAY - timedelta(seconds=1), None),
        (DAY, VerdictBasis.KEPT),
        (30 * DAY, VerdictBasis.KEPT),
        (30 * DAY + timedelta(seconds=1), None),
    ],
)
def test_r41_work_is_kept_after_a_day_and_looked_at_for_thirty(
    at: timedelta, sign: VerdictBasis | None
) -> None:
    assert became(at=at) is sign


@pytest.mark.parametrize("off", ["kept_after", "watched_for"])
def test_r45_a_time_of_nothing_accepts_nothing(off: str) -> None:
    assert became(at=2 * DAY, settings=FeedbackSettings.model_validate({off: 0})) is None


def test_r42_an_edit_is_a_rejection_at_once() -> None:
    assert became(EDIT) is VerdictBasis.EDITED


def test_r42_an_edit_that_was_undone_is_none_and_the_time_begins_anew() -> None:
    undone = commit("undone", "edit", after=5 * HOUR, a=("mine", "new"))
    assert became(EDIT, undone, at=DAY + 4 * HOUR) is None
    assert became(EDIT, undone, at=DAY + 5 * HOUR) is VerdictBasis.KEPT


def test_r42_after_kept_an_edit_is_new_work() -> None:
    assert became(EDIT, stored=VerdictBasis.KEPT) is None


def test_r10_an_edit_that_came_before_the_merge_is_none() -> None:
    before = commit("before", "base", after=-HOUR / 2, a=("old", "mine"))
    merge = commit("merge", "before", "tip", after=timedelta(), a=("mine", "both"))
    history = [BASE, before, TIP, merge]
    assert judged(history, MergePoint(place=2, at=AT), at=DAY) is VerdictBasis.KEPT


@pytest.mark.parametrize("stored", [None, VerdictBasis.KEPT, VerdictBasis.EDITED])
def test_r43_a_revert_overturns_whatever_was_stored(stored: VerdictBasis | None) -> None:
    assert became(REVERT, stored=stored) is VerdictBasis.REVERTED


@pytest.mark.parametrize("later", [(REVERT,), (EDIT,), (REVERT, AGAIN)])
def test_r43_a_revert_is_final(later: Sequence[Revision]) -> None:
    assert became(*later, at=2 * DAY, stored=VerdictBasis.REVERTED) is None


def test_r43_a_revert_that_was_taken_back_before_anybody_looked_is_none() -> None:
    assert became(REVERT, AGAIN) is None


def test_r43_a_revert_of_a_part_is_one() -> None:
    part = commit("part", "merge", reverts="tip", a=("new", "between"))
    assert became(part) is VerdictBasis.REVERTED


def test_c17_an_agents_revert_is_no_verdict() -> None:
    assert became(commit("r", "merge", email="midwatch@localhost", a=("new", "old"))) is None


def test_c17_work_that_agents_took_back_is_not_kept() -> None:
    back = commit("back", "merge", email="midwatch@localhost", a=("new", "old"))
    assert became(back, at=2 * DAY) is None


def test_c17_a_persons_merge_of_agents_work_is_no_edit_and_one_of_her_own_is() -> None:
    """Who changed the file on the branch that it brings in, is what counts."""
    for email, sign in (("midwatch@localhost", None), ("ada@localhost", VerdictBasis.EDITED)):
        side = commit("side", "merge", email=email, a=("new", "other"))
        bring = commit("bring", "merge", "side", a=("new", "other"))
        assert became(side, bring) is sign


def test_r11_work_is_found_by_its_content_where_its_commits_are_not_there() -> None:
    squash = commit("squash", "base", after=timedelta(), a=("old", "new"))
    known = branch_history([BASE, squash], "squash", [("squash", AT + HOUR)])
    assert merge_point(WORK, known) == MergePoint(place=1, at=AT + HOUR)


@pytest.mark.parametrize("text", ["mine", "old"])
def test_r45_other_content_is_no_merge(text: str) -> None:
    known = branch_history([BASE, commit("other", "base", a=("x", text))], "other")
    assert merge_point(WORK, known) is None


def test_r11_without_a_log_of_the_branch_nobody_knows_when_it_took_the_work_as_it_is() -> None:
    merge = MergePoint(place=1, at=AT - HOUR, sure=False)
    assert judged([BASE, TIP], merge, at=9 * DAY) is None
