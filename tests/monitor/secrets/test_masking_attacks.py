"""Secrets that escapes, colours and prefixes hid from masking, and texts that held it up."""

import json
import time

import pytest

from midwatch_monitor.secrets.masking import Masker, Secrets

BODY = "q7Zx" + "Lm2Rk9Tw4Vb8" * 3
MASKER = Masker(Secrets(), b"key")


@pytest.mark.parametrize("before", ["\x1b[31m", "\x1b[01;31m\x1b[K", "q%3D", "\\x00", "\\u000a"])
def test_an_escape_before_a_key_does_not_hide_it(before: str) -> None:
    assert BODY not in MASKER.text(f"{before}sk-proj-{BODY}")


@pytest.mark.parametrize("prefix", ["id_rsa:", "12:01:02 INFO ", "keys/my-key.pem:3:"])
def test_a_private_key_is_masked_behind_a_prefix_in_each_line(prefix: str) -> None:
    lines = [f"-----BEGIN {'RSA PRIVATE'} KEY-----", *[BODY + BODY[:24]] * 3, "-----END KEY-----"]
    said = "\n".join(prefix + line for line in lines)
    assert BODY not in MASKER.text(said)
    assert "def total(): return 1" in MASKER.text(f"{said}\ndef total(): return 1")
    assert BODY not in MASKER.text(json.dumps("\n".join(lines)))


@pytest.mark.parametrize("url", ["https://{}@host/x", "https://u:p@{}@host/x"])
def test_no_part_of_what_a_remote_logs_in_with_stays(url: str) -> None:
    assert BODY not in MASKER.text(url.format(BODY))


@pytest.mark.parametrize("prefix", ["nvapi-", "pplx-", "csk-", "hvs.", "dckr_pat_", "glrt-"])
def test_keys_of_more_providers_are_known(prefix: str) -> None:
    assert BODY not in MASKER.text(f"using {prefix}{BODY}{BODY[:8]}")


def test_the_password_of_postgresql_is_masked() -> None:
    assert "hunter22" not in MASKER.text("PGPASSWORD=hunter22 psql")


@pytest.mark.parametrize("unit", ["[masked: xai key 7f3a19] xai-{} ", "\u00e9 xai-{} "])
def test_many_marks_or_letters_beyond_ascii_take_linear_time(unit: str) -> None:
    def seconds(times: int) -> float:
        text = unit.format(BODY) * times
        begun = time.process_time()
        assert BODY not in MASKER.text(text)
        return time.process_time() - begun

    seconds(10)
    # Four times as much takes four times as long, and would take sixteen times if it were squared.
    assert min(seconds(12000) for _ in range(2)) < 10 * max(seconds(3000) for _ in range(2))
