"""Sessions are watched by the files that their programs write, also of copied or killed ones."""

import asyncio
import json
import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Action, Change, Delivery, Ending, Lifecycle
from midwatch_monitor.state.attempt_details import AttemptStatus
from midwatch_supervisor.operator.tasks import out_of_reach
from midwatch_supervisor.present.assignment import folder_of
from midwatch_tests.foreign import FILES, Away, ForeignAgents, asked, at, hook, loop
from midwatch_tests.sessions import DIALECTS, NOON, Line, Lines

CLAUDE, SESSION = DIALECTS["claude-code"], FILES["claude-code"]


@pytest.mark.parametrize("format", list(FILES))
async def test_a_session_becomes_an_attempt_that_the_rules_judge(
    agents: ForeignAgents, journal: Journal, format: str
) -> None:
    dialect = DIALECTS[format]
    said = [*asked(dialect), *loop(dialect, 6), *dialect.said("I give up.", NOON)]
    agents.write(FILES[format], said)
    await agents.watch.look()
    state = await agents.attempt()
    assert state.attempt.worker == format
    assert {"repeated_call", "error_streak"} <= {each.key.rule for each in state.firing}
    assert state.idle
    (run,) = await journal.runs()
    (task,) = await journal.tasks(run.id)
    assert (task.title, run.source) == ("Mend it.", f"session {format} s1")


@pytest.mark.parametrize("format", list(FILES))
async def test_what_is_appended_is_taken_in_once(agents: ForeignAgents, format: str) -> None:
    dialect = DIALECTS[format]
    agents.write(FILES[format], [*asked(dialect), *loop(dialect, 2)])
    assert await agents.watch.look()
    agents.write(FILES[format], loop(dialect, 2, first=3))
    assert await agents.watch.look()
    assert not await agents.watch.look()
    agents.write(FILES[format], loop(dialect, 2, first=5))
    await agents.another_watch().look()
    assert [each.number for each in await agents.steps()] == [1, 2, 3, 4, 5, 6]
    assert [each.exit_code for each in await agents.steps()] == [2] * 6


@pytest.mark.parametrize("format", list(FILES))
async def test_minutes_of_waiting_are_not_counted(agents: ForeignAgents, format: str) -> None:
    dialect, noon = DIALECTS[format], datetime.fromisoformat(NOON)

    def at_minute(past: int, lines: Sequence[Line]) -> Lines:
        return at(noon + timedelta(minutes=past), lines)

    agents.write(FILES[format], [*at_minute(0, asked(dialect)), *at_minute(1, loop(dialect, 1))])
    await agents.watch.look()
    assert (await agents.attempt()).budget.minutes.used == 0
    agents.write(FILES[format], [*at_minute(3, loop(dialect, 1, first=2))])
    await agents.another_watch().look()
    agents.write(FILES[format], at_minute(4, dialect.said("Well?", NOON)))
    await agents.watch.look()
    assert (await agents.attempt()).budget.minutes.used == 3
    agents.write(FILES[format], at_minute(30, dialect.prompt("Go on.", NOON)))
    agents.write(FILES[format], at_minute(32, loop(dialect, 1, first=3)))
    await agents.watch.look()
    assert (await agents.attempt()).budget.minutes.used == 5


