"""What a look back is made of: the summaries of attempts, and nothing else of them."""

import re
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from midwatch_monitor.config.learning import GuidelinesSettings, LearningSettings
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.records import (
    Checkpoint,
    Commit,
    Message,
    Plan,
    PlanStep,
    Step,
    StepKind,
    Summary,
)
from midwatch_stage.harness import PastAttempts
from midwatch_supervisor.learning.reflection import reflect_project

TOLD = "It edited the rounding in totals.py five times before it ran the tests."
DETAIL = "zweihundert"
"""Stands in everything that an attempt leaves but its summary."""


async def asked(past: PastAttempts, **knobs: Any) -> list[str]:
    """What a reflector is asked in a look back at the project."""
    heard: list[str] = []

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        last = messages[-1]
        assert isinstance(last, ModelRequest)
        heard.append("\n".join(str(getattr(part, "content", "")) for part in last.parts))
        if not info.output_tools:
            return ModelResponse(parts=[TextPart("- Run the tests before you edit `totals.py`.")])
        attempts = [int(found) for found in re.findall(r"^- attempt (\d+)", heard[-1], re.M)]
        insight = {"content": TOLD, "topics": ["rounding"], "attempts": attempts}
        back = {"explanation": "It edited blindly.", "insights": [insight]}
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, back)])

    guidelines = GuidelinesSettings.model_validate({"enabled": True, **knobs})
    await reflect_project(
        past.journal,
        "shop",
        model=FunctionModel(answer),
        settings=Settings(learning=LearningSettings(guidelines=guidelines)),
        now=lambda: past.at,
    )
    return heard


@pytest.mark.parametrize("more", [{}, {"with_lessons": True, "with_operators": True}])
async def test_s42_summaries_are_looked_back_at_and_no_single_step_or_message(
    past: PastAttempts, more: dict[str, bool]
) -> None:
    attempt = await past.attempt()
    step = Step(
        number=1,
        kind=StepKind.CHECKPOINT,
        at=past.at,
        args=DETAIL,
        output=DETAIL,
        checkpoint=Checkpoint(progress_percent=10, confidence=50, notes=DETAIL, blockers=(DETAIL,)),
    )
    await past.say(attempt, step, Plan(steps=(PlanStep(title=DETAIL),)))
    message = Message(index=0, body=f'["{DETAIL}"]'.encode())
    await past.journal.commit(Commit(attempt=attempt.id, messages=(message,)))
    await past.end(attempt)
    await past.say(attempt, Summary(text=TOLD, turns=9))
    questions = await asked(past, **more)
    assert len(questions) == 2
    assert TOLD in questions[0]
    assert DETAIL not in "".join(questions)
