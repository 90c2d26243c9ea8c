"""What became of merged work, judged by the history of the branch that took it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from midwatch_monitor.config.learning import FeedbackSettings
from midwatch_monitor.records import VerdictBasis
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
from midwatch_tests.factories import AT

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


def outcome_after(
    *later: Revision,
    at: timedelta = 2 * HOUR,
    stored: VerdictBasis | None = None,
    settings: FeedbackSettings = SETTINGS,
) -> VerdictBasis | None:
    """What became of the work by some time after its merge; each commit follows the one before."""
    history = [BASE, TIP, MERGE, *later]
    return judge_history(
        history, MergePoint(place=1, at=AT), at=at, stored=stored, settings=settings
    )


def judge_history(
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


UNDONE = commit("undone", "edit", after=5 * HOUR, a=("mine", "new"))
PART = commit("part", "merge", reverts="tip", a=("new", "between"))
BACK = commit("back", "merge", email="midwatch@localhost", a=("new", "old"))
MOMENT = timedelta(seconds=1)
KEPT, EDITED, REVERTED = VerdictBasis.KEPT, VerdictBasis.EDITED, VerdictBasis.REVERTED
COURSES = {
    "r41 not kept for a day": ((), DAY - MOMENT, None, None),
    "r41 kept for one day": ((), DAY, None, KEPT),
    "r41 looked at for 30": ((), 30 * DAY, None, KEPT),
    "r41 and no longer": ((), 30 * DAY + MOMENT, None, None),
    "r42 an edit, at once": ((EDIT,), 2 * HOUR, None, EDITED),
    "r42 undone, the time begins anew": ((EDIT, UNDONE), DAY + 4 * HOUR, None, None),
    "r42 undone and kept since": ((EDIT, UNDONE), DAY + 5 * HOUR, None, KEPT),
    "r42 an edit after kept is new work": ((EDIT,), 2 * HOUR, KEPT, None),
    "r43 a revert": ((REVERT,), 2 * HOUR, None, REVERTED),
    "r43 a revert overturns kept": ((REVERT,), 2 * HOUR, KEPT, REVERTED),
    "r43 a revert overturns edited": ((REVERT,), 2 * HOUR, EDITED, REVERTED),
    "r43 a revert is final": ((REVERT,), 2 * DAY, REVERTED, None),
    "r43 also when edited": ((EDIT,), 2 * DAY, REVERTED, None),
    "r43 also when taken back": ((REVERT, AGAIN), 2 * DAY, REVERTED, None),
    "r43 taken back before anybody looked": ((REVERT, AGAIN), 2 * HOUR, None, None),
    "r43 a revert of a part": ((PART,), 2 * HOUR, None, REVERTED),
    "c17 an agent's revert is no verdict": ((BACK,), 2 * HOUR, None, None),
    "c17 nor is it kept": ((BACK,), 2 * DAY, None, None),
}


@pytest.mark.parametrize(("later", "at", "stored", "sign"), COURSES.values(), ids=COURSES)
def test_what_became_of_work(
    later: Sequence[Revision], at: timedelta, stored: VerdictBasis | None, sign: VerdictBasis | None
) -> None:
    assert outcome_after(*later, at=at, stored=stored) is sign


@pytest.mark.parametrize("off", ["kept_after", "watched_for"])
def test_r45_a_time_of_nothing_accepts_nothing(off: str) -> None:
    assert outcome_after(at=2 * DAY, settings=FeedbackSettings.model_validate({off: 0})) is None


def test_r10_an_edit_that_came_before_the_merge_is_none() -> None:
    before = commit("before", "base", after=-HOUR / 2, a=("old", "mine"))
    merge = commit("merge", "before", "tip", after=timedelta(), a=("mine", "both"))
    history = [BASE, before, TIP, merge]
    assert judge_history(history, MergePoint(place=2, at=AT), at=DAY) is VerdictBasis.KEPT


def test_c17_a_persons_merge_of_agents_work_is_no_edit_and_one_of_her_own_is() -> None:
    """Who changed the file on the branch that it brings in, is what counts."""
    for email, sign in (("midwatch@localhost", None), ("ada@localhost", EDITED)):
        side = commit("side", "merge", email=email, a=("new", "other"))
        bring = commit("bring", "merge", "side", a=("new", "other"))
        assert outcome_after(side, bring) is sign


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
    assert judge_history([BASE, TIP], merge, at=9 * DAY) is None


A, B, NONE = "a" * 40, "b" * 40, "0" * 40
FIRST = f"\x1e{A}\0\0Ada\0ada@localhost\x001763755200\0First\n\0\0"
SECOND = (
    f"\x1e{B}\0{A}\0Bob\0bob@localhost\x001763758800\0"
    f"Revert it\n\nThis reverts commit {A}.\n\0\0\n"
    f":100644 100644 {A} {B} M\0a b.py\0:100644 000000 {A} {NONE} D\0c.py\0"
    f":100644 100644 {A} {A} R100\0old.py\0new.py\0\0"
)


def test_a_log_is_read() -> None:
    first = Revision(
        id=A,
        parents=(),
        author="Ada",
        email="ada@localhost",
        at=datetime(2025, 11, 21, 20, tzinfo=UTC),
        said="First",
    )
    second = Revision(
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
    )
    assert list(revisions(SECOND + FIRST)) == [second, first]
    assert list(changes(f":000000 100644 {NONE} {A} A\0a.py\0")) == [
        CommitFileChange(path="a.py", before="", after=A)
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


def test_a_merge_brings_in_what_its_other_parents_have() -> None:
    known = {each.id: each for each in revisions(SECOND + FIRST)}
    merge = Revision(id="m", parents=(A, B), author="", email="", at=known[A].at)
    found = branch_history([*known.values(), merge], "m")
    assert [each.id for each in found.line] == [A, "m"]
    assert found.places == {A: 0, B: 1, "m": 1}
    assert found.side == {1: (known[B],)}


LOG = (
    "fix2\0merge\0ada@localhost\x001763755203\n"
    "merge\0fix1 main\0ada@localhost\x001763755203\n"
    "fix1\0kept\0ada@localhost\x001763755202\n"
    "kept\0made\0midwatch@localhost\x001763755202\n"
    "made\0base\0ada@localhost\x001763755200\n"
)


BRANCHES = {
    "after the attempt's own": (LOG, "kept", {"made", "kept", "merge"}, {"fix2", "fix1"}),
    "nothing else": ("fix2\0base\0ada@localhost\x001763755202\n", "base", set[str](), {"fix2"}),
}


@pytest.mark.parametrize(("log", "tip", "own", "fixes"), BRANCHES.values(), ids=BRANCHES)
def test_what_is_committed_on_a_branch_after_the_end_of_its_attempt_is_a_persons(
    log: str, tip: str, own: set[str], fixes: set[str]
) -> None:
    found = branch(log, "fix2", datetime(2025, 11, 21, 20, 0, 1, tzinfo=UTC))
    assert found == Branch(tip=tip, own=frozenset(own), fixes=frozenset(fixes))
