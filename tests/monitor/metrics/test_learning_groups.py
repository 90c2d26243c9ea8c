"""What lessons are worth: intervals of differences, and treatment against control."""

from collections.abc import Iterator

import pytest

from midwatch_monitor.metrics.learning import LearningFigures, LearningTally
from midwatch_monitor.metrics.lessons import Cohort, ComparisonResult, EffortFigures
from midwatch_monitor.metrics.statistics import Share, difference, mean_difference
from midwatch_monitor.records import (
    AttemptTransition,
    Budget,
    Change,
    Ending,
    Entry,
    Feedback,
    Group,
    Lifecycle,
    Meter,
    Method,
    Origin,
    Recall,
    Recalled,
    Record,
    TaskTransition,
)
from midwatch_stage import factories
from midwatch_stage.factories import ended, entry

DONE, STUCK = ended(), ended(Ending.STUCK)
LESSONS = (Recalled(lesson=5, method=Method.TASK),)


@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((0, 10), (0, 10), -0.2775, 0.2775),
    ],
)
def test_the_difference_of_two_rates_has_newcombes_interval(
    first: tuple[int, int], second: tuple[int, int], low: float, high: float
) -> None:
    found = difference(Share(hits=first[0], of=first[1]), Share(hits=second[0], of=second[1]))
    assert found is not None
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


def test_of_an_empty_group_there_is_no_difference() -> None:
    assert difference(Share(hits=0, of=0), Share(hits=1, of=2)) is None
    assert mean_difference([1], [1, 2]) is None


def test_the_difference_of_two_means_is_wide_where_there_are_few() -> None:
    few = mean_difference([1, 1, 2], [3, 2, 3])
    many = mean_difference([1, 1, 2] * 10, [3, 2, 3] * 10)
    assert few is not None
    assert many is not None
    # By hand: -4/3, two variances of 1/9, and Student's 2.776 for 4 degrees of freedom.
    assert (round(few.low, 2), round(few.high, 2)) == (-2.64, -0.03)
    assert round(many.high - many.low, 2) == 0.5


def task(
    id: int, group: Group, *ends: AttemptTransition, tokens: int = 100, lessons: bool = True
) -> Iterator[Entry]:
    """The entries of a task whose attempts ended so; its attempts' ids are 10 times its own."""
    for number, end in enumerate(ends):
        attempt = 10 * id + number
        given = LESSONS if lessons and group is not Group.CONTROL else ()
        meter = Meter(used=tokens * (number + 1))
        records = (Recall(lessons=given, group=group), Change(budget=Budget(tokens=meter)), end)
        yield from (of(record, id, attempt) for record in records)
    last = Lifecycle.COMPLETED if ends[-1] is DONE else Lifecycle.FAILED
    yield of(TaskTransition(lifecycle=last), id, None)


def of(record: Record, task: int, attempt: int | None) -> Entry:
    return entry(1, record, task=task, attempt=attempt)


def study(
    with_them: int,
    without: int,
    *,
    each: int,
    same_task: bool = False,
    runs: int = 1,
    lessons: bool = True,
) -> LearningFigures:
    """Two groups of so many tasks each, so many of whose first attempts were accepted."""
    learning = LearningTally()
    for id in range(1, 2 * each * runs + 1):
        place = (id - 1) % (2 * each) + 1
        treated = place <= each
        good = place <= with_them if treated else place - each <= without
        group = Group.TREATMENT if treated else Group.CONTROL
        name = "one" if same_task else f"t{place}"
        learning.meet(factories.task(id, name, run=id, project="p"))
        ends = [DONE] if good else [STUCK, DONE]
        for each_entry in task(id, group, *ends, lessons=lessons):
            learning.observe(each_entry)
    return learning.figures()


def test_r66_treatment_is_compared_with_control_by_first_attempts() -> None:
    (found,) = study(18, 6, each=20).comparisons
    assert found.origin is Origin.AUTOMATIC
    assert found.treatment == Share(hits=18, of=20)
    assert found.control == Share(hits=6, of=20)
    assert found.answer is ComparisonResult.HIGHER


