"""Which project a command means, and `midwatch forget` over a real journal."""

import asyncio
import os
import pty
import re

import pytest

from midwatch_monitor.errors import UsageError
from midwatch_monitor.records import Feedback, Lesson
from midwatch_supervisor.cli.learn.options import choose_project
from midwatch_tests.command import MIDWATCH, Cli
from midwatch_tests.harness import PastAttempts
from midwatch_tests.reading import erasures

pytestmark = pytest.mark.usefixtures("named_by_the_environment")


@pytest.fixture
async def two(past: PastAttempts) -> None:
    """Two projects with a lesson each, and nobody at work."""
    for project in ("shop", "other"):
        attempt = await past.attempt(project)
        await past.end(attempt)
        await past.say(attempt, Feedback(accepted=False, comment="no"), Lesson(text=project))


async def lesson_texts(past: PastAttempts) -> list[str]:
    return [known.lesson.text for known in await past.learned.lessons()]


async def test_what_is_left_is_a_bare_record(cli: Cli, past: PastAttempts, two: None) -> None:
    await cli.said("forget", "shop", "--yes", "--from", "ada")
    (record,) = await erasures(past.journal)
    assert (record.author, await lesson_texts(past)) == ("ada", ["other"])


@pytest.mark.parametrize(
    ("answer", "code", "texts"), [("yes", 0, ["other"]), ("y", 1, ["other", "shop"])]
)
async def test_at_a_terminal_it_asks(
    past: PastAttempts, two: None, answer: str, code: int, texts: list[str]
) -> None:
    own, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *(*MIDWATCH, "forget", "shop"),
        stdin=theirs,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=theirs,
    )
    os.write(own, f"{answer}\n".encode())
    async with asyncio.timeout(120):
        assert await process.wait() == code
    said = os.read(own, 4_096).decode()
    os.close(own)
    os.close(theirs)
    assert "This deletes 1 task, 1 attempt and 5 entries of shop for good." in said
    assert await lesson_texts(past) == texts


KNOWN = ("/srv/ada/shop", "/srv/ada/shop-api", "site")


@pytest.mark.parametrize(
    ("known", "option", "here", "meant"),
    [
        (KNOWN, "site", "/elsewhere", "site"),
        (KNOWN, "si", "/elsewhere", "site"),
        (KNOWN, "shop", "/elsewhere", "/srv/ada/shop"),
        (KNOWN, "shop-api/", "/elsewhere", "/srv/ada/shop-api"),
        (KNOWN, "/srv/ada/shop", "/elsewhere", "/srv/ada/shop"),
        (KNOWN, "/srv/ada/shop-", "/elsewhere", "/srv/ada/shop-api"),
        (KNOWN, None, "site", "site"),
        (("site",), None, "/elsewhere", "site"),
    ],
)
def test_a_project_is_named_by_its_name_its_folder_or_a_beginning_or_by_where_one_is(
    known: tuple[str, ...], option: str | None, here: str, meant: str
) -> None:
    assert choose_project(known, option, here=here) == meant


@pytest.mark.parametrize(
    ("known", "option", "said"),
    [
        ((), "site", "nothing has been learned yet: start with `midwatch run FILE`"),
        (("a", "b"), None, "name the project with --project; known: a, b"),
        (("a", "b"), "", "there is no project ``; known: a, b"),
        (("ab", "ac"), "a", "`a` could mean any of ab, ac"),
    ],
)
def test_a_project_that_cannot_be_told_is_an_error_that_lists_them(
    known: tuple[str, ...], option: str | None, said: str
) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(said)}$"):
        choose_project(known, option, here="/elsewhere")
