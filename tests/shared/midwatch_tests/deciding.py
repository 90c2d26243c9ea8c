"""Models that answer for a supervisor what a test says, and what was done before they are asked."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from midwatch_monitor.config.settings import SupervisorSettings
from midwatch_monitor.records import Action, Actor, Outcome
from midwatch_monitor.state.intervention import InterventionState
from midwatch_supervisor.decide.agent import Supervisor
from midwatch_tests.factories import judged

Fields = dict[str, object]
Turn = Fields | tuple[str, Fields] | Exception
"""The answer, a call of a tool, or what the provider raises."""


def answer(action: str = "nudge", diagnosis: str = "wrong_approach", **fields: object) -> Fields:
    """A decision as a model says it."""
    said = {"message": "Look.", "rationale": "So.", "evidence": [1]}
    return {"action": action, "diagnosis": diagnosis, **said, **fields}


def answering(
    args: Mapping[str, object], meanwhile: Callable[[], Awaitable[object]] | None = None
) -> FunctionModel:
    """A model that answers so, once something else has happened."""

    async def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if meanwhile is not None:
            await meanwhile()
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, dict(args))])

    return FunctionModel(reply, model_name="boss")


@dataclass
class Script:
    """A model that takes its turns from a list, the last one for ever."""

    turns: Sequence[Turn]
    asked: list[str] = field(default_factory=list[str])
    """What it was told last, each time."""
    slept: list[float] = field(default_factory=list[float])

    async def reply(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        last = messages[-1]
        assert isinstance(last, ModelRequest)
        turn = self.turns[min(len(self.asked), len(self.turns) - 1)]
        self.asked.append("\n".join(str(getattr(part, "content", "")) for part in last.parts))
        if isinstance(turn, Exception):
            raise turn
        name, args = turn if isinstance(turn, tuple) else (info.output_tools[0].name, turn)
        return ModelResponse(parts=[ToolCallPart(name, args)])

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def supervisor(self, settings: SupervisorSettings) -> Supervisor:
        model = FunctionModel(self.reply, model_name="scripted")
        return Supervisor(model, settings, sleep=self.sleep)


def failed(*actions: Action, by: Actor = Actor.POLICY) -> tuple[InterventionState, ...]:
    """What was done in vain."""
    return tuple(judged(action, Outcome.NO_EFFECT, by=by) for action in actions)
