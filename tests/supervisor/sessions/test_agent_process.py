"""Whether the agent of a session still runs, as the processes of its hooks show."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from datetime import timedelta
from pathlib import Path

import pytest

from midwatch_monitor.records import Action
from midwatch_monitor.state.attempt_details import AttemptStatus
from midwatch_stage.foreign import FILES, ForeignAgents, asked, hook, loop
from midwatch_stage.sessions import DIALECTS
from midwatch_supervisor.sessions.session_watch import listen_for_hooks

CLAUDE, SESSION = DIALECTS["claude-code"], FILES["claude-code"]
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
    agents: ForeignAgents, folder: Path, told: Action, status: AttemptStatus
) -> None:
    path = agents.write(SESSION, [*asked(CLAUDE), *loop(CLAUDE, 2)])
    await agents.watch.look()
    await agents.say(told)
    event = json.dumps({"session_id": "s1", **hook("PreToolUse", path)})
    own = {"MIDWATCH_STATE": str(folder), "EVENT": event, "PYTHON": sys.executable, "HOOK": HOOK}
    async with listen_for_hooks(folder / "hook.sock", agents.watch):
        agent = await asyncio.create_subprocess_exec(
            "sh", "-c", AGENT, stdin=PIPE, stdout=PIPE, env=os.environ | own
        )
        assert agent.stdout is not None
        denied = (await agent.stdout.readline()).count(b'"deny"')
        assert denied == (2 if told is Action.STOP else 0)
    agents.now += timedelta(seconds=10)
    await agents.watch.look()
    assert not (await agents.attempt()).over
    agent.kill()
    await agent.wait()
    await agents.watch.look()
    assert (await agents.attempt()).status is status
