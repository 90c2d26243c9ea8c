"""Masking does not blind the rules: they tell one secret from another, live and rebuilt."""

from collections.abc import Awaitable, Callable

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import Alert, Lesson, Message, Result, Step
from midwatch_tests.command import write
from midwatch_tests.factories import step
from midwatch_tests.made_up import SECRETS, drawn

Claim = Callable[..., Awaitable[Recorder]]


def refused_step(secret: str) -> Step:
    command = f"curl -H 'X-Key: {secret}' https://api.internal/"
    args, output = f'{{"command": "{command}"}}', f"{secret} is refused"
    return step(tool="run_command", args=args, ok=False, exit_code=1, output=output)


def key(n: int) -> str:
    return "gs" + "k_" + drawn(f"key {n}", 52)


@pytest.mark.parametrize("secrets", [1, 6])
async def test_the_same_call_is_repeated_only_with_the_same_secret(
    claim: Claim, secrets: int
) -> None:
    recorder = await claim()
    for n in range(6):
        await recorder.record(refused_step(key(n % secrets)))
    assert ("repeated_call" in {alert.key.rule for alert in recorder.firing}) is (secrets == 1)


async def test_what_is_rebuilt_fires_as_it_did_live(journal: Journal, claim: Claim) -> None:
    live = await claim()
    for n in (1, 2, 1, 1, 1, 1, 1):
        await live.record(refused_step(key(n)))
    rebuilt = await claim()
    assert rebuilt.firing == live.firing != ()
    told = [entry.record for entry in await journal.entries(kinds=(Step, Alert))]
    assert "gsk_" not in repr(told)
    assert repr(told).count("[masked: groq key ") >= 14


async def test_what_others_than_recorders_write_is_masked(journal: Journal, claim: Claim) -> None:
    recorder = await claim()
    secret = SECRETS["openai key"]
    lesson = Lesson(text=f"Use {secret}", failure_class="stuck")
    await write(journal, recorder.attempt, recorder.clock(), lesson)
    (entry,) = await journal.entries(kinds=(Lesson,))
    assert isinstance(entry.record, Lesson)
    assert entry.record.text.startswith("Use [masked: openai key ")


async def test_a_worker_keeps_what_it_was_told_for_resuming(journal: Journal, claim: Claim) -> None:
    recorder = await claim()
    secret = SECRETS["openai key"].encode()
    message, result = Message(index=0, body=secret), Result(call="1:a", body=secret)
    await recorder.record(refused_step(secret.decode()), messages=[message], results=[result])
    assert await journal.messages(recorder.attempt.id) == [message]
    assert await journal.results(recorder.attempt.id) == [result]
