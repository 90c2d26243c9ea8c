"""What an edit makes of a file: something new, the same, or what it was before."""

import pytest

from midwatch_monitor.records import Edit, Writer
from midwatch_monitor.rules.memory import Contents, Touch, marks

NEW, SAME, BACK = (
    Touch("a.py", new=True),
    Touch("a.py", same=True),
    Touch("a.py", back=True),
)


def write(
    digest: str = "", *, path: str = "a.py", by: Writer = Writer.WORKER, deleted: bool = False
) -> Edit:
    return Edit(path=path, digest=digest, writer=by, deleted=deleted)


def touches(*edits: Edit) -> list[Touch]:
    contents = Contents()
    return [touch for edit in edits for touch in contents.observe(marks([edit]))]


def test_a_content_is_new_the_same_or_one_of_before() -> None:
    found = touches(*(write(each) for each in "1123121"))
    assert found == [NEW, SAME, NEW, NEW, BACK, BACK, BACK]


def test_the_same_content_in_another_file_is_new() -> None:
    assert touches(write("1"), write("1", path="b.py")) == [NEW, Touch("b.py", new=True)]


def test_without_a_digest_nothing_is_known_of_an_edit_and_of_the_file_after_it() -> None:
    assert touches(write("1"), write(), write("1")) == [NEW, Touch("a.py"), BACK]


def test_a_deletion_is_nothing_new_and_twice_is_the_same() -> None:
    gone = write(deleted=True)
    assert touches(write("1"), gone, gone, write("1"), gone) == [
        NEW,
        Touch("a.py"),
        SAME,
        BACK,
        BACK,
    ]


@pytest.mark.parametrize("by", [Writer.PERSON, Writer.OTHER])
def test_what_others_write_is_learned_but_not_told(by: Writer) -> None:
    assert touches(write("1", by=by), write("1"), write("2"), write("1")) == [SAME, NEW, BACK]


def test_of_several_edits_of_a_file_in_one_step_the_last_counts() -> None:
    contents = Contents()
    assert contents.observe(marks([write("1"), write("2", path="b.py"), write("3")])) == (
        NEW,
        Touch("b.py", new=True),
    )
    assert contents.observe(marks([write("4"), write("1")])) == (BACK,)
