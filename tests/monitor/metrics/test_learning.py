"""Figures of what is learned, and whether lessons help: treatment against control."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.metrics.learning import (
    FactFigures,
    GuidelinesFigures,
    LearningFigures,
    LearningTally,
    UnderFigures,
    Worth,
)
from midwatch_monitor.metrics.lessons import (
    AcceptanceFigures,
    Bucket,
    Cohort,
    ComparisonResult,
    EffortFigures,
    LessonEffect,
    LessonFigures,
    Week,
)
from midwatch_monitor.metrics.statistics import Distribution, Share, difference, mean_difference
from midwatch_monitor.state.usage import Usage
from midwatch_tests import factories
from midwatch_tests.factories import ended, feedback

AT = datetime(2026, 11, 16, 20, 0, tzinfo=UTC)
"""A Monday."""
DONE, STUCK, CANCELED = ended(), ended(r.Ending.STUCK), ended(r.Ending.CANCELED)
YES, NO = feedback(), feedback(accepted=False)


def entry(record: r.Record, *, id: int = 1, attempt: int = 1, day: float = 0) -> r.Entry:
    at = AT + timedelta(days=day)
    return r.Entry(id=id, record=record, at=at, task=attempt, attempt=attempt)


def make_recall(
    *lessons: int, method: r.Method = r.Method.TASK, guidelines: int | None = None
) -> r.Recall:
    recalled = tuple(r.Recalled(lesson=lesson, method=method) for lesson in lessons)
    return r.Recall(lessons=recalled, guidelines=guidelines, seconds=0.25)


def test_the_newest_verdict_of_each_origin_counts_and_two_origins_never_stand_in_one_rate() -> None:
    kept = feedback(origin=r.Origin.IMPLIED)
    entries = [entry(DONE), entry(YES), entry(NO), entry(kept), entry(STUCK, attempt=2)]
    figures = LearningTally([*entries, entry(CANCELED)]).figures()
    assert {each.origin: each.accepted for each in figures.acceptance} == {
        r.Origin.EXPLICIT: Share(hits=0, of=1),
        r.Origin.IMPLIED: Share(hits=1, of=1),
        r.Origin.AUTOMATIC: Share(hits=1, of=2),
    }


def test_r61_r62_acceptance_is_told_by_week_and_few_attempts_are_a_part_each() -> None:
    entries = [
        entry(YES, attempt=4),
        entry(NO, attempt=6),
        entry(NO, attempt=9, day=6),
        entry(YES, attempt=9, day=7),
        entry(YES, attempt=12, day=21),
    ]
    half, one = Share(hits=1, of=2), Share(hits=1, of=1)
    assert LearningTally(entries).figures().acceptance == (
        AcceptanceFigures(
            origin=r.Origin.EXPLICIT,
            accepted=Share(hits=3, of=4),
            weeks=(
                Week(begins=date(2026, 11, 16), accepted=half),
                Week(begins=date(2026, 11, 23), accepted=one),
                Week(begins=date(2026, 12, 7), accepted=one),
            ),
            curve=tuple(
                Bucket(first=id, last=id, accepted=Share(hits=yes, of=1))
                for id, yes in ((4, 1), (6, 0), (9, 1), (12, 1))
            ),
        ),
    )


def test_r62_the_learning_curve_has_ten_parts_as_equal_as_can_be() -> None:
    attempts = range(1, 24)
    learned = [entry(YES if attempt > 12 else NO, attempt=attempt) for attempt in attempts]
    (found,) = LearningTally(reversed(learned)).figures().acceptance
    assert [each.accepted.of for each in found.curve] == [3, 3, 3, 2, 2, 2, 2, 2, 2, 2]
    assert found.curve[3] == Bucket(first=10, last=11, accepted=Share(hits=0, of=2))
    assert found.curve[4] == Bucket(first=12, last=13, accepted=Share(hits=1, of=2))


def test_r63_a_lesson_is_judged_by_origin_from_three_judged_uses_on() -> None:
    entries = [
        *(entry(make_recall(7), attempt=attempt) for attempt in range(1, 5)),
        *(entry(DONE, attempt=attempt) for attempt in (1, 2)),
        entry(STUCK, attempt=3),
        *(entry(NO, attempt=attempt) for attempt in (1, 2)),
        *(entry(make_recall(8), attempt=attempt) for attempt in (5, 6)),
        *(entry(DONE, attempt=attempt) for attempt in (5, 6)),
    ]
    assert LearningTally(entries).figures().lessons.effects == (
        LessonEffect(lesson=7, origin=r.Origin.AUTOMATIC, accepted=Share(hits=2, of=3)),
    )


def test_r16_r58_r64_r67_lessons_their_use_ratings_and_the_time_to_find_them_are_counted() -> None:
    lessons = [
        *(r.Lesson(text="a", failure_class=name) for name in ("loop", "style", "loop")),
        r.Lesson(text="b", born=r.LessonOrigin.REFLECTION),
    ]
    marks = [
        *(r.LessonMark(lesson=1, act=r.LessonAct.RATED, rating=rating) for rating in (2, 5)),
        r.LessonMark(lesson=2, act=r.LessonAct.RATED, rating=5),
        r.LessonMark(lesson=1, act=r.LessonAct.RETIRED),
        r.LessonMark(lesson=2, act=r.LessonAct.ARCHIVED),
        r.LessonMark(lesson=1, act=r.LessonAct.RESTORED),
    ]
    recalls = [make_recall(1, 1, 2), make_recall(1, method=r.Method.TEXT), r.Recall(seconds=2.0)]
    entries = [
        *(entry(each, id=id) for id, each in enumerate(lessons, 1)),
        *map(entry, marks),
        *(entry(each, attempt=id) for id, each in enumerate(recalls, 3)),
    ]
    assert LearningTally(entries).figures().lessons == LessonFigures(
        lessons=4,
        insights=1,
        classes=(("loop", 2), ("style", 1)),
        obsolete=1,
        ratings=Distribution(counts=((5, 2),)),
        recalls=3,
        given=2,
        uses=3,
        methods=((r.Method.TASK, 2), (r.Method.TEXT, 1)),
        seconds=0.25,
        longest=2.0,
    )


REVIEW = r.FactReview(state=r.ReviewState.OK, facts=(1, 2))
MODIFIED, MISSED = replace(REVIEW, modified=1), replace(REVIEW, missed=1)
REMOVED = replace(REVIEW, removed=1)
FULL = replace(REVIEW, modified=1, removed=1, missed=2, conflicts=1, unanswered=1)


def review(day: int, found: r.FactReview = REVIEW) -> r.Entry:
    return entry(found, id=day + 1, day=day)


def test_v23_reviews_are_counted_and_failed_ones_are_no_quiet_ones() -> None:
    entries = [
        *(entry(r.Fact(text="f"), id=id) for id in (1, 2)),
        entry(r.FactMark(fact=1, act=r.FactAct.REMOVED)),
        entry(r.FactMark(fact=2, act=r.FactAct.REVIEWED)),
        review(1, FULL),
        entry(r.FactReview(state=r.ReviewState.FALLBACK, facts=(3,)), day=2),
        entry(r.FactReview(state=r.ReviewState.SKIPPED, facts=(4,)), day=3),
        entry(r.Spending(role="reflector", model="m", requests=1, tokens=40), day=1),
        entry(r.Spending(role="reflector", model="m", requests=1, tokens=9_000), day=4),
    ]
    assert LearningTally(entries).figures().facts == FactFigures(
        facts=2,
        ended=1,
        reviews=1,
        fallbacks=1,
        skipped=1,
        looked_at=2,
        modified=1,
        removed=1,
        missed=2,
        conflicts=1,
        unanswered=1,
        cost=Usage(requests=1, tokens=40),
    )


@pytest.mark.parametrize(
    ("reviews", "worth"),
    [
        ([], Worth.NONE),
        ([review(1), review(2)], Worth.EARLY),
        ([review(day) for day in range(10)], Worth.LITTLE),
        ([review(0, MODIFIED), *(review(day) for day in range(1, 10))], Worth.SOME),
        ([review(0, MISSED), *(review(day) for day in range(1, 11))], Worth.LITTLE),
        ([*(review(day) for day in range(1, 11)), review(11, REMOVED)], Worth.SOME),
        (
            [entry(r.FactReview(state=r.ReviewState.FALLBACK), day=day) for day in range(20)],
            Worth.NONE,
        ),
    ],
)
def test_v24_ten_reviews_in_a_row_without_a_change_say_that_reviewing_changes_little(
    reviews: list[r.Entry], worth: Worth
) -> None:
    assert LearningTally(reversed(reviews)).figures().facts.worth is worth


def test_s7_versions_of_the_guidelines_are_told_with_what_came_of_them() -> None:
    entries = [
        entry(r.Guidelines(version=3, text="# G"), id=30),
        entry(r.Reflection(watermark=9, insights=2, proposed=True)),
        entry(r.Reflection(watermark=9, skipped="no qualifying attempts")),
        entry(r.GuidelinesMark(guidelines=30, act=r.GuidelinesAct.APPROVED)),
        entry(make_recall(guidelines=30)),
        entry(DONE),
    ]
    accepted = Share(hits=1, of=1)
    under = UnderFigures(guidelines=30, version=3, origin=r.Origin.AUTOMATIC, accepted=accepted)
    assert LearningTally(entries).figures().guidelines == GuidelinesFigures(
        reflections=2, skipped=1, insights=2, versions=1, approved=1, under=(under,)
    )


def test_where_nothing_was_learned_there_is_nothing_to_tell() -> None:
    assert not LearningTally([entry(CANCELED)]).figures()
    assert LearningTally([entry(DONE)]).figures()


LESSONS = (r.Recalled(lesson=5, method=r.Method.TASK),)


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


def test_the_difference_of_two_means_is_wide_where_there_are_few() -> None:
    few = mean_difference([1, 1, 2], [3, 2, 3])
    many = mean_difference([1, 1, 2] * 10, [3, 2, 3] * 10)
    assert few is not None
    assert many is not None
    # By hand: -4/3, two variances of 1/9, and Student's 2.776 for 4 degrees of freedom.
    assert (round(few.low, 2), round(few.high, 2)) == (-2.64, -0.03)
    assert round(many.high - many.low, 2) == 0.5
    assert mean_difference([1], [1, 2]) is None
    assert difference(Share(hits=0, of=0), Share(hits=1, of=2)) is None


def task(
    id: int, group: r.Group, *ends: r.AttemptTransition, tokens: int = 100, lessons: bool = True
) -> Iterator[r.Entry]:
    """The entries of a task whose attempts ended so; its attempts' ids are 10 times its own."""
    for number, end in enumerate(ends):
        attempt = 10 * id + number
        given = LESSONS if lessons and group is not r.Group.CONTROL else ()
        meter = r.Meter(used=tokens * (number + 1))
        records = (
            r.Recall(lessons=given, group=group),
            r.Change(budget=r.Budget(tokens=meter)),
            end,
        )
        yield from (entry_of_task(record, id, attempt) for record in records)
    last = r.Lifecycle.COMPLETED if ends[-1] is DONE else r.Lifecycle.FAILED
    yield entry_of_task(r.TaskTransition(lifecycle=last), id, None)


