"""Agents of other makers as workers: the fake one stands for them, with what the real ones do.

Last, those that ask a person for a permission, with `permission: ask`.
"""

import json
import os
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from midwatch_agents import acp
from midwatch_monitor.config.settings import RunSettings, Sandbox, Settings
from midwatch_monitor.errors import UsageError
from midwatch_monitor.records import (
    Action,
    Actor,
    Alert,
    Attempt,
    AttemptTransition,
    Change,
    Delivery,
    DeliveryState,
    Ending,
    Step,
    StepKind,
)
from midwatch_monitor.rules.identity import END_UNKNOWN
from midwatch_supervisor.operator.actions import OperatorActions
from midwatch_tests.command import midwatch
from midwatch_tests.factories import intervention
from midwatch_tests.fake_agents import (
    GREETS,
    TASKS,
    Asked,
    Fake,
    alive,
    beside,
    enough,
    pids,
    question,
    questions,
    together,
    waits,
)
from midwatch_tests.harness import RunHarness

FAKE = Path(acp.__path__[0]) / "fake_agent.py"
FAILS = {"run": "exit 3"}
GO_ON = intervention(Action.RESUME, Actor.OPERATOR, message="Go on.")
REPORT = {"progress_percent": 40, "confidence": 70, "decision": "continue"}


async def steps(harness: RunHarness) -> list[Step]:
    return await harness.told(Step)


async def has_steps(harness: RunHarness, many: int, *, attempt: int | None = None) -> bool:
    """Whether so many steps are there."""
    return len(await harness.told(Step, attempt=attempt)) >= many


async def attempts(harness: RunHarness) -> list[Attempt]:
    """Both attempts, once they are at work."""
    await harness.until(lambda: has_steps(harness, 2))
    return [await harness.journal.attempt(id) for id in (1, 2)]


async def is_over(harness: RunHarness, attempt: int) -> bool:
    return (await harness.last(AttemptTransition, attempt=attempt)).lifecycle.over


async def test_what_it_does_is_recorded_and_checked(harness: RunHarness, fake: Fake) -> None:
    acts = ({"say": "I begin."}, GREETS, {"run": "cat hello.txt"}, FAILS, {"say": "Done."})
    assert await harness.run(fake(*acts)) == 0
    wrote, looked, failed, said = await steps(harness)
    assert (wrote.tool, wrote.path, wrote.text) == ("write", "hello.txt", "I begin.")
    assert [each.path for each in wrote.edits] == ["hello.txt"]
    assert (looked.tool, looked.output, looked.exit_code, looked.ok) == ("bash", "hello", 0, True)
    assert (failed.exit_code, failed.ok) == (3, False)
    assert (said.kind, said.text) == (StepKind.MESSAGE, "Done.")
    assert alive(harness) == []


async def test_a_report_of_the_wrong_shape_is_handed_back(harness: RunHarness, fake: Fake) -> None:
    right, wrong = ({"tool": "reflect", "args": each} for each in (REPORT, {"confidence": 1000}))
    assert await harness.run(fake(right, wrong, {"tool": "no_such_tool", "args": {}}, GREETS)) == 0
    first, refused, *others = await steps(harness)
    assert first.checkpoint is not None
    assert (first.checkpoint.progress_percent, first.checkpoint.confidence) == (40, 70)
    assert (refused.tool, refused.ok) == ("reflect", False)
    assert not [each for each in others if "reflect" in each.tool]


async def test_nothing_of_it_is_counted_for_the_model_of_the_other_workers(
    harness: RunHarness, fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await harness.run(fake(GREETS).replace("worker: none", "worker: test")) == 0
    assert (await harness.journal.attempt(1)).model == ""
    assert "Model of the worker" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("steering", "able"),
    [("cancel", {}), ("join", {"joins": True}), ("method", {"steers": True}), ("method", {})],
)
async def test_in_a_loop_it_is_found_and_nudged_and_hears_of_it(
    harness: RunHarness, fake: Fake, steering: str, able: dict[str, bool]
) -> None:
    nudged = r"\[midwatch \w+ #\d+ from your policy\]"
    goes_round = {"until": nudged, "acts": [FAILS, {"wait": 0.2}]}
    assert await harness.run(fake(goes_round, GREETS, more=f"steering: {steering}", **able)) == 0
    assert {each.key.rule for each in await harness.told(Alert)} >= {"repeated_call"}
    states = [each.state for each in await harness.told(Delivery)]
    assert DeliveryState.DELIVERED in states


