"""A process that is killed at any moment of an attempt loses nothing and repeats nothing."""

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest, UserPromptPart

from midwatch_monitor import records as r
from midwatch_monitor.journal import Journal
from midwatch_tests.watched import uncoded

DRIVER = Path(__file__).with_name("kill_driver.py")
RECORDS = 17
"""Commits of the recorder in an attempt that nobody kills."""
WHERE = ["decision", "record-6"]
"""What is tried always; in CI also the moments between."""
BETWEEN = ["task_state", "outcome", *(f"record-{n}" for n in range(1, RECORDS + 1))]
KEPT = (r.AttemptTransition, r.Decision, r.OutcomeReport, r.TaskTransition, r.Step)

Work = Callable[[Path, str], int]


@dataclass(frozen=True, kw_only=True)
class AttemptHistory:
    """All that must be the same however often the process was killed."""

    records: dict[type[r.Record], list[r.Record]]
    """By kind: who of the monitor and the runner speaks first at the end may vary."""
    spent: list[float]
    """Requests, tokens and US dollars in the end."""
    prompts: list[str]
    """What the worker was told, in its own history."""
    requests: str
    acts: str
    result: str


@pytest.fixture(scope="module")
def work() -> Iterator[Work]:
    """Begins or resumes the run of a folder in a process of its own; answers its exit code."""
    with subprocess.Popen(
        [sys.executable, str(DRIVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as driver:
        assert driver.stdin is not None
        assert driver.stdout is not None
        said, heard = driver.stdin, driver.stdout

        def answer(folder: Path, where: str) -> int:
            print(folder, where, file=said, flush=True)
            return int(heard.readline())

        yield answer


@pytest.fixture(scope="module")
def uninterrupted_folder(work: Work, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("uninterrupted")
    assert work(folder, "never") == 0
    return folder


async def read_history(folder: Path) -> AttemptHistory:
    async with await Journal.open_to_read(folder / "journal.db") as journal:
        records = [entry.record for entry in await journal.entries()]
        messages = await journal.messages(1)
    budgets = [each.budget for each in records if isinstance(each, r.Change) and each.budget]
    last = budgets[-1]
    return AttemptHistory(
        records={
            kind: [comparable_record(each) for each in records if type(each) is kind]
            for kind in KEPT
        },
        spent=[last.requests.used, last.tokens.used, last.cost_usd.used],
        prompts=[text for each in messages for text in prompts(each.body)],
        requests=(folder / "requests.log").read_text(),
        acts=(folder / "acts.log").read_text(),
        result=folder.joinpath("home", "work", "r1", "fix-1", "out.txt").read_text(),
    )


def comparable_record(record: r.Record) -> r.Record:
    """The record without its time, and without the id that depends on who wrote first."""
    if isinstance(record, r.OutcomeReport):
        return replace(record, intervention=0)
    return replace(record, at=None) if isinstance(record, r.Step) else record


def prompts(body: bytes) -> list[str]:
    return [
        re.sub(r"#\d+", "#N", uncoded(str(part.content)))
        for message in ModelMessagesTypeAdapter.validate_json(body)
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, UserPromptPart)
    ]


async def test_the_attempt_holds_all_that_may_be_lost(uninterrupted_folder: Path) -> None:
    whole = await read_history(uninterrupted_folder)
    assert whole.requests.splitlines() == [f"request {n}" for n in range(1, 8)]
    assert whole.acts.splitlines() == ["one", "two", "three"]
    assert sum("[midwatch #N from your policy]" in text for text in whole.prompts) == 1
    assert {kind: len(whole.records[kind]) for kind in (r.Decision, r.OutcomeReport, r.Step)} == {
        r.Decision: 1,
        r.OutcomeReport: 1,
        r.Step: 8,
    }


def test_an_attempt_has_no_more_commits_than_are_tried_here(work: Work, tmp_path: Path) -> None:
    assert work(tmp_path, f"record-{RECORDS + 1}") == 0


@pytest.mark.parametrize(
    "where",
    [
        *WHERE,
        *(pytest.param(each, marks=pytest.mark.matrix) for each in BETWEEN if each not in WHERE),
    ],
)
async def test_a_killed_attempt_ends_as_if_nothing_had_happened(
    where: str, work: Work, uninterrupted_folder: Path, tmp_path: Path
) -> None:
    assert work(tmp_path, where) == -signal.SIGKILL
    assert work(tmp_path, "never") == 0
    assert await read_history(tmp_path) == await read_history(uninterrupted_folder)
    await prove_one_delivery(tmp_path)


async def prove_one_delivery(folder: Path) -> None:
    async with await Journal.open_to_read(folder / "journal.db") as journal:
        issued = [entry.id for entry in await journal.entries(kinds=(r.Intervention,))]
        stamps = [entry.record for entry in await journal.entries(kinds=(r.Delivery,))]
    assert stamps == [r.Delivery(intervention=issued[0], state=r.DeliveryState.DELIVERED, step=5)]
    assert len(issued) == 1
