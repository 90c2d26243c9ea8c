"""Sessions whose hooks call Midwatch can be guided and stopped."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path

import pytest

from midwatch_agents.hooks.client import hand_over
from midwatch_agents.hooks.inbox import put_in_inbox, socket_path, state_folder, take_inbox
from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Action, Delivery, Ending, Lifecycle
from midwatch_monitor.records.verdict import verdict_of
from midwatch_monitor.state.attempt_details import AttemptStatus
from midwatch_monitor.state.need import calls_person
from midwatch_supervisor.learning.attempt_case import case_of
from midwatch_supervisor.operator.tasks import out_of_reach
from midwatch_supervisor.present.assignment import folder_of
from midwatch_supervisor.present.waiting import attempt_waits_for
from midwatch_supervisor.sessions.session import STILL_RUNNING, Reply
from midwatch_supervisor.sessions.session_watch import IgnoredHook, listen_for_hooks
from midwatch_tests.foreign import FILES, ForeignAgents, asked, hook, loop
from midwatch_tests.sessions import DIALECTS, NOON, claude_stopped

CLAUDE, SESSION = DIALECTS["claude-code"], FILES["claude-code"]
Fields = dict[str, object]


class Session(ForeignAgents):
    """A session of Claude Code that is watched, after two calls."""

    transcript: Path

    async def call_hook(self, name: str, **more: str) -> Reply:
        """The answer to its hook."""
        return await self.hook({**hook(name, self.transcript), **more})

    async def deliver_hook(self, name: str, **more: str) -> Reply:
        """The same, once the agent has the answer."""
        reply = await self.call_hook(name, **more)
        await self.heard.note_delivery(reply)
        return reply

    async def look_later(self, **time: float) -> None:
        """Look again later."""
        self.now += timedelta(**time)
        await self.watch.look()


@pytest.fixture
async def session(journal: Journal, tmp_path: Path) -> AsyncGenerator[Session]:
    made = Session(journal, tmp_path / "home")
    made.transcript = made.write(SESSION, [*asked(CLAUDE), *loop(CLAUDE, 2)])
    await made.watch.look()
    yield made
    made.watch.close()


def pre_tool_use(n: int) -> Fields:
    """The hook before a call."""
    told = {"tool_use_id": f"c{n}", "tool_name": "Bash", "tool_input": {"command": "make"}}
    return {"hook_event_name": "PreToolUse", **told}


def tool_failure(n: int) -> Fields:
    """The hook after a call that failed."""
    return {
        **pre_tool_use(n),
        "hook_event_name": "PostToolUseFailure",
        "error": "Exit code 2\nboom",
    }


async def call_hooks(agents: ForeignAgents, *events: Fields) -> None:
    """Call hooks without any session file."""
    for each in events:
        await agents.hook(each)


async def test_guidance_is_given_until_the_agent_has_it(session: Session) -> None:
    await session.say(Action.NUDGE, "Read the error.")
    assert (await session.call_hook("PostToolUseFailure")).text == ""
    lost = await session.call_hook("PreToolUse")
    again = await session.call_hook("PreToolUse")
    assert "Read the error." in lost.text
    assert lost.text == again.text
    await session.heard.note_delivery(again)
    assert len(await session.records(Delivery)) == 1
    assert (await session.call_hook("PreToolUse")).text == ""


async def test_a_stop_ends_the_attempt_once_the_turn_is_over(session: Session) -> None:
    await session.say(Action.STOP, "Enough.")
    assert json.loads((await session.deliver_hook("PreToolUse")).text)["continue"] is False
    session.write(SESSION, loop(CLAUDE, 1, first=3))  # the call that was under way
    await session.look_later(minutes=1)
    assert not (await session.attempt()).over
    over = json.loads((await session.call_hook("Stop")).text)
    assert over["continue"] is False  # whatever other hooks want
    state = await session.attempt()
    assert (state.lifecycle, state.transition.ending) == (Lifecycle.CANCELED, Ending.CANCELED)
    assert state.last_step == 3
    assert "Enough." in state.transition.reason


async def expect_refusal(session: Session, *calls: int) -> None:
    """What an agent that was told to stop still calls; its model takes 13 s for each answer."""
    for n in calls:
        assert "deny" in (await session.deliver_hook("PreToolUse")).text
        session.write(SESSION, loop(CLAUDE, 1, first=n))
        await session.look_later(seconds=13)


async def test_who_does_not_heed_a_stop_is_refused_and_a_person_called(session: Session) -> None:
    await session.say(Action.STOP)
    await expect_refusal(session, 3, 4, 5)
    state = await session.attempt()
    assert (state.status, calls_person(state)) == (AttemptStatus.STOPPING, False)
    await expect_refusal(session, 6, 7, 8)
    state = await session.attempt()
    assert (state.status, calls_person(state)) == (AttemptStatus.STOPPING, True)
    assert attempt_waits_for(state) == "you to end it in its terminal: told to stop, still running"
    told = await session.records(Delivery)
    assert [each.comment for each in told if isinstance(each, Delivery)] == ["", STILL_RUNNING]


async def test_a_stop_stands_for_who_watches_next_and_for_sub_agents(session: Session) -> None:
    await session.say(Action.STOP)
    assert "deny" in (await session.call_hook("PreToolUse", agent_id="a1")).text
    await expect_refusal(session, 3)
    await session.call_hook("Stop", agent_id="a1")
    assert not (await session.attempt()).over
    await session.another_watch().look()
    await expect_refusal(session, 4, 5)
    assert not calls_person(await session.attempt())
    await session.call_hook("SessionEnd")
    assert (await session.attempt()).lifecycle is Lifecycle.CANCELED


@pytest.mark.parametrize(("action", "word"), [(Action.NUDGE, "Enough."), (Action.STOP, "deny")])
async def test_a_sub_agent_has_its_own_hooks(session: Session, action: Action, word: str) -> None:
    session.write_sub_agent(loop(CLAUDE, 1))
    await session.watch.look()
    await session.call_hook("PreToolUse", agent_id="a1")
    assert out_of_reach((await session.attempts())[1], action) == ""
    await session.say(action, "Enough.", to=1)
    assert (await session.call_hook("PreToolUse")).text == ""
    assert word in (await session.deliver_hook("PreToolUse", agent_id="a1")).text
    if action is Action.NUDGE:  # a stop lets it say nothing more
        session.write_sub_agent(CLAUDE.said("I end.", NOON))
    await session.watch.look()
    await session.look_later(seconds=10)
    parent, sub_agent = await session.attempts()
    assert (parent.over, sub_agent.over) == (False, True)
    assert (sub_agent.lifecycle is Lifecycle.CANCELED) == (action is Action.STOP)


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ({"hook_event_name": "SubagentStop", "agent_id": "a1"}, "its turn is over"),
        ({"hook_event_name": "SessionEnd"}, "the session ended"),
    ],
)
async def test_a_sub_agent_has_ended_once_its_hook_says_so_or_its_session_has(
    session: Session, end: Fields, reason: str
) -> None:
    session.write_sub_agent(loop(CLAUDE, 1))
    await session.watch.look()
    await session.call_hook("PreToolUse", agent_id="a1")
    await session.hook({**hook("", session.transcript), **end})
    session.write_sub_agent(loop(CLAUDE, 1, first=2))  # its last line may come later
    await session.look_later(seconds=9)
    assert not (await session.attempts())[1].over
    await session.look_later(seconds=10)
    state = (await session.attempts())[1]
    assert (state.status, state.transition.reason) == (AttemptStatus.ENDED, reason)
    assert state.last_step == 2


async def test_a_session_whose_sub_agent_works_is_not_abandoned(session: Session) -> None:
    session.write(SESSION, CLAUDE.said("It works beside me.", NOON))
    for n in range(1, 3):
        session.now += timedelta(minutes=50)
        session.write_sub_agent(loop(CLAUDE, 1, first=n))
        await session.watch.look()
    assert [each.over for each in await session.attempts()] == [False, False]


async def test_a_turn_that_a_hook_ended_is_over_although_no_hook_says_so(session: Session) -> None:
    await session.say(Action.STOP)
    await session.deliver_hook("PostToolBatch")
    session.write(SESSION, [claude_stopped()])
    await session.watch.look()
    assert not (await session.attempt()).over
    await session.look_later(seconds=10)
    assert (await session.attempt()).lifecycle is Lifecycle.CANCELED


async def test_a_stopped_session_that_is_silent_has_ended_after_an_hour(session: Session) -> None:
    await session.say(Action.STOP)
    await expect_refusal(session, 3)
    await session.look_later(hours=1)
    reason = (await session.attempt()).transition.reason
    assert reason.endswith("; nothing was heard from it for an hour")


async def test_a_new_prompt_of_a_person_after_a_stop_begins_anew(session: Session) -> None:
    await session.say(Action.STOP)
    await expect_refusal(session, 3)
    await session.call_hook("UserPromptSubmit", prompt="")
    await expect_refusal(session, 4)
    assert not (await session.attempt()).over
    await session.call_hook("UserPromptSubmit", prompt="Go on.")
    session.write(SESSION, [*CLAUDE.prompt("Go on.", NOON), *loop(CLAUDE, 1, first=5)])
    assert (await session.call_hook("PreToolUse")).text == ""
    first, second = await session.attempts()
    assert (first.over, second.over, second.last_step) == (True, False, 1)


async def test_a_session_that_goes_on_has_the_turns_of_each_time(session: Session) -> None:
    await session.call_hook("SessionEnd")
    session.write(SESSION, [*CLAUDE.prompt("Go on.", NOON), *loop(CLAUDE, 3, first=3)])
    await session.another_watch().look()
    cases = [
        await case_of(session.journal, await session.journal.task(each.task), each.attempt)
        for each in await session.attempts()
    ]
    assert [each.turns for each in cases] == [2, 3]


async def test_without_a_file_hooks_give_the_same_steps_and_alarms(agents: ForeignAgents) -> None:
    prompt: Fields = {"hook_event_name": "UserPromptSubmit", "prompt": "Mend it."}
    stop: Fields = {"hook_event_name": "Stop", "last_assistant_message": "I give up."}
    calls = [each for n in range(1, 8) for each in (pre_tool_use(n), tool_failure(n))]
    await call_hooks(agents, prompt, *calls, stop)
    by_hooks, alarms = await agents.steps(), await agents.alarms()
    told = [*asked(CLAUDE), *loop(CLAUDE, 7), *CLAUDE.said("I give up.", NOON)]
    agents.write(".claude/projects/-repo/other.jsonl", [{**e, "sessionId": "s2"} for e in told])
    await agents.watch.look()
    steps = [(each.tool, each.args, each.exit_code) for each in await agents.steps()]
    assert steps == [(each.tool, each.args, each.exit_code) for each in by_hooks] * 2
    assert alarms
    assert await agents.alarms() == alarms * 2


async def test_a_call_of_which_only_the_result_is_told_is_a_step(agents: ForeignAgents) -> None:
    await call_hooks(agents, tool_failure(1), tool_failure(1), pre_tool_use(2), tool_failure(2))
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
    await call_hooks(agents, {**pre_tool_use(1), "cwd": cwd}, {**tool_failure(1), "cwd": cwd})
    assert await agents.attempts() == []


async def test_a_session_file_that_appears_later_repeats_nothing(agents: ForeignAgents) -> None:
    path = str(agents.file(SESSION))
    await call_hooks(
        agents, *({**each, "transcript_path": path} for each in (pre_tool_use(1), tool_failure(1)))
    )
    agents.write(SESSION, [*asked(CLAUDE), *loop(CLAUDE, 2)])
    await call_hooks(agents, {**pre_tool_use(3), "transcript_path": path})
    assert [each.call for each in await agents.steps()] == ["c1", "c2"]


async def test_the_end_of_a_session_ends_its_attempt_and_is_no_verdict(session: Session) -> None:
    await session.call_hook("SessionEnd")
    state = await session.attempt()
    assert (state.transition.reason, state.status) == ("the session ended", AttemptStatus.ENDED)
    told = [verdict_of(each.record) async for each in session.journal.all_entries()]
    assert {*told} == {None}
    assert not [*(session.home.parent / ".midwatch").glob("*.run-*.lock")]


async def test_a_transcript_that_is_none_is_not_read(agents: ForeignAgents, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the launch code is 0000\n", encoding="utf-8")
    await call_hooks(agents, {**pre_tool_use(1), "transcript_path": str(secret)}, tool_failure(1))
    told = [repr(each) async for each in agents.journal.all_entries()]
    assert len(await agents.steps()) == 1
    assert not [each for each in told if "launch" in each]


def line_of(event: Fields, agent: str = "claude-code") -> bytes:
    """What a hook hands over."""
    whole = {"v": 1, "agent": agent, "event": {"session_id": "s1", **event}}
    return json.dumps(whole).encode() + b"\n"


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


async def test_a_hook_asks_over_the_socket_and_has_its_word(session: Session, folder: Path) -> None:
    await session.say(Action.NUDGE, "Read the error.")
    event: Fields = {"transcript_path": str(session.transcript), **pre_tool_use(3)}
    async with listen_for_hooks(folder / "hook.sock", session.watch):
        answer = await asyncio.to_thread(ask, session, folder, event)
    assert "Read the error." in answer
    assert len(await session.records(Delivery)) == 1


async def test_hooks_that_found_the_watch_late_are_heard_and_ask_it_again(session: Session) -> None:
    folder = state_folder({}, session.home)
    at = socket_path(folder)
    assert at is not None
    calls, stop = hook("PreToolUse", session.transcript), hook("Stop", session.transcript)
    await session.say(Action.STOP, "Enough.")
    async with listen_for_hooks(at, session.watch):
        # As this blocks the watch, it is late twice, and is not asked for the third one.
        assert [ask(session, folder, each) for each in (calls, calls, stop)] == [""] * 3
        await session.watch.look()
        assert (await session.attempt()).idle
        assert "deny" in await asyncio.to_thread(ask, session, folder, calls)


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
            await asyncio.to_thread(ask, agents, folder, pre_tool_use(1), agent)
    assert [each.name.agent for each in watch.sessions] == ["claude-code"]
    (line,) = take_inbox(folder)
    heard = await agents.another_watch().hear(line)
    assert not isinstance(heard, IgnoredHook)
    assert heard[0].name.agent == "codex"


@pytest.mark.parametrize("watched", [SESSION, ".claude"], ids=["a file", "a folder"])
async def test_a_watch_of_a_path_hears_only_its_hooks(session: Session, watched: str) -> None:
    watch = session.another_watch(session.home / watched)
    await session.call_hook("PreToolUse")
    other = session.write("elsewhere/s2.jsonl", asked(CLAUDE))
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
