"""RE2 says which patterns are in a text and where, and never breaks over one."""

from midwatch_monitor.patterns import Pattern, PatternSet


def test_a_set_says_in_their_order_which_of_its_patterns_are_in_a_text() -> None:
    patterns = PatternSet(r"\bthree\b", "never", r"(?i)\bone\b")
    assert [*patterns.within("One, two and three")] == [0, 2]
    assert [*patterns.within("two")] == []


def test_a_pattern_says_what_stands_where_it_matches() -> None:
    pattern = Pattern(r"(?m)^\w+: failed$")
    assert pattern.findall("a: failed\nß: passed\nc: failed") == ["a: failed", "c: failed"]
    assert pattern.findall("a: passed") == []


def test_half_a_surrogate_pair_hides_no_pattern() -> None:
    text = "one \ud83d two"
    assert [*PatternSet("two").within(text)] == [0]
    assert Pattern("t[a-z]+").findall(text) == ["two"]
