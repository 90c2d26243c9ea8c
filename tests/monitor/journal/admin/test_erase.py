"""Forgetting a project deletes all that is about it, and nothing else."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, select, update

from midwatch_monitor import records as r
from midwatch_monitor.errors import JournalReadOnlyError, UsageError
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.core.tables import metadata
from midwatch_monitor.journal.learned import projects
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_tests.factories import WHOSE, task_transition
from midwatch_tests.harness import PastAttempts
from midwatch_tests.matrix import DATABASES
from midwatch_tests.reading import erasures

SECRET = "xyzzyplugh"


@pytest.fixture(params=DATABASES)
def location(request: pytest.FixtureRequest, journal_file: Path) -> str:
    wanted = request.param == "postgresql"
    return request.getfixturevalue("postgres_journal") if wanted else str(journal_file)


async def make_full_attempt(past: PastAttempts, project: str) -> r.Attempt:
    """An attempt of which there is something in every table, with a secret in every text."""
    attempt = await past.attempt(project, task=f"{SECRET}-{project}")
    journal, at = past.journal, past.at
    await journal.claim(attempt.id, holder=SECRET, at=at)
    message, result = r.Message(index=0, body=SECRET.encode()), r.Result(call="1", body=b"2")
    await journal.commit(r.Commit(attempt=attempt.id, messages=(message,), results=(result,)))
    key = r.AlertKey(rule="silence", subject="")
    await journal.open_escalation(
        attempt=attempt.id, task=attempt.task, alerts=(key,), reason=SECRET, at=at
    )
    await add_learned_records(past, attempt)
    await past.end(attempt)
    return attempt


async def add_learned_records(past: PastAttempts, attempt: r.Attempt) -> None:
    tagged = r.Lesson(text=SECRET, tags=(SECRET,), sources=(attempt.id,))
    lesson = await past.say(attempt, r.Feedback(accepted=False, comment=SECRET), tagged)
    retired = await past.say(attempt, tagged)
    await past.say(attempt, r.LessonMark(lesson=retired, act=r.LessonAct.RETIRED))
    use = r.Recalled(lesson=lesson, method=r.Method.TASK)
    await past.say(
        attempt, r.Recall(lessons=(use,)), r.Summary(text=SECRET), r.Reflection(watermark=9)
    )
    old, new = [await past.say(attempt, r.Fact(text=SECRET, files=(SECRET,))) for _ in range(2)]
    await past.say(attempt, r.FactMark(fact=old, act=r.FactAct.REPLACED, instead=new))
    for version in (1, 2):
        id = await past.say(attempt, r.Guidelines(version=version, text=SECRET))
        await past.say(attempt, r.GuidelinesMark(guidelines=id, act=r.GuidelinesAct.APPROVED))


async def sizes(past: PastAttempts) -> dict[str, int]:
    def count(connection: Connection) -> dict[str, int]:
        return {
            name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for name, table in metadata.tables.items()
            if name != "receipt"  # of a writer
        }

    return await past.journal.read(count)


async def forget(past: PastAttempts, project: str) -> r.Erasure:
    at = past.at + timedelta(hours=1)
    return await past.learned.forget(project, author="ann", at=at)


async def test_after_it_the_record_of_what_was_announced_is_left(past: PastAttempts) -> None:
    attempt = await make_full_attempt(past, "shop")
    before, last = await sizes(past), await past.journal.last_id()
    idle = {"guard", "post", "node", "bundle", "submission"}  # of a fleet
    assert {name for name, size in before.items() if not size} == {"erasure"} | idle
    would = await past.learned.footprint("shop")
    done = await forget(past, "shop")
    after = await sizes(past)
    assert {name: size for name, size in after.items() if size} == {
        "erasure": 1,
        "compatibility": 1,
    }
    assert (done.tasks, done.attempts, done.entries) == (1, 1, before["entry"])
    assert would == replace(done, id=0, at=past.at, author="")
    assert await erasures(past.journal) == [done]
    assert (done.id, done.author, done.at) == (1, "ann", past.at + timedelta(hours=1))
    again = await past.attempt("shop")  # no id is given a second time
    assert (again.task, again.id) == (attempt.task + 1, attempt.id + 1)
    assert [each.id for each in await past.journal.entries()] == [last + 1, last + 2]


async def test_another_project_is_left_as_it_is(past: PastAttempts) -> None:
    await make_full_attempt(past, "bank")
    before, told = await sizes(past), await past.journal.entries()
    await make_full_attempt(past, "shop")
    await forget(past, "shop")
    assert await sizes(past) == {**before, "erasure": 1}
    assert await past.journal.entries() == told
    assert [each.id for each in await past.learned.lessons(obsolete=False)] == [
        each.id for each in await past.learned.lessons(project="bank", obsolete=False)
    ]


async def test_a_run_with_tasks_of_another_project_stays(past: PastAttempts) -> None:
    attempt = await past.attempt("shop")
    run = (await past.journal.task(attempt.task)).run
    await past.journal.add_task(
        run=run, name="other", title="", spec="{}", project="bank", at=past.at
    )
    await forget(past, "shop")
    assert [each.name for each in await past.journal.tasks(run)] == ["other"]


def content(file: Path) -> bytes:
    """Of the file, and of what SQLite keeps beside it."""
    return b"".join(each.read_bytes() for each in file.parent.iterdir())


@pytest.mark.parametrize("location", ["file"], indirect=True)
async def test_of_what_is_deleted_no_byte_stays(past: PastAttempts, journal_file: Path) -> None:
    attempt = await make_full_attempt(past, "shop")
    for number in range(60):  # so that the index of the words was merged before
        await past.say(attempt, r.Lesson(text=f"{SECRET}{number}"))
    await make_full_attempt(past, "bank")
    await past.journal.flush()
    assert SECRET.encode() in content(journal_file)
    await forget(past, "shop")
    await forget(past, "bank")
    assert SECRET.encode() not in content(journal_file)


async def test_an_unknown_project_is_named(past: PastAttempts) -> None:
    with pytest.raises(UsageError, match="nothing about the project 'nobody'"):
        await forget(past, "nobody")
    with pytest.raises(UsageError, match="nothing about the project 'nobody'"):
        await past.learned.footprint("nobody")


async def test_a_project_is_not_forgotten_while_an_attempt_is_under_way(past: PastAttempts) -> None:
    attempt = await past.attempt("shop")
    await past.journal.claim(attempt.id, holder="me", at=past.at)
    for at in (past.at, past.at + timedelta(minutes=15)):
        with pytest.raises(UsageError, match=f"attempt {attempt.id} of shop is under way"):
            await past.learned.forget("shop", author="", at=at)
    assert await past.learned.projects() == ["shop"]
    await past.learned.forget("shop", author="", at=past.at + timedelta(minutes=16))


async def test_what_an_attempt_writes_keeps_it_under_way_to_its_end(past: PastAttempts) -> None:
    attempt = await past.attempt("shop")
    await past.journal.claim(attempt.id, holder="me", at=past.at)
    past.at += timedelta(hours=2)
    await past.say(attempt, r.Fact(text="…"))
    with pytest.raises(UsageError, match="under way"):
        await past.learned.forget("shop", author="", at=past.at)
    await past.end(attempt, r.Ending.DONE)
    await past.attempt("shop")  # nobody claimed it
    await past.learned.forget("shop", author="", at=past.at)
    assert await past.learned.projects() == []


async def test_a_task_between_two_attempts_is_under_way(past: PastAttempts) -> None:
    attempt = await past.attempt("shop")
    await past.end(attempt, r.Ending.UNACCEPTED)
    await past.say(attempt, task_transition())
    with pytest.raises(UsageError, match=f"task {attempt.task} of shop is under way"):
        await past.learned.forget("shop", author="", at=past.at)
    await past.learned.forget("shop", author="", at=past.at + timedelta(minutes=16))


async def test_a_reader_cannot_forget(past: PastAttempts, location: str) -> None:
    await past.attempt("shop")
    async with await past.journal.open_to_read(location) as reader:
        with pytest.raises(JournalReadOnlyError):
            await Learned(reader).forget("shop", author="", at=past.at)


async def add_trial_task(past: PastAttempts, project: str, run: int, *, spec: str) -> r.Task:
    """A task in which an older Midwatch tried a project's guidelines."""
    task = await past.journal.add_task(run=run, name="fix", title="", spec=spec, at=past.at)

    def mark(connection: Connection) -> None:
        change = update(tables.task).where(tables.task.c.id == task.id)
        connection.execute(change, {"trial_of": projects.ensure(connection, project)})

    await past.journal.write(mark)
    return task


async def test_a_trial_that_is_not_under_way_is_forgotten_with_its_project(
    past: PastAttempts,
) -> None:
    for project in ("shop", "bank"):
        run = await past.journal.add_run(source="trial", settings="{}", at=past.at)
        await past.attempt(project)
        task = await add_trial_task(past, project, run.id, spec=SECRET)
    attempt = await past.journal.add_attempt(task=task.id, number=1, at=past.at, **WHOSE)
    await past.journal.claim(attempt.id, holder="me", at=past.at)
    with pytest.raises(UsageError, match="under way"):
        await past.learned.forget("bank", author="", at=past.at)
    assert (await past.learned.footprint("shop")).tasks == 2
    assert (await forget(past, "shop")).tasks == 2
    left = [each for run in await past.journal.runs() for each in await past.journal.tasks(run.id)]
    assert [(each.spec, each.project) for each in left] == [(SECRET, ""), ("{}", "bank")]
