"""Who is let in, and who may say what: the shipped configuration, in a real broker."""

import logging
from asyncio import timeout
from pathlib import Path
from typing import Any

import pytest
from aiomqtt import Client, MqttError

from midwatch_monitor.bus.payload import decode_status, encode_status
from midwatch_monitor.records import Hint, NodeState, NodeStatus
from midwatch_tests.broker import certificate
from midwatch_tests.net import WORDS, Net, status_of

STATUS = "midwatch/v1/midwatch/nodes/b/status"
HINT = Hint(entry=1, kind="step", task=1, attempt=1, step=1)


async def retained_status(client: Client) -> NodeStatus | None:
    """What the broker keeps as the status of b."""
    await client.subscribe(STATUS, qos=1)
    async with timeout(120):
        async for message in client.messages:
            return decode_status(message.payload, "b")
    return None


async def test_a_wrong_password_is_told_once_and_tried_until_it_is_right(
    secure_net: Net, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "password"
    file.write_text("wrong")
    settings = secure_net.settings(password_file=file)
    async with secure_net.bus("a", settings=settings, connected=False) as a:
        await secure_net.until(lambda: secure_net.broker.log.count("not authorised") > 2)
        (told,) = caplog.records
        assert told.levelno == logging.WARNING
        assert told.getMessage() == (
            f"the broker at 127.0.0.1:{secure_net.broker.port} refuses the user 'a': check the "
            f"account, and its password in {file}; until then hints are delayed"
        )
        file.write_text(f"{WORDS['a']}\n")
        await secure_net.until(lambda: a.counters.connected)


async def test_nobody_comes_in_without_an_account_and_a_missing_password_names_the_variable(
    secure_net: Net, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(MqttError, match="Not authorized"):
        async with secure_net.client():
            pass
    async with secure_net.bus("stranger", connected=False):
        await secure_net.until(lambda: bool(caplog.records))
    assert "in $MIDWATCH_BROKER_PASSWORD;" in caplog.text


@pytest.mark.parametrize("forged", [status_of("b", state=NodeState.LOST), status_of("a")])
async def test_a_node_cannot_speak_for_another(secure_net: Net, forged: NodeStatus) -> None:
    async with secure_net.bus("b", status=status_of("b")) as b, secure_net.client("a") as a:
        departures = b.departures()
        assert await retained_status(a) == status_of("b")
        await a.publish(STATUS, encode_status(forged), qos=1, retain=True)
        async with secure_net.client("b") as witness:
            assert await retained_status(witness) == status_of("b")
        assert await departures.wait(0) == []


async def test_not_even_by_a_last_will(secure_net: Net) -> None:
    async with secure_net.bus("b", status=status_of("b")), secure_net.client("b") as witness:
        impostor = await secure_net.node("b", username="a")
        impostor.kill()
        await impostor.wait()
        assert await retained_status(witness) == status_of("b")


async def test_a_node_can_say_where_to_look_and_nothing_else(secure_net: Net) -> None:
    async with (
        secure_net.bus("a") as a,
        secure_net.bus("b") as b,
        secure_net.client("b") as witness,
    ):
        hints = b.subscribe()
        await witness.subscribe("#", qos=1)
        async with secure_net.client("a") as client:
            await client.publish("midwatch/v1/midwatch/commands", b"stop", qos=1)
            await client.publish("elsewhere", b"stop", qos=1)
        a.publish(HINT)
        assert await hints.wait() == [HINT]
        async with timeout(120):
            first = await anext(aiter(witness.messages))
        assert first.topic.value == "midwatch/v1/midwatch/attempts/1/events"


async def test_a_private_authority_is_trusted_and_no_other_and_the_name_counts(
    secure_net: Net, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    certificate(other)
    tls = {"url": secure_net.broker.tls_url, "ca_file": secure_net.broker.ca_file}
    async with (
        secure_net.bus("a", settings=secure_net.settings(**tls)) as a,
        secure_net.bus("b") as b,
    ):
        hints = b.subscribe()
        a.publish(HINT)
        assert await hints.wait() == [HINT]
    elsewhere = str(tls["url"]).replace("localhost", "127.0.0.2")
    for wrong, told in (
        ({"ca_file": other / "ca.crt"}, "CERTIFICATE_VERIFY_FAILED"),
        ({"url": elsewhere}, "127.0.0.2"),
    ):
        caplog.clear()
        settings = secure_net.settings(**{**tls, **wrong})
        async with secure_net.bus("a", settings=settings, connected=False) as a:
            await secure_net.until(lambda: bool(caplog.records))
            assert told in caplog.text
            assert not a.counters.connected


@pytest.mark.parametrize(
    ("knobs", "told"),
    [
        (
            {"ca_file": Path("/nowhere/ca.crt"), "url": "mqtts://localhost"},
            "/nowhere/ca.crt cannot",
        ),
        ({"password_file": Path("/nowhere/word")}, "/nowhere/word cannot be read: No such file"),
    ],
)
async def test_a_file_that_is_missing_is_told(
    net: Net, caplog: pytest.LogCaptureFixture, knobs: dict[str, Any], told: str
) -> None:
    async with net.bus("a", settings=net.settings(**knobs), connected=False):
        await net.until(lambda: bool(caplog.records))
    assert told in caplog.text


async def test_no_password_stands_in_a_log(
    secure_net: Net, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, logger="mqtt")
    async with secure_net.bus("a", status=status_of("a")) as a, secure_net.bus("b") as b:
        hints = b.subscribe()
        a.publish(HINT)
        await hints.wait()
        repeated = f"{a!r} {vars(a)!r}"
    async with secure_net.bus("a", word="a-wrong-word", connected=False):
        await secure_net.until(lambda: "refuses the user" in caplog.text)
    written = f"{caplog.text} {secure_net.broker.log}"
    assert "Sending CONNECT" in written
    for word in (*WORDS.values(), "a-wrong-word"):
        assert word not in written
    assert WORDS["b"] not in repeated
