"""A command that was given a journal names it in the commands that it tells."""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from midwatch_monitor.command_hint import naming_journal
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Action, Record
from midwatch_stage import factories as make
from midwatch_stage.command import new_attempt, new_task, write
from midwatch_supervisor.cli.run.conduct import print_end

Say = Callable[..., Awaitable[tuple[int, str, str]]]
HINT = re.compile(r"`(midwatch [^`]+)`|^  (?:answer|go on|look|take) +(midwatch .+)$", re.MULTILINE)
HELD = make.intervention(Action.RESTART, needs_approval=True)


@pytest.mark.parametrize(
    ("records", "words", "told"),
    [
        ((HELD,), ("status",), "approve 4"),
        ((HELD,), ("show", "fix"), "approve 4"),
        ((make.ended(),), ("tell", "fix", "More."), ""),
        ((), ("resume", "--run", "7"), "status --all"),
        ((), ("lessons", "show", "9"), "lessons list --all"),
        ((), ("facts", "approve"), "facts list"),
        ((), ("cancel", "fix#1"), "tell fix#1 --stop"),
        ((), ("watch",), "status"),
    ],
)
async def test_whatever_is_told_names_it(
    records: tuple[Record, ...],
    words: tuple[str, ...],
    told: str,
    say: Say,
    journal: Journal,
    journal_file: Path,
) -> None:
    attempt = await new_attempt(journal, await new_task(journal))
    await write(journal, attempt, attempt.started_at, make.transition(), *records)
    _, out, errors = await say(*words, "--journal", str(journal_file))
    hints = [first or second for first, second in HINT.findall(out + errors)]
    assert [each for each in hints if not each.endswith(f" --journal {journal_file}")] == []
    assert not told or f"midwatch {told} --journal {journal_file}" in hints


async def test_the_line_of_the_exit_code_names_it_too(capsys: pytest.CaptureFixture[str]) -> None:
    with naming_journal("x.db"):
        await print_end([], 3)
    told = "then continue with `midwatch resume --journal x.db`\n"
    assert capsys.readouterr().out.endswith(told)
