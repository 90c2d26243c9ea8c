"""A file that goes back again and again to what it was."""

from collections.abc import Sequence

import pytest

from midwatch_monitor.config.rules import RevertChurn
from midwatch_monitor.records import AlertKey, Edit, Finding, Severity, Step, StepKind
from midwatch_monitor.rules.act import Act
from midwatch_monitor.rules.detector import Answer, Clear, Moved, Seen
from midwatch_monitor.rules.edits import RevertChurnDetector
from midwatch_monitor.rules.memory import Contents, marks

KEY = AlertKey(rule="revert_churn", subject="a.py")


class Run:
    """A run of edits, numbered."""

    def __init__(self, *, window: int = 30) -> None:
        settings = RevertChurn(window=window, notice_after=3, warn_after=5)
        self.detector = RevertChurnDetector(settings)
        self.contents = Contents()
        self.step = 0

    def feed(self, *edits: Edit, reverted: tuple[str, ...] = ()) -> Sequence[Answer]:
        self.step += 1
        step = Step(number=self.step, kind=StepKind.TOOL, tool="t", edits=edits)
        act = Act(self.step, work=True, edits=edits, reverted=reverted)
        moved = Moved(touches=self.contents.observe(marks(edits)))
        return self.detector.observe(step, Seen(act, moved))

    def write(self, digests: str, *, path: str = "a.py") -> list[float | None]:
        return [self.value(*self.feed(Edit(path=path, digest=each))) for each in digests]

    @staticmethod
    def value(*answers: Answer) -> float | None:
        found = [each for each in answers if isinstance(each, Finding)]
        return found[0].value if found else None


def test_the_third_return_is_noticed_and_the_fifth_warns() -> None:
    assert Run().write("12121212") == [None, None, None, None, 3, 4, 5, 6]


def test_a_finding_names_the_file_and_the_steps_that_went_back() -> None:
    run = Run()
    run.write("121x2")
    assert run.feed(Edit(path="a.py", digest="1")) == [
        Finding(
            key=KEY,
            severity=Severity.NOTICE,
            value=3,
            summary="a.py went back to what it was 3 times in 30 steps",
            evidence=(3, 5, 6),
        )
    ]


@pytest.mark.parametrize("digests", ["123456789", "111111111", "121"])
def test_going_on_staying_and_going_back_once_are_no_churn(digests: str) -> None:
    assert set(Run().write(digests)) == {None}


def test_a_file_put_back_by_a_command_went_back() -> None:
    run = Run()
    values = [run.value(*run.feed(reverted=("a.py",))) for _ in range(3)]
    assert values == [None, None, 3]


def test_a_command_whose_edit_is_seen_too_counts_once() -> None:
    run = Run()
    run.write("12")
    values = [
        run.value(*run.feed(Edit(path="a.py", digest=each), reverted=("a.py",))) for each in "121"
    ]
    assert values == [None, None, 3]


def test_edits_without_a_digest_are_no_return() -> None:
    run = Run()
    assert {run.value(*run.feed(Edit(path="a.py"))) for _ in range(9)} == {None}


def test_to_delete_and_to_write_again_is_to_go_back_and_forth() -> None:
    run = Run()
    gone, back = Edit(path="a.py", deleted=True), Edit(path="a.py", digest="1")
    values = [run.value(*run.feed(each)) for each in (back, gone, back, gone, back)]
    assert values == [None, None, None, None, 3]


def test_files_are_counted_apart_and_do_not_end_each_other() -> None:
    run = Run()
    run.write("12121")
    assert run.write("343", path="b.py") == [None, None, None]
    assert run.write("2") == [4]


def test_returns_outside_of_the_window_count_no_longer() -> None:
    run = Run(window=4)
    assert run.write("1212") == [None, None, None, None]
    run.write("56")
    assert run.write("12") == [None, None]


def test_what_no_longer_happens_is_over_once_the_window_is() -> None:
    run = Run(window=4)
    run.write("12121")
    answers = [run.feed() for _ in range(4)]
    assert answers == [(), (), (), (Clear(key=KEY),)]


def test_a_restart_empties_the_count_but_not_what_files_contained() -> None:
    run = Run()
    run.write("12121")
    run.detector.restart()
    assert run.write("212") == [None, None, 3]