async def test_paused_it_rests_and_goes_on_in_its_process(harness: RunHarness, fake: Fake) -> None:
    until = "was interrupted|Go on\\."
    works = {"until": until, "acts": [{"run": "date +%N"}, {"wait": 0.1}]}

    async def act_as_operator() -> None:
        found = {each.worker: each.id for each in await attempts(harness)}
        paused, kept = found["fake"], found["other"]
        await harness.until(lambda: has_steps(harness, 1, attempt=paused))
        await harness.say(intervention(Action.PAUSE, Actor.OPERATOR), attempt=paused)
        await harness.until(lambda: waits(harness, attempt=paused))
        before = await harness.told(Step, attempt=paused)
        others = len(await harness.told(Step, attempt=kept))
        await harness.until(lambda: has_steps(harness, others + 3, attempt=kept))
        assert await harness.told(Step, attempt=paused) == before
        await harness.say(GO_ON, attempt=paused)
        await harness.until(lambda: has_steps(harness, len(before) + 1, attempt=paused))
        enough = intervention(Action.NUDGE, Actor.OPERATOR, message="Enough.")
        await harness.say(enough, attempt=kept)

    assert await together(harness.run(beside(harness, fake(works, GREETS))), act_as_operator()) == 0


async def test_a_hang_is_stopped_and_leaves_no_process(harness: RunHarness, fake: Fake) -> None:
    run = harness.run(fake(GREETS, {"hang": True}, deaf=True))

    async def act_as_operator() -> None:
        await harness.until(lambda: has_steps(harness, 1))
        await harness.say(intervention(Action.STOP, Actor.OPERATOR, message="Stop."))

    assert await together(run, act_as_operator()) != 0
    assert (await harness.last(AttemptTransition)).ending is Ending.CANCELED
    assert alive(harness) == []


async def test_one_that_is_killed_in_its_work_is_started_again_where_it_was(
    harness: RunHarness, fake: Fake, caplog: pytest.LogCaptureFixture
) -> None:
    dies = {"run": "kill -9 $PPID; sleep infinity"}
    assert await harness.run(fake({"run": "echo 1"}, dies, GREETS, loads=True)) == 0
    once, cut, greets, _ = await steps(harness)
    assert ("echo 1" in once.args, greets.tool) == (True, "write")
    assert (cut.ok, cut.output) == (None, END_UNKNOWN)
    assert "the agent has ended (killed by signal 9); it is started again" in caplog.text
    assert alive(harness) == []


async def test_one_killed_while_it_waits_hears_the_answer(harness: RunHarness, fake: Fake) -> None:
    works = {"until": r"Go on\.", "acts": [{"run": "date +%N"}, {"wait": 0.1}]}

    async def act_as_operator() -> None:
        found = {each.worker: each.id for each in await attempts(harness)}
        await harness.say(intervention(Action.PAUSE, Actor.OPERATOR), attempt=found["fake"])
        await harness.until(lambda: waits(harness, attempt=found["fake"]))
        for each in pids(harness, "script.json"):
            os.kill(each, signal.SIGKILL)
        await harness.say(GO_ON, attempt=found["fake"])
        await harness.until(lambda: is_over(harness, found["fake"]))
        enough = intervention(Action.NUDGE, Actor.OPERATOR, message="Enough.")
        await harness.say(enough, attempt=found["other"])

    assert (
        await together(
            harness.run(beside(harness, fake(works, GREETS, loads=True))), act_as_operator()
        )
        == 0
    )


async def errors(harness: RunHarness, tasks: str) -> list[str]:
    """The reasons of a run's attempts that end with an error, as all of them do."""
    assert await harness.run(tasks) == 1
    ended = await harness.told(AttemptTransition)
    return [each.reason for each in ended if each.ending is Ending.ERROR]


async def test_one_that_dies_fails_with_its_last_words(harness: RunHarness, fake: Fake) -> None:
    said = "the agent has ended (exit code 7); it wrote: it is all too much"
    assert await errors(harness, fake(FAILS, {"die": 7})) == [said]
    reasons = await errors(harness, fake({"wirte": "hello.txt"}))
    assert 'there is no such act: {"wirte": "hello.txt"}' in reasons[-1]


async def test_of_one_that_cannot_start_it_is_told_why(harness: RunHarness) -> None:
    fails = "def f(): raise ValueError('no license')\nfor _ in range(1):\n f()"
    command = json.dumps([sys.executable, "-c", fails])
    traceback = "Traceback (most recent call last):\nValueError: no license"
    (reason, *_) = await errors(harness, TASKS.format(command=command, more=""))
    assert reason == f"the agent has ended (exit code 1); it wrote: {traceback}"


