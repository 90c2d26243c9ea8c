"""Runs of a fleet that are over are looked back at, once each, whoever has the learner's post."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.tasks import ModelSpec, Role
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Attempt,
    Chore,
    Ending,
    Lifecycle,
    Reflection,
    Study,
    StudyState,
    Summary,
    SupervisedBy,
)
from midwatch_supervisor.fleet.monitors.fleet_monitor import FleetMonitor
from midwatch_supervisor.learning.learner import Learner
from midwatch_supervisor.learning.reflection_schedule import (
    FleetReflection,
    NightWindow,
    learn,
    next_window,
)
from midwatch_tests.factories import AT, task_transition
from midwatch_tests.harness import PastAttempts, assigned
from midwatch_tests.matrix import DATABASES
from midwatch_tests.reading import last_words

TOLD = "It edited the rounding in totals.py five times before it ran the tests."

DOCUMENT = """\
## Working rules

- Run the failing test in `tests/test_totals.py` before you edit `totals.py`.
- After two edits without a new result, look at the whole file again.\
"""

ON = Settings.model_validate(
    {
        "learning": {"guidelines": {"enabled": True}},
        "monitor": {"tick_seconds": 0.05, "poll_seconds": 0.02},
    }
)

OFF = Settings()

OVER = task_transition(Lifecycle.COMPLETED)

asked: list[str] = []
"""What the reflector was shown, since a test began."""

held = asyncio.Event()
"""The reflector answers once this is set."""


def model_for(role: Role, key: str) -> Model:
    """A reflector that finds one insight in the first attempt that it is shown."""
    return FunctionModel(_fail if key == "broken" else _reflect, model_name="reflecting")


async def _reflect(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    prompt = last_words(messages)
    if not info.output_tools:
        return ModelResponse(parts=[TextPart(DOCUMENT)])
    asked.append(prompt)
    await held.wait()
    shown = re.search(r"^- attempt (\d+)", prompt, re.M)
    assert shown is not None
    evidence = [{"attempt": int(shown[1]), "quote": "ran the tests"}]
    insight = {"content": TOLD, "topics": ["rounding"], "evidence": evidence}
    answer = {"explanation": "It edited blindly.", "insights": [insight]}
    return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, answer)])


async def _fail(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    asked.append("")
    raise ConnectionError("gone")


@pytest.fixture(autouse=True)
def _forget_questions() -> None:  # pyright: ignore[reportUnusedFunction]
    global held
    asked.clear()
    held = asyncio.Event()
    held.set()


class Past(PastAttempts):
    """Runs that were submitted, and what became of them."""

    async def begin(
        self,
        task: str = "fix",
        *,
        settings: Settings = ON,
        supervised_by: SupervisedBy = SupervisedBy.MONITOR,
        reflector: str = f"scripted:{__name__}",
        embedded: bool = False,
        summed: bool = True,
    ) -> Attempt:
        """An attempt that is over and summed up, in a run of its own that is not."""
        models = {Role.REFLECTOR: ModelSpec(name=reflector, tries=1)}
        spec = assigned(task, models=models, project="shop", named=(Role.REFLECTOR,))
        attempt = await self.attempt(
            task=task if embedded else spec,
            settings=settings.model_dump_json(),
            supervised_by=supervised_by,
        )
        over = await self.end(attempt, Ending.DONE)
        if summed:
            done = Study(about=over, chore=Chore.SUMMARY, state=StudyState.DONE)
            await self.say(attempt, Summary(text=TOLD, topics=("rounding",), turns=9), done)
        return attempt

    async def end_run(self, task: str = "fix", *, settings: Settings = ON) -> int:
        """A run that is over; the entry by which it is."""
        return await self.say(await self.begin(task, settings=settings), OVER)

    async def looks(self) -> list[tuple[bool, str]]:
        """Of each look back: whether it brought guidelines, and why not."""
        return [(each.proposed, each.skipped or each.error) for each in await self.told(Reflection)]

    def monitor(self) -> Callable[[], Awaitable[None]]:
        """Another monitor that has the post; it looks each time that it is called."""
        hindsight = FleetReflection(self.journal, clock=lambda: AT)
        learner = self.learner()
        return lambda: hindsight.look(learner)

    def learner(self, bus: LocalBus | None = None) -> Learner:
        return Learner(self.journal, settings=ON, clock=lambda: AT, bus=bus)


@pytest.fixture
async def past(journal: Journal, at: datetime) -> Past:
    return Past(journal, at)


async def until(happened: Callable[[], Awaitable[bool]]) -> None:
    nothing = LocalBus().subscribe()
    async with asyncio.timeout(120):
        while not await happened():
            await nothing.wait(0.01)


async def until_asked(times: int) -> None:
    async def was_asked() -> bool:
        return len(asked) == times

    await until(was_asked)


async def test_runs_whose_tasks_are_over_are_looked_back_at_once(past: Past) -> None:
    first = await past.begin()
    look = past.monitor()
    await look()
    assert await past.looks() == []
    await past.say(first, OVER)
    await past.end_run()
    for _ in range(2):
        await look()
    await past.monitor()()  # another one that takes the post over
    assert await past.looks() == [(True, "")]
    assert len(asked) == 1
    (version,) = await past.learned.guidelines("shop")
    assert version.guidelines.text == DOCUMENT


@pytest.mark.parametrize(
    "other",
    [{"supervised_by": SupervisedBy.PROCESS}, {"embedded": True}, {"settings": OFF}],
    ids=["a process of its own", "without a task file", "switched off"],
)
async def test_other_runs_than_those_of_a_fleet_are_not_looked_back_at(
    past: Past, other: dict[str, Any]
) -> None:
    await past.say(await past.begin(**other), OVER)
    await past.monitor()()
    assert (await past.looks(), asked) == ([], [])


async def test_a_model_that_is_missing_here_is_said_once_and_left_to_others(
    past: Past, caplog: pytest.LogCaptureFixture
) -> None:
    look = past.monitor()
    for _ in range(2):
        await past.say(await past.begin(reflector="scripted:nowhere"), OVER)
        await look()
    said = [each for each in caplog.messages if "did not look back at shop" in each]
    assert len(said) == 1
    assert "nowhere" in said[0]
    assert await past.looks() == []


async def test_a_question_that_fails_is_asked_again_when_another_run_ends(past: Past) -> None:
    await past.end_run("broken")
    look = past.monitor()
    for _ in range(2):
        await look()
    assert len(asked) == 1
    await past.end_run()
    await look()
    (failed, error), again = await past.looks()
    assert (failed, again) == (False, (True, ""))
    assert "gone" in error


async def test_a_look_that_is_cut_off_is_made_by_whoever_comes_next(past: Past) -> None:
    await past.end_run()
    held.clear()
    looking = asyncio.ensure_future(past.monitor()())
    await until_asked(1)
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)
    assert await past.looks() == []
    held.set()
    await past.monitor()()
    assert await past.looks() == [(True, "")]


@pytest.mark.parametrize("location", DATABASES, indirect=True)
async def test_of_two_that_believe_to_have_the_post_one_stores_its_look(past: Past) -> None:
    await past.end_run()
    held.clear()
    looks = [asyncio.ensure_future(past.monitor()()) for _ in range(2)]
    await until_asked(2)
    held.set()
    await asyncio.gather(*looks)
    assert await past.looks() == [(True, "")]
    assert len(await past.learned.guidelines("shop")) == 1


async def test_settings_too_new_are_told_once(past: Past, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    await past.say(
        await past.attempt(task=assigned(), settings="{", supervised_by=SupervisedBy.MONITOR), OVER
    )
    await past.monitor()()
    assert caplog.messages == ["did not look back at run 1: its settings are of another version"]


async def test_while_a_model_thinks_about_a_run_what_ends_is_learned_from(past: Past) -> None:
    await past.end_run()
    held.clear()
    bus = LocalBus()
    hindsight = FleetReflection(past.journal, clock=lambda: AT)
    working = asyncio.create_task(learn(past.learner(bus), hindsight, seconds=0.05))
    await until_asked(1)
    await past.begin(settings=OFF, reflector="none", summed=False)

    async def is_studied() -> bool:
        return len(await past.told(Summary)) == 2

    await until(is_studied)
    assert await past.looks() == []
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)


@pytest.mark.parametrize("once", [True, False])
async def test_a_monitor_looks_back_at_its_fleet(past: Past, location: str, once: bool) -> None:
    await past.end_run()
    keeping = FleetMonitor(
        past.journal,
        location=location,
        bus=LocalBus(),
        settings=ON,
        holder="a:1",
        clock=lambda: datetime.now(UTC),
        tell=lambda _: None,
    )
    working = asyncio.create_task(keeping.once() if once else keeping.run())

    async def has_looked_back() -> bool:
        return bool(await past.looks())

    await until(has_looked_back)
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    assert await past.looks() == [(True, "")]


ZONE = timezone(timedelta(hours=2))


def local_time(day: int, clock: str) -> datetime:
    hour, minute = map(int, clock.split(":"))
    return datetime(2026, 11, day, hour, minute, tzinfo=ZONE)


@pytest.mark.parametrize(
    ("hours", "moment", "begin", "end"),
    [
        ("02:00-05:00", local_time(21, "01:59"), local_time(21, "02:00"), local_time(21, "05:00")),
        ("02:00-05:00", local_time(21, "04:59"), local_time(21, "02:00"), local_time(21, "05:00")),
        ("02:00-05:00", local_time(21, "05:00"), local_time(22, "02:00"), local_time(22, "05:00")),
        ("22:30-05:00", local_time(21, "12:00"), local_time(21, "22:30"), local_time(22, "05:00")),
        ("22:30-05:00", local_time(22, "00:10"), local_time(21, "22:30"), local_time(22, "05:00")),
        ("03:00-03:00", local_time(21, "02:00"), local_time(20, "03:00"), local_time(21, "03:00")),
    ],
)
def test_s11_the_window_is_the_one_that_is_on_or_the_next(
    hours: str, moment: datetime, begin: datetime, end: datetime
) -> None:
    window = next_window(hours, moment)
    assert window == NightWindow(begin=begin, end=end)
    minute = timedelta(minutes=1)
    held = [window.holds(each) for each in (begin - minute, begin, end - minute, end)]
    assert held == [False, True, True, False]
