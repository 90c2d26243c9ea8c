"""Facts that are taken out of an ended attempt: screened, put together with what is known."""

import logging
from collections.abc import Awaitable, Callable

import pytest

from midwatch_monitor.config.learning import FactSettings, LearningSettings
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.records import Attempt, Chore, Ending, Fact, FactMaker, FactState, KnownFact
from midwatch_stage.harness import PastAttempts
from midwatch_supervisor.learning.facts import store
from midwatch_supervisor.operator.actions import LearningMark, OperatorActions

REACT = "The app uses React 19"
SECRET = "The root account has PASSWORD=hunter2hunter2 set"
Ended = Callable[[], Awaitable[Attempt]]
Take = Callable[..., Awaitable[list[KnownFact]]]


def given(**facts: bool | int) -> Settings:
    return Settings(learning=LearningSettings(facts=FactSettings.model_validate(facts)))


@pytest.fixture
def ended(past: PastAttempts) -> Ended:
    """Makes an ended attempt of the project `shop`."""

    async def make() -> Attempt:
        attempt = await past.attempt()
        await past.end(attempt, Ending.DONE)
        return attempt

    return make


@pytest.fixture
def take(past: PastAttempts) -> Take:
    """Stores extracted facts, and answers those of the project that stand, oldest first."""

    async def work(
        attempt: Attempt, *facts: Fact, settings: Settings | None = None
    ) -> list[KnownFact]:
        task = await past.journal.task(attempt.task)
        settings = settings or given()
        await store(past.journal, task, attempt, facts, settings=settings, now=past.at)
        return (await past.learned.facts(project="shop"))[::-1]

    return work


async def reviewed(past: PastAttempts, known: KnownFact) -> None:
    """Let a person take a fact for true."""
    actions = OperatorActions(past.journal, author="ann", clock=lambda: past.at)
    await actions.mark(LearningMark.APPROVE, known)


async def test_v7_extracted_facts_wait_for_a_review_where_it_is_on_else_for_a_person(
    past: PastAttempts, ended: Ended, take: Take
) -> None:
    attempt = await ended()
    (known,) = await take(attempt, Fact(text=f" {REACT}\n"), settings=given(review=True))
    assert (known.fact.text, known.state, known.shared) == (REACT, FactState.PENDING, False)
    assert known.fact.maker is FactMaker.EXTRACTION
    chores = await past.learned.chores(tries=3, attempt=attempt.id)
    assert Chore.REVIEW in {each.chore for each in chores}
    found = await take(await ended(), Fact(text=REACT))  # what waits is unknown to others
    assert [each.state for each in found] == [FactState.PENDING, FactState.WAITING]


async def test_v7_an_extracted_fact_that_is_known_only_adds_its_source(
    past: PastAttempts, ended: Ended, take: Take
) -> None:
    before, attempt = await ended(), await ended()
    (known,) = await take(before, Fact(text=REACT))
    await reviewed(past, known)
    for _ in range(2):  # the second time as after a crash
        (known,) = await take(attempt, Fact(text=REACT))
        assert known.sources == (before.id, attempt.id)
    assert len(await past.learned.facts(project="shop", live=False)) == 2


@pytest.mark.parametrize("review", [True, False])
async def test_what_waits_ends_no_shared_fact(
    past: PastAttempts, ended: Ended, take: Take, review: bool
) -> None:
    (known,) = await take(await ended(), Fact(text=REACT))
    await reviewed(past, known)
    more = Fact(text=REACT, value='"19.1"')
    found = await take(await ended(), more, settings=given(review=review))
    assert [each.shared for each in found] == [True, False]


PORTS = [f"The port of service {n} is {n}" for n in range(5)]


@pytest.mark.parametrize(
    ("texts", "settings", "taken"),
    [
        (["", REACT], {}, [REACT]),
        (["It works", REACT], {}, [REACT]),
        ([SECRET, REACT], {}, [REACT]),
        (["a " * 400, REACT], {}, [REACT]),
        (PORTS, {"max_per_attempt": 3}, PORTS[:3]),
        ([REACT], {"enabled": False}, []),
    ],
    ids=["empty", "vague", "a secret", "too long", "too many", "switched off"],
)
async def test_what_no_prompt_may_hold_what_is_too_much_or_off_is_not_taken(
    ended: Ended, take: Take, texts: list[str], settings: dict[str, bool | int], taken: list[str]
) -> None:
    facts = [Fact(text=text) for text in texts]
    found = await take(await ended(), *facts, settings=given(**settings))
    assert [each.fact.text for each in found] == taken


async def test_requirement_21_a_fact_that_is_refused_is_not_logged(
    ended: Ended, take: Take, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="midwatch_supervisor")
    await take(await ended(), Fact(text=SECRET))
    told = [each.getMessage() for each in caplog.records if each.name.startswith("midwatch")]
    assert told == ["attempt 1: 0 of 1 extracted facts were accepted"]
