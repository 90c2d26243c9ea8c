"""Sessions whose hooks call Midwatch can be guided and stopped."""

import asyncio
import json
import socket
from datetime import timedelta
from pathlib import Path

import pytest

from midwatch_agents.hooks.client import hand_over
from midwatch_agents.hooks.inbox import put_in_inbox, socket_path, state_folder, take_inbox
from midwatch_monitor.errors import UsageError
from midwatch_monitor.records import Action, Delivery, Ending, Lifecycle
from midwatch_monitor.records.verdict import verdict_of
from midwatch_monitor.state.attempt_details import AttemptStatus
from midwatch_monitor.state.need import calls_person
from midwatch_stage.foreign import FILES, ForeignAgents, asked, hook, loop
from midwatch_stage.sessions import DIALECTS, NOON, claude_stopped
from midwatch_supervisor.learning.attempt_case import case_of
from midwatch_supervisor.operator.tasks import out_of_reach
from midwatch_supervisor.present.assignment import folder_of
from midwatch_supervisor.present.waiting import attempt_waits_for
from midwatch_supervisor.sessions.session import STILL_RUNNING
from midwatch_supervisor.sessions.session_watch import IgnoredHook, listen_for_hooks

CLAUDE, SESSION = DIALECTS["claude-code"], FILES["claude-code"]
Fields = dict[str, object]


def before(n: int) -> Fields:
    """The hook before a call."""
    told = {"tool_use_id": f"c{n}", "tool_name": "Bash", "tool_input": {"command": "make"}}
    return {"hook_event_name": "PreToolUse", **told}


def failed(n: int) -> Fields:
    """The hook after a call that failed."""
    return {**before(n), "hook_event_name": "PostToolUseFailure", "error": "Exit code 2\nboom"}


async def hear(agents: ForeignAgents, *events: Fields) -> None:
    """Hooks without any session file."""
    for each in events:
        await agents.hook(each)


async def test_guidance_is_given_by_hooks_that_pass_it_on_until_the_agent_has_it(
    agents: ForeignAgents, transcript: Path
) -> None:
    await agents.say(Action.NUDGE, "Read the error.")
    assert (await agents.hook(hook("PostToolUseFailure", transcript))).text == ""
    lost = await agents.hook(hook("PreToolUse", transcript))
    again = await agents.hook(hook("PreToolUse", transcript))
    assert "Read the error." in lost.text
    assert lost.text == again.text
    await agents.heard.note_delivery(again)
    assert len(await agents.records(Delivery)) == 1
    assert (await agents.hook(hook("PreToolUse", transcript))).text == ""


async def test_a_stop_ends_the_attempt_once_the_turn_is_over(
    agents: ForeignAgents, transcript: Path
) -> None:
    await agents.say(Action.STOP, "Enough.")
    reply = await agents.hook(hook("PreToolUse", transcript))
    assert json.loads(reply.text)["continue"] is False
    await agents.heard.note_delivery(reply)
    agents.write(SESSION, loop(CLAUDE, 1, first=3))  # the call that was under way
    agents.now += timedelta(minutes=1)
    await agents.watch.look()
    assert not (await agents.attempt()).over
    reply = await agents.hook(hook("Stop", transcript))
    assert json.loads(reply.text)["continue"] is False  # whatever other hooks want
    state = await agents.attempt()
    assert (state.lifecycle, state.transition.ending) == (Lifecycle.CANCELED, Ending.CANCELED)
    assert state.last_step == 3
    assert "Enough." in state.transition.reason


async def refuse(agents: ForeignAgents, transcript: Path, *calls: int) -> None:
    """What an agent that was told to stop still calls; its model takes 13 s for each answer."""
    for n in calls:
        reply = await agents.hook(hook("PreToolUse", transcript))
        assert "deny" in reply.text
        await agents.heard.note_delivery(reply)
        agents.write(SESSION, loop(CLAUDE, 1, first=n))
        agents.now += timedelta(seconds=13)
        await agents.watch.look()


async def test_an_agent_that_does_not_heed_a_stop_is_refused_each_call_and_a_person_is_called(
    agents: ForeignAgents, transcript: Path
) -> None:
    await agents.say(Action.STOP)
    await refuse(agents, transcript, 3, 4, 5)
    state = await agents.attempt()
    assert (state.status, calls_person(state)) == (AttemptStatus.STOPPING, False)
    await refuse(agents, transcript, 6, 7, 8)
    state = await agents.attempt()
    assert (state.status, calls_person(state)) == (AttemptStatus.STOPPING, True)
    assert attempt_waits_for(state) == "you to end it in its terminal: told to stop, still running"
    told = await agents.records(Delivery)
    assert [each.comment for each in told if isinstance(each, Delivery)] == ["", STILL_RUNNING]


