"""RE2 says which patterns are in a text, and never breaks over one."""

from midwatch_monitor.patterns import PatternSet, RarePattern


def test_a_set_says_in_their_order_which_of_its_patterns_are_in_a_text() -> None:
    patterns = PatternSet((r"\bthree\b", "never", r"(?i)\bone\b"))
    assert [*patterns.within("One, two and three")] == [0, 2]
    assert [*patterns.within("two")] == []


def test_half_a_surrogate_pair_hides_no_pattern() -> None:
    assert [*PatternSet(("two",)).within("one \ud83d two")] == [0]
    assert RarePattern(r"t\w+").findall("one \ud83d two") == ["two"]


def test_a_rare_pattern_finds_all_matches_and_their_groups() -> None:
    pattern = RarePattern(r"(?m)^(\w+): failed$")
    text = "a: failed\nb: passed\nc: failed"
    assert pattern.findall(text) == ["a", "c"]
    assert [found.start() for found in pattern.finditer(text)] == [0, 20]
    assert [*pattern.finditer("a: passed")] == pattern.findall("a: passed") == []
