"""An attempt whose own history cannot be read does not go on with a gap in it."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from pydantic_ai import RunContext

from midwatch_agents.scripted import Call, Phase, Script, Turn
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.errors import JournalCorruptError, JournalTooNewError
from midwatch_monitor.records import AttemptTransition, Ending, Lifecycle
from midwatch_stage.harness import RunHarness


async def work(ctx: RunContext[object]) -> str:
    """Leave a file, and wait until there is a file `go` above the workspace."""
    folder = Path(await ctx.workspace.working_dir())
    (folder / "work.txt").write_text("done")
    nothing = LocalBus().subscribe()
    while not (folder.parents[3] / "go").exists():
        await nothing.wait(0.02)
    return "done"


def script_for(role: Role, key: str) -> Script:
    turn, done = Turn(calls=(Call(tool="work"),)), Turn(say="Done.")
    return Script(phases=(Phase(turns=(turn, done)),))


TASKS = f"""
models: {{worker: "scripted:{__name__}@0", supervisor: none}}
workers: {{clerk: {{kind: task, tools: ["{__name__}:work"]}}}}
tasks: [{{id: fix, goal: Fix it., acceptance: ["test -e work.txt"], max_attempts: 1}}]
"""


def break_rows(harness: RunHarness, statement: str) -> None:
    with closing(sqlite3.connect(harness.journal.name)) as connection, connection:
        assert connection.execute(statement).rowcount


async def interrupted(harness: RunHarness) -> None:
    """A run whose one attempt was at work when it was left."""
    run = asyncio.create_task(harness.run(TASKS))
    await harness.until((harness.home / "work/r1/fix-1/work.txt").exists)
    run.cancel()
    await asyncio.wait({run})
    (harness.folder / "go").touch()


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        (
            "UPDATE message SET body = x'0000' WHERE idx = 0",
            "message 0 of attempt 1 cannot be read: a history in the journal is damaged: ",
        ),
        (
            "UPDATE message SET body = (SELECT x'789c030000000001') WHERE idx = 0",
            "its history holds no messages (1 error)",
        ),
        (
            "INSERT INTO result (attempt, call, body) VALUES (1, 'c', x'0000')",
            "result c of attempt 1 cannot be read: a history in the journal is damaged: ",
        ),
    ],
)
async def test_an_attempt_whose_history_is_broken_fails_and_says_which_row_it_is(
    harness: RunHarness, statement: str, why: str
) -> None:
    await interrupted(harness)
    break_rows(harness, statement)
    assert await harness.resume() == 1
    last = (await harness.told(AttemptTransition, attempt=1))[-1]
    assert (last.lifecycle, last.ending) == (Lifecycle.FAILED, Ending.ERROR)
    assert last.reason.startswith(f"the attempt cannot go on where it was: {why}")


@pytest.mark.parametrize("kind", ["step", "change", "attempt_state", "alert"])
async def test_an_attempt_with_entries_that_cannot_be_read_goes_on(
    harness: RunHarness, kind: str
) -> None:
    await interrupted(harness)
    with closing(sqlite3.connect(harness.journal.name)) as connection, connection:
        connection.execute("UPDATE entry SET body = '{' WHERE kind = ?", (kind,))
    assert await harness.resume() == 0


async def test_a_run_whose_task_or_settings_cannot_be_read_says_so(harness: RunHarness) -> None:
    await interrupted(harness)
    break_rows(harness, "UPDATE task SET spec = 'my secret'")
    with pytest.raises(JournalCorruptError, match=r"^cannot read what task 1 \('fix'\) of run 1"):
        await harness.resume()
    break_rows(harness, "UPDATE run SET settings = 'my secret'")
    with pytest.raises(JournalTooNewError, match=r"^cannot read the settings of run 1$"):
        await harness.resume()
