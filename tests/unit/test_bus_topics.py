"""Topics are read as they are written, and only those of our fleet."""

import pytest

from midwatch_monitor.bus.topics import Topics, fits

OURS = Topics("night")


def test_the_topics_are_those_of_the_design() -> None:
    assert OURS.status("node-a") == "midwatch/v1/night/nodes/node-a/status"
    assert OURS.events_of(7) == "midwatch/v1/night/attempts/7/events"
    assert OURS.events_of(None) == "midwatch/v1/night/attempts/0/events"
    assert OURS.statuses == "midwatch/v1/night/nodes/+/status"
    assert OURS.turns("monitors") == "$share/monitors/midwatch/v1/night/attempts/+/events"


def test_what_was_written_is_read() -> None:
    assert OURS.node_of(OURS.status("node-a.example_2")) == "node-a.example_2"
    assert [OURS.attempt_of(OURS.events_of(each)) for each in (1, 10**17, None)] == [1, 10**17, 0]


@pytest.mark.parametrize(
    "topic",
    [
        "",
        "midwatch/v1/day/nodes/a/status",
        "midwatch/v2/night/nodes/a/status",
        "midwatch/v1/night/nodes/status",
        "midwatch/v1/night/nodes//status",
        "midwatch/v1/night/nodes/a/b/status",
        "midwatch/v1/night/nodes/a/status/",
        "midwatch/v1/night/nodes/../status",
        "midwatch/v1/night/nodes/ä/status",
        "midwatch/v1/night/nodes/a\n/status",
        f"midwatch/v1/night/nodes/{'a' * 81}/status",
        "midwatch/v1/night/attempts//events",
        "midwatch/v1/night/attempts/-1/events",
        "midwatch/v1/night/attempts/01/events",
        "midwatch/v1/night/attempts/1.0/events",
        "midwatch/v1/night/attempts/\u0661/events",
        "midwatch/v1/night/attempts/1_0/events",
        f"midwatch/v1/night/attempts/{'9' * 5_000}/events",
        "midwatch/v1/night/attempts/1/events/2",
    ],
)
def test_other_topics_are_none_of_ours(topic: str) -> None:
    assert (OURS.node_of(topic), OURS.attempt_of(topic)) == (None, None)


@pytest.mark.parametrize("name", ["", "a/b", "+", "#", "a b", "$share", "-a", "a" * 81, "a\n"])
def test_a_name_that_could_stand_for_others_does_not_fit(name: str) -> None:
    assert not fits(name)
