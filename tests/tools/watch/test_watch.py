"""A watched agent: what it does and says is recorded, judged and answered."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, ToolCallPart
from pydantic_ai.tools import RunContext

from midwatch_monitor import records as r
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.settings import Mode, ReflectSettings, Settings
from midwatch_monitor.errors import BudgetSpentError
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Recorder
from midwatch_tests.factories import ended, task_transition
from midwatch_tests.reading import answers, prompts, records_of
from midwatch_tests.watched import uncoded
from midwatch_tests.worker import Build, Claim, Performer
from midwatch_tools import Watch
from midwatch_tools.attempt_watch import AttemptWatch
from midwatch_tools.data_blocks import DataBlocks
from midwatch_tools.tools.board import Board


def reflect_call(progress: int = 10, confidence: int = 80, decision: str = "continue", **more: Any):
    arguments = {"progress_percent": progress, "confidence": confidence, "decision": decision}
    return ("reflect", {**arguments, **more})


def put_call(path: str, text: str):
    return ("put", {"path": path, "text": text})


def complete_step_call(*files: str) -> tuple[str, dict[str, Any]]:
    said: dict[str, Any] = {"goal": "it is done", "files": files, "confidence": 90}
    return ("complete_step", {**said, "structural": [], "functional": []})


def reminded_requests(messages: Sequence[ModelMessage]) -> list[int]:
    """The numbers of the requests that carried a reminder."""
    found: list[int] = []
    request = 1
    for message in messages:
        if isinstance(message, ModelResponse):
            request += 1
        elif any(uncoded(each).startswith("[midwatch] ") for each in prompts([message])):
            found.append(request)
    return found


async def test_every_act_is_a_step_and_the_text_goes_with_the_first(perform: Performer) -> None:
    fails = ("run_command", {"command": "c broken"})
    await perform([put_call("a.py", "1"), put_call("b.py", "2")], [fails], "I think.", "")
    steps = await perform.records(r.Step)
    assert [step.number for step in steps] == [1, 2, 3, 4]
    first, second, failed, message = sorted(steps, key=lambda step: (step.request, step.path))
    assert (first.tool, first.path, first.ok, first.text) == ("put", "a.py", True, "I call.")
    assert (second.path, second.request, second.text, second.tokens) == ("b.py", 1, "", 0)
    assert (failed.ok, failed.exit_code, failed.output) == (False, 1, "[exit code: 1]")
    assert (message.kind, message.request, message.text) == (r.StepKind.MESSAGE, 3, "I think.")
    assert first.tokens


async def test_an_edit_is_seen_whatever_tool_made_it(perform: Performer) -> None:
    await perform(*[[("run_command", {"command": f"x.py {n}"})] for n in range(2)])
    one, other, _ = await perform.records(r.Step)
    assert [(edit.path, edit.writer) for edit in one.edits] == [("x.py", r.Writer.WORKER)]
    assert (other.edits[0].before, other.path) == (one.edits[0].digest, "")


async def test_a_persons_edit_between_two_calls_is_a_persons(perform: Performer) -> None:
    def edit_meanwhile():
        (perform.workspace / "a.py").write_text("by hand")
        return [put_call("b.py", "1")]

    await perform([put_call("a.py", "1")], edit_meanwhile)
    second = (await perform.records(r.Step))[1]
    assert [(edit.path, edit.writer) for edit in second.edits] == [
        ("a.py", r.Writer.PERSON),
        ("b.py", r.Writer.WORKER),
    ]


async def test_calls_of_one_turn_write_nothing_for_a_person(perform: Performer) -> None:
    await perform([put_call(f"{n}.py", "1") for n in range(8)])
    edits = [edit for step in await perform.records(r.Step) for edit in step.edits]
    assert sorted(edit.path for edit in edits) == [f"{n}.py" for n in range(8)]
    assert {edit.writer for edit in edits} == {r.Writer.WORKER}


async def test_a_checkpoint_is_recorded_as_it_was_said(perform: Performer) -> None:
    await perform([reflect_call(30, 55, blockers=["no net"], files_done=["a.py"], notes="slow")])
    step = (await perform.records(r.Step))[0]
    assert (step.kind, step.request) == (r.StepKind.CHECKPOINT, 1)
    assert step.checkpoint == r.Checkpoint(
        progress_percent=30,
        confidence=55,
        decision=r.CheckpointDecision.CONTINUE,
        blockers=("no net",),
        files_done=("a.py",),
        notes="slow",
        plan_step=1,
    )


async def test_a_wrong_checkpoint_is_refused_with_the_reason_and_the_run_goes_on(
    perform: Performer,
) -> None:
    wrong = {
        "less than or equal to 100": reflect_call(101),
        "greater than or equal to 0": reflect_call(confidence=-1),
        "'continue', 'pivot' or 'escalate'": reflect_call(decision="adjust"),
        "progress_percent": ("reflect", {"confidence": 50, "decision": "pivot"}),
    }
    result = await perform([*wrong.values()], [reflect_call()])
    *refused, accepted = answers(result.all_messages(), "reflect")
    assert all(says in each for says, each in zip(wrong, refused, strict=True))
    assert accepted.startswith("Recorded.")
    kinds = [(step.kind, step.ok) for step in await perform.records(r.Step)][:5]
    assert kinds == [(r.StepKind.TOOL, False)] * 4 + [(r.StepKind.CHECKPOINT, True)]


async def test_a_checkpoint_in_a_turn_of_its_own_is_told_so(perform: Performer) -> None:
    result = await perform([reflect_call()], [reflect_call(), put_call("a.py", "1")])
    said = answers(result.all_messages(), "reflect")
    assert ["Next time" in each for each in said] == [True, False]


async def test_a_verdict_is_known_before_the_worker_goes_on(perform: Performer) -> None:
    await perform([reflect_call(confidence=5)])
    records = [entry.record for entry in await perform.journal.entries()]
    alert = next(each for each in records if isinstance(each, r.Alert))
    assert (alert.key.rule, alert.step) == ("low_confidence", 1)
    assert isinstance(records[records.index(alert) - 1], r.Step)


async def test_in_mode_off_nothing_is_judged(perform: Performer) -> None:
    await perform([reflect_call(confidence=5)], settings=Settings(mode=Mode.OFF))
    assert await perform.records(r.Alert) == []
    assert len(await perform.records(r.Step)) == 2


@pytest.mark.parametrize(("every", "due"), [(3, [4, 7]), (0, [])])
async def test_a_worker_that_never_reflects_is_reminded_every_so_many_requests(
    perform: Performer, every: int, due: list[int]
) -> None:
    settings = Settings(reflect=ReflectSettings(remind_every=every))
    turns = [[put_call("a.py", str(n))] for n in range(7)]
    result = await perform(*turns, settings=settings)
    assert reminded_requests(result.all_messages()) == due[-1:], "only the newest stands"
    sent = [each.body for each in await perform.journal.messages(perform.attempt.id)]
    history = [m for body in sent for m in ModelMessagesTypeAdapter.validate_json(body)]
    assert reminded_requests(history) == due


async def test_a_resumed_worker_finds_no_old_reminder(perform: Performer) -> None:
    settings = Settings(reflect=ReflectSettings(remind_every=2))
    turns = [[put_call("a.py", str(n))] for n in range(6)]
    await perform(*turns[:5], settings=settings)
    result = await perform(*turns, settings=settings)
    assert len(reminded_requests(result.all_messages())) <= 1


async def test_a_steady_worker_is_reminded_less(perform: Performer) -> None:
    work = [[put_call("a.py", str(n))] for n in range(7)]
    result = await perform([reflect_call(10)], [reflect_call(20)], *work)
    assert reminded_requests(result.all_messages()) == [9]
    changes = await perform.records(r.Change)
    assert [each.reflect_every for each in changes if each.reflect_every] == [6]


async def test_checkpoints_beyond_the_cap_are_refused_and_not_asked_for(perform: Performer) -> None:
    settings = Settings(reflect=ReflectSettings(max_reflections=2, remind_every=1))
    result = await perform(*[[reflect_call()]] * 4, [put_call("a.py", "1")], settings=settings)
    said = answers(result.all_messages(), "reflect")
    assert ["enough" in each for each in said] == [False, False, True, True]
    assert reminded_requests(result.all_messages()) == []
    steps = await perform.records(r.Step)
    assert sum(step.kind is r.StepKind.CHECKPOINT for step in steps) == 2


async def test_a_new_plan_step_may_be_reflected_on_anew(perform: Performer) -> None:
    settings = Settings(reflect=ReflectSettings(max_reflections=1))
    result = await perform(
        [reflect_call(), put_call("a.py", "1")],
        [complete_step_call()],
        [reflect_call()],
        settings=settings,
    )
    assert all(each.startswith("Rec") for each in answers(result.all_messages(), "reflect"))


async def test_finishing_and_planning_in_one_turn_lose_neither(perform: Performer) -> None:
    plan = ("set_plan", {"steps": ["a", "b"]})
    await perform([put_call("a.py", "1"), complete_step_call(), plan])
    assert (await perform.records(r.Plan))[-1] == r.Plan(
        steps=(
            r.PlanStep(
                title="find it",
                state=r.PlanStepState.DONE,
                flag="unproven: the goal: nothing was run that shows it",
            ),
            r.PlanStep(title="a"),
            r.PlanStep(title="b"),
        ),
        revision=1,
    )


async def test_a_finished_plan_cannot_be_finished_again(perform: Performer) -> None:
    turn = [put_call("a.py", "1"), *[complete_step_call("a.py")] * 2]
    result = await perform(turn, plan=(r.PlanStep(title="write it", files=("a.py",)),))
    said = answers(result.all_messages(), "complete_step")
    assert ["Every plan step is done" in each for each in said] == [False, True]


async def test_a_call_id_that_a_provider_uses_again_is_another_call(perform: Performer) -> None:
    turns = [
        ModelResponse(parts=[ToolCallPart("put", {"path": "a.py", "text": text}, "call_0")])
        for text in "123"
    ]
    await perform(*turns)
    assert [step.call for step in await perform.records(r.Step)] == ["call_0"] * 3 + [""]


async def test_a_spent_budget_ends_the_run(perform: Performer) -> None:
    turns = [[put_call("a.py", str(n))] for n in range(5)]
    with pytest.raises(BudgetSpentError, match="out of budget: 2 of 2 requests"):
        await perform(*turns, budget=r.Budget(requests=r.Meter(limit=2)))
    assert len(await perform.records(r.Step)) == 2


async def test_what_a_command_wrote_is_the_workers_though_another_call_is_only_being_recorded(
    journal: Journal, claim: Claim, worker: Build, bus: LocalBus, workspace: Path
) -> None:
    recorder = await claim()
    quick_is_over, slow_is_recorded = asyncio.Event(), asyncio.Event()

    async def before(records: Sequence[r.Record], results: Sequence[r.Result]) -> None:
        tools = {each.tool for each in records if isinstance(each, r.Step)}
        if "quick" in tools:
            quick_is_over.set()
            await slow_is_recorded.wait()
        if "slow" in tools:
            slow_is_recorded.set()

    async def quick() -> str:
        return "nothing to do"

    async def slow() -> str:
        await quick_is_over.wait()
        (workspace / "made.txt").write_text("by a command")
        return "made"

    recorder.before = before
    agent = worker([("quick", {}), ("slow", {})], [("quick", {})], tools=(quick, slow))
    watch = AttemptWatch(recorder, root=workspace, bus=bus)
    async with asyncio.timeout(120):
        await agent.run("Make it.", capabilities=[watch])
    steps = await records_of(journal, r.Step)
    made = [(each.tool, edit.path, edit.writer) for each in steps for edit in each.edits]
    assert made == [("slow", "made.txt", r.Writer.WORKER)]


class SlowWatch(Watch):
    """A watch that takes its time to look at the workspace."""

    begins: asyncio.Event

    async def for_run(self, ctx: RunContext[Any]) -> Watch:
        return self

    async def _open_session(self, ctx: RunContext[Any], recorder: Recorder) -> None:
        self.begins.set()
        await asyncio.Event().wait()


async def test_an_agent_that_is_cancelled_while_its_watch_begins_is_not_taken_for_one_at_work(
    worker: Build, workspace: Path, journal: Journal
) -> None:
    watch = SlowWatch(root=workspace, journal=journal.name)
    watch.begins = asyncio.Event()
    work = asyncio.create_task(worker().run("Fix it.", capabilities=[watch]))
    async with asyncio.timeout(120):
        await watch.begins.wait()
        work.cancel()
        await asyncio.wait({work})
    states = [
        each.record for each in await journal.entries(kinds=(r.AttemptTransition, r.TaskTransition))
    ]
    assert work.cancelled()
    assert states[-2:] == [
        task_transition(r.Lifecycle.CANCELED, reason="canceled"),
        ended(r.Ending.CANCELED, reason="canceled"),
    ]


async def test_a_board_is_read_to_its_end_though_its_neighbours_always_write_on(
    location: str, journal: Journal, attempt: r.Attempt, claim: Claim, at: datetime
) -> None:
    task = await journal.task(attempt.task)
    second = await journal.add_attempt(
        task=task.id, number=2, worker="w", model="m", node="n", workspace="", at=at
    )
    recorder = await claim()
    flagged = r.Completion(plan_step=1, goal="g", confidence=1, accepted=True, flag="not sure")

    class BusyJournal(Journal):
        """Whenever it was read, there is something new in it."""

        async def entries(self, after: int = 0, **rest: Any) -> list[r.Entry]:
            await recorder.record(flagged)
            return await super().entries(after, **rest)

    async with await BusyJournal.open(location) as busy, asyncio.timeout(120):
        text = await Board(journal=busy, task=task, attempt=second).section(DataBlocks("0badcafe"))
    assert "- fix, attempt 1" in text