def write_document(agents: ForeignAgents, *lines: Line, indent: int | None = 2) -> Path:
    """A session of Gemini CLI as older versions keep it, written anew: each message stands once."""
    head, *said = lines
    messages = list({each["id"]: each for each in said if "id" in each}.values())
    text = json.dumps({**head, "messages": messages}, indent=indent)
    path = agents.file(".gemini/tmp/h/chats/session-s1.json")
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("indent", "named"), [(None, "program"), (2, "program"), (2, "file"), (2, "folder")]
)
async def test_a_session_that_is_one_document_is_taken_in_as_it_is_written_anew(
    agents: ForeignAgents, indent: int | None, named: str
) -> None:
    gemini = DIALECTS["gemini"]
    said, more = [*asked(gemini), *loop(gemini, 7)], gemini.prompt("More.", NOON)
    path = write_document(agents, *asked(gemini), *loop(gemini, 2), indent=indent)
    paths = {"program": (), "file": (path,), "folder": (path.parent,)}[named]
    watch = agents.another_watch(*paths)
    assert await watch.look()
    write_document(agents, *said[:-2], indent=indent)  # the last call is at work
    await watch.look()
    whole = write_document(agents, *said, indent=indent).read_text()
    path.write_text(whole[: len(whole) * 2 // 3])  # it is being written
    await watch.look()
    path.write_text(whole)
    await watch.look()
    assert not await watch.look()
    write_document(agents, *said, *more, indent=indent)
    await watch.look()
    write_document(agents, *said, *more, *loop(gemini, 1, first=8), indent=indent)
    await watch.look()
    await agents.another_watch(*paths).look()
    assert [each.call for each in await agents.steps()] == [f"c{n}" for n in range(1, 9)]
    assert await agents.faults() == []
    state = await agents.attempt()
    assert "repeated_call" in {each.key.rule for each in state.firing}


async def test_damage_in_a_document_is_noted_once(agents: ForeignAgents) -> None:
    said = [*asked(DIALECTS["gemini"]), *loop(DIALECTS["gemini"], 3)]
    head, *messages = [each for each in said if "$set" not in each]  # some stand there again
    path = agents.file(".gemini/tmp/h/chats/session-s1.json")
    for end in ([], ["more"]):
        path.write_text(json.dumps({**head, "messages": [7, *messages, *end]}))
        await agents.watch.look()
    faults = [f"line {at}: item {at} is not a JSON object" for at in (1, len(messages) + 2)]
    assert [each.error for each in await agents.faults()] == faults
    assert [each.call for each in await agents.steps()] == ["c1", "c2", "c3"]


async def test_where_a_document_breaks_off_is_noted_once_it_stays_so(agents: ForeignAgents) -> None:
    said = [*asked(DIALECTS["gemini"]), *loop(DIALECTS["gemini"], 3)]
    path = write_document(agents, *said)
    whole = path.read_text()
    for end in (-60, -90):  # it is being written
        path.write_text(whole[:end])
        await agents.watch.look()
    assert await agents.faults() == []
    for _ in range(3):
        await agents.watch.look()
    (fault,) = await agents.faults()
    assert fault.part == "session file"
    assert "the document breaks off after item " in fault.error


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no session of a known program, or none yet"),
        ('{"trajectory": [{"action": "ls"}], "info": {}}', "`midwatch replay` reads files of swe"),
    ],
)
async def test_of_a_named_file_that_cannot_be_followed_it_says_so_once(
    agents: ForeignAgents, caplog: pytest.LogCaptureFixture, text: str, said: str
) -> None:
    path = agents.file("s1.traj")
    path.write_text(text)
    watch = agents.another_watch(path)
    for _ in range(2):
        assert not await watch.look()
    (line,) = caplog.messages
    assert line.startswith(str(path))
    assert said in line


async def test_a_prompt_alone_is_no_work_yet(agents: ForeignAgents) -> None:
    agents.write(SESSION, asked(CLAUDE))
    await agents.watch.look()
    assert await agents.attempts() == []


async def test_an_abandoned_session_goes_on_in_another_run(agents: ForeignAgents) -> None:
    agents.write(SESSION, [*asked(CLAUDE), *loop(CLAUDE, 1), *CLAUDE.said("Done.", NOON)])
    await agents.watch.look()
    agents.now += timedelta(minutes=61)
    await agents.watch.look()
    state = await agents.attempt()
    assert (state.lifecycle, state.transition.ending) == (Lifecycle.COMPLETED, Ending.UNCHECKED)
    agents.write(SESSION, [*CLAUDE.prompt("More.", NOON), *loop(CLAUDE, 1, first=2)])
    await agents.another_watch().look()
    first, second = await agents.attempts()
    assert (first.last_step, second.last_step) == (2, 1)
    assert second.lifecycle is Lifecycle.WORKING


