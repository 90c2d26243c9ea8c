"""Numbers as people write them, grants as they write them themselves, and text made harmless."""

import pytest

from midwatch_monitor.records import Budget, Grant, Meter
from midwatch_supervisor.present.numbers import (
    amount,
    budget_text,
    count_noun,
    dollars,
    duration,
    grant_text,
    kilobytes,
    list_names,
    parse_grant,
    percent,
    share,
    steps_text,
    usage_text,
)
from midwatch_supervisor.present.text_line import one_line, plain


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (amount(0), "0"),
        (amount(7.5), "7.5"),
        (amount(60.0), "60"),
        (amount(9_120), "9,120"),
        (amount(12_345), "12 k"),
        (amount(999_600), "1.0 M"),
        (amount(1_004_300), "1.0 M"),
        (amount(12_500_000), "12 M"),
        (amount(2.5e9), "2.5 G"),
        (count_noun(1, "lesson"), "1 lesson"),
        (count_noun(2_000, "lesson"), "2,000 lessons"),
        (list_names(["fix", "test"], 2), "fix, test"),
        (list_names(["fix", "test", "ship"], 2), "fix, test and 1 more"),
        (dollars(12.345), "12.35"),
        (dollars(0.0042), "0.0042"),
        (duration(41), "41 s"),
        (duration(725), "12 min 5 s"),
        (duration(12_000), "3 h 20 min"),
        (duration(176_400), "2 d 1 h"),
        (percent(0.384), "38 %"),
        (share(None), "-"),
        (share(0.5), "50.0 %"),
        (kilobytes(10), "1 kB"),
        (steps_text((3,)), "step 3"),
        (steps_text((3, 5)), "steps 3, 5"),
        (steps_text(()), ""),
        (usage_text(requests=2, tokens=900, cost_usd=0.5), "2 requests, 900 tokens, $0.50"),
        (usage_text(requests=0, tokens=0, cost_usd=0), "nothing"),
    ],
)
def test_a_number_is_written_as_people_write_it(written: str, text: str) -> None:
    assert written == text


def test_a_budget_says_what_is_used_of_what_there_is_and_no_dollars_if_no_price_is_known() -> None:
    used, limit = Meter(used=12), Meter(limit=5)
    budget = Budget(
        requests=Meter(used=12, limit=60),
        tokens=Meter(used=1_004_300),
        cost_usd=Meter(used=0.12, limit=5),
        minutes=Meter(used=3.25, limit=30),
    )
    assert budget_text(budget) == "12 of 60 requests, 1.0 M tokens, $0.12 of $5.00, 3.2 of 30 min"
    assert budget_text(Budget(requests=used)) == "12 requests, 0 tokens, 0 min"
    words = budget_text(Budget(requests=used, cost_usd=limit))
    assert words == "12 requests, 0 tokens, cost unknown (limit $5.00), 0 min"
    words = budget_text(Budget(cost_usd=limit))
    assert words == "0 requests, 0 tokens, $0.00 of $5.00, 0 min"


@pytest.mark.parametrize(
    ("text", "grant"),
    [
        ("20", Grant(requests=20)),
        ("1 request, 5 Minutes", Grant(requests=1, minutes=5)),
        ("$0.5", Grant(cost_usd=0.5)),
        ("$ 2, 3 usd, 1.5 dollars", Grant(cost_usd=6.5)),
        ("4000 tokens", Grant(tokens=4000)),
        ("1.5 M tokens, 20k tokens", Grant(tokens=1_520_000)),
        ("", None),
        ("0", None),
        ("1.5 requests", None),
        ("-3 requests", None),
        ("10 m", None),
        ("20 apples", None),
        ("much more", None),
    ],
)
def test_a_grant_is_read_as_people_write_it(text: str, grant: Grant | None) -> None:
    assert parse_grant(text) == grant


@pytest.mark.parametrize(
    ("grant", "text"),
    [
        (Grant(), ""),
        (Grant(requests=1), "1 request"),
        (
            Grant(requests=20, tokens=5000, cost_usd=0.25, minutes=7.5),
            "20 requests, 5000 tokens, $0.25, 7.5 min",
        ),
        (Grant(tokens=1_500_000, cost_usd=0.0025), "1.5 M tokens, $0.0025"),
        (Grant(tokens=1_004_300), "1004300 tokens"),
    ],
)
def test_a_grant_that_was_written_is_read_again(grant: Grant, text: str) -> None:
    assert grant_text(grant) == text
    assert parse_grant(text) == (grant if text else None)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[Hgone?", "gone?"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1;2|dcs\x1b\\text", "text"),
        ("\x1bcreset \x1b(B\x1b7", "reset "),
        ("\x9b31mC1", "\ufffd31mC1"),
        ("bell\x07 back\x08", "bell\ufffd back\ufffd"),
        ("abc\u202edef\u2066", "abcdef"),
        ("zero\u200bwidth", "zero\ufffdwidth"),
        ("half a pair \ud800", "half a pair \ufffd"),
        ("a\tb", "a   b"),
        ("one\r\ntwo\rthree", "one\ntwo\nthree"),
        ("no\u00a0break", "no break"),
        ("[bold]markup[/bold]", "[bold]markup[/bold]"),
        ("日本語 é", "日本語 é"),
    ],
)
def test_text_is_shown_and_does_nothing(text: str, shown: str) -> None:
    assert plain(text) == shown


@pytest.mark.parametrize("opener", ["\x1b]0;", "\x1b]", "\x1bP", "\x1b_", "\x1b["])
def test_an_escape_without_an_end_hides_nothing(opener: str) -> None:
    assert plain(f"{opener}the worker\nfailed\n").endswith("he worker\nfailed\n")


def test_an_escape_over_two_lines_hides_neither_and_a_very_long_text_is_cut() -> None:
    assert plain("\x1b]0;one\ntwo\x07three").endswith("one\ntwo\N{REPLACEMENT CHARACTER}three")
    assert plain("x" * 1_000_000) == "x" * 20_000 + "…"
    assert one_line("  a\n\n b\t\x1b[1mc\x0b d ") == "a b c\N{REPLACEMENT CHARACTER} d"