async def test_a_stop_stands_also_for_who_watches_next_and_for_the_sub_agents(
    agents: ForeignAgents, transcript: Path
) -> None:
    await agents.say(Action.STOP)
    its_hook = {**hook("PreToolUse", transcript), "agent_id": "a1"}
    assert "deny" in (await agents.hook(its_hook)).text
    await refuse(agents, transcript, 3)
    await agents.hook({**hook("Stop", transcript), "agent_id": "a1"})
    assert not (await agents.attempt()).over
    await agents.another_watch().look()
    await refuse(agents, transcript, 4, 5)
    assert not calls_person(await agents.attempt())
    await agents.hook(hook("SessionEnd", transcript))
    assert (await agents.attempt()).lifecycle is Lifecycle.CANCELED


@pytest.mark.parametrize(("action", "word"), [(Action.NUDGE, "Enough."), (Action.STOP, "deny")])
async def test_a_sub_agent_is_guided_and_stopped_through_its_own_hooks(
    agents: ForeignAgents, transcript: Path, action: Action, word: str
) -> None:
    agents.write_sub_agent(loop(CLAUDE, 1))
    await agents.watch.look()
    its_hook = {**hook("PreToolUse", transcript), "agent_id": "a1"}
    await agents.hook(its_hook)
    assert out_of_reach((await agents.attempts())[1], action) == ""
    await agents.say(action, "Enough.", to=1)
    assert (await agents.hook(hook("PreToolUse", transcript))).text == ""
    reply = await agents.hook(its_hook)
    assert word in reply.text
    await agents.heard.note_delivery(reply)
    if action is Action.NUDGE:  # a stop lets it say nothing more
        agents.write_sub_agent(CLAUDE.said("I end.", NOON))
    await agents.watch.look()
    agents.now += timedelta(seconds=10)
    await agents.watch.look()
    session, sub_agent = await agents.attempts()
    assert (session.over, sub_agent.over) == (False, True)
    assert (sub_agent.lifecycle is Lifecycle.CANCELED) == (action is Action.STOP)


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ({"hook_event_name": "SubagentStop", "agent_id": "a1"}, "its turn is over"),
        ({"hook_event_name": "SessionEnd"}, "the session ended"),
    ],
)
async def test_a_sub_agent_has_ended_once_its_hook_says_so_or_its_session_has(
    agents: ForeignAgents, transcript: Path, end: Fields, reason: str
) -> None:
    agents.write_sub_agent(loop(CLAUDE, 1))
    await agents.watch.look()
    await agents.hook({**hook("PreToolUse", transcript), "agent_id": "a1"})
    await agents.hook({**hook("", transcript), **end})
    agents.write_sub_agent(loop(CLAUDE, 1, first=2))  # its last line may come later
    agents.now += timedelta(seconds=9)
    await agents.watch.look()
    assert not (await agents.attempts())[1].over
    agents.now += timedelta(seconds=10)
    await agents.watch.look()
    state = (await agents.attempts())[1]
    assert (state.status, state.transition.reason) == (AttemptStatus.ENDED, reason)
    assert state.last_step == 2


async def test_a_session_whose_sub_agent_works_is_not_abandoned(
    agents: ForeignAgents, transcript: Path
) -> None:
    agents.write(SESSION, CLAUDE.said("It works beside me.", NOON))
    for n in range(1, 3):
        agents.now += timedelta(minutes=50)
        agents.write_sub_agent(loop(CLAUDE, 1, first=n))
        await agents.watch.look()
    assert [each.over for each in await agents.attempts()] == [False, False]


async def test_a_turn_that_a_hook_ended_is_over_although_no_hook_says_so(
    agents: ForeignAgents, transcript: Path
) -> None:
    await agents.say(Action.STOP)
    reply = await agents.hook(hook("PostToolBatch", transcript))
    await agents.heard.note_delivery(reply)
    agents.write(SESSION, [claude_stopped()])
    await agents.watch.look()
    assert not (await agents.attempt()).over
    agents.now += timedelta(seconds=10)
    await agents.watch.look()
    assert (await agents.attempt()).lifecycle is Lifecycle.CANCELED


async def test_a_stopped_session_of_which_nothing_is_heard_has_ended_after_an_hour(
    agents: ForeignAgents, transcript: Path
) -> None:
    await agents.say(Action.STOP)
    await refuse(agents, transcript, 3)
    agents.now += timedelta(hours=1)
    await agents.watch.look()
    reason = (await agents.attempt()).transition.reason
    assert reason.endswith("; nothing was heard from it for an hour")


