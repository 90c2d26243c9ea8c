"""Who waits for whom, and which files are meant. Pure."""

import pytest

from midwatch_supervisor.run.next_attempt import circular
from midwatch_supervisor.workspaces.changes import match_names

WAITS = {"a": ("b",), "b": ("c",), "c": (), "d": ("d",)}


@pytest.mark.parametrize(
    ("who", "whom", "circle"),
    [
        ("c", "a", True),
        ("b", "a", True),
        ("a", "c", False),
        ("a", "a", True),
        ("a", "d", False),
        ("a", "unknown", False),
    ],
)
def test_a_wait_for_somebody_who_waits_for_oneself_is_a_circle(
    who: str, whom: str, circle: bool
) -> None:
    assert circular(WAITS, who, whom) is circle


NAMES = ("a.py", "src/a.py", "src/deep/b.py", "src.txt")


@pytest.mark.parametrize(
    ("globs", "kept"),
    [
        ((), ()),
        (("**",), NAMES),
        (("a.py",), ("a.py",)),
        (("./src/",), ("src/a.py", "src/deep/b.py")),
        (("src",), ("src/a.py", "src/deep/b.py")),
        (("**/*.py",), ("a.py", "src/a.py", "src/deep/b.py")),
        (("src/**", "*.txt"), ("src/a.py", "src/deep/b.py", "src.txt")),
    ],
)
def test_paths_folders_and_globs_name_files(globs: tuple[str, ...], kept: tuple[str, ...]) -> None:
    assert match_names(NAMES, globs) == kept
