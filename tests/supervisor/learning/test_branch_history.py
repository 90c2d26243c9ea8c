"""Reading what git says of a branch's history."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from midwatch_supervisor.learning.merge_outcome import (
    Branch,
    CommitFileChange,
    Revision,
    branch,
    branch_history,
    changes,
    revisions,
)

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
