"""An agent is stuck while nobody looks: a phone says so, and what it says is enough to answer."""

import asyncio
import json
import re
import shlex
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Alert
from midwatch_tests.chromium import chromium
from midwatch_tests.harness import RunHarness
from midwatch_tests.model_server import ModelServer, looping, serving
from midwatch_tests.ports import LOOPBACK, free_port
from midwatch_tests.receivers import Receiver, webhook

pytestmark = pytest.mark.long

ANSWER = "usedecimals"
LIMIT = 5.0
"""Seconds from an alert in the journal to its message on the phone. 2.0 are `group_seconds`; on an
idle machine the rest takes 0.5, on one that is five times slower 2.5."""
CONFIG = """
    run: {{sandbox: off}}
    policy: {{ladder: [ask_operator, stop], table: [], person: {{timeout_minutes: 60}}}}
    notify: {{targets: {{phone: {{url: "{phone}"}}}}, link: "{link}"}}
"""
TASKS = """
    models: {{worker: {{name: "openai-chat:gpt-4o", base_url: "{url}"}}, supervisor: none}}
    tasks: [{{id: fix, goal: Fix it., acceptance: ["false"], budget: {{requests: 1000}}}}]
"""


@asynccontextmanager
async def stuck_run(
    harness: RunHarness, link: str = ""
) -> AsyncGenerator[tuple[Receiver, ModelServer]]:
    """A run whose worker turns in circles; the phone, and the worker's model."""
    async with webhook() as phone, serving(*looping(1000)) as model:
        (harness.folder / "midwatch.yaml").write_text(CONFIG.format(phone=phone.ntfy, link=link))
        (harness.folder / "tasks.yaml").write_text(TASKS.format(url=model.url))
        run = await harness.start("run", "tasks.yaml", "--headless")
        try:
            yield phone, model
        finally:
            await end_run(run)


async def end_run(process: Process) -> None:
    if process.returncode is None:
        process.terminate()
    await asyncio.wait_for(process.communicate(), 300)


def message_texts(phone: Receiver) -> list[str]:
    return [json.loads(body)["message"] for body in phone.bodies]


async def wait_for_message(harness: RunHarness, phone: Receiver, pattern: str) -> str:
    """What the pattern finds in the first message that has it."""
    found = list[str]()

    def has_match() -> bool:
        found.extend(each for text in message_texts(phone) for each in re.findall(pattern, text))
        return bool(found)

    await harness.until(has_match)
    return found[0]


async def expect_answer(harness: RunHarness, model: ModelServer, before: int) -> None:
    """The next request has the answer in its last messages, and no earlier one has."""
    await harness.until(lambda: len(model.asked) > before)
    assert not any(ANSWER in json.dumps(each) for each in model.asked[:before])
    assert ANSWER in json.dumps(model.asked[before]["messages"][-2:])


async def first_alert(journal: Journal) -> datetime:
    entries = [each async for each in journal.all_entries(kinds=(Alert,))]
    return next(
        each.at
        for each in entries
        if isinstance(each.record, Alert) and each.record.firing and each.record.severity.alarm
    )


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated")  # Apprise imports it
async def test_the_phone_has_the_alert_in_time_and_its_command_answers_the_agent(
    harness: RunHarness,
) -> None:
    async with stuck_run(harness) as (phone, model):
        command = await wait_for_message(harness, phone, r'midwatch tell fix --run 1 "your answer"')
        before = len(model.asked)
        words = shlex.split(command.replace("your answer", ANSWER))
        telling = await harness.start(*words[1:])
        out, errors = await asyncio.wait_for(telling.communicate(), 300)
        assert telling.returncode == 0, (out, errors)
        await expect_answer(harness, model, before)
        delay = (phone.times[0] - await first_alert(harness.journal)).total_seconds()
    assert "firing warning" in message_texts(phone)[0]
    assert delay < LIMIT


async def test_the_link_opens_the_attempt_where_the_answer_is_typed(
    harness: RunHarness, tmp_path: Path
) -> None:
    port = free_port()
    link = f"http://{LOOPBACK}:{port}/attempt/{{attempt}}"
    async with (
        chromium(tmp_path / "profile") as browser,
        stuck_run(harness, link) as (phone, model),
    ):
        serving = await harness.start("watch", "--web", "--port", str(port))
        try:
            assert serving.stdout is not None
            address = (await serving.stdout.readline()).split()[-1].decode()
            await browser.open(address)
            await browser.until(lambda rows: "fix#1" in rows)
            opened = await wait_for_message(
                harness, phone, rf"http://{LOOPBACK}:{port}/attempt/\d+"
            )
            await wait_for_message(harness, phone, "waits for an answer")
            before = len(model.asked)
            await browser.open("about:blank")
            await browser.evaluate(f"location.href = {json.dumps(opened)}")
            await browser.until(lambda rows: "Timeline" in rows and "fix#1" in rows)
            await browser.press("i")
            await browser.until(lambda rows: "Guidance for fix#1" in rows)
            await browser.press(*ANSWER, "Enter")
            await expect_answer(harness, model, before)
        finally:
            await end_run(serving)
