"""A value that a model refuses for a reason of its own."""

from collections.abc import Iterable
from difflib import get_close_matches


class Refusal(ValueError):
    """What is wrong, and where below the validated value it stands."""

    def __init__(self, problem: str, *, at: tuple[str | int, ...] = (), nearest: str = "") -> None:
        self.problem = problem
        self.at = at
        self.nearest = nearest
        super().__init__(problem)


def nearest_to(word: str, known: Iterable[str]) -> str:
    """The known word that was probably meant, or nothing."""
    return next(iter(get_close_matches(word.lower(), list(known), n=1)), "")
