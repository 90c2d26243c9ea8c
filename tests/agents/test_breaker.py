"""A provider that keeps failing is left alone for a while, by everybody."""

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from midwatch_agents.model_failures import Failure
from midwatch_agents.model_retries import Breaker, Breakers
from midwatch_monitor.config.settings import ProviderSettings

TWO = ProviderSettings(breaker_failures=2, breaker_seconds=30)


class Time:
    """A clock that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
def breaker(clock: Time) -> Breaker:
    return Breaker(TWO, clock)


@pytest.fixture
def opened(breaker: Breaker) -> Breaker:
    breaker.note_failure()
    breaker.note_failure()
    return breaker


def test_failures_in_a_row_open_it(breaker: Breaker) -> None:
    breaker.note_failure()
    assert breaker.ask() == 0
    breaker.note_failure()
    assert breaker.ask() == 30


def test_a_success_between_begins_the_count_anew(breaker: Breaker) -> None:
    breaker.note_failure()
    breaker.note_success()
    breaker.note_failure()
    assert breaker.ask() == 0


def test_after_its_time_one_request_tries_and_the_others_wait(opened: Breaker, clock: Time) -> None:
    clock.now += 30
    assert [opened.ask(), opened.ask()] == [0, 1]


def test_the_one_that_succeeds_closes_it(opened: Breaker, clock: Time) -> None:
    clock.now += 30
    opened.ask()
    opened.note_success()
    opened.note_failure()
    assert opened.ask() == 0


def test_the_one_that_fails_opens_it_again(opened: Breaker, clock: Time) -> None:
    clock.now += 30
    opened.ask()
    opened.note_failure()
    assert opened.ask() == 30


def test_one_with_an_unknown_outcome_leaves_the_try(opened: Breaker, clock: Time) -> None:
    clock.now += 30
    opened.ask()
    opened.release()
    assert opened.ask() == 0


def test_one_that_is_lost_does_not_keep_it_for_ever(opened: Breaker, clock: Time) -> None:
    clock.now += 30
    opened.ask()
    clock.now += 30
    assert opened.ask() == 0


TIMES = (1, 2, 3, 4)
FOREVER = (False, False, True, True)


@pytest.mark.parametrize(
    ("failure", "refused"),
    [
        (Failure.UNREACHABLE, (True,) * 4),
        (Failure.REFUSED, (True,) * 4),
        (Failure.NOT_FOUND, (True,) * 4),
        (Failure.UNPAID, (True,) * 4),
        (Failure.BROKEN, FOREVER),
        (Failure.BUSY, (False,) * 4),
        (Failure.REJECTED, (False,) * 4),
    ],
)
def test_a_new_provider_may_refuse(failure: Failure, refused: tuple[bool, ...]) -> None:
    first = Breaker(TWO, refusing=True)
    assert tuple(first.refuses(failure, "a") for _ in TIMES) == refused
    patient = Breaker(TWO)
    assert not any(patient.refuses(failure, "a") for _ in TIMES)


def test_once_it_answered_one_it_is_reachable_but_may_still_refuse_another() -> None:
    breaker = Breaker(TWO, refusing=True)
    breaker.note_success("planner")
    assert not breaker.refuses(Failure.UNREACHABLE, "worker")
    assert not breaker.refuses(Failure.REFUSED, "planner")
    assert breaker.refuses(Failure.REFUSED, "worker")
    assert tuple(breaker.refuses(Failure.BROKEN, "worker") for _ in TIMES) == FOREVER


def test_whoever_is_told_to_slow_down_has_reached_it() -> None:
    breaker = Breaker(TWO, refusing=True)
    breaker.refuses(Failure.BUSY, "a")
    assert not breaker.refuses(Failure.UNREACHABLE, "a")


def test_it_can_be_switched_off(clock: Time) -> None:
    never = Breaker(ProviderSettings(breaker_failures=0), clock)
    for _ in range(100):
        never.note_failure()
    assert never.ask() == 0


def openai(name: str, base_url: str) -> OpenAIChatModel:
    return OpenAIChatModel(name, provider=OpenAIProvider(base_url=base_url, api_key="none"))


def test_models_of_one_address_share_a_breaker() -> None:
    breakers = Breakers(TWO)
    one = breakers.of(openai("a", "http://one.test/v1"))
    assert breakers.of(openai("b", "http://one.test/v1")) is one
    assert breakers.of(openai("a", "http://two.test/v1")) is not one


def model() -> FunctionModel:
    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[])

    return FunctionModel(answer)


def test_a_model_without_a_provider_has_its_own() -> None:
    breakers = Breakers(TWO)
    assert breakers.of(model()) is not breakers.of(model())
