"""A run tells people from its own process, and `midwatch notify test` says whether that works."""

import asyncio
import json
import subprocess
import sys
from asyncio.subprocess import Process
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from pathlib import Path

import pytest

from midwatch_agents.scripted import Call, Phase, Script, Turn
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.records import Fault, Step
from midwatch_tests.command import midwatch, refused_now
from midwatch_tests.harness import RunHarness
from midwatch_tests.ports import LOOPBACK, free_port
from midwatch_tests.receivers import mail_server, webhook

TASKS = """
    models: {worker: "scripted:test_commands@0.02", supervisor: none}
    tasks: [{id: fix, goal: Fix it., acceptance: ["false"], budget: {requests: 60}}]
"""


def script_for(role: Role, key: str) -> Script:
    look = Call(tool="run_command", args=json.dumps({"command": "cat private-notes.txt"}))
    return Script(phases=(Phase(turns=(Turn(calls=(look,)),), repeat=1),))


async def read_output(process: Process) -> tuple[int | None, str, str]:
    out, errors = await asyncio.wait_for(process.communicate(), 300)
    return process.returncode, out.decode(), errors.decode()


@pytest.fixture
def hook_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK", "key-of-the-hook")


def configure(harness: RunHarness, targets: str, more: str = "") -> None:
    text = f"run: {{sandbox: off}}\nnotify:\n  targets: {targets}\n  group_seconds: 0.5\n{more}"
    (harness.folder / "midwatch.yaml").write_text(text)


@pytest.mark.long
@pytest.mark.usefixtures("hook_secret")
async def test_receivers_that_are_away_or_never_answer_slow_nothing_and_are_named(
    harness: RunHarness,
) -> None:
    (harness.folder / "tasks.yaml").write_text(TASKS)
    async with webhook() as silent, webhook() as receiver:
        silent.status = 0
        away = f"http://{LOOPBACK}:{free_port()}/"
        ways = {"away": away, "silent": silent.url, "team": receiver.url}
        targets = (f"{name}: {{webhook: '{url}', secret_env: HOOK}}" for name, url in ways.items())
        configure(harness, f"{{{', '.join(targets)}}}")
        _, _, errors = await read_output(await harness.start("run", "tasks.yaml", "--headless"))
        over = datetime.now(UTC)
    said = "not all messages were sent before the end: no answer from silent\n"
    assert errors == said
    assert "waiting" in {each["kind"] for each in receiver.items}
    faults = await harness.journal.entries(kinds=(Fault,))
    parts = sorted(each.record.part for each in faults if isinstance(each.record, Fault))
    assert parts == ["message to away", "message to silent"]
    # Whoever waited for an answer would do nothing for the ten seconds that a receiver may take.
    first, waits = silent.times[0], timedelta(seconds=10)
    steps = await harness.journal.entries(kinds=(Step,))
    after = [each.at for each in steps if each.at > first]
    assert min(after, default=first) < first + waits
    given_up = max(each.at for each in faults)
    assert given_up - steps[-1].at < 2 * waits
    assert over - given_up < waits


@pytest.mark.long
@pytest.mark.usefixtures("hook_secret")
async def test_a_receiver_that_fails_is_said_by_the_run_and_by_status_until_it_works(
    harness: RunHarness,
) -> None:
    (harness.folder / "tasks.yaml").write_text(TASKS.replace("requests: 60", "requests: 3"))
    words = ("run", "tasks.yaml", "--headless", "--journal", "j.db")
    async with webhook() as receiver:
        configure(harness, f"{{bad: {{webhook: '{receiver.url}', secret_env: HOOK, ends: true}}}}")
        receiver.status = 500
        _, out, _ = await read_output(await harness.start(*words))
        said = "fix: fault: the message to bad failed: the webhook answered HTTP 500"
        assert [line[9:] for line in out.splitlines() if "HTTP" in line] == [said]
        _, status, _ = await read_output(await harness.start("status", "--journal", "j.db"))
        (told,) = (line for line in status.splitlines() if "HTTP" in line)
        assert told.startswith("messages of run 1 to bad have failed since 20")
        receiver.status = 200
        await read_output(await harness.start(*words))
    _, status, _ = await read_output(await harness.start("status", "--all", "--journal", "j.db"))
    assert status.count("to bad have failed") == 1
    _, lines, _ = await read_output(await harness.start("status", "--json", "--journal", "j.db"))
    assert '"type": "target"' not in lines


