"""People are told once, whoever reads the journal, and a dead receiver is nobody's trouble."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from email import message_from_bytes

import pytest

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.notify import NotifySettings
from midwatch_monitor.journal import Journal
from midwatch_monitor.recorder import Recorder
from midwatch_monitor.records import Action, Fault, Lifecycle, Notified, SupervisedBy
from midwatch_supervisor.notify.notifier import run_notifier, senders_of
from midwatch_tests import factories as make
from midwatch_tests.ports import LOOPBACK, free_port
from midwatch_tests.receivers import mail_server, webhook
from midwatch_tests.watched import SETTINGS, Fleet

SECRET = {"HOOK": "key"}
QUESTION = make.intervention(Action.ASK_OPERATOR, message="May I delete plan.py?")


def settings_of(
    url: str, *, content: bool = False, others: Mapping[str, object] | None = None, **more: object
) -> NotifySettings:
    team = {"webhook": url, "secret_env": "HOOK", "content": content}
    given = {"targets": {"team": team, **(others or {})}, "group_seconds": 0.2, **more}
    return NotifySettings.model_validate(given)


@pytest.fixture
def fleet(journal: Journal, location: str) -> Fleet:
    return Fleet(journal, location)


@pytest.fixture
async def recorder(fleet: Fleet) -> Recorder:
    """That of an attempt of a run in one process."""
    return await fleet.begin(supervised_by=SupervisedBy.PROCESS)


@asynccontextmanager
async def notifier(fleet: Fleet, settings: NotifySettings) -> AsyncGenerator[None]:
    """A process that tells what run 1 says."""
    async with run_notifier(
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
    await recorder.record(make.delivery(entry.id), make.transition(Lifecycle.INPUT_REQUIRED))


async def fire_alert(recorder: Recorder, subject: str = "plan.py") -> None:
    await recorder.record(make.alert(subject=subject, summary=f"{subject} again"))


async def test_an_alert_and_a_question_are_one_signed_message_without_any_content(
    fleet: Fleet, recorder: Recorder
) -> None:
    await fire_alert(recorder)
    await ask(recorder)
    async with webhook() as receiver, notifier(fleet, settings_of(receiver.url)):
        await fleet.until_told(Notified)
    (body,) = receiver.bodies
    signed = hmac.new(b"key", body, hashlib.sha256).hexdigest()
    assert receiver.signatures == [f"sha256={signed}"]
    assert [each["text"] for each in receiver.items] == [
        "waits for an answer",
        "firing warning cycle",
    ]
    assert receiver.items[0]["commands"] == ['midwatch tell fix --run 1 "your answer"']
    assert receiver.items[0]["look"] == "midwatch show 1"
    assert b"plan.py" not in body


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated")  # Apprise imports it
async def test_each_way_to_people_has_one_message_and_what_waits_again(
    fleet: Fleet, recorder: Recorder
) -> None:
    async with (
        webhook() as team,
        webhook() as phone,
        webhook() as room,
        webhook() as chat,
        mail_server() as post,
    ):
        to = f"{LOOPBACK}:{post.port}/?smtp={LOOPBACK}&mode=insecure&from=a@b.test&to=c@d.test"
        ways = {
            "phone": phone.ntfy,
            "post": f"mailto://{to}",
            "room": f"mmost://{LOOPBACK}:{room.port}/3ccdd113474722377935511fc85d3dd4",
            "chat": f"matrix://token@{LOOPBACK}:{chat.port}?mode=matrix",
        }
        others = {name: {"url": url} for name, url in ways.items()}
        await fire_alert(recorder)
        await ask(recorder)
        async with notifier(fleet, settings_of(team.url, others=others, repeat_minutes=5)):
            await fleet.until_told(Notified, 5)
            fleet.ahead = timedelta(minutes=6)
            await fleet.until_told(Notified, 10)
    command = 'midwatch tell fix --run 1 "your answer"'
    mails = [message_from_bytes(each).get_payload(decode=True) for each in post.bodies]
    for first, second in (
        [json.loads(each)["body"] for each in team.bodies],
        [json.loads(each)["message"] for each in phone.bodies],
        [json.loads(each)["text"] for each in room.bodies],
        [json.loads(each)["text"] for each in chat.bodies],
        [each.decode() for each in mails if isinstance(each, bytes)],
    ):
        assert "firing warning cycle" in first
        assert "firing" not in second
        assert first.splitlines().count(command) == second.splitlines().count(command) == 1
        assert "plan.py" not in first + second
    assert {json.loads(each)["topic"] for each in phone.bodies} == {"night"}
    names = {json.loads(room.bodies[0])["username"], json.loads(chat.bodies[0])["displayName"]}
    assert names == {"Midwatch"}


async def test_in_quiet_hours_nothing_comes_and_afterwards_all_of_it_as_one(
    fleet: Fleet, recorder: Recorder
) -> None:
    now = fleet.now.astimezone()
    begin, end = ((now + timedelta(hours=each)).strftime("%H:%M") for each in (-1, 1))
    async with webhook() as receiver:
        settings = settings_of(receiver.url, quiet={"from": begin, "to": end})
        await fire_alert(recorder)
        await ask(recorder)
        async with notifier(fleet, settings):
            pass
        assert receiver.bodies == []
        async with notifier(fleet, settings):
            fleet.ahead = timedelta(hours=2)
            await fleet.until_told(Notified)
    assert len(receiver.bodies) == 1
    assert [each["kind"] for each in receiver.items] == ["waiting", "alert"]


async def test_who_wants_the_content_gets_it_without_secrets(
    fleet: Fleet, recorder: Recorder
) -> None:
    async with webhook() as receiver, notifier(fleet, settings_of(receiver.url, content=True)):
        await fire_alert(recorder, "token=ghp_" + "a1B2" * 9)
    (item,) = receiver.items
    assert "again" in item["text"]
    assert "[masked: " in item["text"]


async def test_a_process_that_is_started_again_does_not_repeat_it(
    fleet: Fleet, recorder: Recorder
) -> None:
    await ask(recorder)
    async with webhook() as receiver:
        for _ in range(2):
            async with notifier(fleet, settings_of(receiver.url)):
                await fleet.until_told(Notified)
        assert len(receiver.items) == 1
        fleet.ahead = timedelta(minutes=31)
        async with notifier(fleet, settings_of(receiver.url)):
            await fleet.until_told(Notified, 2)
    assert [each["kind"] for each in receiver.items] == ["waiting", "waiting"]


async def test_who_does_not_answer_is_said_once_and_the_rest_is_told_once_he_does(
    fleet: Fleet, recorder: Recorder
) -> None:
    await fire_alert(recorder)
    nobody = settings_of(f"http://{LOOPBACK}:{free_port()}/")
    for _ in range(2):
        async with notifier(fleet, nobody):
            await fleet.until_told(Fault)
    assert [each.part for each in await fleet.records(Fault)] == ["message to team"]
    async with webhook() as receiver, notifier(fleet, settings_of(receiver.url)):
        await fleet.until_told(Notified)
    assert len(receiver.items) == 1


async def test_a_receiver_that_refuses_does_not_hold_up_another(
    fleet: Fleet, recorder: Recorder
) -> None:
    async with webhook() as refuses, webhook() as takes:
        refuses.status = 503
        given = settings_of(refuses.url).targets | {"other": settings_of(takes.url).targets["team"]}
        settings = NotifySettings(targets=given, group_seconds=0)
        async with notifier(fleet, settings):
            await fire_alert(recorder)
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
        monitors = [fleet.keeping(name, settings=settings, senders=senders) for name in "ab"]
        works = [asyncio.create_task(each.run()) for each in monitors]
        await ask(recorder)
        await fleet.until_told(Notified)
        works[0].cancel()
        await fire_alert(recorder)
        await fleet.until_told(Notified, 2)
        works[1].cancel()
        await asyncio.gather(*works, return_exceptions=True)
    assert [each["kind"] for each in receiver.items] == ["waiting", "alert"]


async def test_a_monitor_that_looks_once_tells_what_is_due(fleet: Fleet) -> None:
    await fire_alert(await fleet.begin())
    async with webhook() as receiver:
        settings = SETTINGS.model_copy(update={"notify": settings_of(receiver.url)})
        senders = senders_of(settings.notify, SECRET)
        await fleet.keeping("a", settings=settings, senders=senders).once()
    assert "alert" in [each["kind"] for each in receiver.items]
