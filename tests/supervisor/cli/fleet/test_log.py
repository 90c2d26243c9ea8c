"""What a process of a fleet writes of what it does."""

import logging
import re

import pytest

from midwatch_stage.made_up import SECRETS
from midwatch_supervisor.cli.fleet.log import log_to_stderr


def test_what_midwatch_tells_stands_on_stderr_with_its_time_while_the_log_is_open(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = logging.getLogger("midwatch_supervisor.fleet.nodes.node")
    with log_to_stderr():
        log.info("one takes no more turns")
        log.debug("a detail")
    log.info("afterwards")
    line = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO one takes no more turns\n"
    assert re.fullmatch(line, capsys.readouterr().err)


def test_what_is_told_of_others_is_one_line_and_their_errors_are_indented(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = logging.getLogger("midwatch_supervisor.fleet.nodes.node")
    with log_to_stderr():
        try:
            raise ValueError("a\nForged\x1b[2J")
        except ValueError:
            log.exception("it said %s", "a\nForged\x1b[2J")
    first, *rest = capsys.readouterr().err.splitlines()
    assert first.endswith(r"ERROR it said a\nForged\x1b[2J")
    assert rest[-2:] == ["  ValueError: a", r"  Forged\x1b[2J"]


def test_a_secret_in_an_error_is_masked_in_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    secret = SECRETS["openai key"]
    with log_to_stderr():
        try:
            raise ValueError(f"the provider refuses {secret}")
        except ValueError:
            logging.getLogger("midwatch_monitor.loop").exception("a request failed")
    said = capsys.readouterr().err
    assert secret not in said
    assert "ValueError: the provider refuses [masked: openai key " in said