async def test_a_new_prompt_of_a_person_after_a_stop_begins_anew(
    agents: ForeignAgents, transcript: Path
) -> None:
    await agents.say(Action.STOP)
    await refuse(agents, transcript, 3)
    await agents.hook({**hook("UserPromptSubmit", transcript), "prompt": ""})
    await refuse(agents, transcript, 4)
    assert not (await agents.attempt()).over
    await agents.hook({**hook("UserPromptSubmit", transcript), "prompt": "Go on."})
    agents.write(SESSION, [*CLAUDE.prompt("Go on.", NOON), *loop(CLAUDE, 1, first=5)])
    assert (await agents.hook(hook("PreToolUse", transcript))).text == ""
    first, second = await agents.attempts()
    assert (first.over, second.over, second.last_step) == (True, False, 1)


async def test_a_session_that_goes_on_after_its_end_has_the_turns_of_each_time(
    agents: ForeignAgents, transcript: Path
) -> None:
    await agents.hook(hook("SessionEnd", transcript))
    agents.write(SESSION, [*CLAUDE.prompt("Go on.", NOON), *loop(CLAUDE, 3, first=3)])
    await agents.another_watch().look()
    cases = [
        await case_of(agents.journal, await agents.journal.task(each.task), each.attempt)
        for each in await agents.attempts()
    ]
    assert [each.turns for each in cases] == [2, 3]


async def test_without_a_file_hooks_give_the_same_steps_and_alarms(agents: ForeignAgents) -> None:
    prompt: Fields = {"hook_event_name": "UserPromptSubmit", "prompt": "Mend it."}
    stop: Fields = {"hook_event_name": "Stop", "last_assistant_message": "I give up."}
    calls = [each for n in range(1, 8) for each in (before(n), failed(n))]
    await hear(agents, prompt, *calls, stop)
    by_hooks, alarms = await agents.steps(), await agents.alarms()
    told = [*asked(CLAUDE), *loop(CLAUDE, 7), *CLAUDE.said("I give up.", NOON)]
    agents.write(".claude/projects/-repo/other.jsonl", [{**e, "sessionId": "s2"} for e in told])
    await agents.watch.look()
    steps = [(each.tool, each.args, each.exit_code) for each in await agents.steps()]
    assert steps == [(each.tool, each.args, each.exit_code) for each in by_hooks] * 2
    assert alarms
    assert await agents.alarms() == alarms * 2


async def test_a_call_of_which_only_the_result_is_told_is_a_step(agents: ForeignAgents) -> None:
    await hear(agents, failed(1), failed(1), before(2), failed(2))
    assert [(each.call, each.args, each.exit_code) for each in await agents.steps()] == [
        ("c1", "make", 2),
        ("c2", "make", 2),
    ]


async def test_that_a_hook_told_what_cannot_be_read_is_logged(
    agents: ForeignAgents, caplog: pytest.LogCaptureFixture
) -> None:
    line = b'{"v":1,"agent":"codex","damaged":true,"size":9000000}'
    assert await agents.watch.hear(line) is IgnoredHook.SAYS_NOTHING
    assert "a step is missing: a hook sent 9000000 bytes" in caplog.text


async def test_a_worker_whose_hooks_report_is_not_taken_in(agents: ForeignAgents) -> None:
    cwd = str(folder_of(Path("/repo/.midwatch"), "r1.2", "fix", 1) / "src")
    await hear(agents, {**before(1), "cwd": cwd}, {**failed(1), "cwd": cwd})
    assert await agents.attempts() == []


async def test_a_session_file_that_appears_later_repeats_nothing(agents: ForeignAgents) -> None:
    path = str(agents.file(SESSION))
    await hear(agents, *({**each, "transcript_path": path} for each in (before(1), failed(1))))
    agents.write(SESSION, [*asked(CLAUDE), *loop(CLAUDE, 2)])
    await hear(agents, {**before(3), "transcript_path": path})
    assert [each.call for each in await agents.steps()] == ["c1", "c2"]


async def test_the_end_of_a_session_ends_its_attempt_and_is_no_verdict(
    agents: ForeignAgents, transcript: Path
) -> None:
    await agents.hook(hook("SessionEnd", transcript))
    state = await agents.attempt()
    assert (state.transition.reason, state.status) == ("the session ended", AttemptStatus.ENDED)
    told = [verdict_of(each.record) async for each in agents.journal.all_entries()]
    assert {*told} == {None}


