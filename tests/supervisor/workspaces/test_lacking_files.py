"""What the files of a moved attempt lack, by its history."""

import pytest

from midwatch_monitor.records import Edit, Step, StepKind, Writer
from midwatch_supervisor.workspaces.snapshot_store import outdated_files, outdated_notice


def step(number: int, *edits: Edit) -> Step:
    return Step(number=number, kind=StepKind.TOOL, tool="put", edits=edits)


def edit(path: str, digest: str, writer: Writer = Writer.WORKER, *, deleted: bool = False) -> Edit:
    return Edit(path=path, digest=digest, writer=writer, deleted=deleted)


@pytest.mark.parametrize(
    ("steps", "lacks"),
    [
        ([], ()),
        ([step(1, edit("a", "there"))], ()),
        ([step(1, edit("a", "new"))], ("a",)),
        ([step(1, edit("b", "new"), edit("a", "new"))], ("a", "b")),
        ([step(1, edit("a", "new")), step(2, edit("a", "there"))], ()),
        ([step(1, edit("a", "", deleted=True))], ("a",)),
        ([step(1, edit("gone", "", deleted=True))], ()),
        ([step(1, edit("a", "new", Writer.PERSON))], ()),
    ],
)
def test_only_the_last_state_of_a_file_counts(steps: list[Step], lacks: tuple[str, ...]) -> None:
    assert outdated_files(steps, look) == lacks


def look(path: str) -> str:
    return {"a": "there"}.get(path, "")


@pytest.mark.parametrize(
    ("saved", "last", "state"),
    [
        (12, 17, "as of step 12; steps 13 to 17 changed: a.py, b.py"),
        (12, 13, "as of step 12; step 13 changed: a.py, b.py"),
        (0, 2, "as they were at the beginning; steps 1 to 2 changed: a.py, b.py"),
    ],
)
def test_a_worker_is_told_since_when_its_files_are_behind(
    saved: int, last: int, state: str
) -> None:
    assert outdated_notice(("a.py", "b.py"), saved=saved, last=last).message == (
        f"This attempt goes on on another machine. Its files are {state}; "
        "look before you rely on them."
    )


def test_many_files_are_counted_and_not_all_named() -> None:
    names = tuple(f"{n:02}.py" for n in range(30))
    assert "19.py and 10 more; look" in outdated_notice(names, saved=1, last=3).message
