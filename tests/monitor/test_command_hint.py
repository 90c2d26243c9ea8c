"""Commands that people are told name the journal that they need."""

import asyncio

import pytest

from midwatch_monitor.command_hint import command, naming_journal


@pytest.mark.parametrize(
    ("journal", "named"),
    [
        ("x.db", "x.db"),
        ("my work/x.db", "'my work/x.db'"),
        ("postgresql://hub/night?sslmode=require", "'postgresql://hub/night?sslmode=require'"),
        ("postgresql://me:s3cret@hub/night?sslmode=require", "'postgresql://me:***@hub/night'"),
        ("postgresql://hub/night?user=me&password=s3cret", "postgresql://hub/night"),
        ("postgresql://me:s3@cret@hub/night", "URL"),
    ],
)
def test_it_names_the_journal_as_a_shell_takes_it_and_no_password(journal: str, named: str) -> None:
    with naming_journal(journal):
        assert command("show 3") == f"midwatch show 3 --journal {named}"
    with naming_journal(None):
        assert command("show 3") == "midwatch show 3"
    assert command("show 3") == "midwatch show 3"


async def test_it_is_known_to_what_is_begun_in_there() -> None:
    with naming_journal("x.db"):
        told = asyncio.create_task(asyncio.to_thread(command, "resume"))
    assert await told == "midwatch resume --journal x.db"
