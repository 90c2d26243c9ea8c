"""What an attempt is given of what was learned, and how similar tasks went."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from itertools import count
from pathlib import Path

import pytest

from midwatch_monitor.config.learning import FactSettings, LearningSettings, LessonSettings
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Ending,
    Fact,
    Fault,
    Feedback,
    Group,
    Guidelines,
    GuidelinesAct,
    GuidelinesMark,
    Lesson,
    LessonAct,
    LessonMark,
    Lifecycle,
    Method,
    Origin,
    Plan,
    PlanStep,
    Recall,
    Record,
    Task,
    VerdictBasis,
)
from midwatch_supervisor.learning.recall import (
    MAX_CHARS,
    PART,
    RecalledText,
    RecallRequest,
    group_of,
    precedents,
    recall,
)
from midwatch_tests.factories import WHOSE, analysis, feedback, message, plan, task_transition
from midwatch_tests.harness import PastAttempts, assigned
from midwatch_tests.reading import uses
from midwatch_tools.data_blocks import DataBlocks

BLOCKS = DataBlocks("0badcafe")

PLAN = Plan(steps=(PlanStep(title="Mend it", files=("totals.py",)),))
CENT = Lesson(
    text="The sum in totals.py was rounded; round the price in rows.py instead.",
    failure_class="wrong_location",
    tags=("python",),
    origin=Origin.EXPLICIT,
)
PORT = Fact(text="The tests of the server need port 8765 to be free.")
RULES = Guidelines(version=1, text="Run the tests before you edit anything at all.")
ON = LearningSettings()
OFF = LearningSettings(lessons=LessonSettings(enabled=False), facts=FactSettings(enabled=False))


class Shop(PastAttempts):
    """Tasks of one project, each with its attempts."""

    def __init__(self, journal: Journal, at: datetime) -> None:
        super().__init__(journal, at)
        self._ticks = count(step=0.25)

    async def request(
        self,
        name: str = "totals",
        *,
        project: str = "shop",
        tags: tuple[str, ...] = (),
        **more: object,
    ) -> RecallRequest:
        """A new task with a first attempt that is about to begin."""
        assignment = assigned(name, "Totals are exact.", tags=tags, project=project, **more)
        attempt = await self.attempt(project, task=assignment)
        task = await self.journal.task(attempt.task)
        return RecallRequest(task=task, assignment=assignment, attempt=attempt, plan=PLAN)

    async def next_request(self, request: RecallRequest) -> RecallRequest:
        """The next attempt of the same task, which is that of the last run."""
        number = request.attempt.number + 1
        attempt = await self.attempt(task=request.assignment, number=number)
        return replace(request, attempt=attempt)

    async def recall(self, request: RecallRequest, settings: LearningSettings = ON) -> RecalledText:
        """What an attempt is given, as the journal is told."""
        found = await recall(
            self.journal, request, settings, BLOCKS, ticks=lambda: next(self._ticks)
        )
        for record in found.records:
            await self.say(request.attempt, record)
        return found


@pytest.fixture
def shop(journal: Journal, at: datetime) -> Shop:
    return Shop(journal, at)


def recall_record(given: RecalledText) -> Recall:
    (record,) = given.records
    assert isinstance(record, Recall)
    return record


async def test_r4_r34_a_lesson_of_one_run_is_given_in_the_next_and_its_use_is_counted(
    shop: Shop,
) -> None:
    lesson = await shop.say(await shop.attempt(task="totals"), CENT)
    first, second = await shop.request(), await shop.request()
    given = await shop.recall(first)
    assert CENT.text in given.text
    record = recall_record(given)
    assert [(each.lesson, each.method) for each in record.lessons] == [(lesson, Method.TASK)]
    assert (record.group, record.seconds, record.tokens > 0) == (Group.NONE, 0.25, True)
    await shop.recall(second)
    assert [each.lesson for each in await uses(shop.journal, second.attempt.id)] == [lesson]
    known = await shop.lesson(lesson)
    assert (known.used, known.helped, known.hurt) == (2, 0, 0)
    await shop.end(first.attempt, Ending.DONE)
    assert (await shop.lesson(lesson)).helped == 1


async def test_requirement_18_after_a_crash_the_same_is_given_but_nothing_that_was_retired(
    shop: Shop,
) -> None:
    source = await shop.attempt(task="totals")
    lesson = await shop.say(source, CENT)
    request = await shop.request()
    before = await shop.recall(request)
    await shop.say(request.attempt, CENT)  # what came meanwhile changes nothing
    assert await shop.recall(request) == RecalledText(text=before.text)
    assert (await shop.lesson(lesson)).used == 1
    await shop.say(source, LessonMark(lesson=lesson, act=LessonAct.RETIRED))
    assert await shop.recall(request) == RecalledText()


async def test_r74_a_lesson_reaches_other_tasks_but_no_other_project(shop: Shop) -> None:
    await shop.say(await shop.attempt(task=assigned("totals", tags=("python",))), CENT)
    other = await shop.recall(await shop.request("rounding", tags=("python",)))
    assert [each.method for each in recall_record(other).lessons] == [Method.TAGS]
    assert (
        await shop.recall(await shop.request(project="elsewhere", tags=("python",)))
        == RecalledText()
    )


async def test_a_lesson_of_an_attempt_that_the_prompt_tells_is_left_out_unless_of_others_too(
    shop: Shop,
) -> None:
    other, first = await shop.request(), await shop.request()
    await shop.say(first.attempt, replace(CENT, sources=(first.attempt.id,)))
    again = await shop.next_request(first)
    assert await shop.recall(again) == RecalledText()
    await shop.say(first.attempt, replace(CENT, sources=(other.attempt.id, first.attempt.id)))
    assert CENT.text in (await shop.recall(await shop.next_request(again))).text


async def test_s58_guidelines_that_were_approved_are_always_given_lessons_where_they_fit(
    shop: Shop,
) -> None:
    source = await shop.attempt(task="totals")
    version = await shop.say(source, RULES)
    stranger = await shop.request("unlike")
    spec = stranger.assignment.task.model_copy(update={"goal": "Draw a chart.", "title": "Chart"})
    assignment = stranger.assignment.model_copy(update={"task": spec})
    stranger = replace(stranger, assignment=assignment, plan=Plan(steps=()))
    assert await shop.recall(stranger) == RecalledText()
    await shop.say(source, GuidelinesMark(guidelines=version, act=GuidelinesAct.APPROVED))
    await shop.say(source, CENT)
    given = await shop.recall(stranger)
    assert RULES.text in given.text
    assert (recall_record(given).guidelines, recall_record(given).lessons) == (version, ())


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_r66_the_split_is_the_same_everywhere_and_has_about_the_share_that_was_asked_for(
    share: float,
) -> None:
    groups = [group_of("shop", f"task-{number}", share) for number in range(2000)]
    assert groups.count(Group.CONTROL) / 2000 == pytest.approx(share, abs=0.04)
    drawn = [group_of("shop", name, 0.5) for name in ("totals", "delivery")]
    assert drawn == [Group.CONTROL, Group.TREATMENT]


async def test_r66_the_control_group_gets_facts_but_no_lessons_and_tells_its_group(
    shop: Shop,
) -> None:
    settings = LearningSettings(lessons=LessonSettings(control_share=1))
    nothing = recall_record(await shop.recall(await shop.request(), settings))
    assert nothing == Recall(group=Group.CONTROL, seconds=0.25)
    source = await shop.attempt(task="totals")
    await shop.say(source, CENT)
    fact = replace(PORT, files=("totals.py",))
    same = {await shop.say(source, fact), await shop.say(source, fact)}  # which is given once
    record = recall_record(await shop.recall(await shop.request(), settings))
    assert (record.group, record.lessons) == (Group.CONTROL, ())
    (given,) = record.facts
    assert given in same


async def test_r66_the_parts_of_a_split_task_are_in_the_group_of_the_whole(shop: Shop) -> None:
    settings = LearningSettings(lessons=LessonSettings(control_share=0.5))
    whole = recall_record(await shop.recall(await shop.request("totals"), settings)).group
    parts = [
        recall_record(
            await shop.recall(await shop.request(f"totals-{n}", parent="totals"), settings)
        )
        for n in range(1, 7)
    ]
    assert {part.group for part in parts} == {whole}


@pytest.mark.parametrize(
    "settings", [OFF, LearningSettings(prompt_tokens=0)], ids=["switched off", "no room"]
)
async def test_c16_what_is_off_is_not_given(shop: Shop, settings: LearningSettings) -> None:
    source = await shop.attempt(task="totals")
    await shop.say(source, CENT)
    await shop.say(source, PORT)
    assert await shop.recall(await shop.request(), settings) == RecalledText()


async def test_a_journal_that_fails_or_is_slow_is_a_fault_and_the_attempt_begins_without(
    shop: Shop, tmp_path: Path
) -> None:
    closed = await Journal.open(tmp_path / "other.db")
    await closed.close()
    request = await shop.request()
    given = await recall(closed, request, ON, BLOCKS)
    (fault,) = given.records
    assert isinstance(fault, Fault)
    assert (given.text, fault.part) == ("", PART)
    assert "is closed" in fault.error
    slow = await recall(shop.journal, request, ON, BLOCKS, seconds=0)
    assert slow == RecalledText(records=(Fault(part=PART, error="TimeoutError"),))


Add = Callable[..., Awaitable[Task]]
DONE = task_transition(Lifecycle.COMPLETED, reason="every acceptance check passed")


@pytest.fixture
async def add(past: PastAttempts) -> Add:
    """Adds a task of a run of its own, with one attempt and these records."""

    async def task(title: str, *records: Record, goal: str = "", workspace: str = "/p") -> Task:
        journal, at = past.journal, past.at
        run = await journal.add_run(source="tasks.yaml", settings="{}", at=at)
        spec = json.dumps({"task": {"goal": goal}, "workspace": workspace, "more": 1})
        added = await journal.add_task(run=run.id, name="t", title=title, spec=spec, at=at)
        attempt = await journal.add_attempt(task=added.id, number=1, at=at, **WHOSE)
        for record in records:
            await past.say(attempt, record)
        return added

    return task


async def test_a_precedent_has_numbers_and_no_words_of_workers(journal: Journal, add: Add) -> None:
    failed = task_transition(Lifecycle.FAILED, reason="pytest: run me", passed=1, total=2)
    records = (plan("a", "b", done=1), message(1), message(2), analysis(), failed)
    await add("Parse dates", *records)
    assert await precedents(journal, await add("Parse the dates of orders")) == (
        "- Parse dates (run 1): failed after 1 attempt, 2 steps; 1 of 2 plan steps done; "
        "1 of 2 checks passed"
    )


async def test_the_most_similar_comes_first_by_title_and_goal_and_then_the_newest(
    journal: Journal, add: Add
) -> None:
    for title in ("Parse totals", "Parse dates", "Parse dates", "Draw a chart"):
        await add(title, DONE)
    await add("One", DONE, goal="Mend the parser of invoices")
    told = await precedents(journal, await add("Parse dates", goal="Parse dates"), limit=3)
    assert [line.split(":")[0] for line in told.splitlines()] == [
        "- Parse dates (run 3)",
        "- Parse dates (run 2)",
        "- Parse totals (run 1)",
    ]
    told = await precedents(journal, await add("Two", goal="The invoices are parsed by a parser"))
    assert told.startswith("- One (run 5): completed")


async def test_only_finished_tasks_of_the_project_are_told(journal: Journal, add: Add) -> None:
    await add("Parse dates", DONE, workspace="/other")
    await add("Parse dates", DONE, workspace="")
    await add("Parse dates", task_transition(Lifecycle.WORKING))
    assert await precedents(journal, await add("Parse dates")) == ""
    assert await precedents(journal, await add("Parse dates", workspace="")) == ""


async def test_the_text_is_bounded_and_whole_lines(journal: Journal, add: Add) -> None:
    for _ in range(20):
        await add("Parse dates " * 50, task_transition(Lifecycle.FAILED))
    told = await precedents(journal, await add("Parse dates"), limit=99)
    assert MAX_CHARS / 2 < len(told) <= MAX_CHARS
    assert all(line.endswith("0 steps") for line in told.splitlines())


@pytest.mark.parametrize(
    ("verdicts", "told"),
    [
        ((feedback(origin=Origin.AUTOMATIC, sign=VerdictBasis.REVIEWED),), ""),
        ((feedback(accepted=False),), ", then rejected by a person"),
        ((feedback(accepted=False), feedback()), ", then accepted by a person"),
        (
            (feedback(accepted=False, origin=Origin.IMPLIED, sign=VerdictBasis.EDITED),),
            ", then edited by a person",
        ),
    ],
)
async def test_a_precedent_tells_what_a_person_made_of_the_result(
    journal: Journal, add: Add, verdicts: tuple[Feedback, ...], told: str
) -> None:
    await add("Round the totals", *verdicts, DONE)
    line = await precedents(journal, await add("Round the totals up"))
    assert f"completed after 1 attempt, 0 steps{told}" == line.partition(": ")[2]
