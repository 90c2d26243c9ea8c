"""A command imports what it needs, and no more: that is most of the time that it takes."""

from pathlib import Path

import pytest

from midwatch_monitor.journal.core import schema
from midwatch_monitor.journal.core.engine import Access
from midwatch_stage.command import process
from midwatch_supervisor.cli.app import COMMANDS

DEAR = ("pydantic_ai", "textual", "alembic", "dbos", "aiomqtt", "httpx", "psycopg", "harness")
WORKS = ("run", "demo", "resume", "node", "monitor", "submit")
"""Commands that do the work, with all that this takes."""
CONFIGURATION = ("midwatch_monitor.config.settings", "midwatch_monitor.config.tasks")
PROGRAM = """
import sys
from midwatch_supervisor.cli import main
try:
    code = main(sys.argv[1:])
except SystemExit as end:
    code = end.code
print("imported", *sys.modules)
sys.exit(code)
"""


@pytest.mark.parametrize(
    ("words", "more"),
    [
        (("--help",), ("sqlalchemy", "asyncio", "yaml", "pydantic")),
        (("--version",), ("sqlalchemy", "asyncio", "yaml", "pydantic")),
        *(((name, "--help"), ("sqlalchemy", "yaml", "pydantic")) for name in WORKS),
        (("status",), CONFIGURATION),
        (("status", "--json"), CONFIGURATION),
    ],
)
def test_what_a_command_does_not_need_is_not_imported(
    tmp_path: Path, words: tuple[str, ...], more: tuple[str, ...]
) -> None:
    journal = tmp_path / "journal.db"
    schema.open_store(journal, Access.CREATE).close()
    place = ("--journal", str(journal)) if "status" in words else ()
    done = process(*words, *place, program=PROGRAM, check=True)
    imported = set(done.stdout.rpartition("imported ")[2].split())
    assert "midwatch_supervisor" in imported
    assert imported & {*DEAR, *more} == set()


def test_the_help_of_no_command_imports_what_only_its_work_needs() -> None:
    program = (
        "import sys; from midwatch_supervisor.cli import main\n"
        "for name in sys.argv[1:]:\n    main([name, '--help'])\n"
        "print('imported', *sys.modules)"
    )
    done = process(*COMMANDS, program=program, check=True)
    assert set(done.stdout.rpartition("imported ")[2].split()) & {*DEAR} == set()


def test_garbage_is_collected_again_once_the_command_runs() -> None:
    """Until then it is not: to look for garbage amid imports costs an eighth of a short command."""
    program = (
        "import atexit, gc, sys; from midwatch_supervisor.cli import main; "
        "atexit.register(lambda: print(gc.isenabled(), gc.get_freeze_count() > 0)); "
        "sys.exit(main())"
    )
    done = process("config", "show", "--json", program=program, check=True)
    assert done.stdout.endswith("}\nTrue True\n")


def test_no_library_advertises_itself_in_the_log() -> None:
    program = (
        "import atexit, os, sys; from midwatch_supervisor.cli import main; "
        "atexit.register(lambda: print(os.environ['PYDANTIC_AI_NO_BANNER'])); "
        "sys.exit(main())"
    )
    done = process("--version", program=program, check=True)
    assert done.stdout.endswith("\n1\n")