@pytest.mark.parametrize(
    ("last", "steps"),
    [
        (CLAUDE.said("Found.", NOON), 3),
        (CLAUDE.prompt("[Request interrupted by user for tool use]", NOON), 2),
    ],
)
async def test_a_sub_agent_has_ended_once_its_turn_is_over_and_another_task_takes_up_the_rest(
    agents: ForeignAgents, journal: Journal, last: Lines, steps: int
) -> None:
    agents.write(SESSION, [*asked(CLAUDE), *loop(CLAUDE, 1)])
    agents.write_sub_agent([*loop(CLAUDE, 2), *last])
    await agents.watch.look()
    state = (await agents.attempts())[1]
    assert (state.status, state.transition.reason) == (AttemptStatus.ENDED, "its turn is over")
    agents.write_sub_agent([*CLAUDE.prompt("More.", NOON), *loop(CLAUDE, 1, first=3)])
    await agents.watch.look()
    agents.write_sub_agent(loop(CLAUDE, 1, first=4))
    await agents.another_watch().look()
    assert [each.last_step for each in await agents.attempts()] == [1, steps, 2]
    (run,) = await journal.runs()
    names = [each.name for each in await journal.tasks(run.id)]
    assert names == ["repo-s1", "repo-s1/agent-a1", "repo-s1/agent-a1/2"]


HOMES = Path("/repo/.midwatch"), Path("/var/lib/midwatch/nodes/vm")
WORKERS = [(str(folder_of(home, "r2", "fix", 1)), 0) for home in HOMES]


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize(
    ("cwd", "hours"), [*WORKERS, ("/repo", 3)], ids=["a worker's", "a node's", "old"]
)
async def test_a_session_of_a_worker_or_of_long_ago_is_followed_only_if_it_is_named(
    agents: ForeignAgents, cwd: str, hours: int, named: bool
) -> None:
    said = [*asked(CLAUDE), *loop(CLAUDE, 1)]
    agents.now -= timedelta(hours=hours)
    path = agents.write(SESSION, [{**each, "cwd": cwd} for each in said])
    agents.now += timedelta(hours=hours)
    await agents.another_watch(*[path] * named).look()
    assert [each.last_step for each in await agents.attempts()] == [1] * named


async def test_damage_is_recorded_once_and_costs_nothing_else(agents: ForeignAgents) -> None:
    path = agents.write(SESSION, [*asked(CLAUDE), *loop(CLAUDE, 1)])
    for first, damaged in ((2, b'\xff\n{"half":\n'), (3, b"[]\n")):
        with path.open("ab") as file:
            file.write(damaged)
        agents.write(SESSION, loop(CLAUDE, 1, first=first))
        await agents.another_watch().look()
    said = [each.error.partition(":")[0] for each in await agents.faults()]
    lines = path.read_bytes().splitlines()
    assert said == [f"line {lines.index(each) + 1}" for each in (b"\xff", b'{"half":', b"[]")]
    assert len(await agents.steps()) == 3


async def test_secrets_in_a_session_are_masked(agents: ForeignAgents) -> None:
    secret = "sk-ant-api03-" + "Ab1" * 31
    lines = [*asked(CLAUDE, f"Use {secret}"), *CLAUDE.called(f"curl -H {secret}", "c1")]
    agents.write(SESSION, [*lines, *CLAUDE.came("curl", "c1", f"no {secret}", 1)])
    await agents.watch.look()
    told = [repr(each) async for each in agents.journal.all_entries()]
    (run,) = await agents.journal.runs()
    told += [repr(each) for each in await agents.journal.tasks(run.id)]
    assert len(await agents.steps()) == 1
    assert not [each for each in told if secret in each]