@pytest.mark.parametrize("loads", [True, pytest.param(False, marks=pytest.mark.matrix)])
async def test_one_that_was_killed_goes_on(harness: RunHarness, fake: Fake, *, loads: bool) -> None:
    waits = {"until": "Your work was interrupted", "acts": [{"wait": 0.05}]}
    acts = ({"cost": 0.5}, {"run": "echo 1"}, waits, {"cost": 0.75}, GREETS)
    (harness.folder / "tasks.yaml").write_text(fake(*acts, loads=loads))
    (harness.folder / "midwatch.yaml").write_text("run: {sandbox: off}\n")
    process = await harness.start("run", "tasks.yaml", "--headless")
    await harness.until(lambda: has_steps(harness, 1))
    process.kill()
    await process.wait()
    again = await harness.start("resume")
    output, errors = await again.communicate()
    assert again.returncode == 0, (output, errors)
    ran = [each.args for each in await steps(harness) if "echo 1" in each.args]
    assert len(ran) == (1 if loads else 2)
    budgets = [each.budget for each in await harness.told(Change) if each.budget is not None]
    assert budgets[-1].cost_usd.used == (0.75 if loads else 1.25)


@pytest.mark.parametrize(("answer", "code"), [("allow", 0), ("reject", 1)])
async def test_what_it_asks_a_permission_for_is_answered_as_its_worker_says(
    harness: RunHarness, fake: Fake, answer: str, code: int
) -> None:
    acts = ({"ask": "rm -rf build"}, GREETS)
    assert (await harness.run(fake(*acts, more=f"permission: {answer}")) == 0) is (code == 0)
    asked = (await steps(harness))[0]
    assert asked.ok is (code == 0)
    assert (asked.output == "It was not permitted.") is (code == 1)


async def test_at_a_limit_of_its_own_it_is_told_to_go_on(harness: RunHarness, fake: Fake) -> None:
    limit = {"end": "max_turn_requests"}
    assert await harness.run(fake(FAILS, limit, limit, GREETS, limit, limit, limit, limit)) == 0
    assert [each.tool for each in await steps(harness)] == ["bash", "write", ""]


async def test_noise_and_damage_are_passed_over(harness: RunHarness, fake: Fake) -> None:
    unknown = {"jsonrpc": "2.0", "method": "session/update", "params": {"update": {"x": [1]}}}
    wrong = {"jsonrpc": "2.0", "method": "session/update", "params": [1]}
    noise = ["Welcome!", "[1, 2]", json.dumps(unknown), json.dumps(wrong), '"', "\u0000\ufffd"]
    assert await harness.run(fake(GREETS, {"run": r"printf '\377\376'"}, noise=noise)) == 0
    assert len(await steps(harness)) == 3


async def test_a_program_that_is_not_there_is_named_before_the_run(harness: RunHarness) -> None:
    tasks = TASKS.format(command="[no-such-agent, --acp]", more="")
    with pytest.raises(UsageError, match=r"no program 'no-such-agent' on the PATH"):
        await harness.run(tasks)
    with pytest.raises(UsageError, match=r"`kind: acp` needs a `command`"):
        await harness.run(TASKS.format(command="[]", more=""))
    with pytest.raises(UsageError, match=r"unknown kind 'opencod'; known: coder, task, acp"):
        await harness.run(tasks.replace("kind: acp", "kind: opencod"))


def require_sandbox(harness: RunHarness, *read: Path) -> None:
    run = RunSettings(sandbox=Sandbox.REQUIRED, sandbox_read=tuple(map(str, read)))
    harness.settings = Settings(run=run)


