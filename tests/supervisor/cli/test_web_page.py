"""The page of `watch --web`: its token, its hosts and its tickets."""

from pathlib import Path

import pytest

from midwatch_monitor.errors import UsageError
from midwatch_supervisor.cli.inspect.web import TOKEN, Page, page_at, read_token
from midwatch_tests.command import refused_now

LONG = "a-token_of-16-letters"


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("box", False)],
)
def test_only_loopback_is_taken_for_this_machine_alone(host: str, loopback: bool) -> None:
    page = Page.at(host, 8080, LONG)
    at = f"[{host}]" if ":" in host else host
    assert (page.loopback, page.url) == (loopback, f"http://{at}:8080/?token={LONG}")


@pytest.mark.parametrize("token", ["", "two words of sixteen letters", "a/b" * 9, "ü" * 20, "few"])
def test_a_token_that_does_not_fit_an_address_or_can_be_tried_is_refused(token: str) -> None:
    with pytest.raises(UsageError, match="the token of here must be at least 16 letters"):
        Page.at("127.0.0.1", 8080, token, source="here")


HERE = ("box:8080", "BOX", "localhost:9000", "10.0.0.5:8080", "[::1]:8080")
ELSEWHERE = (
    *("evil.example", "box.evil.example", "localhost.evil.example:8080", "10.0.0.5.evil.example"),
    *("[", ""),
)


@pytest.mark.parametrize("host", [*HERE, *ELSEWHERE])
def test_only_addresses_and_the_names_of_this_machine_are_taken_for_it(host: str) -> None:
    assert Page.at("box", 8080, None).is_at(host) is (host in HERE)


def test_a_ticket_names_a_browser_and_is_of_one_token_only() -> None:
    page, other = Page.at("box", 80, LONG), Page.at("box", 80, LONG * 2)
    assert page.browser(page.ticket("b1")) == "b1"
    assert other.browser(page.ticket("b1")) is None
    assert [page.browser(each) for each in (None, "", "b1", "b1.", "b2.x", LONG)] == [None] * 6


def test_a_new_file_for_the_token_is_for_its_owner_only_and_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "token"
    page = page_at("box", 80, file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert len(page.token) >= 40
    assert page_at("box", 80, file) == page


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o622])
def test_a_token_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "token"
    file.write_text(LONG)
    file.chmod(mode)
    with pytest.raises(UsageError, match="others can read"):
        read_token(file)


def test_what_is_no_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be used: Is a directory"):
        read_token(tmp_path)


def test_the_environment_may_hold_it_and_no_process_inherits_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(TOKEN, LONG)
    assert page_at("box", 80, None).token == LONG
    tokens = {LONG, *(page_at("box", 80, None).token for _ in range(2))}
    assert len(tokens) == 3


def test_a_token_on_the_command_line_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused_now(capsys, "watch", "--web", "--token", LONG)
    assert "--token-file" in said
    assert LONG not in said
