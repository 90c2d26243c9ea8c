"""People are told once, whoever reads the journal, and a dead receiver is nobody's trouble."""

import asyncio
import hashlib
import hmac
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.notify import NotifySettings
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import (
    Action,
    AlertKey,
    AttemptTransition,
    DeliveryState,
    Fault,
    Keeper,
    Lifecycle,
    Notified,
)
from midwatch_stage import factories as make
from midwatch_stage.ports import LOOPBACK, free_port
from midwatch_stage.receivers import webhook
from midwatch_stage.watched import SETTINGS, Fleet
from midwatch_supervisor.notify.notifier import notifying
from midwatch_supervisor.notify.sending import senders_of

SECRET = {"HOOK": "key"}
QUESTION = make.intervention(Action.ASK_OPERATOR, message="May I delete plan.py?")


def settings_of(url: str, **fields: object) -> NotifySettings:
    target = {"webhook": url, "secret_env": "HOOK", **fields}
    return NotifySettings.model_validate({"targets": {"team": target}, "group_seconds": 0.2})


@pytest.fixture
def fleet(journal: Journal, location: str) -> Fleet:
    return Fleet(journal, location)


@asynccontextmanager
async def telling(fleet: Fleet, settings: NotifySettings) -> AsyncGenerator[None]:
    """A process that tells what run 1 says."""
    async with notifying(
        fleet.journal,
        run=1,
        settings=settings,
        senders=senders_of(settings, SECRET),
        bus=LocalBus(),
        poll_seconds=0.02,
        clock=lambda: fleet.now,
    ):
        yield


async def ask(recorder: Recorder) -> None:
    """Let the attempt wait for an answer."""
    (entry,) = await recorder.record(QUESTION)
    parked = AttemptTransition(lifecycle=Lifecycle.INPUT_REQUIRED)
    await recorder.record(make.delivery(entry.id, DeliveryState.DELIVERED), parked)


async def alarm(recorder: Recorder) -> None:
    key = AlertKey(rule="cycle", subject="plan.py")
    await recorder.record(make.alert(key=key, summary="plan.py again"))


async def test_an_alert_and_a_question_are_one_signed_message_without_any_content(
    fleet: Fleet,
) -> None:
    recorder = await fleet.begin(keeper=Keeper.PROCESS)
    async with webhook() as receiver, telling(fleet, settings_of(receiver.url)):
        await alarm(recorder)
        await ask(recorder)
        await fleet.until_told(Notified)
    (body,) = receiver.bodies
    signed = hmac.new(b"key", body, hashlib.sha256).hexdigest()
    assert receiver.signatures == [f"sha256={signed}"]
    assert [each["text"] for each in receiver.items] == [
        "firing warning cycle",
        "waits for an answer",
    ]
    assert receiver.items[1]["commands"] == ['midwatch tell fix "your answer"']
    assert receiver.items[1]["look"] == "midwatch show 1"
    assert b"plan.py" not in body


async def test_who_wants_the_content_gets_it_without_secrets(fleet: Fleet) -> None:
    recorder = await fleet.begin(keeper=Keeper.PROCESS)
    async with webhook() as receiver, telling(fleet, settings_of(receiver.url, content=True)):
        key = AlertKey(rule="cycle", subject="token=ghp_" + "a1B2" * 9)
        await recorder.record(make.alert(key=key, summary="again"))
    (item,) = receiver.items
    assert "again" in item["text"]
    assert "[masked: " in item["text"]


async def test_a_process_that_is_started_again_does_not_repeat_it(fleet: Fleet) -> None:
    recorder = await fleet.begin(keeper=Keeper.PROCESS)
    await ask(recorder)
    async with webhook() as receiver:
        for _ in range(2):
            async with telling(fleet, settings_of(receiver.url)):
                await fleet.until_told(Notified)
        assert len(receiver.items) == 1
        fleet.ahead = timedelta(minutes=31)
        async with telling(fleet, settings_of(receiver.url)):
            await fleet.until_told(Notified, 2)
    assert [each["kind"] for each in receiver.items] == ["waiting", "waiting"]


async def test_who_does_not_answer_is_said_once_and_the_rest_is_told_once_he_does(
    fleet: Fleet,
) -> None:
    recorder = await fleet.begin(keeper=Keeper.PROCESS)
    await alarm(recorder)
    nobody = settings_of(f"http://{LOOPBACK}:{free_port()}/")
    for _ in range(2):
        async with telling(fleet, nobody):
            await fleet.until_told(Fault)
    assert [each.part for each in await fleet.records(Fault)] == ["message to team"]
    async with webhook() as receiver, telling(fleet, settings_of(receiver.url)):
        await fleet.until_told(Notified)
    assert len(receiver.items) == 1


async def test_a_receiver_that_refuses_does_not_hold_up_another(fleet: Fleet) -> None:
    recorder = await fleet.begin(keeper=Keeper.PROCESS)
    async with webhook() as refuses, webhook() as takes:
        refuses.status = 503
        given = settings_of(refuses.url).targets | {"other": settings_of(takes.url).targets["team"]}
        settings = NotifySettings(targets=given, group_seconds=0)
        async with telling(fleet, settings):
            await alarm(recorder)
            await fleet.until_told(Notified)
            assert await fleet.records(Fault) == []
    (fault,) = await fleet.records(Fault)
    assert fault.error == "the webhook answered HTTP 503"
    assert (len(takes.bodies), len(refuses.bodies) >= 2) == (1, True)


async def test_of_two_monitors_one_tells_and_the_other_takes_over(fleet: Fleet) -> None:
    recorder = await fleet.begin()
    async with webhook() as receiver:
        settings = SETTINGS.model_copy(update={"notify": settings_of(receiver.url)})
        senders = senders_of(settings.notify, SECRET)
        first = fleet.keeping("a", settings=settings, senders=senders)
        second = fleet.keeping("b", settings=settings, senders=senders)
        works = [asyncio.create_task(each.run()) for each in (first, second)]
        await ask(recorder)
        await fleet.until_told(Notified)
        works[0].cancel()
        await alarm(recorder)
        await fleet.until_told(Notified, 2)
        works[1].cancel()
        await asyncio.gather(*works, return_exceptions=True)
    assert [each["kind"] for each in receiver.items] == ["waiting", "alert"]


async def test_a_monitor_that_looks_once_tells_what_is_due(fleet: Fleet) -> None:
    recorder = await fleet.begin()
    await alarm(recorder)
    async with webhook() as receiver:
        settings = SETTINGS.model_copy(update={"notify": settings_of(receiver.url)})
        senders = senders_of(settings.notify, SECRET)
        await fleet.keeping("a", settings=settings, senders=senders).once()
    assert "alert" in [each["kind"] for each in receiver.items]
