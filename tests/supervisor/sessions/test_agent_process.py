"""Whether the agent of a session still runs, as the processes of its hooks show."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from datetime import timedelta
from pathlib import Path

import pytest

from midwatch_monitor.records import Action, Lifecycle
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
async def test_an_agent_that_was_told_to_stop_and_is_killed_has_stopped(
    agents: ForeignAgents, folder: Path
) -> None:
    path = agents.write(SESSION, [*asked(CLAUDE), *loop(CLAUDE, 2)])
    await agents.watch.look()
    await agents.say(Action.STOP)
    event = json.dumps({"session_id": "s1", **hook("PreToolUse", path)})
    own = {"MIDWATCH_STATE": str(folder), "EVENT": event, "PYTHON": sys.executable, "HOOK": HOOK}
    async with listen_for_hooks(folder / "hook.sock", agents.watch):
        agent = await asyncio.create_subprocess_exec(
            "sh", "-c", AGENT, stdin=PIPE, stdout=PIPE, env=os.environ | own
        )
        assert agent.stdout is not None
        assert (await agent.stdout.readline()).count(b'"deny"') == 2
    agents.now += timedelta(seconds=10)
    await agents.watch.look()
    assert not (await agents.attempt()).over
    agent.kill()
    await agent.wait()
    await agents.watch.look()
    assert (await agents.attempt()).lifecycle is Lifecycle.CANCELED