async def test_what_cannot_reach_it_is_refused(agents: ForeignAgents, transcript: Path) -> None:
    state = await agents.attempt()
    assert "midwatch hook install claude-code" in out_of_reach(state, Action.NUDGE)
    assert out_of_reach(state, Action.ACKNOWLEDGE) == ""
    await agents.hook(hook("PreToolUse", transcript))
    state = await agents.attempt()
    assert [out_of_reach(state, each) for each in (Action.NUDGE, Action.STOP)] == ["", ""]
    assert "it can be guided and stopped from here" in out_of_reach(state, Action.RESTART)


async def write_watched_session(agents: ForeignAgents, *more: object) -> Path:
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


async def test_a_sub_agent_alone_begins_no_other_run(agents: ForeignAgents) -> None:
    path = await write_watched_session(agents)
    await agents.hook(hook("SessionEnd", path))
    agents.write_sub_agent(loop(CLAUDE, 1))
    await agents.another_watch().look()
    assert len(await agents.journal.runs()) == 1
    assert [each.last_step for each in await agents.attempts()] == [1, 1]


async def test_what_a_journal_did_not_take_is_read_again(location: str, tmp_path: Path) -> None:
    async with await Away.open(location) as journal:
        agents = ForeignAgents(journal, tmp_path / "home")
        await write_watched_session(agents)
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


async def test_a_session_that_another_follows_keeps_nobody_back(agents: ForeignAgents) -> None:
    for name in ("s1", "s2"):
        lines = [*asked(CLAUDE), *loop(CLAUDE, 1)]
        agents.write(SESSION.replace("s1", name), [{**e, "sessionId": name} for e in lines])
    await agents.watch.look()
    first = (await agents.attempts())[0]
    await agents.journal.claim(first.id, holder="another", at=agents.now)
    agents.now += timedelta(days=1)
    await agents.watch.look()
    assert [each.over for each in await agents.attempts()] == [False, True]


async def test_a_killed_agent_is_let_go_until_it_comes_back(agents: ForeignAgents) -> None:
    await write_watched_session(agents)
    agents.now += timedelta(days=1)
    await agents.watch.look()
    assert (await agents.attempt()).transition.ending is Ending.ERROR
    agents.now += timedelta(minutes=1)
    await agents.watch.look()
    assert agents.watch.sessions == ()
    agents.write(SESSION, loop(CLAUDE, 1, first=2))
    await agents.watch.look()
    assert [each.call for each in await agents.steps()] == ["c1", "c2"]


async def test_links_to_nowhere_and_pipes_are_none(agents: ForeignAgents, tmp_path: Path) -> None:
    path = agents.write("runs/s1.jsonl", [*asked(CLAUDE), *loop(CLAUDE, 1)])
    (path.parent / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    os.mkfifo(path.parent / "pipe.jsonl")
    await agents.another_watch(path.parent).look()
    assert (await agents.attempt()).last_step == 1


async def test_a_file_with_two_paths_is_followed_once(
    agents: ForeignAgents, tmp_path: Path
) -> None:
    await write_watched_session(agents, *CLAUDE.said("Done.", NOON))
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
async def test_what_two_hooks_are_told_counts_once(agents: ForeignAgents, action: Action) -> None:
    path = await write_watched_session(agents)
    await agents.say(action)
    replies = [await agents.hook(hook("PreToolUse", path)) for _ in range(2)]
    for reply in replies:
        assert "Look." in reply.text
        await agents.heard.note_delivery(reply)
    assert len(await agents.records(Delivery)) == 1


async def test_a_stop_after_the_end_does_not_end_what_follows(agents: ForeignAgents) -> None:
    path = await write_watched_session(agents)
    await agents.say(Action.STOP)
    reply = await agents.hook(hook("PreToolUse", path))
    await agents.hook(hook("SessionEnd", path))
    agents.write(SESSION, [*CLAUDE.prompt("Go on.", NOON), *loop(CLAUDE, 1, first=2)])
    await agents.watch.look()
    await agents.heard.note_delivery(reply)
    await agents.hook(hook("Stop", path))
    assert (await agents.attempts())[1].lifecycle is not Lifecycle.FAILED
