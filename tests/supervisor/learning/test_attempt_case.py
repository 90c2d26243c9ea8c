"""An ended attempt read as a case, and the model that looks back at it."""

from dataclasses import replace
from pathlib import Path

import pytest

from midwatch_monitor.config.settings import ProviderSettings
from midwatch_monitor.config.tasks import TaskFile
from midwatch_monitor.errors import UsageError
from midwatch_monitor.records import (
    Action,
    Actor,
    AnalysisAuthor,
    Attempt,
    DeliveryState,
    Ending,
    Feedback,
    Lesson,
    Origin,
    Outcome,
    Severity,
    Step,
    Task,
    Writer,
)
from midwatch_stage.factories import (
    acceptance,
    alert,
    analysis,
    delivery,
    edit,
    intervention,
    outcome,
    reflecting,
    step,
)
from midwatch_stage.harness import PastAttempts
from midwatch_supervisor.learning.attempt_case import case_of
from midwatch_supervisor.learning.reflectors import Reflectors, reflector_of, reflects
from midwatch_supervisor.present.assignment import Assignment, assignments

REJECTION = Feedback(accepted=False, comment="Refunds are wrong.")
TOLD = analysis()
CYCLE = alert(summary="round and round", evidence=(1, 2))
LESSON = Lesson(text="Try refunds.", origin=Origin.AUTOMATIC)


def editing(number: int, path: str, writer: Writer = Writer.WORKER) -> Step:
    return step(
        number, "run", request=number, output=f"output {number}", edits=(edit(path, writer=writer),)
    )


async def nudged(past: PastAttempts, attempt: Attempt) -> None:
    """A nudge that reached an attempt and helped, and one that came too late."""
    nudge = intervention(by=Actor.SUPERVISOR, message="Look up.")
    for state in (DeliveryState.DELIVERED, DeliveryState.EXPIRED):
        id = await past.say(attempt, nudge)
        await past.say(attempt, delivery(id, state))
        if state is DeliveryState.DELIVERED:
            await past.say(attempt, outcome(id))


async def test_r5_a_case_holds_what_was_said_and_done_in_an_attempt(past: PastAttempts) -> None:
    attempt = await past.attempt(task="totals")
    await past.say(
        attempt,
        editing(1, "a.py"),
        replace(reflecting(2, notes="Refunds?"), request=2),
        CYCLE,
        TOLD,
        acceptance(passed=False),
    )
    await nudged(past, attempt)
    end = await past.end(attempt, Ending.UNACCEPTED)
    case = await case_of(past.journal, await past.journal.task(attempt.task), attempt, about=end)
    assert (case.project, case.task) == ("shop", "totals")
    assert (case.ending, case.turns, case.steps, case.notes) == ("unaccepted", 2, 2, "Refunds?")
    assert (case.files, case.analyses, case.shown) == (("a.py",), (TOLD,), (1, 2))
    assert case.alarms == (CYCLE,)
    (told,) = case.interventions
    assert (told.action, told.intervention.by) == (Action.NUDGE, Actor.SUPERVISOR)
    assert told.intervention.message == "Look up."
    assert (told.outcome, told.reason) == (Outcome.RECOVERED, "it moves")
    assert (case.verdict_id, case.sources) == (end, (attempt.id,))
    assert "step 1: run" in case.transcript


async def test_a_case_holds_the_verdict_that_it_is_of_or_none(past: PastAttempts) -> None:
    attempt = await past.attempt()
    await past.end(attempt, Ending.DONE)
    said = await past.say(attempt, REJECTION)
    task = await past.journal.task(attempt.task)
    assert (await case_of(past.journal, task, attempt, about=said)).verdict == REJECTION
    assert (await case_of(past.journal, task, attempt)).verdict is None
    assert (await case_of(past.journal, task, attempt, about=1)).verdict is None


async def test_what_a_person_or_the_watch_did_is_not_the_workers(past: PastAttempts) -> None:
    attempt = await past.attempt()
    notice = replace(CYCLE, severity=Severity.NOTICE)
    outage = replace(TOLD, by=AnalysisAuthor.WATCH)
    await past.say(attempt, editing(1, "a.py", Writer.PERSON), notice, outage)
    case = await case_of(past.journal, await past.journal.task(attempt.task), attempt)
    assert (case.files, case.alarms, case.analyses) == ((), (), ())


