"""What is told of attempts that go from one monitor to another."""

from midwatch_supervisor.fleet.monitors.leases import listed


def test_the_first_ten_are_named_and_the_others_counted() -> None:
    names = {1: "a#1", 2: "b#1"}
    assert listed({2, 1, 3}, names) == "a#1, b#1, attempt 3"
    assert listed(range(1, 13), names).startswith("a#1, b#1, attempt 3, ")
    assert listed(range(1, 13), names).endswith(", attempt 10 and 2 more")
