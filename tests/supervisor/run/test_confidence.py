"""The rules do not go by the confidence of a model whose confidence proved to be worth nothing."""

from datetime import datetime

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


async def silenced(harness: RunHarness) -> list[Change]:
    return [each for each in await harness.told(Change) if each.confidence_counts is not None]


async def test_without_a_track_record_low_confidence_is_an_alarm(harness: RunHarness) -> None:
    assert await harness.run(TASKS) == 0
    assert [each.key.rule for each in await harness.told(Alert)][:1] == ["low_confidence"]
    assert await silenced(harness) == []


async def test_confidence_worth_nothing_is_no_alarm_and_the_timeline_says_so(
    harness: RunHarness, at: datetime
) -> None:
    await worked_before(harness, at)
    assert await harness.run(TASKS) == 0
    assert await harness.told(Alert) == []
    (said,) = await silenced(harness)
    assert said.confidence_counts is False


async def test_what_counts_as_useful_is_a_setting(harness: RunHarness, at: datetime) -> None:
    harness.set(reflect=ReflectSettings(useful_confidence=0.5))
    await worked_before(harness, at)
    assert await harness.run(TASKS) == 0
    assert await silenced(harness) == []
