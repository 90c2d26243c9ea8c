"""Faults of the surroundings: what is missing, what is forbidden, a provider that fails."""

from itertools import count

from projects import (
    CATALOGUE_CHECK,
    CATALOGUE_GOAL,
    ORDERS_GOAL,
    PUBLISH_CHECK,
    PUBLISH_GOAL,
    REPORT,
    REPORT_GOAL,
    REPORT_PROGRAM,
    catalogue,
    orders,
    report,
)
from scene import Nature, Player, Scene, finish
from thinking import mended
from turns import Play, Turn, read, run, write

from midwatch_monitor.records import Diagnosis

# -- a missing dependency ------------------------------------------------------------------

_MISSING = ("missing", "not installed", "depend", "module", "not there", "without it")


def _tries() -> tuple[Turn, ...]:
    python = "python3 -S -E -B"
    return (
        run(REPORT),
        run(f"{python} -c 'import lumenfmt'"),
        write("report.py", REPORT_PROGRAM.replace("import lumenfmt", "import lumenfmt as frames")),
        run(REPORT),
        run(f"{python} -m lumenfmt --version"),
        write("report.py", REPORT_PROGRAM.replace("import", "from lumenfmt import framed  #")),
        run(f"{REPORT} --plain"),
        run(f"{python} -c 'import sys; sys.path.append(\".\"); import lumenfmt'"),
        run("sh bin/test"),
    )


def _lacking(player: Player) -> Play:
    player.begin(*_MISSING)
    player.diary.belief = "the module lumenfmt is not installed here"
    yield read("report.py")
    tries = _tries()
    for n in count():
        if player.sees:
            break
        if n == 0:
            player.onset()
        player.stuck(n)
        if player.frank and n > 2:
            player.diary.blockers = ("the module lumenfmt is missing",)
        heard = yield tries[n % len(tries)]
        player.hear(heard, *_MISSING)
    player.diary.blockers, player.diary.confidence = (), 80
    yield run("find . -name 'lumen*'", say="If it cannot be installed, is there a copy of it?")
    path = 'import sys\n\nsys.path.insert(0, "third_party/frames")\n'
    yield write("report.py", path + REPORT_PROGRAM)
    yield from finish(player, ("report.py",))


def lacking(seed: int, nature: Nature) -> Scene:
    """A worker that lacks a module; where it is recoverable, a copy lies in the project."""
    return Scene(
        fault="dependency",
        nature=nature,
        seed=seed,
        files=report(seed, possible=nature is Nature.RECOVERABLE),
        goal=REPORT_GOAL,
        play=_lacking,
        causes=frozenset({Diagnosis.MISSING_DEPENDENCY}),
    )


# -- a broken environment ------------------------------------------------------------------

_AROUND = ("surroundings", "environment", "permission", "disk", "in the way", "another way")
_PUBLISHING = (
    "sh tools/publish",
    "sh -e tools/publish",
    "id -un && sh tools/publish",
    "cat tools/publish",
    "sh tools/publish 2>&1 | tail -1; sh tools/publish",
    "umask 022; sh tools/publish",
)


def _hindered(player: Player) -> Play:
    player.begin(*_AROUND)
    player.diary.belief = "the machine does not let me publish"
    yield read("README.md")
    for n in count():
        if player.sees:
            break
        if n == 0:
            player.onset()
        player.stuck(n)
        if player.frank and n > 2:
            player.diary.blockers = ("tools/publish cannot publish on this machine",)
        heard = yield run(_PUBLISHING[n % len(_PUBLISHING)])
        player.hear(heard, *_AROUND)
    player.diary.blockers, player.diary.confidence = (), 80
    yield read("tools/README.md", say="Is there a place to which I may write?")
    yield run("mkdir -p out && sh tools/publish --into out/catalogue.txt")
    yield write("published.txt", "out/catalogue.txt\n")
    yield from finish(player, ("published.txt",), check=CATALOGUE_CHECK)


def hindered(seed: int, nature: Nature) -> Scene:
    """A worker in a broken environment; where it is recoverable, another place can be written."""
    possible = nature is Nature.RECOVERABLE
    kinds = ("permission", "disk") if possible else ("network", "credentials")
    obstacle = kinds[seed % 2]
    return Scene(
        fault="environment",
        variant=obstacle,
        nature=nature,
        seed=seed,
        files=catalogue(obstacle),
        goal=CATALOGUE_GOAL if possible else PUBLISH_GOAL,
        acceptance=(CATALOGUE_CHECK if possible else PUBLISH_CHECK,),
        play=_hindered,
        causes=frozenset({Diagnosis.ENVIRONMENT}),
    )


# -- a provider that fails -----------------------------------------------------------------


def _working(player: Player) -> Play:
    yield read("README.md")
    yield read("src/total.awk")
    yield run("sh bin/test")
    yield run("head -2 data/orders.csv")
    player.diary.progress = 50
    yield from mended(player)


def failing(seed: int, nature: Nature) -> Scene:
    """A worker whose provider fails: for a while, or, where it is unrecoverable, for ever."""
    passing = ({2: 2, 4: 3}, {3: 3, 6: 2}, {4: 6})[seed % 3]
    return Scene(
        fault="provider",
        nature=nature,
        seed=seed,
        files=orders(seed),
        goal=ORDERS_GOAL,
        play=_working,
        causes=frozenset({Diagnosis.PROVIDER}),
        outages=passing if nature is Nature.RECOVERABLE else {3: -1},
    )