def entry_of_task(record: r.Record, task: int, attempt: int | None) -> r.Entry:
    return factories.entry(1, record, task=task, attempt=attempt)


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
        group = r.Group.TREATMENT if treated else r.Group.CONTROL
        name = "one" if same_task else f"t{place}"
        learning.meet(factories.task(id, name, run=id, project="p"))
        ends = [DONE] if good else [STUCK, DONE]
        for each_entry in task(id, group, *ends, lessons=lessons):
            learning.observe(each_entry)
    return learning.figures()


def test_r66_treatment_is_compared_with_control_by_first_attempts() -> None:
    found = study(18, 6, each=20)
    (compared,), (attempts, tokens) = found.comparisons, found.savings
    assert compared.origin is r.Origin.AUTOMATIC
    assert (compared.treatment, compared.control) == (Share(hits=18, of=20), Share(hits=6, of=20))
    assert compared.answer is ComparisonResult.HIGHER
    assert (attempts.what, round(attempts.difference, 2)) == ("attempts", -0.6)
    assert (tokens.what, round(tokens.difference)) == ("tokens", -60)
    assert attempts.answer is tokens.answer is ComparisonResult.LOWER


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


def test_r66_several_runs_of_a_task_and_the_parts_of_a_split_one_are_one_draw() -> None:
    again, split = LearningTally(), LearningTally()
    for id, end in enumerate((STUCK, DONE), 1):
        again.meet(factories.task(id, "one", run=id, project="p"))
        split.meet(factories.task(id, f"whole.{id}", project="p"), whole="whole")
        for each in task(id, r.Group.TREATMENT, end):
            again.observe(each)
        for each in task(id, r.Group.TREATMENT, DONE):
            split.observe(each)
    for learning in (again, split):
        (found,) = learning.figures().comparisons
        assert found.treatment == Share(hits=1, of=1)


