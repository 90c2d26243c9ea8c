import pytest

from midwatch_supervisor.present.text_line import one_line, plain


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


def test_an_escape_over_two_lines_hides_neither() -> None:
    assert plain("\x1b]0;one\ntwo\x07three").endswith("one\ntwo\N{REPLACEMENT CHARACTER}three")


def test_a_very_long_text_is_cut() -> None:
    assert plain("x" * 1_000_000) == "x" * 20_000 + "…"


def test_one_line_is_one_line() -> None:
    assert one_line("  a\n\n b\t\x1b[1mc\x0b d ") == "a b c\N{REPLACEMENT CHARACTER} d"