async def test_a_transcript_that_is_none_is_not_read(agents: ForeignAgents, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the launch code is 0000\n", encoding="utf-8")
    await hear(agents, {**before(1), "transcript_path": str(secret)}, failed(1))
    told = [repr(each) async for each in agents.journal.all_entries()]
    assert len(await agents.steps()) == 1
    assert not [each for each in told if "launch" in each]


def line_of(event: Fields, agent: str = "claude-code") -> bytes:
    """What a hook hands over."""
    whole = {"v": 1, "agent": agent, "event": {"session_id": "s1", **event}}
    return json.dumps(whole).encode() + b"\n"


async def test_what_waits_in_the_inbox_is_taken_in(agents: ForeignAgents, folder: Path) -> None:
    for each in (before(1), failed(1)):
        assert put_in_inbox(folder, line_of(each))
    lines = list(take_inbox(folder))
    assert len(lines) == 2
    for line in lines:
        await agents.watch.hear(line)
    assert len(await agents.steps()) == 1


async def test_what_waited_in_the_inbox_is_no_sign_of_life(agents: ForeignAgents) -> None:
    path = agents.write(SESSION, [*asked(CLAUDE), *loop(CLAUDE, 2), *CLAUDE.said("Done.", NOON)])
    assert put_in_inbox(state_folder({}, agents.home), line_of(hook("Stop", path)))
    agents.now += timedelta(hours=2)
    await agents.another_watch().look()
    assert (await agents.attempt()).over


def ask(agents: ForeignAgents, folder: Path, event: Fields, agent: str = "claude-code") -> str:
    """What the program of a hook is answered."""
    payload = json.dumps({"session_id": "s1", **event}).encode()
    return hand_over(agent, payload, folder=folder, now=agents.now.timestamp())


async def test_a_hook_asks_over_the_socket_and_its_word_is_delivered(
    agents: ForeignAgents, transcript: Path, folder: Path
) -> None:
    await agents.say(Action.NUDGE, "Read the error.")
    event: Fields = {"transcript_path": str(transcript), **before(3)}
    async with listen_for_hooks(folder / "hook.sock", agents.watch):
        answer = await asyncio.to_thread(ask, agents, folder, event)
    assert "Read the error." in answer
    assert len(await agents.records(Delivery)) == 1


async def test_hooks_that_found_the_watch_late_are_heard_and_ask_it_again(
    agents: ForeignAgents, transcript: Path
) -> None:
    folder = state_folder({}, agents.home)
    at = socket_path(folder)
    assert at is not None
    calls, stop = hook("PreToolUse", transcript), hook("Stop", transcript)
    await agents.say(Action.STOP, "Enough.")
    async with listen_for_hooks(at, agents.watch):
        # As this blocks the watch, it is late twice, and is not asked for the third one.
        assert [ask(agents, folder, each) for each in (calls, calls, stop)] == [""] * 3
        await agents.watch.look()
        assert (await agents.attempt()).idle
        assert "deny" in await asyncio.to_thread(ask, agents, folder, calls)


async def test_a_second_attach_is_refused_and_a_dead_ones_place_is_taken(
    agents: ForeignAgents, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = folder / "hook.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(place))
    async with listen_for_hooks(place, agents.watch):
        assert place.stat().st_mode & 0o777 == 0o600
        shows = f"`midwatch watch --journal {agents.journal.name}` shows"
        with pytest.raises(UsageError, match=f"another `midwatch attach` .*; {shows}"):
            async with listen_for_hooks(place, agents.another_watch()):
                pass
    assert caplog.messages == []  # the first one takes it for no hook
    assert not place.exists()


async def test_a_hook_of_another_program_waits(agents: ForeignAgents, folder: Path) -> None:
    watch = agents.another_watch(agents=["claude-code"])
    async with listen_for_hooks(folder / "hook.sock", watch):
        for agent in ("codex", "claude-code"):
            await asyncio.to_thread(ask, agents, folder, before(1), agent)
    assert [each.name.agent for each in watch.sessions] == ["claude-code"]
    (line,) = take_inbox(folder)
    heard = await agents.another_watch().hear(line)
    assert not isinstance(heard, IgnoredHook)
    assert heard[0].name.agent == "codex"


@pytest.mark.parametrize("watched", [SESSION, ".claude"], ids=["a file", "a folder"])
async def test_a_watch_of_a_path_hears_only_the_hooks_of_its_sessions(
    agents: ForeignAgents, transcript: Path, watched: str
) -> None:
    watch = agents.another_watch(agents.home / watched)
    await agents.hook(hook("PreToolUse", transcript))
    other = agents.write("elsewhere/s2.jsonl", asked(CLAUDE))
    for path in (str(other), "", "\0", "\ud800"):
        line = line_of({**hook("PreToolUse", path), "session_id": "s2"})
        assert await watch.hear(line) is IgnoredHook.NOT_WATCHED
    assert len(watch.sessions) == 1


HOSTILE = b"\n", b"no json\n", b"[]\n", b'{"agent": 5}\n', b'{"v":1,"damaged":true}\n', b"{" * 9999


async def test_a_hostile_line_is_answered_with_nothing(agents: ForeignAgents, folder: Path) -> None:
    async with listen_for_hooks(folder / "hook.sock", agents.watch):
        for line in HOSTILE:
            reader, writer = await asyncio.open_unix_connection(folder / "hook.sock")
            writer.write(line)
            writer.write_eof()
            assert await reader.read() in {b"", b'{"print": ""}\n'}, line
            writer.close()
    assert await agents.attempts() == []
