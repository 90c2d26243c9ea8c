"""All scenes of a seed, and who plays them: the module that `scripted:cast` names."""

from collections.abc import Callable, Sequence

from healthy import WAYS
from mind import Mind, Rest, nudging
from pydantic_ai.models import Model
from scene import Heed, Nature, Scene
from surroundings import failing, hindered, lacking
from thinking import assuming, circling, claiming, fixing_wrongly, straying

from midwatch_monitor.config.tasks import Role

MAX_PERIOD = 12
_SETS = 4
"""The periods are dealt out in so many sets, of which a seed takes two: one for each nature."""

_GRADED: tuple[Callable[[int, Nature, Heed], Scene], ...] = (
    assuming,
    fixing_wrongly,
    claiming,
    straying,
)
_GENTLE: tuple[Callable[[int, Nature], Scene], ...] = (lacking, hindered, failing)
"""Where the policy has only a hint and a person, or nothing is to be said at all."""


def faulty(seed: int) -> tuple[Scene, ...]:
    """Every fault of one seed, each in a version that guidance mends and one that it does not."""
    scenes: list[Scene] = []
    for nature in (Nature.RECOVERABLE, Nature.UNRECOVERABLE):
        for place, period in enumerate(_periods(seed, nature)):
            scenes.append(circling(seed, nature, _heed(seed, place), period))
        for place, make in enumerate(_GRADED, start=1):
            scenes.append(make(seed, nature, _heed(seed, place)))
        scenes += [make(seed, nature) for make in _GENTLE]
    return tuple(scenes)


def scenes(seed: int, faults: Sequence[str] = ()) -> tuple[Scene, ...]:
    """All scenes of a seed, as many healthy ones as faulty ones; `faults` names those wanted."""
    bad = [scene for scene in faulty(seed) if not faults or scene.fault in faults]
    good = [WAYS[n % len(WAYS)](seed * 10 + n // len(WAYS)) for n in range(len(bad))]
    return (*bad, *good)


def names() -> tuple[str, ...]:
    """The names of all faults."""
    return tuple(dict.fromkeys(scene.fault for scene in faulty(1)))


def _periods(seed: int, nature: Nature) -> tuple[int, ...]:
    """Over two seeds every period from 1 to 12 comes once, over eight twice in each nature."""
    turn = 2 * (seed - 1) + (seed - 1) // 2 + (nature is Nature.UNRECOVERABLE)
    return tuple(range(1 + turn % _SETS, MAX_PERIOD + 1, _SETS))


def _heed(seed: int, place: int) -> Heed:
    return tuple(Heed)[(seed + place) % len(Heed)]


_PLAYED: dict[str, tuple[Scene, Rest]] = {}
"""The scenes that are played in this process, and at what pace, by the ids of their tasks."""


def enlist(played: Sequence[Scene], rest: Rest) -> None:
    """Say which scenes are about to be played; before each answer a worker awaits `rest`."""
    _PLAYED.update((scene.key, (scene, rest)) for scene in played)


def model_for(role: Role, key: str) -> Model:
    """Who plays a role in a task. A part of a task that was split is played like the whole."""
    if role is not Role.WORKER:
        return nudging()
    scene, rest = _PLAYED[key.partition(".")[0]]
    return Mind(scene, key=key, rest=rest).model()
