"""What became of merged work, judged by the history of the branch that took it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from midwatch_monitor.config.learning import FeedbackSettings
from midwatch_monitor.records import VerdictBasis
from midwatch_stage.factories import AT
from midwatch_supervisor.learning.merge_outcome import (
    Branch,
    BranchWork,
    CommitFileChange,
    MergePoint,
    Revision,
    agents,
    branch,
    branch_history,
    changes,
    judge,
    merge_point,
    revisions,
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
def test_r41_kept_after_one_day_looked_at_for_30(at: timedelta, sign: VerdictBasis | None) -> None:
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


A, B, NONE = "a" * 40, "b" * 40, "0" * 40
FIRST = f"\x1e{A}\0\0Ada\0ada@localhost\x001763755200\0First\n\0\0"
SECOND = (
    f"\x1e{B}\0{A}\0Bob\0bob@localhost\x001763758800\0"
    f"Revert it\n\nThis reverts commit {A}.\n\0\0\n"
    f":100644 100644 {A} {B} M\0a b.py\0:100644 000000 {A} {NONE} D\0c.py\0"
    f":100644 100644 {A} {A} R100\0old.py\0new.py\0\0"
)


def test_a_log_is_read() -> None:
    assert list(revisions(SECOND + FIRST)) == [
        Revision(
            id=B,
            parents=(A,),
            author="Bob",
            email="bob@localhost",
            at=datetime(2025, 11, 21, 21, tzinfo=UTC),
            reverts=frozenset({A}),
            said="Revert it",
            changes=(
                CommitFileChange(path="a b.py", before=A, after=B),
                CommitFileChange(path="c.py", before=A, after=""),
                CommitFileChange(path="new.py", before=A, after=A, origin="old.py"),
            ),
        ),
        Revision(
            id=A,
            parents=(),
            author="Ada",
            email="ada@localhost",
            at=datetime(2025, 11, 21, 20, tzinfo=UTC),
            said="First",
        ),
    ]


def test_what_git_itself_writes_of_a_revert_is_nobodys_word() -> None:
    message = f'Revert "First"\n\nThis reverts commit {A}.\n\nIt broke the export.\n'
    (revision,) = revisions(FIRST.replace("First\n", message))
    assert revision.said == "It broke the export."


@pytest.mark.parametrize("log", ["nothing", f"\x1e{A}\0\0Ada", f"\x1e{A}\0\0Ada\0a@b\0soon\0x\0\0"])
def test_what_is_no_log_is_refused(log: str) -> None:
    with pytest.raises(ValueError, match=r"unpack|invalid literal|begin with a commit"):
        list(revisions(log))


def test_a_message_may_hold_any_separator() -> None:
    odd = FIRST.replace("First", f"\x1e\x1f\x1e{B}\x1f First")
    read = [replace(each, said="") for each in revisions(SECOND + odd)]
    assert read == [replace(each, said="") for each in revisions(SECOND + FIRST)]


def test_a_new_file_has_no_content_before() -> None:
    assert list(changes(f":000000 100644 {NONE} {A} A\0a.py\0")) == [
        CommitFileChange(path="a.py", before="", after=A)
    ]


def test_a_merge_brings_in_what_its_other_parents_have() -> None:
    known = {each.id: each for each in revisions(SECOND + FIRST)}
    merge = Revision(id="m", parents=(A, B), author="", email="", at=known[A].at)
    found = branch_history([*known.values(), merge], "m")
    assert [each.id for each in found.line] == [A, "m"]
    assert found.places == {A: 0, B: 1, "m": 1}
    assert found.side == {1: (known[B],)}


def test_what_is_committed_on_a_branch_after_the_end_of_its_attempt_is_a_persons() -> None:
    log = (
        "fix2\0merge\0ada@localhost\x001763755203\n"
        "merge\0fix1 main\0ada@localhost\x001763755203\n"
        "fix1\0kept\0ada@localhost\x001763755202\n"
        "kept\0made\0midwatch@localhost\x001763755202\n"
        "made\0base\0ada@localhost\x001763755200\n"
    )
    ended = datetime(2025, 11, 21, 20, 0, 1, tzinfo=UTC)
    assert branch(log, "fix2", ended) == Branch(
        tip="kept", own=frozenset({"made", "kept", "merge"}), fixes=frozenset({"fix1", "fix2"})
    )


def test_a_branch_with_nothing_but_a_persons_commits_ends_where_it_began() -> None:
    log = "fix\0base\0ada@localhost\x001763755202\n"
    found = branch(log, "fix", datetime(2025, 11, 21, 20, 0, 1, tzinfo=UTC))
    assert found == Branch(tip="base", own=frozenset(), fixes=frozenset({"fix"}))
