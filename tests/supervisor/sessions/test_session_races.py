"""Sessions that are killed, copied, moved, followed by two, or told of at the same time."""

import asyncio
import os
from datetime import timedelta
from pathlib import Path

import pytest

from midwatch_monitor.errors import JournalError
from midwatch_monitor.records import Action, Change, Delivery, Ending, Lifecycle
from midwatch_stage.foreign import FILES, Away, ForeignAgents, asked, hook, loop
from midwatch_stage.sessions import DIALECTS, NOON

CLAUDE, SESSION = DIALECTS["claude-code"], FILES["claude-code"]


async def looking(agents: ForeignAgents, *more: object) -> Path:
    """The file of a session at work after one call, which is watched."""
    path = agents.write(SESSION, [*asked(CLAUDE), *loop(CLAUDE, 1), *more])
    await agents.watch.look()
    return path


async def test_two_sub_agents_that_begin_together_have_one_run(agents: ForeignAgents) -> None:
    agents.write(SESSION, asked(CLAUDE))
    await agents.watch.look()
    (session,) = agents.watch.sessions
    first, second = await asyncio.gather(session.run(), session.run())
    assert first.id == second.id
    assert len(await agents.journal.runs()) == 1


async def test_a_sub_agent_that_outlives_its_session_begins_no_other_run(
    agents: ForeignAgents,
) -> None:
    path = await looking(agents)
    await agents.hook(hook("SessionEnd", path))
    agents.write_sub_agent(loop(CLAUDE, 1))
    await agents.another_watch().look()
    assert len(await agents.journal.runs()) == 1
    assert [each.last_step for each in await agents.attempts()] == [1, 1]


async def test_what_a_journal_did_not_take_is_read_again(location: str, tmp_path: Path) -> None:
    async with await Away.open(location) as journal:
        agents = ForeignAgents(journal, tmp_path / "home")
        await looking(agents)
        journal.times = 1
        path = agents.write(SESSION, loop(CLAUDE, 2, first=2))
        with pytest.raises(JournalError):
            await agents.watch.look()
        await agents.watch.look()
        assert [each.call for each in await agents.steps()] == ["c1", "c2", "c3"]
        journal.times = 1
        agents.write(SESSION, loop(CLAUDE, 1, first=4))
        with pytest.raises(JournalError):
            await agents.hook(hook("Stop", path))
        await agents.watch.look()
        assert [each.call for each in await agents.steps()] == ["c1", "c2", "c3", "c4"]
        agents.watch.close()


async def test_a_session_that_another_process_follows_keeps_nobody_from_the_others(
    agents: ForeignAgents,
) -> None:
    for name in ("s1", "s2"):
        lines = [*asked(CLAUDE), *loop(CLAUDE, 1)]
        agents.write(SESSION.replace("s1", name), [{**e, "sessionId": name} for e in lines])
    await agents.watch.look()
    first = (await agents.attempts())[0]
    await agents.journal.claim(first.id, holder="another", at=agents.now)
    agents.now += timedelta(days=1)
    await agents.watch.look()
    assert [each.over for each in await agents.attempts()] == [False, True]


async def test_a_killed_agent_is_let_go_after_a_day_and_taken_up_when_it_comes_back(
    agents: ForeignAgents,
) -> None:
    await looking(agents)
    agents.now += timedelta(days=1)
    await agents.watch.look()
    assert (await agents.attempt()).transition.ending is Ending.ERROR
    agents.now += timedelta(minutes=1)
    await agents.watch.look()
    assert agents.watch.sessions == ()
    agents.write(SESSION, loop(CLAUDE, 1, first=2))
    await agents.watch.look()
    assert [each.call for each in await agents.steps()] == ["c1", "c2"]