def test_r66_each_origin_is_compared_by_itself() -> None:
    said = entry_of_task(r.Feedback(accepted=False), 1, 10)
    entries = [*task(1, r.Group.TREATMENT, DONE), *task(2, r.Group.CONTROL, DONE), said]
    explicit, automatic = LearningTally(entries).figures().comparisons
    none = Share(hits=0, of=0)
    assert (explicit.control, explicit.difference, explicit.answer) == (
        none,
        None,
        ComparisonResult.FEW,
    )
    assert automatic.treatment == Share(hits=1, of=1)


def test_where_no_lots_were_drawn_nothing_is_compared() -> None:
    found = LearningTally(task(1, r.Group.NONE, DONE)).figures()
    assert (found.comparisons, found.savings) == ((), ())


def test_attempts_and_tokens_of_a_task_are_told_by_what_it_was_given() -> None:
    entries = [
        *task(1, r.Group.NONE, DONE),
        *task(2, r.Group.NONE, STUCK, STUCK, DONE),
        *task(3, r.Group.NONE, STUCK, DONE, lessons=False),
        *list(task(4, r.Group.NONE, DONE))[:-1],  # it is not over, and took nothing yet
    ]
    assert LearningTally(entries).figures().efforts == (
        EffortFigures(cohort=Cohort.GIVEN, tasks=2, attempts=2, tokens=200),
        EffortFigures(cohort=Cohort.BARE, tasks=1, attempts=2, tokens=200),
    )
