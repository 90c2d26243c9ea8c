"""The public surface as its users write it: checked by the type checker, never run."""

from pathlib import Path
from typing import assert_type

from pydantic_ai import Agent

from midwatch_monitor.config.settings import Mode, Settings
from midwatch_monitor.config.tasks import TaskFile
from midwatch_monitor.journal import Journal
from midwatch_monitor.judge import Judge
from midwatch_monitor.records import Entry, Judgement, Step, StepKind
from midwatch_tools import Watch


def an_agent_is_watched_by_one_capability() -> Agent[None, str]:
    return Agent("test", capabilities=[Watch()])


def a_watch_may_be_told_where_the_work_and_the_journal_are() -> Watch:
    return Watch(name="nightly", root=Path(), journal="journal.db", settings=Settings())


def rules_are_judged_without_a_journal() -> None:
    judge = Judge(Settings().rules)
    assert_type(judge.observe(Step(number=1, kind=StepKind.MESSAGE)), Judgement)


async def a_journal_is_read_without_being_changed(path: Path) -> None:
    async with await Journal.open_to_read(path) as journal:
        assert_type(await journal.entries(), list[Entry])


def configuration_is_typed(file: TaskFile) -> None:
    assert_type(Settings().mode, Mode)
    assert_type(file.tasks[0].depends_on, tuple[str, ...])
