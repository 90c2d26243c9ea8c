"""Edits count as they are observed: by path, by content, by writer."""

from collections.abc import Sequence
from typing import Any

import pytest

from midwatch_monitor.config.rules import RepeatedEdits, RevertChurn
from midwatch_monitor.records import (
    AlertKey,
    Edit,
    Finding,
    Movement,
    Resolution,
    Severity,
    Step,
    StepKind,
    Writer,
)
from midwatch_monitor.rules.act import Act, CheckKind
from midwatch_monitor.rules.detector import NO_ECHO, Clear, Echo, Moved, Repeat, RuleAnswer, Seen
from midwatch_monitor.rules.edits import MAX_FILES, RepeatedEditsDetector, RevertChurnDetector
from midwatch_monitor.rules.memory import Contents, marks

SEED = RepeatedEdits(
    notice_after=0, warn_after=0, critical_after=5, return_weight=1, movement_resets=False
)

EACH = SEED.model_copy(update={"critical_after": 1, "return_weight": 2, "movement_resets": True})
"""Shows every count as the value of a finding."""

KEY = AlertKey(rule="repeated_edits", subject="a.py")


class Run:
    """A run of edits, numbered."""

    def __init__(self, settings: RepeatedEdits) -> None:
        self.detector = RepeatedEditsDetector(settings)
        self.contents = Contents()
        self.step = 0

    def edit(self, *edits: Edit, moved: Movement | None = None) -> Sequence[RuleAnswer]:
        self.step += 1
        step = Step(number=self.step, kind=StepKind.TOOL, tool="edit_file", edits=edits)
        kinds = frozenset({moved}) if moved else frozenset[Movement]()
        seen = Moved(kinds, touches=self.contents.observe(marks(edits)))
        return self.detector.observe(step, Seen(Act(self.step, work=True), seen))

    def add(self, edit: Edit) -> Sequence[RuleAnswer]:
        """An edit that changes nothing of what stands there."""
        act = self._act(adds=True)
        moved = Moved(touches=self.contents.observe(marks((edit,))))
        return self.detector.observe(self._step, Seen(act, moved))

    def check(
        self, failure: int = 0, *, tests: bool = True, again: bool = False, writes: str = ""
    ) -> Sequence[RuleAnswer]:
        """A check that passes, or fails in the way of this number."""
        act = self._act(
            check=CheckKind.TESTS if tests else CheckKind.RUN,
            failed=bool(failure),
            failure=failure << 40,  # a digest has 64 bits
            changes=bool(writes),
        )
        edits = (write(f"by {self.step}", path=writes),) if writes else ()
        moved = Moved(touches=self.contents.observe(marks(edits)))
        echo = Echo(Repeat.VERIFIED, 2, 1) if again else NO_ECHO
        return self.detector.observe(self._step, Seen(act, moved, echo))

    def _act(self, **fields: Any) -> Act:
        self.step += 1
        return Act(number=self.step, work=True, **fields)

    @property
    def _step(self) -> Step:
        return Step(number=self.step, kind=StepKind.TOOL, tool="bash")

    def count(self, *edits: Edit, moved: Movement | None = None) -> float | None:
        """The count of the last finding of this step."""
        found = [each for each in self.edit(*edits, moved=moved) if isinstance(each, Finding)]
        return found[-1].value if found else None


def write(
    digest: str = "", *, path: str = "a.py", by: Writer = Writer.WORKER, deleted: bool = False
) -> Edit:
    return Edit(path=path, digest=digest, writer=by, deleted=deleted)


def severities(answers: Sequence[RuleAnswer]) -> list[Severity]:
    return [each.severity for each in answers if isinstance(each, Finding)]


def test_by_default_the_eighth_edit_is_noticed_and_the_sixteenth_without_a_check_warns() -> None:
    run = Run(RepeatedEdits())
    found = [severities(run.edit(write(f"d{n}"))) for n in range(1, 21)]
    notice, warning = [Severity.NOTICE], [Severity.WARNING]
    assert found == [*[[]] * 7, *[notice] * 8, *[warning] * 5]


def test_edits_whose_check_fails_the_same_way_each_time_warn() -> None:
    run = Run(RepeatedEdits())
    run.check(failure=7)
    found: list[Finding] = []
    for number in range(16):
        found += [each for each in run.edit(write(f"d{number}")) if isinstance(each, Finding)]
        run.check(failure=7)
    assert found[-1].severity is Severity.WARNING
    assert found[-1].summary == ("a.py keeps changing: 16 edits counted, checks show nothing new")


def test_edits_whose_check_fails_in_another_way_each_time_are_no_alarm() -> None:
    run = Run(RepeatedEdits())
    found: list[Severity] = []
    for number in range(30):
        found += severities(run.edit(write(f"d{number}")))
        run.check(failure=number + 1)
    assert set(found) == {Severity.NOTICE}


