"""The learner beside a run: it hears of what ends, and holds up nothing."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.learning import LearningSettings
from midwatch_monitor.config.settings import MonitorSettings, Settings
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Chore, Ending, Entry, Feedback, Hint, Record, Study, StudyState
from midwatch_stage.harness import PastAttempts
from midwatch_supervisor.learning.learner import Learner

REJECTION = Feedback(accepted=False, comment="Negative amounts are wrong in totals.py.")
SOON = Settings(monitor=MonitorSettings(poll_seconds=0.01))


@asynccontextmanager
async def beside(learner: Learner) -> AsyncGenerator[None]:
    """Let a learner learn beside what is done here."""
    work = asyncio.create_task(learner.run())
    await asyncio.wait({work}, timeout=0.1)
    yield
    work.cancel()
    await asyncio.wait({work})


async def test_it_hears_of_what_ends_and_of_what_is_rejected(
    past: PastAttempts, bus: LocalBus, until: Callable[[Record], Awaitable[Entry]]
) -> None:
    learner = Learner(past.journal, settings=SOON, clock=lambda: past.at, bus=bus)
    async with beside(learner):
        attempt = await past.attempt()
        end = await past.end(attempt, Ending.DONE)
        bus.publish(Hint(entry=end, kind="attempt_state"))
        await until(Study(about=end, chore=Chore.SUMMARY, state=StudyState.DONE))
        verdict = await past.say(attempt, REJECTION)
        bus.publish(Hint(entry=verdict, kind="feedback"))
        await until(Study(about=verdict, chore=Chore.LESSON, state=StudyState.DONE))


async def test_others_hear_of_what_it_learned(past: PastAttempts, bus: LocalBus) -> None:
    await past.end(await past.attempt(), Ending.DONE)
    async with bus.subscribe() as hints:
        learner = Learner(past.journal, settings=SOON, clock=lambda: past.at, bus=bus)
        await learner.study_all()
        assert [hint.kind for hint in await hints.wait(1)] == ["summary", "study"]


async def test_one_run_takes_up_only_so_many_older_attempts_the_newest_first(
    past: PastAttempts, bus: LocalBus, until: Callable[[Record], Awaitable[Entry]]
) -> None:
    ends = [await past.end(await past.attempt(), Ending.DONE) for _ in range(4)]
    few = SOON.model_copy(update={"learning": LearningSettings(look_back=2)})
    learner = Learner(past.journal, settings=few, clock=lambda: past.at, bus=bus)
    async with beside(learner):
        for about in (ends[3], ends[2]):
            await until(Study(about=about, chore=Chore.SUMMARY, state=StudyState.DONE))
    open_chores = await past.learned.chores(tries=3)
    assert [each.about for each in open_chores] == [ends[1], ends[0]]


async def test_a_command_takes_up_all_of_them(past: PastAttempts) -> None:
    for _ in range(5):
        await past.end(await past.attempt(), Ending.DONE)
    few = Settings(learning=LearningSettings(look_back=2))
    progress = await Learner(past.journal, settings=few, clock=lambda: past.at).study_all()
    assert progress[StudyState.DONE] == 5


async def test_a_journal_that_fails_ends_the_learner_and_nothing_else(
    past: PastAttempts, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    closed = await Journal.open(tmp_path / "closed.db")
    await closed.close()
    learner = Learner(closed, settings=SOON, clock=lambda: past.at, bus=LocalBus())
    await learner.run()
    await learner.finish(["shop"], seconds=1)
    assert caplog.text.count("nothing more is learned from this run: ") == 2


def test_c16_lessons_feedback_and_facts_are_on() -> None:
    learning = Settings().learning
    on = (learning.lessons.enabled, learning.feedback.implied, learning.facts.enabled)
    assert on == (True, True, True)


def test_c16_guidelines_review_and_control_group_are_off() -> None:
    learning = Settings().learning
    off = (learning.guidelines.enabled, learning.facts.review)
    assert (off, learning.lessons.control_share) == ((False, False), 0)


def refuse(connection: Connection) -> None:
    """Let the journal take no word of what was studied."""
    connection.exec_driver_sql(
        "CREATE TRIGGER refuse BEFORE INSERT ON entry WHEN NEW.kind = 'study'"
        " BEGIN SELECT RAISE(ABORT, 'no study'); END"
    )


def allow(connection: Connection) -> None:
    connection.exec_driver_sql("DROP TRIGGER refuse")


async def test_a_journal_that_fails_for_a_while_does_not_end_the_learner(
    past: PastAttempts, bus: LocalBus, until: Callable[[Record], Awaitable[Entry]]
) -> None:
    await past.end(await past.attempt(), Ending.DONE)
    await past.journal.write(refuse)
    learner = Learner(past.journal, settings=SOON, clock=lambda: past.at, bus=bus)
    async with beside(learner):
        await past.journal.write(allow)
        end = await past.end(await past.attempt(), Ending.DONE)
        bus.publish(Hint(entry=end, kind="attempt_state"))
        await until(Study(about=end, chore=Chore.SUMMARY, state=StudyState.DONE))
