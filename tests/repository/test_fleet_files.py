"""What configs/fleet says is what the programs take."""

import re
import shlex
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.source import load_settings
from midwatch_monitor.config.tasks import TaskFile
from midwatch_supervisor.cli.app import build
from midwatch_supervisor.fleet.nodes.node import ALIVE_BEATS

ROOT = Path(__file__).parents[2]
FLEET = ROOT / "configs" / "fleet"
COMPOSE: dict[str, Any] = yaml.safe_load((FLEET / "compose.yaml").read_text("utf-8"))


def midwatch_commands() -> list[str]:
    """The commands of the units and of the services."""
    services = COMPOSE["services"].values()
    ours = [f"midwatch {shlex.join(each['command'])}" for each in services if each.get("build")]
    units = "\n".join(unit.read_text("utf-8") for unit in FLEET.glob("*.service"))
    return sorted({*re.findall(r"^ExecStart=/opt/midwatch/bin/(midwatch .*)$", units, re.M), *ours})


@pytest.mark.parametrize("line", midwatch_commands())
def test_every_command_is_one_that_midwatch_takes(line: str) -> None:
    words = shlex.split(line.replace("%H", "node-a"))
    _, bound, *_ = build().parse_args(words[1:], exit_on_error=False, print_error=False)
    assert bound.signature is not None


def test_the_example_is_a_configuration_and_holds_no_password() -> None:
    settings = load_settings([FLEET / "midwatch.yaml"], environ={})
    assert settings.fleet.broker.url.startswith("mqtts://")
    assert "password:" not in (FLEET / "midwatch.yaml").read_text("utf-8")


def test_the_example_tasks_are_tasks() -> None:
    file = TaskFile.model_validate(yaml.safe_load((FLEET / "tasks.yaml").read_text("utf-8")))
    assert [(task.id, task.labels, task.depends_on) for task in file.tasks] == [
        ("rounding", (), ()),
        ("forecast", ("gpu",), ()),
        ("changelog", (), ("rounding", "forecast")),
    ]


def test_the_trial_is_a_task_of_the_demo_so_that_a_script_can_play_it() -> None:
    trial = TaskFile.model_validate(yaml.safe_load((FLEET / "trial.yaml").read_text("utf-8")))
    bundled = files("midwatch_supervisor.demo").joinpath("tasks.yaml").read_text("utf-8")
    demo = TaskFile.model_validate(yaml.safe_load(bundled))
    (task,) = trial.tasks
    (model,) = [each for each in demo.tasks if each.id == task.id]
    assert (task.goal, task.worker) == (model.goal, model.worker)
    assert trial.workers["clerk"] == demo.workers["clerk"]
    assert trial.models == demo.models


def test_a_node_has_time_to_drain_before_its_service_is_killed() -> None:
    unit = (FLEET / "midwatch-node.service").read_text("utf-8")
    (stop,) = re.findall(r"TimeoutStopSec=(\d+)", unit)
    (again,) = re.findall(r"RestartSec=(\d+)", unit)
    fleet = Settings().fleet
    assert int(stop) > fleet.drain_seconds
    assert int(again) > ALIVE_BEATS * fleet.beat_seconds


def test_the_whole_on_one_machine_has_every_part() -> None:
    services = COMPOSE["services"]
    assert set(services) == {"database", "broker", "monitor-a", "monitor-b", "node-a", "node-b"}
    needed = services["node-a"]["depends_on"]
    assert set(needed) <= set(services)
