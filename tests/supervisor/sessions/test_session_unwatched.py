"""What a person says to a session, while somebody watches it and when nobody does any more."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from datetime import timedelta
from pathlib import Path

import pytest

from midwatch_monitor.records import Action, Commit, Lifecycle
from midwatch_monitor.state.attempt_details import AttemptStatus
from midwatch_supervisor.cli.mcp_server.reading import ReadingTools
from midwatch_supervisor.present.lookup import task_state
from midwatch_supervisor.present.waiting import answer_commands
from midwatch_supervisor.sessions.session_watch import listen_for_hooks
from midwatch_supervisor.tui.state.row import Need
from midwatch_tests.command import ask, midwatch, read
from midwatch_tests.console import console_on
from midwatch_tests.factories import delivery, draft, intervention
from midwatch_tests.foreign import FILES, ForeignAgents, asked, hook, loop
from midwatch_tests.sessions import DIALECTS

CLAUDE, SESSION = DIALECTS["claude-code"], FILES["claude-code"]
Capture = pytest.CaptureFixture[str]

pytestmark = pytest.mark.usefixtures("by_ada")


@pytest.fixture
async def hooked_agents(agents: ForeignAgents, transcript: Path) -> ForeignAgents:
    """With a session that is watched and has its hooks."""
    await agents.hook(hook("PreToolUse", transcript))
    return agents


@pytest.mark.usefixtures("hooked_agents")
async def test_a_watched_session_hears_at_its_next_step_what_it_is_told(capsys: Capture) -> None:
    (told,) = await ask(capsys, "status")
    assert (told["status"], told["lifecycle"], told["stands"]) == ("working",) * 3
    for words in (("tell", "repo-s1", "Read the error."), ("cancel", "repo-s1")):
        (said,) = await read(capsys, *words)
        assert said.endswith("; the agent is told at its next step")
    (told,) = await ask(capsys, "status")
    assert told["stands"] == "stopping…"
    assert "delivery of stop" in told["waits_for"]  # not of what was said first


async def test_what_is_told_waits_for_attach(hooked_agents: ForeignAgents, capsys: Capture) -> None:
    hooked_agents.watch.close()
    (said,) = await read(capsys, "tell", "repo-s1", "--stop")
    assert said.endswith(
        "; nothing is watching it now: it waits for `midwatch attach` and the agent's next step"
    )
    (told,) = await ask(capsys, "status")
    assert (told["interrupted"], told["waits_for"]) == (
        True,
        "`midwatch attach`: nothing is watching it",
    )
    await hooked_agents.another_watch().look()
    (told,) = await ask(capsys, "status")
    assert (told["interrupted"], told["stands"]) == (False, "stopping…")
    reply = await hooked_agents.hook(hook("PreToolUse", hooked_agents.file(SESSION)))
    assert "stopped by ada" in reply.text


async def test_a_canceled_session_begins_anew(
    hooked_agents: ForeignAgents, capsys: Capture
) -> None:
    hooked_agents.watch.close()
    (said,) = await read(capsys, "cancel", "repo-s1")
    assert said == "canceled repo-s1; nothing is watching it, so its agent is not told"
    hooked_agents.write(SESSION, loop(CLAUDE, 1, first=3))
    await hooked_agents.another_watch().look()
    first, second = await hooked_agents.attempts()
    assert (first.lifecycle, second.lifecycle) == (Lifecycle.CANCELED, Lifecycle.WORKING)


@pytest.mark.usefixtures("transcript")
async def test_no_stop_is_sent_to_a_session_that_is_only_watched(capsys: Capture) -> None:
    assert await midwatch("cancel", "repo-s1") == 1
    said = capsys.readouterr().out
    assert said == "repo-s1 is only watched: end it where it was started\n"


@pytest.mark.parametrize("watched", [True, False])
async def test_the_console_says_when_it_is_stopped(
    hooked_agents: ForeignAgents, watched: bool
) -> None:
    if not watched:
        hooked_agents.watch.close()
    waits = "nothing is watching it now: it waits for `midwatch attach` and the agent's next step"
    async with console_on(hooked_agents.journal) as ui:
        await ui.press("x")
        facts = ui.text(".quote Static")
        await ui.press("y")
        (told,) = ui.app.told
    assert "told to end its turn at its next step" in facts
    assert (f"N{waits[1:]}" in facts) is not watched
    assert told == "repo-s1#1: stop sent" + ("" if watched else f"; {waits}")


@pytest.mark.parametrize("hooks", [True, False])
async def test_a_question_about_a_session_needs_a_person_until_its_alert_was_seen(
    agents: ForeignAgents, capsys: Capture, hooks: bool
) -> None:
    path = agents.write(SESSION, [*asked(CLAUDE), *loop(CLAUDE, 6)])
    await agents.watch.look()
    if hooks:
        await agents.hook(hook("PreToolUse", path))
    state = await agents.attempt()
    asks = intervention(
        Action.ASK_OPERATOR, message="What now?", answers=tuple(each.key for each in state.firing)
    )
    said = draft(asks, at=agents.now, task=state.task, attempt=state.id)
    await agents.journal.commit(Commit(drafts=(said,)))
    await agents.watch.look()
    (told,) = await ask(capsys, "status")
    where = "" if hooks else " where it runs (or press `c` in `midwatch watch`)"
    assert (told["stands"], told["waits_for"]) == ("working", f"an answer{where}: What now?")
    assert f'"waits_for": "an answer{where}: What now?"' in await ReadingTools(None).waiting()
    tasks = await task_state(agents.journal, await agents.journal.task(state.task))
    told_how = 'midwatch tell repo-s1 "your answer"' if hooks else "midwatch watch"
    assert answer_commands(tasks) == (told_how,)
    async with console_on(agents.journal) as ui:
        (row,) = ui.app.board.attention()
        assert row.need is Need.ANSWER
        await ui.press("c")
        await ui.written()
    seen = delivery(await agents.journal.last_id())  # which a monitor says
    stamped = draft(seen, at=agents.now, task=state.task, attempt=state.id)
    await agents.journal.commit(Commit(drafts=(stamped,)))
    (told,) = await ask(capsys, "status")
    assert told["waits_for"] is None
    assert "(nothing)" in await ReadingTools(None).waiting()


HOOK = "from midwatch_agents.hooks.client import run_hook; run_hook('claude-code')"
AGENT = """\
for call in 1 2; do (printf '%s' "$EVENT" | "$PYTHON" -c "$HOOK"; true); done
echo
read -r forever
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows it")
@pytest.mark.parametrize(
    ("told", "status"),
    [(Action.STOP, AttemptStatus.CANCELED), (Action.NUDGE, AttemptStatus.FAILED)],
)
async def test_an_agent_that_is_killed_has_stopped_if_it_was_told_to_or_else_failed(
    agents: ForeignAgents, transcript: Path, folder: Path, told: Action, status: AttemptStatus
) -> None:
    await agents.say(told)
    event = json.dumps({"session_id": "s1", **hook("PreToolUse", transcript)})
    own = {"MIDWATCH_STATE": str(folder), "EVENT": event, "PYTHON": sys.executable, "HOOK": HOOK}
    async with listen_for_hooks(folder / "hook.sock", agents.watch):
        agent = await asyncio.create_subprocess_exec(
            "sh", "-c", AGENT, stdin=PIPE, stdout=PIPE, env=os.environ | own
        )
        assert agent.stdout is not None
        denied = (await agent.stdout.readline()).count(b'"deny"')
        assert denied == (2 if told is Action.STOP else 0)
    agents.now += timedelta(minutes=20)
    await agents.watch.look()
    assert not (await agents.attempt()).over
    agent.kill()
    await agent.wait()
    await agents.watch.look()
    state = await agents.attempt()
    assert (state.status, state.last_at) == (status, agents.now)