async def test_a_case_of_a_long_attempt_shows_the_last_steps_only(past: PastAttempts) -> None:
    attempt = await past.attempt()
    endless = [replace(editing(n, f"{n}.py"), output="x" * 5000) for n in range(1, 101)]
    await past.say(attempt, *endless)
    case = await case_of(past.journal, await past.journal.task(attempt.task), attempt)
    assert (case.steps, case.shown) == (100, tuple(range(71, 101)))
    assert (len(case.files), len(case.transcript) <= 20_000) == (50, True)


async def test_lessons_of_the_same_task_are_known_even_out_of_date(past: PastAttempts) -> None:
    first, second = await past.attempt(), await past.attempt()
    await past.say(first, LESSON)
    await past.say(second, replace(LESSON, text="Try them twice.", sources=(second.id,)))
    await past.say(await past.attempt(task="other"), replace(LESSON, text="Another task."))
    end = await past.end(second, Ending.UNACCEPTED)
    task = await past.journal.task(second.task)
    case = await case_of(past.journal, task, second, about=end)
    assert set(case.known) == {"Try refunds.", "Try them twice."}


async def test_what_the_checks_taught_does_not_outweigh_a_person(past: PastAttempts) -> None:
    attempt = await past.attempt()
    await past.end(attempt, Ending.UNACCEPTED)
    await past.say(attempt, LESSON)
    said = await past.say(attempt, REJECTION)
    task = await past.journal.task(attempt.task)
    assert (await case_of(past.journal, task, attempt, about=said)).known == ()


def assigned(models: dict[str, str], *, own: str = "") -> Assignment:
    """A task with these models, its worker perhaps with one of its own."""
    file = TaskFile.model_validate(
        {
            "models": models,
            "workers": {"coder": {"model": own} if own else {}},
            "tasks": [{"id": "fix", "goal": "Fix it.", "acceptance": ["true"]}],
        }
    )
    (assignment,) = assignments(file, Path.cwd())
    return assignment


def stored(assignment: Assignment) -> Task:
    return Task(id=1, run=1, name="fix", title="Fix", spec=assignment.model_dump_json())


@pytest.mark.parametrize(
    ("models", "name"),
    [
        ({"worker": "openai:small"}, "openai:small"),
        ({"worker": "openai:small", "reflector": "openai:large"}, "openai:large"),
        ({"worker": "scripted:demo", "reflector": "scripted:other"}, "scripted:other"),
    ],
    ids=["the worker's by default", "its own, which may be larger", "a scripted one that is named"],
)
def test_c13_each_role_may_have_a_model_of_its_own(models: dict[str, str], name: str) -> None:
    spec = reflector_of(assigned(models))
    assert spec is not None
    assert spec.name == name


def test_s14_the_model_of_the_worker_serves_where_none_is_named() -> None:
    spec = reflector_of(assigned({}, own="openai:own"))
    assert spec is not None
    assert spec.name == "openai:own"


@pytest.mark.parametrize(
    "models",
    [
        {},
        {"worker": "scripted:demo"},
        {"worker": "openai:small", "reflector": "none"},
        {"worker": "none"},
        {"worker": "openai:small", "supervisor": "none"},
    ],
    ids=[
        "no model",
        "the script of a worker",
        "none by name",
        "a worker without one",
        "no model but the worker's is wanted",
    ],
)
def test_without_a_reflector_nobody_is_asked(models: dict[str, str]) -> None:
    assignment = assigned(models)
    assert not reflects(assignment)
    assert Reflectors(ProviderSettings()).of(stored(assignment)) is None


def test_an_agent_without_a_task_file_has_no_reflector() -> None:
    assert reflector_of(None) is None
    task = Task(id=1, run=1, name="agent", title="Agent", spec="{}")
    assert Reflectors(ProviderSettings()).of(task) is None


def test_a_reflector_that_cannot_be_built_is_a_usage_error() -> None:
    reflectors = Reflectors(ProviderSettings())
    task = stored(assigned({"worker": "ollama:m", "reflector": "scripted:demo"}))
    with pytest.raises(UsageError, match="the demo has no script for the reflector"):
        reflectors.of(task)
