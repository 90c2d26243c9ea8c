"""A worker that prints secrets: neither the journal's log nor any command tells them."""

import base64
import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from midwatch_monitor.journal import Journal
from midwatch_supervisor.cli import main
from midwatch_tests import spilling
from midwatch_tests.made_up import NAMED, SECRETS, key_block

TOKEN = "only-words-in-this-one"
PROGRAM = "import sys; from midwatch_supervisor.cli import main; sys.exit(main(sys.argv[1:]))"
WANTED = SECRETS["github token"]
TASKS = f"""
models: {{worker: "scripted:midwatch_tests.spilling@0", supervisor: none}}
workers:
  clerk:
    kind: task
    tools:
      - midwatch_tests.spilling:environment
      - midwatch_tests.spilling:fail_with
      - midwatch_tests.spilling:put
      - midwatch_tests.spilling:crash
defaults: {{max_attempts: 1}}
tasks:
  - {{id: spill, goal: "Use {WANTED}.", acceptance: ["true"]}}
  - {{id: crash, title: "With {WANTED}", goal: Do it., acceptance: ["true"]}}
"""
HIDDEN = [
    *SECRETS.values(),
    *(secret for _, secret in NAMED.values()),
    TOKEN,
    base64.b64encode(TOKEN.encode()).decode()[:24],
    *(line for line in key_block("RSA PRIVATE KEY").splitlines() if " " not in line),
]


def midwatch(folder: Path, *argv: str, umask: int = 0o022, code: int = 0) -> str:
    shared = str(Path(__file__).parents[2] / "shared")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *argv],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": shared, spilling.VARIABLE: TOKEN, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        umask=umask,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def exposed_secrets(text: str) -> list[str]:
    """The secrets that a text tells."""
    return [secret for secret in HIDDEN if secret in text]


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder in which the worker has done its work, and what `run --json` printed meanwhile."""
    folder = tmp_path_factory.mktemp("spilled")
    (folder / "tasks.yaml").write_text(TASKS)
    config = folder / "midwatch.yaml"
    config.write_text("run: {sandbox: off}\n")
    argv = ("run", "tasks.yaml", "--headless", "--json", "--config", str(config))
    return folder, midwatch(folder, *argv, umask=0, code=1)


async def test_neither_the_log_nor_what_a_run_prints_has_a_secret(
    finished_run: tuple[Path, str],
) -> None:
    file = finished_run[0] / ".midwatch" / "journal.db"
    with sqlite3.connect(file) as connection:
        read = "SELECT body FROM entry UNION ALL SELECT title FROM task"
        bodies = "\n".join(body for (body,) in connection.execute(read))
    connection.close()
    async with await Journal.open_to_read(file) as journal:
        kept = b"".join(each.body for each in await journal.messages(1))
    assert exposed_secrets(bodies) == exposed_secrets(finished_run[1]) == []
    assert '"type":"step"' in finished_run[1].replace(" ", "")  # it was printed as the run went on
    assert bodies.count("[masked: ") > len(HIDDEN)
    assert WANTED.encode() in kept  # the worker is told what was written
    assert spilling.SAID.encode() in kept  # the model's own conversation goes on as it was


@pytest.mark.parametrize(
    "argv",
    [
        ("export", "spill"),
        ("show", "spill"),
        ("show", "spill", "--json"),
        ("show", "crash"),
        ("status",),
        ("status", "--json"),
        ("report", "--html"),
        ("report", "--json"),
    ],
    ids=" ".join,
)
def test_no_command_tells_a_secret(
    finished_run: tuple[Path, str], capsys: pytest.CaptureFixture[str], argv: tuple[str, ...]
) -> None:
    assert main([*argv, "--journal", str(finished_run[0] / ".midwatch" / "journal.db")]) == 0
    printed = "".join(capsys.readouterr())
    assert printed
    assert exposed_secrets(printed) == []


def test_what_an_older_midwatch_recorded_is_masked_when_it_is_told(
    finished_run: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "old.db"
    with sqlite3.connect(finished_run[0] / ".midwatch" / "journal.db") as source:
        with sqlite3.connect(old) as target:
            source.backup(target)
            target.execute(
                "UPDATE entry SET body = replace(body, '[masked: ', ? || ' [masked: ')",
                (SECRETS["xai key"],),
            )
            target.execute("UPDATE task SET title = ?", (WANTED,))
            target.execute("ALTER TABLE compatibility DROP COLUMN mask_key")
            target.execute("UPDATE alembic_version SET version_num = '0003'")
        target.close()
    source.close()
    for command in ("show", "export"):
        assert main([command, "spill", "--journal", str(old)]) == 0
        text = "".join(capsys.readouterr())
        assert exposed_secrets(text) == []
        assert "[masked: xai key " in text


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.matrix
def test_what_midwatch_makes_is_private_whatever_the_umask(finished_run: tuple[Path, str]) -> None:
    folder = finished_run[0]
    midwatch(folder, "export", "spill", "--output", "spill.jsonl", umask=0)
    midwatch(folder, "report", "--html", "--output", "report.html", umask=0)
    assert mode(folder / ".midwatch") == 0o700
    assert mode(folder / ".midwatch" / "journal.db") == 0o600
    assert mode(folder / "spill.jsonl") == 0o600
    assert mode(folder / "report.html") == 0o600


async def test_an_open_journal_is_private_as_a_whole(journal: Journal, journal_file: Path) -> None:
    assert journal.name == str(journal_file)
    beside = sorted(journal_file.parent.glob(f"{journal_file.name}*"))
    assert len(beside) == 3
    assert {mode(each) for each in beside} == {0o600}


async def test_an_older_journal_that_others_could_read_is_made_private(tmp_path: Path) -> None:
    folder = tmp_path / ".midwatch"
    file = folder / "journal.db"
    await (await Journal.open(file)).close()
    for before, after in ((0o644, 0o600), (0o440, 0o400)):  # tightened, and never loosened
        folder.chmod(0o755)
        file.chmod(before)
        async with await Journal.open_to_read(file):
            assert (mode(folder), mode(file)) == (0o700, after)


async def test_a_folder_that_somebody_else_chose_keeps_its_mode(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir(0o755)
    async with await Journal.open(folder / "journal.db"):
        assert (mode(folder), mode(folder / "journal.db")) == (0o755, 0o600)


def test_a_bad_pattern_is_named_by_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "own.yaml"
    config.write_text("secrets:\n  patterns:\n    ours: 'ours_[0-9'\n")
    assert main(["config", "check", str(config)]) == 2
    said = f"{config}:3: secrets.patterns.ours: is not a pattern that RE2 knows"
    assert said in "".join(capsys.readouterr())
