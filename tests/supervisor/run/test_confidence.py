"""The rules do not go by the confidence of a model whose confidence proved to be worth nothing."""

from datetime import datetime

import pytest

from midwatch_agents.scripted import Script
from midwatch_monitor.config.settings import ReflectSettings
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.records import Alert, Change, Ending
from midwatch_stage.acting import DONE, script, task_file
from midwatch_stage.command import new_attempt, new_task
from midwatch_stage.factories import call, commit, ended, reflecting, turn
from midwatch_stage.harness import RunHarness

MODEL = f"scripted:{__name__}@0"
TASKS = task_file(__name__, 'id: unsure, goal: Look., acceptance: ["true"], max_attempts: 1')


def script_for(role: Role, key: str) -> Script:
    unsure = call("reflect", progress_percent=10, confidence=10, decision="continue")
    return script(turn(unsure), DONE)


async def worked_before(harness: RunHarness, at: datetime) -> None:
    """Forty attempts of the model, of which every other one succeeded, whatever it stated."""
    journal = harness.journal
    for number in range(40):
        task = await new_task(journal, f"t{number}", at=at)
        attempt = await new_attempt(journal, task, at=at, worker="worker", model=MODEL)
        records = (
            reflecting(1, 40, 60 + 10 * (number // 2 % 4)),
            ended(Ending.STUCK if number % 2 else Ending.DONE),
        )
        await journal.commit(commit(attempt, *records))


@pytest.mark.parametrize(
    ("worked", "useful", "rules", "silenced"),
    [
        (False, 0.7, ["low_confidence"], []),
        (True, 0.7, [], [False]),
        (True, 0.5, ["low_confidence"], []),
    ],
    ids=["without a track record", "confidence worth nothing", "as much as the settings ask for"],
)
async def test_low_confidence_is_an_alarm_unless_it_proved_to_be_worth_nothing(
    worked: bool, useful: float, rules: list[str], silenced: list[bool],
    harness: RunHarness, at: datetime,
) -> None:  # fmt: skip
    harness.set(reflect=ReflectSettings(useful_confidence=useful))
    if worked:
        await worked_before(harness, at)
    assert await harness.run(TASKS) == 0
    assert [each.key.rule for each in await harness.told(Alert)][:1] == rules
    told = [each.confidence_counts for each in await harness.told(Change)]
    assert [each for each in told if each is not None] == silenced
