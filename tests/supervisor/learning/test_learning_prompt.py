"""What a worker is really sent of all that was learned, in a run from its start to its end."""

import logging
from typing import Any

import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from midwatch_monitor.config.tasks import Role
from midwatch_monitor.records import (
    AttemptTransition,
    Fact,
    Fault,
    Feedback,
    Guidelines,
    GuidelinesAct,
    GuidelinesMark,
    Lesson,
    Origin,
    Plan,
    Recall,
    Spending,
    Step,
    Study,
    Summary,
)
from midwatch_tests.harness import PastAttempts, RunHarness
from midwatch_tests.reading import prompts
from midwatch_tests.watched import uncoded

TAUGHT = "The worker wrote out.txt without its heading; write the heading first."
RULES = "Look at what is there before you write anything."
KNOWN = "The file out.txt is read by the shop's printer."
LAST_WORDS = "I wrote the file and looked at it twice."
BACK: dict[str, Any] = {
    "summary": "The worker wrote out.txt. Its check passed.",
    "quote": LAST_WORDS,
    "topics": ["out.txt", "writing", "checks"],
}


def model_for(role: Role, key: str) -> Model:
    """The models of this module: a worker that is done at once, a planner that says what it saw."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        match role:
            case Role.PLANNER:
                title = "with the lesson" if TAUGHT in prompts(messages)[0] else "without it"
                steps = [{"title": title, "files": ["out.txt"], "confidence": 80}]
                return ModelResponse(
                    parts=[ToolCallPart(info.output_tools[0].name, {"steps": steps})]
                )
            case Role.REFLECTOR:
                return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, BACK)])
            case _:
                return ModelResponse(parts=[TextPart(LAST_WORDS)])

    return FunctionModel(answer, model_name=f"{role}")


def tasks(more: str = "") -> str:
    return f"""
models: {{worker: "scripted:{__name__}", reflector: "scripted:{__name__}"{more}}}
workers: {{clerk: {{kind: task}}}}
tasks:
  - {{id: fix, goal: Write out.txt., project: shop, acceptance: ["true"]}}
"""


async def store_learning(past: PastAttempts) -> None:
    """Everything that an attempt may be given."""
    before = await past.attempt(task="fix")
    await past.say(before, Lesson(text=TAUGHT, origin=Origin.EXPLICIT, sources=(before.id,)))
    await past.say(before, Fact(text=KNOWN, files=("out.txt",)))
    version = await past.say(before, Guidelines(version=1, text=RULES))
    await past.say(before, GuidelinesMark(guidelines=version, act=GuidelinesAct.APPROVED))


async def sent_prompts(harness: RunHarness, attempt: int) -> tuple[str, str]:
    """The instructions and the first prompt that a worker was sent."""
    (body, *_) = [each.body for each in await harness.journal.messages(attempt)]
    messages = ModelMessagesTypeAdapter.validate_json(body)
    request = messages[0]
    assert isinstance(request, ModelRequest)
    return uncoded(request.instructions or ""), prompts(messages)[0]


async def test_r1_s15_only_the_workers_prompt_changes(
    harness: RunHarness, past: PastAttempts
) -> None:
    """What it is asked stays word for word as it was, and so does the model that is asked."""
    before, after = tasks().replace("shop", "elsewhere"), tasks()
    assert await harness.run(before) == 0
    await store_learning(past)
    assert await harness.run(after) == 0
    instructions, prompt = await sent_prompts(harness, 3)
    asked, _, told = prompt.partition("\n\n## Behavioral guidelines\n\n")
    first_instructions, first_asked = await sent_prompts(harness, 1)
    assert asked == first_asked
    assert instructions.startswith(first_instructions), "what is added says that facts are known"
    assert RULES not in instructions
    assert "## Acceptance" in asked.partition("# Task: fix")[2]
    places = [told.index(part) for part in (RULES, TAUGHT, KNOWN)]
    assert places == sorted(places)
    models = [(await harness.journal.attempt(attempt)).model for attempt in (1, 3)]
    assert models[0] == models[1]


async def test_s58_d42_what_is_given_is_recorded_first_and_what_is_learned_after_the_end(
    harness: RunHarness, past: PastAttempts
) -> None:
    await store_learning(past)
    assert await harness.run(tasks()) == 0
    (given,) = await harness.told(Recall, attempt=2)
    assert (len(given.lessons), len(given.facts)) == (1, 1)
    assert given.guidelines is not None
    kinds = [type(entry.record) for entry in await harness.journal.entries(attempt=2)]
    assert kinds.index(Recall) < kinds.index(Step)
    end = max(at for at, kind in enumerate(kinds) if kind is AttemptTransition)
    assert kinds[end + 1 :] == [Spending, Summary, Study]
    assert await harness.told(Fault) == []
    (summary,) = await past.learned.summaries("shop")
    assert summary.summary.text == BACK["summary"]
    assert (summary.summary.model, summary.task_name) == ("reflector", "fix")


async def test_d4_the_planner_reads_lessons_too(harness: RunHarness, past: PastAttempts) -> None:
    await store_learning(past)
    await harness.run(tasks(f', planner: "scripted:{__name__}"'))
    plans = await harness.told(Plan, attempt=2)
    assert plans[0].steps[0].title == "with the lesson"


async def test_requirement_21_a_run_logs_nothing_of_lessons_summaries_or_transcripts(
    harness: RunHarness, past: PastAttempts, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    await store_learning(past)
    await harness.run(tasks())
    attempt = (await harness.journal.attempts(2))[0].id
    await harness.say(Feedback(accepted=False, comment="The heading is missing."), attempt=attempt)
    await harness.run(tasks())
    said = "\n".join(record.getMessage() for record in caplog.records)
    assert "of attempt" in said
    for text in (TAUGHT, RULES, KNOWN, LAST_WORDS, BACK["summary"], "heading is missing"):
        assert text not in said