def test_a_check_that_tells_something_new_ends_a_warning() -> None:
    run = Run(RepeatedEdits())
    for number in range(16):
        run.edit(write(f"d{number}"))
    assert run.check(failure=7) == [Clear(key=KEY)]
    assert severities(run.edit(write("more"))) == [Severity.NOTICE]


def test_edits_that_only_add_are_no_alarm_however_many_they_are() -> None:
    run = Run(RepeatedEdits())
    found = [severity for n in range(30) for severity in severities(run.add(write(f"d{n}")))]
    assert set(found) == {Severity.NOTICE}


def test_a_program_that_says_the_same_as_before_confirms_nothing() -> None:
    run = Run(EACH)
    run.edit(write("1"))
    run.check(tests=False, again=True)
    assert run.count(write("2")) == 2
    run.check(tests=False)
    assert run.count(write("3")) == 1


def test_a_program_that_writes_a_file_confirms_nothing_of_that_file() -> None:
    run = Run(EACH)
    run.edit(write("1"), write("1", path="b.py"))
    run.check(tests=False, writes="a.py")
    assert run.count(write("2")) == 3
    assert run.count(write("2", path="b.py")) == 1


def test_where_checks_confirm_nothing_every_edit_counts() -> None:
    run = Run(SEED)
    for number in range(4):
        run.add(write(f"d{number}"))
        run.check()
    assert severities(run.add(write("last"))) == [Severity.CRITICAL]


def test_a_finding_names_the_file_and_its_steps() -> None:
    run = Run(SEED.model_copy(update={"critical_after": 2}))
    run.edit(write("1"))
    assert run.edit(write("2")) == [
        Finding(
            key=KEY,
            severity=Severity.CRITICAL,
            value=2,
            summary="a.py keeps changing: 2 edits counted, no check in between",
            evidence=(1, 2),
        )
    ]


def test_without_a_digest_every_edit_counts_one() -> None:
    run = Run(EACH)
    assert [run.count(write()) for _ in range(3)] == [1, 2, 3]


def test_a_return_to_an_earlier_content_weighs_more() -> None:
    run = Run(EACH)
    assert [run.count(write(each)) for each in ("1", "2", "1", "3")] == [1, 2, 4, 5]


def test_deleting_a_file_is_an_edit_and_doing_it_twice_is_not() -> None:
    run = Run(EACH)
    gone = write(deleted=True)
    assert [run.count(each) for each in (write("1"), gone, gone)] == [1, 2, None]


@pytest.mark.parametrize("by", [Writer.PERSON, Writer.OTHER])
def test_what_others_write_counts_for_nothing_but_becomes_known(by: Writer) -> None:
    run = Run(EACH)
    assert run.count(write("1", by=by)) is None
    assert run.count(write("1")) is None
    assert run.count(write("2")) == 1
    assert run.count(write("1")) == 3


def test_a_step_counts_once_for_a_file_however_often_it_writes() -> None:
    run = Run(EACH)
    assert run.count(write("1"), write("2"), write("3")) == 1


@pytest.mark.parametrize("kind", [Movement.CHECK_PASSED, Movement.FEWER_FAILURES])
def test_movement_starts_the_count_anew_and_the_steps_own_edit_comes_after(kind: Movement) -> None:
    run = Run(EACH)
    run.edit(write("1"))
    run.edit(write("2"))
    answers = run.edit(write("3"), moved=kind)
    assert answers[0] == Clear(key=KEY)
    assert isinstance(answers[1], Finding)
    assert answers[1].value == 1


@pytest.mark.parametrize(
    "kind",
    [Movement.NEW_CONTENT, Movement.NEW_FAILURE, Movement.CHECK_BROKEN, Movement.PLAN_STEP],
)
def test_other_movement_leaves_the_count(kind: Movement) -> None:
    run = Run(EACH)
    run.edit(write("1"))
    assert run.count(write("2"), moved=kind) == 2


def test_where_movement_does_not_reset_a_passing_check_only_clears() -> None:
    run = Run(SEED.model_copy(update={"critical_after": 2}))
    run.edit(write("1"))
    run.edit(write("2"))
    assert run.edit(moved=Movement.FEWER_FAILURES) == []
    assert run.edit(moved=Movement.CHECK_PASSED) == [Clear(key=KEY)]
    assert run.count(write("3")) == 3


def test_a_restart_empties_the_counts_but_not_what_files_contain() -> None:
    run = Run(EACH)
    run.edit(write("1"))
    run.detector.restart()
    assert run.count(write("1")) is None
    assert run.count(write("2")) == 1


def test_evidence_is_the_newest_twelve_steps() -> None:
    run = Run(EACH)
    for number in range(29):
        run.edit(write(f"{number}"))
    [answer] = run.edit(write("last"))
    assert isinstance(answer, Finding)
    assert answer.evidence == tuple(range(19, 31))


