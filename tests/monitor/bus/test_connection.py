"""An outage of the broker is logged once; one process of a name keeps the client id."""

import logging
from pathlib import Path

import pytest

from midwatch_monitor.bus.client import ClientId, Login, OutageLog, address_of, pause, read_password
from midwatch_monitor.config.fleet import BrokerSettings
from midwatch_monitor.errors import LinkError, LinkFault

SETTINGS = BrokerSettings(url="mqtts://broker.example.org")


@pytest.mark.parametrize(
    ("fault", "knobs", "told"),
    [
        (LinkFault.AWAY, {}, "no connection to the broker at broker.example.org:8883 (no route)"),
        (
            LinkFault.REFUSED,
            {},
            "refuses the user 'node-a': check the account, and its password in "
            "$MIDWATCH_BROKER_PASSWORD;",
        ),
        (LinkFault.REFUSED, {"password_file": Path("/etc/word")}, "its password in /etc/word;"),
        (LinkFault.TAKEN_OVER, {}, "give each process its own --name"),
    ],
)
def test_an_outage_is_told_once(
    fault: LinkFault, knobs: dict[str, Path], told: str, caplog: pytest.LogCaptureFixture
) -> None:
    it = OutageLog(SETTINGS.model_copy(update=knobs), "node-a")
    for _ in range(3):
        it.note_failure(LinkError(fault, "no route"))
    assert caplog.text.count(told) == len(caplog.records) == 1


def test_that_it_is_over_is_told_once_and_a_second_one_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    times = iter([100.0, 125.4, 130.0])
    it = OutageLog(SETTINGS, "node-a", seconds=lambda: next(times))
    it.note_connection()
    for fault in (LinkFault.AWAY, LinkFault.REFUSED):
        it.note_failure(LinkError(fault, "no route"))
    for _ in range(2):
        it.note_connection()
    it.note_failure(LinkError(LinkFault.AWAY, "no route"))
    last = "connected to the broker at broker.example.org:8883 again after 25 s"
    assert [each.levelno for each in caplog.records] == [
        *(logging.WARNING, logging.WARNING, logging.INFO, logging.WARNING)
    ]
    assert caplog.records[2].getMessage() == last


def test_pauses_differ_grow_and_end_at_the_longest() -> None:
    assert all(0 <= pause(1, 30) <= 0.2 for _ in range(100))
    assert len({pause(8, 30) for _ in range(10)}) > 1
    assert 3 < max(pause(8, 30) for _ in range(200)) <= 25.6
    assert all(pause(5_000, 30) <= 30 for _ in range(100))


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("mqtt://broker", ("broker", 1883)),
        ("mqtts://broker", ("broker", 8883)),
        ("mqtt://[::1]:99", ("::1", 99)),
    ],
)
def test_the_port_is_the_usual_one_unless_it_is_said(url: str, address: tuple[str, int]) -> None:
    assert address_of(BrokerSettings(url=url)) == address


@pytest.mark.parametrize(
    ("body", "given", "word"),
    [
        (b"secret\n", "other", "secret"),
        (b" se cret\r\n", "other", " se cret"),
        (b"", "other", None),
        (None, "secret", "secret"),
        (None, "", None),
    ],
)
def test_the_password_is_what_stands_in_its_file_or_without_one_in_its_variable(
    tmp_path: Path, body: bytes | None, given: str, word: str | None
) -> None:
    settings = SETTINGS
    if body is not None:
        settings = SETTINGS.model_copy(update={"password_file": tmp_path / "word"})
        (tmp_path / "word").write_bytes(body)
    assert read_password(settings, {"MIDWATCH_BROKER_PASSWORD": given}) == word
    assert read_password(SETTINGS, {}) is None


def test_a_file_that_is_no_text_is_told_without_what_stands_in_it(tmp_path: Path) -> None:
    file = tmp_path / "word"
    file.write_bytes(b"secret\xff")
    with pytest.raises(LinkError, match="not valid UTF-8 text") as caught:
        read_password(SETTINGS.model_copy(update={"password_file": file}), {})
    assert caught.value.__cause__ is None


def test_a_login_does_not_show_its_password() -> None:
    login = Login(client="c", username="u", password="secret", session_seconds=0)
    assert "secret" not in repr(login)


def client_id(client: str = "node-a") -> ClientId:
    return ClientId(client, own="node-a-5f3c")


def faults(client_id: ClientId, *ends: tuple[LinkFault, float]) -> list[LinkFault]:
    return [
        client_id.classify_loss(LinkError(fault, "why"), after=after).fault for fault, after in ends
    ]


def test_who_is_told_that_another_came_goes_on_by_an_id_of_its_own_and_tells_it_once() -> None:
    it = client_id()
    assert (it.client, it.kept) == ("node-a", True)
    assert faults(it, (LinkFault.TAKEN_OVER, 60)) == [LinkFault.TAKEN_OVER]
    assert (it.client, it.kept) == ("node-a-5f3c", False)
    assert faults(it, (LinkFault.AWAY, 1.0), (LinkFault.TAKEN_OVER, 1.0)) == [LinkFault.AWAY] * 2
    assert it.client == "node-a-5f3c"


@pytest.mark.parametrize(
    ("ends", "left"),
    [
        ([(LinkFault.ENDED, 60)], False),
        ([(LinkFault.ENDED, 60), (LinkFault.ENDED, 0.2)], True),
        ([(LinkFault.ENDED, 0.2), (LinkFault.ENDED, 60)], False),
        ([(LinkFault.ENDED, 60), (LinkFault.AWAY, 0.1), (LinkFault.ENDED, 0.2)], False),
        ([(LinkFault.REFUSED, 0.1), (LinkFault.REFUSED, 0.1)], False),
    ],
    ids=["once", "again at once", "again much later", "the broker was away", "refused"],
)
def test_without_a_reason_only_a_second_end_soon_after_the_first_tells_of_another(
    ends: list[tuple[LinkFault, float]], left: bool
) -> None:
    it = client_id()
    told = faults(it, *ends)
    assert (it.client == "node-a-5f3c", LinkFault.TAKEN_OVER in told) == (left, left)
    assert LinkFault.ENDED not in told


def test_an_id_that_the_broker_made_up_is_nobody_elses() -> None:
    it = client_id("")
    ends = [(LinkFault.ENDED, 0.1), (LinkFault.ENDED, 0.1), (LinkFault.TAKEN_OVER, 0.1)]
    assert faults(it, *ends) == [LinkFault.AWAY] * 3
    assert (it.client, it.kept) == ("", False)
