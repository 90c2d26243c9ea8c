"""A real provider's client over HTTP, against a server on loopback that answers as it is told."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
from pydantic_ai import Agent, models
from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelRequest

from midwatch_agents.model_retries import Breaker, PatientModel
from midwatch_agents.models import model_for
from midwatch_monitor.config.settings import (
    PolicySettings,
    ProviderSettings,
    RunSettings,
    Sandbox,
    Settings,
    SupervisorSettings,
)
from midwatch_monitor.config.tasks import (
    ModelSpec,
    Role,
    TaskFile,
    TaskSpec,
    WorkerKind,
    WorkerSpec,
)
from midwatch_monitor.errors import ProviderRefusedError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Activity,
    Actor,
    Attempt,
    AttemptTransition,
    Budget,
    Change,
    Ending,
    Health,
    Lifecycle,
    Step,
    StepKind,
)
from midwatch_supervisor.decide.agent import Supervisor
from midwatch_supervisor.decide.context import DecisionContext
from midwatch_supervisor.decide.history import AttemptEvidence
from midwatch_tests.harness import RunHarness
from midwatch_tests.model_server import (
    DONE,
    GRAMMAR,
    WRITING,
    ModelServer,
    Reply,
    calling,
    refusal,
    serving,
)
from midwatch_tests.reading import records_of

T = TypeVar("T")


Serve = Callable[..., Awaitable[ModelServer]]


@pytest.fixture
async def serve() -> AsyncGenerator[Serve]:
    """Starts a server: `await serve(reply, reply, …)`."""
    async with AsyncExitStack() as stack:

        async def start(*replies: Reply) -> ModelServer:
            return await stack.enter_async_context(serving(*replies))

        stack.enter_context(models.override_allow_model_requests(allow_model_requests=True))
        yield start


DECIDING = calling(
    "final_result", '{"action": "observe", "diagnosis": "false_alarm", "rationale": "It moves."}'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """A run of one task, after its end."""

    code: int
    """Of `midwatch run`."""
    state: AttemptTransition
    steps: tuple[Step, ...]
    budget: Budget
    activities: tuple[Activity, ...]
    """What the attempt did, one after another."""


def only(things: list[T]) -> T:
    """The only one."""
    (thing,) = things
    return thing


def requests_and_tokens(run: FinishedRun) -> tuple[float, float]:
    """Model requests and tokens."""
    return run.budget.requests.used, run.budget.tokens.used


@pytest.fixture
def perform(journal: Journal, harness: RunHarness) -> Callable[..., Awaitable[FinishedRun]]:
    """Runs one task whose worker is a coder with that model: it has to write `a.txt`."""
    harness.settings = Settings(
        run=RunSettings(sandbox=Sandbox.OFF), provider=ProviderSettings(max_outages=1)
    )

    async def work(
        spec: ModelSpec,
        planner: ModelSpec | None = None,
        workers: dict[str, WorkerSpec] | None = None,
        **more: Any,
    ) -> FinishedRun:
        task = TaskSpec.model_validate(
            {"id": "write", "goal": "Write a.txt.", "acceptance": [{"file": "a.txt"}], **more}
        )
        # The requests that are counted are the worker's.
        nobody = ModelSpec(name="none")
        models = {Role.WORKER: spec, Role.REFLECTOR: nobody}
        if planner is not None:
            models[Role.PLANNER] = planner
        file = TaskFile(models=models, workers=workers or {}, tasks=(task,))
        code = await harness.run(file)
        attempt = only(await journal.attempts(1))
        evidence = await AttemptEvidence.read(journal, attempt)
        changes = await records_of(journal, Change, attempt.id)
        return FinishedRun(
            code=code,
            state=evidence.state.transition,
            steps=tuple(evidence.steps),
            budget=evidence.budget,
            activities=tuple(each.activity for each in changes if each.activity is not None),
        )

    return work


Perform = Callable[..., Awaitable[FinishedRun]]


async def test_a_run_over_http_is_recorded_with_its_use(serve: Serve, perform: Perform) -> None:
    server = await serve(WRITING, DONE)
    run = await perform(server.spec())
    assert (run.code, run.state.ending) == (0, Ending.DONE)
    assert [(step.kind, step.tool, step.ok, step.tokens) for step in run.steps] == [
        (StepKind.TOOL, "write_file", True, 1100),
        (StepKind.MESSAGE, "", None, 1100),
    ]
    assert requests_and_tokens(run) == (2, 2200)
    # 2.50 and 10 dollars a million tokens in and out, twice 1,000 and 100 of them.
    assert run.budget.cost_usd.used == pytest.approx(0.007)


@pytest.mark.parametrize("trouble", [refusal(429, "retry-after: 0\r\n"), Reply(breaks=True)])
async def test_after_a_passing_failure_the_run_goes_on_and_nothing_counts_twice(
    trouble: Reply, serve: Serve, perform: Perform
) -> None:
    server = await serve(WRITING, trouble, DONE)
    run = await perform(server.spec(tries=2))
    assert (run.code, run.state.ending, len(server.asked)) == (0, Ending.DONE, 3)
    assert server.asked[1] == server.asked[2]
    assert requests_and_tokens(run) == (2, 2200)
    assert [step.number for step in run.steps] == [1, 2]
    waited = run.activities.index(Activity.RATE_LIMITED)
    around = (Activity.MODEL, Activity.RATE_LIMITED, Activity.IDLE)
    assert run.activities[waited - 1 : waited + 2] == around


async def test_a_hanging_request_is_tried_again(serve: Serve, perform: Perform) -> None:
    server = await serve(Reply(hangs=True), Reply(hangs=True), WRITING, DONE)
    run = await perform(server.spec(timeout_seconds=1, tries=3))
    assert (run.state.ending, len(server.asked)) == (Ending.DONE, 4)
    assert requests_and_tokens(run) == (2, 2200)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (calling("write_file", '{"path": "a.txt", "con'), "Invalid JSON"),
        (calling("write_file", '{"path": 7, "content": "one"}'), "valid string"),
        (calling("no_such_tool", "{}"), "Unknown tool name: 'no_such_tool'"),
    ],
)
async def test_a_malformed_call_is_a_failed_step_and_the_model_is_told(
    wrong: Reply, reason: str, serve: Serve, perform: Perform
) -> None:
    server = await serve(wrong, WRITING, DONE)
    run = await perform(server.spec())
    assert run.state.ending is Ending.DONE
    assert [step.ok for step in run.steps] == [False, True, None]
    assert reason in run.steps[0].output
    assert reason in json.dumps(server.asked[1]["messages"][-1])


@pytest.mark.parametrize(
    ("replies", "requests", "reason"),
    [
        ((refusal(400),), 1, "status_code: 400, model_name: gpt-4o, body: {'message': 'told to"),
        ((WRITING, refusal(429, code="insufficient_quota")), 2, "insufficient_quota"),
        ((WRITING, refusal(500)), 3, "status_code: 500"),
    ],
)
async def test_a_lasting_failure_ends_the_attempt_with_the_true_reason(
    replies: tuple[Reply, ...], requests: int, reason: str, serve: Serve, perform: Perform
) -> None:
    server = await serve(*replies)
    run = await perform(server.spec(tries=2))
    ended = (run.code, run.state.lifecycle, run.state.ending)
    assert ended == (1, Lifecycle.FAILED, Ending.ERROR)
    assert len(server.asked) == requests
    assert reason in run.state.reason
    # What was answered before stays.
    assert len(run.steps) == len(replies) - 1


GRAMMARLESS = refusal(500, words=GRAMMAR)


@pytest.mark.parametrize(
    ("reply", "requests", "words"),
    [
        (refusal(401, words="Wrong key."), 1, "refuses the key: HTTP 401: Wrong key. Set"),
        (refusal(404, words="No model"), 1, "knows no such model or address: HTTP 404: No model"),
        (refusal(429, code="insufficient_quota"), 1, "has no quota left: HTTP 429"),
        (GRAMMARLESS, 3, f"failed the first 3 requests: HTTP 500: {GRAMMAR}. Check"),
        (Reply(breaks=True), 3, "failed the first 3 requests: peer closed connection"),
        (Reply(body="<html>"), 3, "failed the first 3 requests: Failed to decode"),
    ],
)
async def test_a_refused_first_request_ends_the_run_with_the_servers_words_and_loses_nothing(
    reply: Reply, requests: int, words: str, serve: Serve, perform: Perform, journal: Journal
) -> None:
    server = await serve(reply)
    with pytest.raises(ProviderRefusedError) as refused:
        await perform(server.spec())
    assert str(refused.value).startswith(f"the worker's model gpt-4o got no answer: {server.url} ")
    assert words in str(refused.value)
    assert len(server.asked) == requests
    state = (await AttemptEvidence.read(journal, only(await journal.attempts(1)))).state
    assert (state.lifecycle, state.health) == (Lifecycle.WORKING, Health.UNKNOWN)


async def test_where_nobody_listens_the_run_ends_at_once_and_says_so(
    serve: Serve, perform: Perform
) -> None:
    server = await serve(DONE)
    await server.close()
    with pytest.raises(ProviderRefusedError, match="cannot be reached: Connection refused"):
        await perform(server.spec())


async def test_where_nobody_answers_the_planner_the_worker_begins_at_once_and_the_run_says_why(
    serve: Serve, perform: Perform, caplog: pytest.LogCaptureFixture
) -> None:
    dead, server = await serve(DONE), await serve(WRITING, DONE)
    await dead.close()
    run = await perform(server.spec(), planner=dead.spec(), plan="auto")
    assert (run.code, len(server.asked)) == (0, 2)
    assert f"the planner failed: Connection refused ({dead.url})" in caplog.text


ready = Agent()
"""An agent that a person has already; its model is known when its server is."""


async def test_an_agent_of_ones_own_is_refused_at_once_too(serve: Serve, perform: Perform) -> None:
    server = await serve(refusal(401, words="Wrong key."))
    ready.model = model_for(server.spec(), role=Role.WORKER, key="")
    own = WorkerSpec(kind=WorkerKind.TASK, agent=f"{__name__}:ready")
    with pytest.raises(ProviderRefusedError, match=f"{server.url} refuses the key: HTTP 401: Wro"):
        await perform(ModelSpec(name="none"), workers={"coder": own})
    assert len(server.asked) == 1


async def test_a_provider_that_had_answered_is_away(serve: Serve, perform: Perform) -> None:
    server = await serve(WRITING)
    server.closes_after = 1
    run = await perform(server.spec(tries=2))
    assert (run.code, run.state.ending) == (1, Ending.ERROR)
    assert "Connection error" in run.state.reason
    assert Activity.RATE_LIMITED in run.activities


@pytest.mark.parametrize(
    ("headers", "shortest", "longest"),
    [
        ("retry-after: 0.2\r\n", 0.2, 0.2),
        ("retry-after: 3600\r\n", 60.0, 60.0),
        # Clocks may differ: a date is not trusted, nor is what is no number of seconds.
        ("retry-after: Wed, 21 Oct 2099 07:28:00 GMT\r\n", 0.0, 0.5),
        ("retry-after: nan\r\n", 0.0, 0.5),
        ("retry-after: -1\r\n", 0.0, 0.5),
    ],
)
async def test_a_pause_is_as_long_as_the_provider_asks(
    headers: str, shortest: float, longest: float, serve: Serve
) -> None:
    server = await serve(refusal(429, headers), DONE)
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    # With less time than a slow first answer is spoken of after.
    model = model_for(server.spec(timeout_seconds=20), role=Role.WORKER, key="write")
    assert model is not None
    patient = PatientModel(model, tries=4, breaker=Breaker(ProviderSettings()), sleep=sleep)
    response = await model_request(patient, [ModelRequest.user_text_prompt("Hello")])
    assert response.text == "It is done."
    assert shortest <= only(pauses) <= longest


@pytest.mark.parametrize(
    ("replies", "by", "rationale"),
    [
        ((refusal(500), DECIDING), Actor.SUPERVISOR, "It moves."),
        ((refusal(401),), Actor.POLICY, "status_code: 401"),
    ],
)
async def test_the_supervisor_decides_once_over_http(
    replies: tuple[Reply, ...],
    by: Actor,
    rationale: str,
    serve: Serve,
    journal: Journal,
    attempt: Attempt,
) -> None:
    server = await serve(*replies)
    model = model_for(server.spec(timeout_seconds=20), role=Role.SUPERVISOR, key="write")
    evidence = await AttemptEvidence.read(journal, attempt)
    context = DecisionContext(escalation=1, alerts=(), policy=PolicySettings())
    supervisor = Supervisor(model, SupervisorSettings(max_wait_seconds=0))
    decision = (await supervisor.decide(context, evidence)).decision
    assert (decision.by, len(server.asked)) == (by, len(replies))
    assert rationale in decision.rationale