@pytest.mark.usefixtures("bubblewrap")
async def test_behind_the_walls_a_program_is_seen_that_npm_has_linked_into_the_path(
    harness: RunHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_sandbox(harness)
    modules, state = tmp_path / "npm" / "node_modules", tmp_path / "state"
    for folder in (modules / ".bin", modules / "agent", modules / "beside", state):
        folder.mkdir(parents=True)
    shutil.copy(FAKE, modules / "beside")
    program = modules / "agent" / "agent.sh"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {modules}/beside/fake_agent.py "$@"\n')
    program.chmod(0o755)
    (modules / ".bin" / "agent").symlink_to("../agent/agent.sh")
    monkeypatch.setenv("PATH", f"{modules}/.bin:{os.environ['PATH']}")
    (state / "script.json").write_text(json.dumps({"acts": [GREETS]}))
    command = json.dumps(["agent", str(state / "script.json")])
    assert await harness.run(TASKS.format(command=command, more=f"state: [{state}]")) == 0


@pytest.mark.usefixtures("bubblewrap")
async def test_behind_walls_it_is_said_what_to_name(harness: RunHarness, tmp_path: Path) -> None:
    require_sandbox(harness)
    (places := tmp_path / "agent" / "bin").mkdir(parents=True)
    (places / "python").symlink_to(sys.executable)
    (places / "agent").write_text(f"#!{places}/python\n")
    (places / "agent").chmod(0o755)
    assert await harness.run(TASKS.format(command=json.dumps([f"{places}/agent"]), more="")) != 0
    (reason, *_) = [each.reason for each in await harness.told(AttemptTransition) if each.ending]
    assert f"add its folder to `run.sandbox_read`, such as {tmp_path}/agent" in reason


@pytest.mark.usefixtures("bubblewrap")
async def test_behind_walls_it_has_its_tools_and_state(harness: RunHarness, tmp_path: Path) -> None:
    program, state = tmp_path / "program", tmp_path / "state"
    for folder in (program, state):
        folder.mkdir()
    (tmp_path / "secret").write_text("a key")
    shutil.copy(FAKE, program)
    acts = [
        {"tool": "reflect", "args": REPORT},
        {"run": f"cat {tmp_path}/secret"},
        {"run": f"echo kept > {state}/kept"},
        {"run": f"echo lost > {program}/lost"},
        GREETS,
    ]
    (state / "script.json").write_text(json.dumps({"acts": acts}))
    command = [sys.executable, str(program / "fake_agent.py"), str(state / "script.json")]
    require_sandbox(harness, program)
    tasks = TASKS.format(command=json.dumps(command), more=f"state: [{state}]")
    assert await harness.run(tasks) == 0
    said, secret, kept, lost, _, _ = await steps(harness)
    assert said.checkpoint is not None
    assert (secret.ok, "a key" in secret.output, kept.ok, lost.ok) == (False, False, True, False)
    assert (state / "kept").read_text() == "kept\n"


ASKS = {"ask": "touch ran", "acts": [{"run": "touch ran"}]}
ASK = "permission: ask"


def operator(harness: RunHarness) -> OperatorActions:
    return OperatorActions(harness.journal, author="ada")


async def allow(harness: RunHarness, asked: Asked) -> None:
    await operator(harness).settle(asked.attempt, asked.id, asked.request, agreed=True, step=1)


async def command_results(harness: RunHarness) -> list[bool | None]:
    """How the command went that a permission was asked for, each time that it ran."""
    ours = [each for each in await harness.told(Step) if "touch ran" in each.args]
    return [each.ok for each in ours if each.tool == "bash"]


def answers(harness: RunHarness) -> list[dict[str, Any]]:
    """The outcomes that the agent was answered."""
    lines = (harness.folder / "script.answers").read_text().splitlines()
    return [json.loads(line)["result"]["outcome"] for line in lines]


async def test_it_waits_for_a_person_who_approves(harness: RunHarness, fake: Fake) -> None:
    async def act_as_operator() -> None:
        asked = await question(harness)
        assert (asked.request.tool, asked.request.what) == ("execute", "run `touch ran`")
        await harness.until(lambda: waits(harness, attempt=asked.attempt.id))
        assert await command_results(harness) == []
        await allow(harness, asked)
        await enough(harness, asked)

    assert (
        await together(
            harness.run(beside(harness, fake(ASKS, GREETS, more=ASK))), act_as_operator()
        )
        == 0
    )
    assert await command_results(harness) == [True]
    assert answers(harness) == [{"outcome": "selected", "optionId": "allow_once_1"}]
    assert len(await questions(harness)) == 1


async def test_what_is_rejected_is_not_done_and_said_why(harness: RunHarness, fake: Fake) -> None:
    async def act_as_operator() -> None:
        asked = await question(harness)
        await operator(harness).settle(
            asked.attempt, asked.id, asked.request, agreed=False, comment="Only greet.", step=1
        )
        await enough(harness, asked)

    hears = {"until": r"from your operator\] Only greet\.", "acts": [{"wait": 0.05}]}
    tasks = beside(harness, fake(ASKS, hears, GREETS, more=ASK))
    assert await together(harness.run(tasks), act_as_operator()) == 0
    assert await command_results(harness) == []
    assert answers(harness) == [{"outcome": "selected", "optionId": "reject_once_1"}]
    asked = (await questions(harness))[0]
    states = [each.state for each in await harness.told(Delivery, attempt=asked.attempt.id)]
    assert states == [DeliveryState.DELIVERED]


async def test_what_ends_the_attempt_ends_the_waiting(harness: RunHarness, fake: Fake) -> None:
    async def act_as_operator() -> None:
        asked = await question(harness)
        await harness.until(lambda: waits(harness, attempt=asked.attempt.id))
        await harness.say(intervention(Action.STOP, Actor.OPERATOR), attempt=asked.attempt.id)
        await harness.until(lambda: is_over(harness, asked.attempt.id))
        await enough(harness, asked)

    code = await together(
        harness.run(beside(harness, fake(ASKS, GREETS, more=ASK))), act_as_operator()
    )
    asked = (await questions(harness))[0]
    last = await harness.last(AttemptTransition, attempt=asked.attempt.id)
    assert (code, last.ending) == (1, Ending.CANCELED)
    assert answers(harness)[0] == {"outcome": "cancelled"}
    assert alive(harness) == []


async def test_what_is_allowed_later_is_allowed_once(harness: RunHarness, fake: Fake) -> None:
    assert await harness.run(fake(ASKS, ASKS, GREETS, more=ASK)) == 3
    assert alive(harness) == []
    assert await harness.resume() == 3
    assert len(await questions(harness)) == 1
    await allow(harness, await question(harness))
    assert await harness.resume() == 3
    assert await command_results(harness) == [True]
    first, second = await questions(harness)
    assert second.request == replace(first.request, step=second.request.step)
    await allow(harness, second)
    assert await harness.resume() == 3  # a new session asks for both again, and one is allowed


async def test_who_goes_on_later_hears_what_it_may_do(harness: RunHarness, fake: Fake) -> None:
    hears = {"until": r"operator lets you run `touch ran`", "acts": [{"wait": 0.05}]}
    assert await harness.run(fake(ASKS, hears, ASKS, GREETS, more=ASK, loads=True)) == 3
    asked = await question(harness)
    await allow(harness, asked)
    assert await harness.resume() == 0
    assert await command_results(harness) == [True]
    assert len(await questions(harness)) == 1
    told = [each.body.decode() for each in await harness.journal.messages(asked.attempt.id)]
    assert "".join(told).count("Your operator lets you run `touch ran`.") == 1


@pytest.mark.long
async def test_killed_while_it_waits_it_goes_on_with_what_a_command_said(
    harness: RunHarness, fake: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = beside(harness, fake(ASKS, GREETS, more=ASK))
    (harness.folder / "tasks.yaml").write_text(tasks)
    (harness.folder / "midwatch.yaml").write_text("run: {sandbox: off}\nmode: off\n")
    process = await harness.start("run", "tasks.yaml", "--headless")
    asked = await question(harness)
    await harness.until(lambda: waits(harness, attempt=asked.attempt.id))
    process.kill()
    await process.wait()
    await enough(harness, asked)
    approve = f"`midwatch approve {asked.id}"  # of another journal
    where = ("--journal", harness.journal.name)
    assert await midwatch("status", *where) == 0
    assert f" {approve}" in capsys.readouterr().out
    assert await midwatch("show", "hello", *where) == 0
    assert f"permission to run `touch ran`: {approve}" in capsys.readouterr().out
    assert await midwatch("approve", str(asked.id), *where) == 0
    assert capsys.readouterr().out == f"approved permission {asked.id} for hello#1\n"
    again = await harness.start("resume", "--headless")
    _, errors = await again.communicate()
    assert again.returncode == 0, errors
    assert await command_results(harness) == [True]


async def test_rejected_between_two_runs_it_is_told_why(harness: RunHarness, fake: Fake) -> None:
    hears = {"until": r"from your operator\] Only greet\.", "acts": [ASKS]}
    (harness.folder / "midwatch.yaml").write_text("run: {sandbox: off}\n")
    assert await harness.run(fake(hears, GREETS, more=ASK)) == 3
    asked = await question(harness)
    where = ("--journal", harness.journal.name)
    assert await midwatch("reject", str(asked.id), "--comment", "Only greet.", *where) == 0
    assert await harness.resume() == 0
    assert await command_results(harness) == []
    calls = [each for each in await harness.told(Step) if "touch ran" in each.args]
    assert [(each.ok, each.output) for each in calls] == [(None, END_UNKNOWN)]


async def test_a_command_named_like_our_tool_is_asked_for(harness: RunHarness, fake: Fake) -> None:
    assert await harness.run(fake({"ask": "echo midwatch reflect"}, GREETS, more=ASK)) == 3
    (asked,) = await questions(harness)
    assert asked.request.what == "run `echo midwatch reflect`"