async def test_links_that_lead_nowhere_and_pipes_cost_nothing_else(
    agents: ForeignAgents, tmp_path: Path
) -> None:
    path = agents.write("runs/s1.jsonl", [*asked(CLAUDE), *loop(CLAUDE, 1)])
    (path.parent / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    os.mkfifo(path.parent / "pipe.jsonl")
    await agents.another_watch(path.parent).look()
    assert (await agents.attempt()).last_step == 1


async def test_a_file_is_followed_once_by_whatever_path_it_is_named(
    agents: ForeignAgents, tmp_path: Path
) -> None:
    await looking(agents, *CLAUDE.said("Done.", NOON))
    (tmp_path / "linked").symlink_to(agents.home)
    linked = tmp_path / "linked" / SESSION
    await agents.hook(hook("Stop", linked))
    assert len(await agents.steps()) == 2
    assert len(agents.watch.sessions) == 1


async def test_a_copy_of_a_session_is_one_of_its_own(agents: ForeignAgents) -> None:
    lines = [*asked(CLAUDE), *loop(CLAUDE, 1), *CLAUDE.said("Done.", NOON)]
    for name in (SESSION, SESSION.replace("s1", "s2")):
        agents.write(name, lines)
    await agents.watch.look()
    agents.write(SESSION, [*CLAUDE.prompt("More.", NOON), *loop(CLAUDE, 1, first=2)])
    await agents.watch.look()
    assert [each.last_step for each in await agents.attempts()] == [3, 2]


async def test_a_transcript_with_an_impossible_path_is_none(agents: ForeignAgents) -> None:
    for path in ("x" * 5000, "a\0b"):
        reply = await agents.hook(hook("Stop", path))
        assert reply.text == ""


async def test_who_comes_next_says_nothing_again(agents: ForeignAgents) -> None:
    said = [*loop(CLAUDE, 1), *CLAUDE.said("Done.", NOON)]
    more = [*CLAUDE.prompt("More.", NOON), *loop(CLAUDE, 1, first=2), *CLAUDE.said("Yes.", NOON)]
    agents.write(SESSION, [*asked(CLAUDE), *said, *more])
    await agents.watch.look()
    before = await agents.records(Change)
    await agents.another_watch().look()
    assert await agents.records(Change) == before


async def test_a_file_that_appears_after_a_restart_repeats_nothing(agents: ForeignAgents) -> None:
    call = {"tool_use_id": "c1", "tool_name": "Bash", "tool_input": {"command": "make"}}
    path = agents.file(SESSION)
    before = {**hook("PreToolUse", path), **call}
    failed = {**before, "hook_event_name": "PostToolUseFailure", "error": "Exit code 2\nboom"}
    await agents.hook(before)
    await agents.hook(failed)
    agents.another_watch()
    await agents.hook(hook("SessionStart", path))
    agents.write(SESSION, [*asked(CLAUDE), *loop(CLAUDE, 2)])
    await agents.watch.look()
    assert [each.call for each in await agents.steps()] == ["c1", "c2"]


@pytest.mark.parametrize("action", [Action.NUDGE, Action.STOP])
async def test_what_two_hooks_are_told_at_once_is_delivered_once(
    agents: ForeignAgents, action: Action
) -> None:
    path = await looking(agents)
    await agents.say(action)
    replies = [await agents.hook(hook("PreToolUse", path)) for _ in range(2)]
    for reply in replies:
        assert "Look." in reply.text
        await agents.heard.note_delivery(reply)
    assert len(await agents.records(Delivery)) == 1


async def test_a_stop_that_comes_after_the_end_does_not_end_what_follows(
    agents: ForeignAgents,
) -> None:
    path = await looking(agents)
    await agents.say(Action.STOP)
    reply = await agents.hook(hook("PreToolUse", path))
    await agents.hook(hook("SessionEnd", path))
    agents.write(SESSION, [*CLAUDE.prompt("Go on.", NOON), *loop(CLAUDE, 1, first=2)])
    await agents.watch.look()
    await agents.heard.note_delivery(reply)
    await agents.hook(hook("Stop", path))
    assert (await agents.attempts())[1].lifecycle is not Lifecycle.FAILED
