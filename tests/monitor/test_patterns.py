"""RE2 says which patterns are in a text and where, and never breaks over one."""

from midwatch_monitor.patterns import Pattern, PatternSet


def test_patterns_say_which_of_them_are_in_a_text_and_what_stands_where() -> None:
    assert [*PatternSet(r"\bthree\b", "never", r"(?i)\bone\b").within("One and three")] == [0, 2]
    failed = Pattern(r"(?m)^\w+: failed$").findall("a: failed\nß: passed\nc: failed")
    assert failed == ["a: failed", "c: failed"]


def test_half_a_surrogate_pair_hides_no_pattern() -> None:
    text = "one \ud83d two"
    assert [*PatternSet("two").within(text)] == [0]
    assert Pattern("t[a-z]+").findall(text) == ["two"]
