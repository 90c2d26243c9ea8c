"""A worker sees its budget, asks for more, and what is granted or switched takes effect."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from midwatch_monitor import records as r
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.settings import ReflectSettings, Settings
from midwatch_monitor.errors import BudgetSpentError, UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import working_transition
from midwatch_tests.factories import delivery, intervention
from midwatch_tests.reading import answers, prompts, records_of
from midwatch_tests.worker import Claim, Performer
from midwatch_tools.attempt_watch import AttemptWatch
from midwatch_tools.pauses import Pause, tell_pause

WORK: list[Any] = [[("put", {"path": "a.py", "text": str(n)})] for n in range(4)]
TWO = r.Budget(requests=r.Meter(limit=2))
TWENTY = r.Budget(requests=r.Meter(limit=20))
ASK = ("request_budget", {"reason": "two files are left", "requests": 5})
SAID = {"progress_percent": 10, "confidence": 80, "decision": "continue"}
GRANT = r.Terms(grant=r.Grant(requests=3))
MORE = intervention(r.Action.GRANT_BUDGET, r.Actor.SUPERVISOR, message="Take them.", terms=GRANT)
SWITCH = intervention(r.Action.SWITCH_MODEL, message="Change.", terms=r.Terms(model="other"))


def last_limits(changes: Sequence[r.Change]) -> r.Meter:
    return [each.budget.requests for each in changes if each.budget is not None][-1]


async def test_requirement_22_the_worker_sees_the_budget_of_the_rules(perform: Performer) -> None:
    budget = r.Budget(requests=r.Meter(used=6, limit=20))
    result = await perform(WORK[0], [("reflect", SAID), *WORK[1]], budget=budget)
    (answer,) = answers(result.all_messages(), "reflect")
    seen = [each.budget.requests.used for each in await perform.records(r.Change) if each.budget]
    assert seen == [6, 7, 8, 9]
    assert "\nBudget: 8 of 20 requests (12 left). At this rate NOT enough" in answer
    assert "40 % of the requests for 5 % of the work" in answer


async def test_a_reminder_carries_the_budget(perform: Performer) -> None:
    settings = Settings(reflect=ReflectSettings(remind_every=1))
    result = await perform(*WORK[:1], settings=settings, budget=TWENTY)
    assert "Budget: 1 of 20 requests" in prompts(result.all_messages())[1]


async def test_a_request_for_more_is_recorded_and_the_work_goes_on(perform: Performer) -> None:
    result = await perform([ASK, *WORK[0]], [ASK], budget=TWENTY)
    first, second = answers(result.all_messages(), "request_budget")
    assert first.startswith("Your supervisor is asked.")
    assert "asked already" in second
    assert await perform.records(r.BudgetRequest) == [
        r.BudgetRequest(wanted=r.Grant(requests=5), reason="two files are left")
    ]


async def test_once_it_is_answered_one_may_ask_again(perform: Performer) -> None:
    async def answer() -> str:
        ids = [each.id for each in await perform.journal.entries(kinds=(r.BudgetRequest,))]
        return str(await perform.write(intervention(message="No: simplify.", petition=ids[-1])))

    result = await perform([ASK], [("answer", {})], [ASK], budget=TWENTY, tools=(answer,))
    assert len(await perform.records(r.BudgetRequest)) == 2
    assert any(text.endswith("No: simplify.") for text in prompts(result.all_messages()))


async def test_nothing_or_what_has_no_limit_cannot_be_asked_for(perform: Performer) -> None:
    wanted = [{}, {"tokens": 5}, {"requests": -1}, {"minutes": float("inf")}]
    calls = [("request_budget", {"reason": "r", **each}) for each in wanted]
    await perform(calls, budget=TWENTY)
    assert [step.ok for step in await perform.records(r.Step)][:4] == [False] * 4
    assert await perform.records(r.BudgetRequest) == []


async def test_a_grant_that_waits_counts_before_the_budget_is_spent(perform: Performer) -> None:
    with pytest.raises(BudgetSpentError):
        await perform(*WORK, budget=TWO)
    id = await perform.write(MORE)
    await perform(*WORK)
    assert last_limits(await perform.records(r.Change)) == r.Meter(used=5, limit=5)
    assert [each.intervention for each in await perform.records(r.Delivery)] == [id]
    assert len(await perform.records(r.Step)) == 5


async def test_a_grant_that_needs_approval_grants_nothing(perform: Performer) -> None:
    await perform.write(replace(MORE, needs_approval=True))
    with pytest.raises(BudgetSpentError, match="2 of 2 requests"):
        await perform(*WORK, budget=TWO)


class OtherModel:
    """A model that answers in the place of the worker's own, after a pause, and counts."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.heard: list[str] = []

    def by_name(self, name: str) -> Model:
        if name != "other":
            raise UsageError(f"there is no model {name!r}")
        self.asked.append(name)
        return FunctionModel(self._answer)

    async def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.heard = prompts(messages)
        await tell_pause(Pause(url="o", reason="HTTP 429", seconds=2.0))
        return ModelResponse(parts=[TextPart("By the other.")])


