"""Of several processes of one name, one keeps the client id and the others leave it to that one."""

import pytest

from midwatch_monitor.bus.seat import Seat
from midwatch_monitor.errors import LinkError, LinkFault


def seat(client: str = "node-a") -> Seat:
    return Seat(client, own="node-a-5f3c")


def faults(seat: Seat, *ends: tuple[LinkFault, float]) -> list[LinkFault]:
    return [seat.ended(LinkError(fault, "why"), after=after).fault for fault, after in ends]


def test_who_is_told_that_another_came_goes_on_by_an_id_of_its_own() -> None:
    it = seat()
    assert (it.client, it.kept) == ("node-a", True)
    assert faults(it, (LinkFault.TAKEN_OVER, 60)) == [LinkFault.TAKEN_OVER]
    assert (it.client, it.kept) == ("node-a-5f3c", False)


def test_the_given_id_is_never_taken_again_and_its_loss_told_once() -> None:
    it = seat()
    ends = [(LinkFault.TAKEN_OVER, 60.0), (LinkFault.AWAY, 1.0), (LinkFault.TAKEN_OVER, 1.0)]
    assert faults(it, *ends) == [LinkFault.TAKEN_OVER, LinkFault.AWAY, LinkFault.AWAY]
    assert it.client == "node-a-5f3c"


@pytest.mark.parametrize(
    ("ends", "left"),
    [
        ([(LinkFault.ENDED, 60)], False),
        ([(LinkFault.ENDED, 60), (LinkFault.ENDED, 0.2)], True),
        ([(LinkFault.ENDED, 0.2), (LinkFault.ENDED, 60)], False),
        ([(LinkFault.ENDED, 60), (LinkFault.AWAY, 0.1), (LinkFault.ENDED, 0.2)], False),
        ([(LinkFault.REFUSED, 0.1), (LinkFault.REFUSED, 0.1)], False),
    ],
    ids=["once", "again at once", "again much later", "the broker was away", "refused"],
)
def test_without_a_reason_only_a_second_end_soon_after_the_first_tells_of_another(
    ends: list[tuple[LinkFault, float]], left: bool
) -> None:
    it = seat()
    told = faults(it, *ends)
    assert (it.client == "node-a-5f3c", LinkFault.TAKEN_OVER in told) == (left, left)
    assert LinkFault.ENDED not in told


def test_an_id_that_the_broker_made_up_is_nobody_elses() -> None:
    it = seat("")
    ends = [(LinkFault.ENDED, 0.1), (LinkFault.ENDED, 0.1), (LinkFault.TAKEN_OVER, 0.1)]
    assert faults(it, *ends) == [LinkFault.AWAY] * 3
    assert (it.client, it.kept) == ("", False)
