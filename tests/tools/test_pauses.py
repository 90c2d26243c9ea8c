"""Which failures of a model pass, and how long it is waited for them."""

import asyncio

import pytest
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelHTTPError,
    ModelQuotaExceededError,
    ModelRequestTimeout,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.function import AgentInfo, FunctionModel

from midwatch_agents.model_failures import passing, reason_of
from midwatch_agents.model_retries import Breaker, PatientModel
from midwatch_monitor.config.settings import ProviderSettings
from midwatch_tools.pauses import Pause, listen

HELLO: list[ModelMessage] = [ModelRequest.user_text_prompt("Hello")]
DOWN = ModelHTTPError(503, "m")
NEVER = Breaker(ProviderSettings(breaker_failures=0))


def failing(*errors: Exception) -> Model:
    """A model that fails with one error after the other, and then answers."""
    left = list(errors)

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if left:
            raise left.pop(0)
        return ModelResponse(parts=[TextPart("yes")])

    return FunctionModel(answer)


class Pauses:
    """What a run hears of its model's pauses, on a clock that only they move."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self.told: list[str] = []

    async def tell(self, pause: Pause | None) -> None:
        self.told.append("it answered" if pause is None else f"{pause.reason} from {pause.url}")

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept.append(seconds)

    async def ask(self, model: Model, breaker: Breaker = NEVER, *, tries: int) -> str | None:
        listen(self.tell)
        patient = PatientModel(model, tries=tries, breaker=breaker, sleep=self.sleep)
        return (await patient.request(HELLO, None, ModelRequestParameters())).text


@pytest.mark.parametrize(
    "error",
    [
        *(ModelHTTPError(code, "m") for code in (408, 409, 425, 429, 500, 502, 503, 504, 529)),
        ModelConnectionError("m", "refused"),
        ModelRequestTimeout("m", 5.0),
        ModelAPIError("m", "cut off"),
        TimeoutError(),
        ConnectionResetError(),
        ConnectionRefusedError(),
    ],
)
def test_overload_limits_and_a_lost_connection_pass(error: Exception) -> None:
    assert passing(error)


@pytest.mark.parametrize(
    "error",
    [
        *(ModelHTTPError(code, "m") for code in (400, 401, 404)),
        ModelAuthenticationError("m", "no"),
        ModelHTTPError.for_category(ModelQuotaExceededError, status_code=429, model_name="m"),
        UnexpectedModelBehavior("nonsense"),
        ValueError(),
    ],
)
def test_what_the_same_request_would_meet_again_does_not_pass(error: Exception) -> None:
    assert not passing(error)


async def test_a_request_is_repeated_after_pauses_that_double_at_most() -> None:
    pauses = Pauses()
    assert await pauses.ask(failing(*[DOWN] * 9), tries=10) == "yes"
    assert len(pauses.slept) == 9
    assert all(0 <= pause <= min(0.5 * 2**n, 60) for n, pause in enumerate(pauses.slept))


@pytest.mark.parametrize(("tries", "raised"), [(1, 0), (2, 1)])
async def test_the_error_of_the_last_try_is_raised(tries: int, raised: int) -> None:
    errors = [DOWN, ModelHTTPError(500, "m"), ModelHTTPError(500, "m")]
    with pytest.raises(ModelHTTPError) as caught:
        await Pauses().ask(failing(*errors), tries=tries)
    assert caught.value is errors[raised]


async def test_a_stream_is_asked_for_again_too() -> None:
    patient = PatientModel(failing(DOWN), tries=2, breaker=NEVER, sleep=Pauses().sleep)
    async with patient.request_stream(HELLO, None, ModelRequestParameters()) as stream:
        assert [event async for event in stream]
        assert stream.get().text == "yes"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ModelHTTPError(429, "m"), "HTTP 429"),
        (ModelRequestTimeout("m", 5.0), "no answer in time"),
        (TimeoutError(), "no answer in time"),
        (ModelConnectionError("m", "refused"), "refused"),
        (ConnectionResetError(), "ConnectionResetError"),
    ],
)
def test_a_failure_is_named_in_a_few_words(error: Exception, words: str) -> None:
    assert reason_of(error) == words


async def test_a_pause_is_told_with_its_reason() -> None:
    pauses = Pauses()
    await pauses.ask(failing(ModelHTTPError(429, "m")), tries=2)
    assert pauses.told == ["HTTP 429 from function", "it answered"]


async def test_a_first_answer_that_takes_long_is_told_of_and_a_later_one_is_not() -> None:
    pauses, told = Pauses(), asyncio.Event()

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        await told.wait()
        return ModelResponse(parts=[TextPart("yes")])

    async def tell(pause: Pause | None) -> None:
        await pauses.tell(pause)
        if pause is not None:
            assert (pause.asked, pause.seconds) == (20.0, 280.0)
            told.set()

    listen(tell)
    slow = FunctionModel(answer, settings={"request_timeout": 300.0})
    patient = PatientModel(slow, tries=1, breaker=Breaker(ProviderSettings()), sleep=pauses.sleep)
    for _ in range(2):
        await patient.request(HELLO, None, ModelRequestParameters())
    assert pauses.told == [
        "the first request is still under way from function",
        "it answered",
        "it answered",
    ]


async def test_an_open_breaker_is_waited_for_and_costs_no_try() -> None:
    pauses = Pauses()
    breaker = Breaker(ProviderSettings(breaker_failures=1, breaker_seconds=30), lambda: pauses.now)
    breaker.note_failure("HTTP 503")
    assert await pauses.ask(failing(), breaker, tries=1) == "yes"
    assert pauses.told == ["HTTP 503 from function", "it answered"]
    assert (pauses.now, breaker.failures) == (30, 0)


@pytest.mark.parametrize(
    ("error", "failures"), [(DOWN, 1), (ModelHTTPError(401, "m"), 0), (ValueError(), 0)]
)
async def test_only_unserved_requests_count_as_failed(error: Exception, failures: int) -> None:
    breaker = Breaker(ProviderSettings())
    with pytest.raises(type(error)):
        await Pauses().ask(failing(error), breaker, tries=1)
    assert breaker.failures == failures


async def test_a_cancelled_request_leaves_the_try_to_another() -> None:
    asked = asyncio.Event()

    async def hang(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked.set()
        await asyncio.Event().wait()
        return ModelResponse(parts=[])

    breaker = Breaker(ProviderSettings(breaker_failures=1, breaker_seconds=0.001), lambda: now)
    now = 0.0
    breaker.note_failure()
    now = 1.0
    request = asyncio.create_task(Pauses().ask(FunctionModel(hang), breaker, tries=1))
    await asked.wait()
    held = breaker.ask()
    request.cancel()
    await asyncio.wait({request})
    assert held > 0
    assert breaker.ask() == 0
