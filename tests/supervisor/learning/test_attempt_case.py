"""An ended attempt read as a case, and the model that looks back at it."""

from dataclasses import replace
from pathlib import Path

import pytest

from midwatch_monitor.config.settings import ProviderSettings, Settings
from midwatch_monitor.config.tasks import TaskFile
from midwatch_monitor.errors import UsageError
from midwatch_monitor.records import (
    Action,
    Actor,
    AnalysisAuthor,
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
from midwatch_supervisor.learning.attempt_case import case_of
from midwatch_supervisor.learning.reflectors import Reflectors, reflector_of
from midwatch_supervisor.present.assignment import Assignment, assignments
from midwatch_tests.factories import (
    acceptance,
    alert,
    analysis,
    delivery,
    edit,
    intervention,
    outcome,
    reflecting,
    step,
    task,
)
from midwatch_tests.harness import PastAttempts

REJECTION = Feedback(accepted=False, comment="Refunds are wrong.")
TOLD = analysis()
CYCLE = alert(summary="round and round", evidence=(1, 2))
LESSON = Lesson(text="Try refunds.", origin=Origin.AUTOMATIC)


def edit_step(number: int, path: str, writer: Writer = Writer.WORKER) -> Step:
    return step(
        number, "run", request=number, output=f"output {number}", edits=(edit(path, writer=writer),)
    )


async def test_r5_a_case_holds_what_was_said_and_done_in_an_attempt(past: PastAttempts) -> None:
    attempt = await past.attempt(task="totals")
    reflection = replace(reflecting(2, notes="Refunds?"), request=2)
    await past.say(attempt, edit_step(1, "a.py"), reflection, CYCLE, TOLD, acceptance(passed=False))
    nudge = intervention(by=Actor.SUPERVISOR, message="Look up.")
    helped = await past.say(attempt, nudge)
    await past.say(attempt, delivery(helped), outcome(helped))
    late = await past.say(attempt, nudge)
    await past.say(attempt, delivery(late, DeliveryState.EXPIRED))
    end = await past.end(attempt, Ending.UNACCEPTED)
    task = await past.journal.task(attempt.task)
    case = await case_of(past.journal, task, attempt, about=end)
    assert (case.project, case.task) == ("shop", "totals")
    assert (case.ending, case.turns, case.steps, case.notes) == ("unaccepted", 2, 2, "Refunds?")
    assert (case.files, case.analyses, case.shown) == (("a.py",), (TOLD,), (1, 2))
    assert case.alarms == (CYCLE,)
    (told,) = case.interventions
    assert (told.action, told.intervention) == (Action.NUDGE, nudge)
    assert (told.outcome, told.reason) == (Outcome.RECOVERED, "it moves")
    assert (case.verdict_id, case.sources) == (end, (attempt.id,))
    assert "step 1: run" in case.transcript


async def test_what_a_person_or_the_watch_did_is_not_the_workers(past: PastAttempts) -> None:
    attempt = await past.attempt()
    notice = replace(CYCLE, severity=Severity.NOTICE)
    outage = replace(TOLD, by=AnalysisAuthor.WATCH)
    await past.say(attempt, edit_step(1, "a.py", Writer.PERSON), notice, outage)
    case = await case_of(past.journal, await past.journal.task(attempt.task), attempt)
    assert (case.files, case.alarms, case.analyses) == ((), (), ())


async def test_a_case_of_a_long_attempt_shows_the_last_steps_only(past: PastAttempts) -> None:
    attempt = await past.attempt()
    endless = [replace(edit_step(n, f"{n}.py"), output="x" * 5000) for n in range(1, 101)]
    await past.say(attempt, *endless)
    case = await case_of(past.journal, await past.journal.task(attempt.task), attempt)
    assert (case.steps, case.shown) == (100, tuple(range(71, 101)))
    assert (len(case.files), len(case.transcript) <= 20_000) == (50, True)


async def test_lessons_of_the_same_task_are_known_but_what_checks_taught_outweighs_no_person(
    past: PastAttempts,
) -> None:
    first, second = await past.attempt(), await past.attempt()
    await past.say(first, LESSON)
    await past.say(second, replace(LESSON, text="Try them twice.", sources=(second.id,)))
    await past.say(await past.attempt(task="other"), replace(LESSON, text="Another task."))
    end = await past.end(second, Ending.UNACCEPTED)
    task = await past.journal.task(second.task)
    case = await case_of(past.journal, task, second, about=end)
    assert set(case.known) == {"Try refunds.", "Try them twice."}
    said = await past.say(second, REJECTION)
    case = await case_of(past.journal, task, second, about=said)
    assert (case.verdict, "Try them twice." in case.known) == (REJECTION, False)


def make_assignment(models: dict[str, str], own: str = "") -> Assignment:
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


def make_task(models: dict[str, str]) -> Task:
    return task(spec=make_assignment(models).model_dump_json())


@pytest.mark.parametrize(
    ("models", "own", "name"),
    [
        ({}, "openai:own", "openai:own"),
        ({"worker": "openai:small"}, "", "openai:small"),
        ({"worker": "openai:small", "reflector": "openai:large"}, "", "openai:large"),
        ({"worker": "scripted:demo", "reflector": "scripted:other"}, "", "scripted:other"),
    ],
    ids=["s14 the worker's own", "the workers' by default", "its own, maybe larger", "a script"],
)
def test_c13_each_role_may_have_a_model_of_its_own(
    models: dict[str, str], own: str, name: str
) -> None:
    spec = reflector_of(make_assignment(models, own))
    assert spec is not None
    assert spec.name == name


@pytest.mark.parametrize(
    "task",
    [
        make_task({}),
        make_task({"worker": "scripted:demo"}),
        make_task({"worker": "openai:small", "reflector": "none"}),
        make_task({"worker": "none"}),
        make_task({"worker": "openai:small", "supervisor": "none"}),
        task(spec="{}"),
    ],
    ids=[
        "no model",
        "the script of a worker",
        "none by name",
        "a worker without one",
        "no model but the worker's is wanted",
        "an agent without a task file",
    ],
)
def test_without_a_reflector_nobody_is_asked(task: Task) -> None:
    assert Reflectors(ProviderSettings()).of(task) is None


def test_a_reflector_that_cannot_be_built_is_a_usage_error() -> None:
    task = make_task({"worker": "ollama:m", "reflector": "scripted:demo"})
    with pytest.raises(UsageError, match="the demo has no script for the reflector"):
        Reflectors(ProviderSettings()).of(task)


def test_c16_lessons_feedback_and_facts_are_on_guidelines_review_and_control_group_off() -> None:
    learning = Settings().learning
    on = (learning.lessons.enabled, learning.feedback.implied, learning.facts.enabled)
    off = (learning.guidelines.enabled, learning.facts.review, learning.lessons.control_share > 0)
    assert (on, off) == ((True, True, True), (False, False, False))