@pytest.mark.parametrize(
    ("with_them", "without", "each", "answer"),
    [
        (9, 0, 9, ComparisonResult.FEW),
        (6, 5, 10, ComparisonResult.OPEN),
        (10, 1, 10, ComparisonResult.HIGHER),
        (1, 10, 10, ComparisonResult.LOWER),
    ],
)
def test_r66_it_says_so_where_there_is_not_enough_to_tell(
    with_them: int, without: int, each: int, answer: ComparisonResult
) -> None:
    (found,) = study(with_them, without, each=each).comparisons
    assert found.answer is answer


def test_r66_one_task_in_many_runs_is_one_draw() -> None:
    (found,) = study(20, 0, each=20, same_task=True).comparisons
    assert (found.treatment.of, found.answer) == (1, ComparisonResult.FEW)


def test_the_same_tasks_in_more_runs_make_nothing_surer() -> None:
    once, often = study(10, 6, each=14), study(10, 6, each=14, runs=5)
    assert once.comparisons[0].answer is ComparisonResult.OPEN
    assert (often.comparisons, often.savings) == (once.comparisons, once.savings)


def test_where_no_lesson_was_given_nothing_is_concluded() -> None:
    found = study(20, 0, each=20, lessons=False)
    answers = [each.answer for each in (*found.comparisons, *found.savings)]
    assert answers == [ComparisonResult.NONE_GIVEN] * 3


def test_of_a_task_in_several_runs_the_newest_counts() -> None:
    learning = LearningTally()
    for id, end in enumerate((STUCK, DONE), 1):
        learning.meet(factories.task(id, "one", run=id, project="p"))
        for each in task(id, Group.TREATMENT, end):
            learning.observe(each)
    (found,) = learning.figures().comparisons
    assert found.treatment == Share(hits=1, of=1)


def test_r66_the_parts_of_a_split_task_are_one_draw() -> None:
    learning = LearningTally()
    for id in range(1, 5):
        part = factories.task(id, f"whole.{id}", project="p")
        learning.meet(part, whole="whole")
        for each in task(id, Group.TREATMENT, DONE):
            learning.observe(each)
    (found,) = learning.figures().comparisons
    assert found.treatment == Share(hits=1, of=1)


def test_r66_each_origin_is_compared_by_itself() -> None:
    said = of(Feedback(accepted=False), 1, 10)
    entries = [*task(1, Group.TREATMENT, DONE), *task(2, Group.CONTROL, DONE), said]
    explicit, automatic = LearningTally(entries).figures().comparisons
    none = Share(hits=0, of=0)
    assert (explicit.control, explicit.difference, explicit.answer) == (
        none,
        None,
        ComparisonResult.FEW,
    )
    assert automatic.treatment == Share(hits=1, of=1)


def test_where_no_lots_were_drawn_nothing_is_compared() -> None:
    found = LearningTally(task(1, Group.NONE, DONE)).figures()
    assert (found.comparisons, found.savings) == ((), ())


def test_attempts_and_tokens_of_a_task_are_told_by_what_it_was_given() -> None:
    entries = [
        *task(1, Group.NONE, DONE),
        *task(2, Group.NONE, STUCK, STUCK, DONE),
        *task(3, Group.NONE, STUCK, DONE, lessons=False),
    ]
    assert LearningTally(entries).figures().efforts == (
        EffortFigures(cohort=Cohort.GIVEN, tasks=2, attempts=2, tokens=200),
        EffortFigures(cohort=Cohort.BARE, tasks=1, attempts=2, tokens=200),
    )


def test_retries_saved_are_told_where_lots_were_drawn() -> None:
    attempts, tokens = study(18, 6, each=20).savings
    assert (attempts.what, round(attempts.difference, 2)) == ("attempts", -0.6)
    assert attempts.answer is ComparisonResult.LOWER
    assert (tokens.what, round(tokens.difference), tokens.answer) == (
        "tokens",
        -60,
        ComparisonResult.LOWER,
    )


def test_a_task_that_is_not_over_took_nothing_yet() -> None:
    entries = [each for each in task(1, Group.NONE, DONE) if each.attempt is not None]
    assert LearningTally(entries).figures().efforts == ()