def test_the_file_least_recently_edited_is_dropped_and_that_is_no_recovery() -> None:
    run = Run(EACH)
    for number in range(MAX_FILES):
        run.edit(write("1", path=f"{number}"))
    run.edit(write("2", path="0"))
    dropped = AlertKey(rule="repeated_edits", subject="1")
    assert run.edit(write("1", path="new"))[0] == Clear(
        key=dropped, resolution=Resolution.RESTARTED
    )


def test_of_a_dropped_file_of_which_nothing_was_found_nothing_is_said() -> None:
    run = Run(SEED)
    answers = [run.edit(write("1", path=f"{number}")) for number in range(MAX_FILES + 1)]
    assert not any(answers)


def test_what_others_write_pushes_no_file_out() -> None:
    run = Run(EACH)
    run.edit(write("1"))
    run.edit(*(write("1", path=f"{n}", by=Writer.OTHER) for n in range(10 * MAX_FILES)))
    assert run.count(write("2")) == 2


CHURN = AlertKey(rule="revert_churn", subject="a.py")


class ChurnRun:
    """A run of edits, numbered."""

    def __init__(self, *, window: int = 30) -> None:
        settings = RevertChurn(window=window, notice_after=3, warn_after=5)
        self.detector = RevertChurnDetector(settings)
        self.contents = Contents()
        self.step = 0

    def feed(self, *edits: Edit, reverted: tuple[str, ...] = ()) -> Sequence[RuleAnswer]:
        self.step += 1
        step = Step(number=self.step, kind=StepKind.TOOL, tool="t", edits=edits)
        act = Act(self.step, work=True, edits=edits, reverted=reverted)
        moved = Moved(touches=self.contents.observe(marks(edits)))
        return self.detector.observe(step, Seen(act, moved))

    def write(self, digests: str, *, path: str = "a.py") -> list[float | None]:
        return [self.value(*self.feed(Edit(path=path, digest=each))) for each in digests]

    @staticmethod
    def value(*answers: RuleAnswer) -> float | None:
        found = [each for each in answers if isinstance(each, Finding)]
        return found[0].value if found else None


def test_the_third_return_is_noticed_and_the_fifth_warns() -> None:
    assert ChurnRun().write("12121212") == [None, None, None, None, 3, 4, 5, 6]


def test_a_finding_names_the_file_and_the_steps_that_went_back() -> None:
    run = ChurnRun()
    run.write("121x2")
    assert run.feed(Edit(path="a.py", digest="1")) == [
        Finding(
            key=CHURN,
            severity=Severity.NOTICE,
            value=3,
            summary="a.py went back to an earlier version 3 times in 30 steps",
            evidence=(3, 5, 6),
        )
    ]


@pytest.mark.parametrize("digests", ["123456789", "111111111", "121"])
def test_going_on_staying_and_going_back_once_are_no_churn(digests: str) -> None:
    assert set(ChurnRun().write(digests)) == {None}


def test_a_command_whose_edit_is_seen_too_counts_once() -> None:
    run = ChurnRun()
    run.write("12")
    values = [
        run.value(*run.feed(Edit(path="a.py", digest=each), reverted=("a.py",))) for each in "121"
    ]
    assert values == [None, None, 3]


def test_edits_without_a_digest_are_no_return() -> None:
    run = ChurnRun()
    assert {run.value(*run.feed(Edit(path="a.py"))) for _ in range(9)} == {None}


def test_to_delete_and_to_write_again_is_to_go_back_and_forth() -> None:
    run = ChurnRun()
    gone, back = Edit(path="a.py", deleted=True), Edit(path="a.py", digest="1")
    values = [run.value(*run.feed(each)) for each in (back, gone, back, gone, back)]
    assert values == [None, None, None, None, 3]


def test_files_are_counted_apart_and_do_not_end_each_other() -> None:
    run = ChurnRun()
    run.write("12121")
    assert run.write("343", path="b.py") == [None, None, None]
    assert run.write("2") == [4]


def test_returns_outside_of_the_window_count_no_longer() -> None:
    run = ChurnRun(window=4)
    assert run.write("1212") == [None, None, None, None]
    run.write("56")
    assert run.write("12") == [None, None]


def test_what_no_longer_happens_is_over_once_the_window_is() -> None:
    run = ChurnRun(window=4)
    run.write("12121")
    answers = [run.feed() for _ in range(4)]
    assert answers == [(), (), (), (Clear(key=CHURN),)]


def test_a_restart_empties_the_count_but_not_what_files_contained() -> None:
    run = ChurnRun()
    run.write("12121")
    run.detector.restart()
    assert run.write("212") == [None, None, 3]