async def test_another_model_answers_from_the_request_on_that_says_so(perform: Performer) -> None:
    async def switch() -> str:
        return str(await perform.write(SWITCH))

    other = OtherModel()
    result = await perform([("switch", {})], *WORK, tools=(switch,), model_for=other.by_name)
    assert result.output == "By the other."
    assert "another model goes on" in other.heard[-1]
    assert [each.model for each in await perform.records(r.Change) if each.model] == ["other"]


async def test_it_still_answers_after_a_crash(perform: Performer) -> None:
    def lose_connection() -> str:
        raise ConnectionError("gone")

    await perform.write(SWITCH)
    first, second = OtherModel(), OtherModel()
    await perform(*WORK, model_for=first.by_name)
    result = await perform(lose_connection, lose_connection, model_for=second.by_name)
    assert (result.output, second.asked) == ("By the other.", ["other"])
    assert len(await perform.records(r.Delivery)) == 1


@pytest.mark.parametrize("known", [True, False])
async def test_without_that_model_the_present_one_goes_on(perform: Performer, known: bool) -> None:
    id = await perform.write(replace(SWITCH, terms=r.Terms(model="none")))
    result = await perform(*WORK, model_for=OtherModel().by_name if known else None)
    assert result.output == "Done."
    (fault,) = await perform.records(r.Fault)
    assert (fault.part, "'none'" in fault.error) == ("switch_model", True)
    assert await perform.records(r.Delivery) == [delivery(id)]
    assert [each for each in await perform.records(r.Change) if each.model] == []


async def test_a_request_that_is_made_again_writes_its_own_analysis(perform: Performer) -> None:
    await perform.write(SWITCH)
    await perform(model_for=OtherModel().by_name)
    (said,) = await perform.records(r.Analysis)
    assert (said.by, said.cause, said.about) == (r.AnalysisAuthor.WATCH, r.Cause.TRANSIENT, 0)
    assert said.what.endswith("HTTP 429 from o")
    assert said.remedy.endswith("after 2.0 s")
    doing = {each.doing: each.activity for each in await perform.records(r.Change)}
    assert [doing[each] for each in doing if each.startswith("retries in")] == [
        r.Activity.RATE_LIMITED
    ]


# -- an outage of the provider ---------------------------------------------------------------------


class Outage:
    """A provider that lets wait for an hour before it answers, and the clock of that hour."""

    def __init__(self, *, recovers: bool) -> None:
        self.seconds = 0.0
        self._recovers = recovers

    def now(self) -> float:
        return self.seconds

    async def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.seconds += 60
        await tell_pause(Pause(url="o", reason="HTTP 503", seconds=3600))
        self.seconds += 3600
        if not self._recovers:
            raise ConnectionError("gone")
        return ModelResponse(parts=[TextPart("Done.")])


@pytest.mark.parametrize("recovers", [True, False])
async def test_time_waited_for_a_provider_uses_up_no_minutes(
    claim: Claim, bus: LocalBus, journal: Journal, recovers: bool
) -> None:
    outage, recorder = Outage(recovers=recovers), await claim(Settings())
    await recorder.record(
        working_transition(), r.Change(budget=r.Budget(minutes=r.Meter(limit=30)))
    )
    watch = AttemptWatch(recorder, settings=Settings(), bus=bus, seconds=outage.now)
    agent = Agent(FunctionModel(outage.answer))
    with nullcontext() if recovers else pytest.raises(ConnectionError):
        await agent.run("Fix it.", capabilities=[watch])
    outage.seconds += 3600
    budget = watch.budget()
    assert budget is not None
    assert budget.minutes == r.Meter(used=1, limit=30)
    spent = [
        change.budget.minutes.used
        for change in await records_of(journal, r.Change)
        if change.budget
    ]
    assert spent[1:] == [1.0] * (1 + recovers)
