"""Reading what git says of a branch's history."""

from datetime import UTC, datetime

import pytest

from midwatch_supervisor.learning.chronicle import (
    FileChange,
    Revision,
    changes,
    chronicle,
    revisions,
)

A, B, NONE = "a" * 40, "b" * 40, "0" * 40
FIRST = f"\x1e{A}\x1f\x1fAda\x1fada@localhost\x1f1763755200\x1fFirst\n\x1f\0"
SECOND = (
    f"\x1e{B}\x1f{A}\x1fBob\x1fbob@localhost\x1f1763758800\x1f"
    f"Revert it\n\nThis reverts commit {A}.\n\x1f\0\n"
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
            changes=(
                FileChange(path="a b.py", before=A, after=B),
                FileChange(path="c.py", before=A, after=""),
                FileChange(path="new.py", before=A, after=A, origin="old.py"),
            ),
        ),
        Revision(
            id=A,
            parents=(),
            author="Ada",
            email="ada@localhost",
            at=datetime(2025, 11, 21, 20, tzinfo=UTC),
        ),
    ]


@pytest.mark.parametrize("log", ["\x1enothing", f"\x1e{A}\x1f\x1fAda\x1fa@b\x1fsoon\x1fx\x1f\0"])
def test_what_is_no_log_is_refused(log: str) -> None:
    with pytest.raises(ValueError, match=r"unpack|invalid literal"):
        list(revisions(log))


def test_a_new_file_has_no_content_before() -> None:
    assert list(changes(f":000000 100644 {NONE} {A} A\0a.py\0")) == [
        FileChange(path="a.py", before="", after=A)
    ]


def test_a_merge_brings_in_what_its_other_parents_have() -> None:
    known = {each.id: each for each in revisions(SECOND + FIRST)}
    merge = Revision(id="m", parents=(A, B), author="", email="", at=known[A].at)
    found = chronicle([*known.values(), merge], "m")
    assert [each.id for each in found.line] == [A, "m"]
    assert found.places == {A: 0, B: 1, "m": 1}
    assert found.side == {1: (known[B],)}
