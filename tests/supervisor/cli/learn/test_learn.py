"""`midwatch learn`: what is still to be learned from, at once or in the quiet hours."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from midwatch_monitor.config.tasks import ModelSpec, Role
from midwatch_monitor.errors import JournalError
from midwatch_monitor.records import Chore, Ending, Study, StudyState, Summary
from midwatch_supervisor.cli.learn.learn import nightly
from midwatch_tests.command import Cli, assignment, new_attempt, new_task
from midwatch_tests.harness import PastAttempts

pytestmark = pytest.mark.usefixtures("named_by_the_environment")

TOLD = "It edited the rounding in totals.py five times before it ran the tests."
INSIGHT = "The rounding in totals.py was edited before any test was run."
DOCUMENT = """\
## Working rules

- Run the failing test in `tests/test_totals.py` before you edit `totals.py`.
- After two edits without a new result, look at the whole file again.\
"""


def model_for(role: Role, key: str) -> Model:
    """A reflector that finds one insight in the first attempt that it is shown."""
    return FunctionModel(_reflect if key == "fix" else _fail, model_name="reflecting")


async def _reflect(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    last = messages[-1]
    assert isinstance(last, ModelRequest)
    prompt = "\n".join(str(getattr(part, "content", "")) for part in last.parts)
    if not info.output_tools:
        return ModelResponse(parts=[TextPart(DOCUMENT)])
    shown = re.search(r"^- attempt (\d+)", prompt, re.M)
    assert shown is not None
    evidence = [{"attempt": int(shown[1]), "quote": "ran the tests"}]
    insight = {"content": INSIGHT, "topics": ["rounding"], "evidence": evidence}
    answer = {"explanation": "It edited blindly.", "insights": [insight]}
    return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, answer)])


async def _fail(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    raise ConnectionError("gone")


async def make_ended_attempt(
    past: PastAttempts, *, task: str = "fix", project: str = "shop", reflector: bool = True
) -> int:
    """An attempt that is over and summed up, of a task that names its reflector; its id."""
    model = ModelSpec(name=f"scripted:{__name__}", tries=1)
    models = {Role.REFLECTOR: model} if reflector else {}
    wanted = assignment(task, models=models, named=tuple(models), project=project)
    spec = wanted.model_dump_json()
    of = await new_task(past.journal, task, spec=spec, project=project)
    attempt = await new_attempt(past.journal, of)
    over = await past.end(attempt, Ending.DONE)
    summary = Summary(text=TOLD, topics=("rounding",), turns=9)
    await past.say(attempt, summary, Study(about=over, chore=Chore.SUMMARY, state=StudyState.DONE))
    return attempt.id


def reflection_lines(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in found if each["type"] == "reflection"]


async def test_s4_s50_what_was_learned_is_proposed_as_guidelines_and_nothing_new_the_second_time(
    past: PastAttempts, cli: Cli
) -> None:
    attempt = await make_ended_attempt(past)
    before = await past.journal.last_id()
    (would,) = reflection_lines(await cli.ask("learn", "--dry-run"))
    of = {"type": "reflection", "project": "shop", "attempts": [attempt]}
    assert would == {**of, "watermark": 0, "dry_run": True}
    assert await past.journal.last_id() == before
    (found,) = reflection_lines(await cli.ask("learn"))
    assert found.pop("watermark") > 0
    assert found == {**of, "insights": 1, "proposed": True, "skipped": "", "error": ""}
    (version,) = await past.learned.guidelines("shop")
    assert version.guidelines.text == DOCUMENT
    assert (await cli.read("learn"))[-1] == "shop: skipped: no qualifying attempts"


async def test_without_a_model_only_chores_are_done(past: PastAttempts, cli: Cli) -> None:
    await make_ended_attempt(past, reflector=False)
    (found,) = reflection_lines(await cli.ask("learn"))
    assert found["skipped"].startswith("there is no model to look back with: ")


async def test_each_project_or_the_one_that_is_named_is_looked_at_and_a_failure_said(
    past: PastAttempts, cli: Cli
) -> None:
    await make_ended_attempt(past)
    await make_ended_attempt(past, task="broken", project="site")
    _, *told = await cli.read("learn", "--project", "shop")
    news = "1 insight from 1 attempt, and new guidelines: `midwatch guidelines diff`"
    assert told == [f"shop: {news}"]
    shop, site = reflection_lines(await cli.ask("learn", code=1))
    assert (shop["project"], shop["skipped"]) == ("shop", "no qualifying attempts")
    assert (site["project"], "ConnectionError: gone" in site["error"]) == ("site", True)


async def test_waiting_needs_quiet_hours(cli: Cli) -> None:
    assert await cli.refused("learn", "--wait") == (
        "--wait needs `learning.guidelines.quiet_hours` in the configuration\n"
    )


async def test_s11_in_each_of_the_quiet_hours_is_one_look_and_one_that_fails_is_not_the_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    at = [datetime(2026, 11, 21, 20, 0, tzinfo=UTC)]
    looks: list[datetime] = []

    async def look() -> None:
        looks.append(at[0])
        if len(looks) == 3:
            raise KeyboardInterrupt
        if len(looks) == 2:
            raise JournalError("another process holds it")

    async def sleep(seconds: float) -> None:
        at[0] += timedelta(seconds=seconds)

    with pytest.raises(KeyboardInterrupt):
        await nightly(look, "02:00-05:00", clock=lambda: at[0], sleep=sleep)
    assert looks == [datetime(2026, 11, day, 2, 0, tzinfo=UTC) for day in (22, 23, 24)]
    assert capsys.readouterr().err.count("another process holds it") == 1
