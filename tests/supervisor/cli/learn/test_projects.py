"""Which project a command means."""

import pytest

from midwatch_monitor.errors import UsageError
from midwatch_supervisor.cli.learn.options import choose_project

KNOWN = ("/srv/ada/shop", "/srv/ada/shop-api", "site")


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("site", "site"),
        ("si", "site"),
        ("shop", "/srv/ada/shop"),
        ("shop-api/", "/srv/ada/shop-api"),
        ("/srv/ada/shop", "/srv/ada/shop"),
        ("/srv/ada/shop-", "/srv/ada/shop-api"),
    ],
)
def test_a_project_is_named_by_its_name_its_folder_or_a_beginning(option: str, meant: str) -> None:
    assert choose_project(KNOWN, option, here="/elsewhere") == meant


@pytest.mark.parametrize(
    ("known", "here", "meant"),
    [(KNOWN, "site", "site"), (("site",), "/elsewhere", "site")],
)
def test_without_a_name_it_is_that_of_the_folder_or_the_only_one(
    known: tuple[str, ...], here: str, meant: str
) -> None:
    assert choose_project(known, None, here=here) == meant


@pytest.mark.parametrize(
    ("known", "option", "said"),
    [
        ((), None, "nothing has been learned yet: start with `midwatch run FILE`"),
        ((), "site", "nothing has been learned yet: start with `midwatch run FILE`"),
        (("a", "b"), None, "name the project with --project; known: a, b"),
        (("a", "b"), "c", "there is no project `c`; known: a, b"),
        (("a", "b"), "", "there is no project ``; known: a, b"),
        (("ab", "ac"), "a", "`a` could mean any of ab, ac"),
    ],
)
def test_a_project_that_cannot_be_told_is_an_error_that_lists_them(
    known: tuple[str, ...], option: str | None, said: str
) -> None:
    with pytest.raises(UsageError) as error:
        choose_project(known, option, here="/elsewhere")
    assert str(error.value) == said
