"""The simulated worker as a model: it plays a scene, and does what the watch asks of it.

A play says only what the work is. What any worker does that follows the protocol is done here: it
reflects now and then, answers a reminder, and gives what a refused call wants before it calls
again.
"""

import random
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel
from scene import Nature, Player, Scene
from turns import REPLANNED, Act, Diary, Heard, Play, Turn

REFLECT_EVERY = 3
Rest = Callable[[], Awaitable[None]]
"""What a worker waits for before each answer."""

_GUIDANCE = re.compile(r"^\[midwatch [0-9a-f]{8} #\d+")
_REFUSED = re.compile(r"\[midwatch\] refused.*\b[Cc]all `(?:report_error|check_plan)`", re.DOTALL)
"""A call that waits for a statement. Other refusals are an answer that the play has to take."""
_ATTEMPT = re.compile(r"This is attempt (\d+) of this task")
_OWN = frozenset({"reflect", "report_error", "check_plan", "set_plan"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Onset:
    """Where the fault of a scene began."""

    attempt: int
    step: int


ONSETS: dict[str, Onset] = {}
"""By task; the first one of each, in this process."""


@dataclass(slots=True, kw_only=True)
class _Round:
    """What is under way in one attempt."""

    player: Player
    play: Play
    turn: Turn = field(default_factory=Turn)
    results: dict[int, str] = field(default_factory=dict[int, str])
    """Of the acts of the turn in hand, those that were done."""
    guidance: list[str] = field(default_factory=list[str])
    refusals: int = 0
    calls: int = 0
    since_reflect: int = 0
    begun: bool = False
    over: bool = False


class Mind:
    """One worker on one task, over all its attempts."""

    def __init__(self, scene: Scene, *, key: str, rest: Rest) -> None:
        self.scene = scene
        self._rest = rest
        self._key = key
        self._round: _Round | None = None
        self._requests = 0
        self._failed = 0

    def model(self) -> Model:
        """The worker as pydantic-ai asks it."""
        return FunctionModel(self._answer, model_name=f"simulated:{self.scene.key}")

    async def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        await self._rest()
        self._suffer()
        self._requests += 1
        if self._round is None or not any(isinstance(each, ModelResponse) for each in messages):
            self._round = self._begin(messages)
        offered = {tool.name for tool in info.function_tools}
        turn = self._next(self._round, _since(messages), offered)
        return _response(turn, self._round, self._requests)

    def _suffer(self) -> None:
        """Fail as the provider of the scene does."""
        times = self.scene.outages.get(self._requests, 0)
        if times == self._failed:
            self._failed = 0
            return
        self._failed += 1
        if self._failed == 1:
            ONSETS.setdefault(self._key, Onset(attempt=1, step=self._calls))
        status = (503, 429)[self._failed % 2]
        raise ModelHTTPError(
            status, self.scene.key, {"error": "overloaded"}, headers={"retry-after": "0.05"}
        )

    @property
    def _calls(self) -> int:
        return self._round.calls if self._round else 0

    def _begin(self, messages: Sequence[ModelMessage]) -> _Round:
        opening = _prompts(messages)
        found = _ATTEMPT.search(opening)
        number = int(found[1]) if found else 1
        player = Player(
            opening=opening,
            number=number,
            reactive=self.scene.nature is Nature.RECOVERABLE,
            heed=self.scene.heed,
            frank=bool((self.scene.seed + len(self.scene.fault)) % 2),
            seed=self.scene.seed,
            random=random.Random(f"{self._key}/{number}"),
            onset=lambda: self._note(number),
        )
        return _Round(player=player, play=self.scene.play(player))

    def _note(self, number: int) -> None:
        """The fault begins with the next act."""
        ONSETS.setdefault(self._key, Onset(attempt=number, step=self._calls + 1))

    def _next(self, now: _Round, fresh: Sequence[ModelMessage], offered: set[str]) -> Turn:
        results, prompts = _returned(fresh), _texts(fresh)
        now.guidance += [text for text in prompts if _GUIDANCE.match(text)]
        wants = now.begun and self._wanted(now, results)
        if wants:
            acts = (*_statements(wants, now), *self._undone(now))
            return Turn(acts=tuple(act for act in acts if act.tool in offered))
        replan = any(REPLANNED.search(text) and "set_plan" in text for text in prompts)
        now.turn = self._played(now)
        if not now.turn.acts:
            return now.turn
        more = [_set_plan(now.player.diary)] if replan else []
        now.since_reflect += 1
        if now.since_reflect >= REFLECT_EVERY or any("call `reflect`" in text for text in prompts):
            now.since_reflect = 0
            more.append(_reflection(now.player.diary))
        acts = tuple(act for act in (*more, *now.turn.acts) if act.tool in offered)
        return Turn(acts=acts, say=now.turn.say) if acts else self._next(now, (), offered)

    def _wanted(self, now: _Round, results: dict[int, str]) -> str:
        """Take in results; answers the words of a refusal that has to be met first."""
        refused = ""
        for index, text in results.items():
            if _REFUSED.search(text) and now.refusals < 3:
                refused = text
            else:
                now.results[index] = text
        now.refusals = now.refusals + 1 if refused else 0
        return refused

    def _undone(self, now: _Round) -> list[Act]:
        return [act for n, act in enumerate(now.turn.acts) if n not in now.results]

    def _played(self, now: _Round) -> Turn:
        heard = Heard(
            results=tuple(now.results[n] for n in sorted(now.results)),
            guidance=tuple(now.guidance),
        )
        now.results, now.guidance = {}, []
        if heard.failed:
            now.player.diary.failures.append(heard.results[-1])
        try:
            turn = now.play.send(heard) if now.begun else next(now.play)
        except StopIteration:
            turn = Turn(say="There is nothing more to do.")
        now.begun = True
        return turn


def _statements(refusal: str, now: _Round) -> list[Act]:
    """What a refused call asks for, in the words of the worker's diary."""
    diary = now.player.diary
    if "all `check_plan`" in refusal:
        check = {
            "assumption": "What was done so far is a sound ground for the rest.",
            "reality": diary.notes,
            "impact": "The remaining plan steps stay as they are.",
            "options": ["Keep the plan"],
            "choice": "Keep the plan: it needs no new files.",
        }
        return [Act(tool="check_plan", args=check)]
    last = diary.failures[-1] if diary.failures else "the attempt before this one failed"
    report = {
        "what_happened": " ".join(last.split())[:300] or "it failed",
        "category": "transient" if diary.passing else "permanent",
        "root_cause": diary.belief,
        "change": "The next try is made with another version of it.",
    }
    return [Act(tool="report_error", args=report)]


def _reflection(diary: Diary) -> Act:
    report = {
        "progress_percent": diary.progress,
        "confidence": diary.confidence,
        "decision": "continue",
        "blockers": [*diary.blockers],
        "notes": diary.notes,
    }
    return Act(tool="reflect", args=report)


def _set_plan(diary: Diary) -> Act:
    return Act(tool="set_plan", args={"steps": [*diary.remaining]})


def _response(turn: Turn, now: _Round, request: int) -> ModelResponse:
    """The turn with ids that say which act of the play a call is."""
    places = {id(act): n for n, act in enumerate(now.turn.acts)}
    calls = [
        ToolCallPart(act.tool, dict(act.args), f"r{request}-{places.get(id(act), f'own{n}')}")
        for n, act in enumerate(turn.acts)
    ]
    now.calls += len(calls)
    text = [TextPart(turn.say)] if turn.say else []
    return ModelResponse(parts=[*text, *calls])


def _since(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """What came after the last answer."""
    fresh: list[ModelMessage] = []
    for message in reversed(messages):
        if isinstance(message, ModelResponse):
            break
        fresh.insert(0, message)
    return fresh


def _returned(messages: Sequence[ModelMessage]) -> dict[int, str]:
    """The results of the play's acts, by their place in the turn."""
    found: dict[int, str] = {}
    for message in messages:
        for part in message.parts if isinstance(message, ModelRequest) else ():
            if isinstance(part, ToolReturnPart):
                place = part.tool_call_id.rpartition("-")[2]
                if place.isdigit() and part.tool_name not in _OWN:
                    found[int(place)] = part.model_response_str()
    return found


def _texts(messages: Sequence[ModelMessage]) -> list[str]:
    texts: list[str] = []
    for message in messages:
        for part in message.parts if isinstance(message, ModelRequest) else ():
            if isinstance(part, UserPromptPart):
                content = [part.content] if isinstance(part.content, str) else part.content
                texts += [each for each in content if isinstance(each, str)]
    return texts


def _prompts(messages: Sequence[ModelMessage]) -> str:
    return "\n".join(_texts(messages))


NUDGE = (
    "You seem to be stuck. Stop repeating what you do, read the last output again, state the cause "
    "of the failure, and try another approach."
)


def nudging() -> Model:
    """A supervisor that always says the same, whatever it is asked."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        said = {"action": "nudge", "diagnosis": "unknown", "message": NUDGE, "rationale": "fixed"}
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, said)])

    return FunctionModel(answer, model_name="simulated:nudge")
