"""A provider that keeps failing is left alone for a while, by everybody."""

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from midwatch_agents.model_failures import Failure, failure_of
from midwatch_agents.model_retries import Breaker, Breakers
from midwatch_monitor.config.settings import ProviderSettings

TWO = ProviderSettings(breaker_failures=2, breaker_seconds=30)


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        *((ModelHTTPError(status, "m"), Failure.BUSY) for status in (408, 429, 502, 503, 504, 529)),
        (TimeoutError(), Failure.BUSY),
        (ModelHTTPError(500, "m"), Failure.BROKEN),
        (ConnectionResetError(), Failure.BROKEN),
        (ConnectionRefusedError(), Failure.UNREACHABLE),
        *((ModelHTTPError(status, "m"), Failure.REFUSED) for status in (401, 403, 407)),
        (ModelHTTPError(402, "m"), Failure.UNPAID),
        *((ModelHTTPError(status, "m"), Failure.NOT_FOUND) for status in (404, 405)),
        (ModelHTTPError(400, "m"), Failure.REJECTED),
        (ValueError(), None),
    ],
    ids=repr,
)
def test_an_error_is_a_failure_of_a_kind(error: Exception, failure: Failure | None) -> None:
    assert failure_of(error) is failure


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


COURSES = {
    "failures in a row open it": ("f?f?", [0, 30]),
    "a success between begins the count anew": ("fsf?", [0]),
    "after its time one request tries and the others wait": ("ff.??", [0, 1]),
    "the one that succeeds closes it": ("ff.?sf?", [0, 0]),
    "the one that fails opens it again": ("ff.?f?", [0, 30]),
    "one with an unknown outcome leaves the try": ("ff.?r?", [0, 0]),
    "one that is lost does not keep it for ever": ("ff.?.?", [0, 0]),
}


@pytest.mark.parametrize(("course", "waits"), COURSES.values(), ids=COURSES)
def test_what_happens_decides_how_long_the_next_request_waits(
    course: str, waits: list[float]
) -> None:
    """Failures, successes, requests that were given up (r), 30 seconds (.) and questions (?)."""
    now, asked = 100.0, list[float]()
    breaker = Breaker(TWO, lambda: now)
    notes = {"f": breaker.note_failure, "s": breaker.note_success, "r": breaker.release}
    for each in course:
        now += 30 * (each == ".")
        if each == "?":
            asked.append(breaker.ask())
        elif each in notes:
            notes[each]()
    assert asked == waits


def test_it_can_be_switched_off() -> None:
    never = Breaker(ProviderSettings(breaker_failures=0))
    for _ in range(100):
        never.note_failure()
    assert never.ask() == 0


def openai(name: str, base_url: str) -> OpenAIChatModel:
    return OpenAIChatModel(name, provider=OpenAIProvider(base_url=base_url, api_key="none"))


def test_models_of_one_address_share_a_breaker_and_one_without_a_provider_has_its_own() -> None:
    breakers = Breakers(TWO)
    one = breakers.of(openai("a", "http://one.test/v1"))
    assert breakers.of(openai("b", "http://one.test/v1")) is one
    assert breakers.of(openai("a", "http://two.test/v1")) is not one
    alone = [FunctionModel(lambda messages, info: ModelResponse(parts=[])) for _ in range(2)]
    assert breakers.of(alone[0]) is not breakers.of(alone[1])
