"""The same work gives the same alarms, whichever way an agent is watched."""

import json
from pathlib import Path

from midwatch_monitor.config.policy import PersonSettings
from midwatch_monitor.config.settings import Mode
from midwatch_monitor.records import Alert, Step
from midwatch_tests.fake_agents import GREETS, fake_in
from midwatch_tests.foreign import FILES, ForeignAgents, asked
from midwatch_tests.harness import RunHarness
from midwatch_tests.sessions import DIALECTS

CLAUDE = DIALECTS["claude-code"]
COMMAND, TIMES = "echo boom; exit 2", 7
OFFERED = "missed_checkpoint"
"""The rule about a tool that only a worker has."""
Summary = tuple[list[int | None], list[tuple[str, int, str, str]]]


async def test_by_its_hooks_by_its_session_file_and_over_acp(
    agents: ForeignAgents, harness: RunHarness, tmp_path: Path
) -> None:
    # Nothing is said to the worker, as nothing can be said to a session that is only read.
    harness.set(mode=Mode.ADVISE, policy={"person": PersonSettings(hold_after=0)})
    acts = [{"run": COMMAND}] * TIMES
    assert await harness.run(fake_in(tmp_path)(*acts, GREETS)) == 0
    over_acp = summary(await harness.told(Step, attempt=1), await harness.told(Alert, attempt=1))

    lines = asked(CLAUDE)
    for n in range(TIMES):
        call = {"tool_use_id": f"c{n}", "tool_name": "Bash", "tool_input": {"command": COMMAND}}
        failed = {**call, "error": "Exit code 2\nboom"}
        await agents.hook({"hook_event_name": "PreToolUse", **call})
        await agents.hook({"hook_event_name": "PostToolUseFailure", **failed})
        lines += CLAUDE.called(COMMAND, f"c{n}") + CLAUDE.came(COMMAND, f"c{n}", "boom", 2)
    agents.write(
        FILES["claude-code"].replace("s1", "s2"), [{**e, "sessionId": "s2"} for e in lines]
    )
    await agents.watch.look()
    for state in (await agents.attempts())[1:]:
        steps = await harness.told(Step, attempt=state.id)
        alerts = await harness.told(Alert, attempt=state.id)
        assert summary(steps, alerts) == over_acp
    assert len(await agents.attempts()) == 3
    assert "error_streak" in json.dumps(over_acp)


def summary(steps: list[Step], alerts: list[Alert]) -> Summary:
    """The exit codes of the command, and the alarms while it was repeated."""
    return (
        [each.exit_code for each in steps if COMMAND in each.args],
        [
            (each.key.rule, each.step, each.state.value, each.severity.value)
            for each in alerts
            if each.key.rule != OFFERED and each.step <= TIMES
        ],
    )