@pytest.fixture
def harness_folder(harness: RunHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands are given in this process, in the folder of the harness."""
    monkeypatch.chdir(harness.folder)


def test_a_missing_variable_ends_a_run_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tasks.yaml").write_text(TASKS)
    Path("midwatch.yaml").write_text("notify: {targets: {phone: {url_env: NTFY_URL}}}\n")
    said = "notify.targets.phone: the environment variable NTFY_URL is not set\n"
    assert refused_now(capsys, "run", "tasks.yaml", "--headless") == said


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated")  # Apprise imports it
@pytest.mark.usefixtures("hook_secret", "harness_folder")
async def test_a_test_message_goes_to_each_target_and_one_failure_is_the_exit_code(
    harness: RunHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    dead = free_port()
    async with webhook() as receiver, mail_server() as mail:
        to = f"mailto://{LOOPBACK}:{mail.port}/?smtp={LOOPBACK}&mode=insecure"
        (harness.folder / "url").write_text(f"{to}&from=watch@a.test&to=ann@b.test\n")
        nobody = f"mailto://{LOOPBACK}:{dead}/?from=a@b.test&to=c@d.test&mode=insecure"
        configure(
            harness,
            f"{{team: {{webhook: '{receiver.url}', secret_env: HOOK}}, post: {{url_file: url}},"
            f" gone: {{webhook: 'http://{LOOPBACK}:{dead}/', secret_env: HOOK}},"
            f" lost: {{url: '{nobody}'}}}}",
        )
        assert await midwatch("notify", "test") == 1
        out, errors = capsys.readouterr()
        gone, lost, *_ = errors.splitlines()
        assert out == "team: sent\npost: sent\n"
        assert gone == "gone: the webhook cannot be reached: no connection to its host"
        assert lost.startswith("lost: the service rejected it: Connection error")
        assert await midwatch("notify", "test", "post") == 0
    first = message_from_bytes(mail.bodies[0])
    assert (first["To"], first["Subject"]) == ("ann@b.test", "Midwatch: this is a test")
    assert (len(mail.bodies), len(receiver.bodies)) == (2, 1)


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated")  # Apprise imports it
@pytest.mark.usefixtures("hook_secret", "harness_folder")
async def test_a_target_that_is_configured_wrongly_keeps_the_others_from_nothing(
    harness: RunHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    async with webhook() as receiver:
        hook = f"webhook: '{receiver.url}', secret_env"
        configure(harness, f"{{a: {{{hook}: NOT_SET}}, b: {{url: 'nix://'}}, c: {{{hook}: HOOK}}}}")
        assert await midwatch("notify", "test") == 2
    out, errors = capsys.readouterr()
    first, second = errors.splitlines()
    assert (out, len(receiver.bodies)) == ("c: sent\n", 1)
    assert first == "a: the environment variable NOT_SET is not set"
    assert second.startswith("b: no service matches this URL (nix://)")


def test_nothing_of_it_is_imported_where_nobody_is_called() -> None:
    program = (
        "import sys; import midwatch_supervisor.cli.run.conduct, "
        "midwatch_supervisor.fleet.monitors.fleet_monitor; sys.exit('apprise' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, timeout=300)
    assert done.returncode == 0


@pytest.mark.long
@pytest.mark.usefixtures("hook_secret", "harness_folder")
async def test_of_a_webhook_that_hangs_it_is_said_how_long_it_was_waited_for(
    harness: RunHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    async with webhook() as receiver:
        receiver.status = 0
        configure(harness, f"{{team: {{webhook: '{receiver.url}', secret_env: HOOK}}}}")
        assert await midwatch("notify", "test") == 1
    assert capsys.readouterr().err == "team: the webhook did not answer within 10 s\n"
