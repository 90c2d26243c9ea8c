"""Who looks back at a task."""

from pathlib import Path

import pytest

from midwatch_monitor.config.settings import ProviderSettings
from midwatch_monitor.config.tasks import TaskFile
from midwatch_monitor.errors import UsageError
from midwatch_monitor.records import Task
from midwatch_supervisor.learning.reflectors import Reflectors, reflector_of, reflects
from midwatch_supervisor.present.assignment import Assignment, assignments


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
