"""`midwatch hook`: as an agent calls it, and as a person sets it up."""

import json
import os
import pty
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from midwatch_agents.hooks.adapters import ADAPTERS
from midwatch_agents.hooks.client import KNOWN
from midwatch_agents.hooks.inbox import SOCKET, take_inbox
from midwatch_stage.command import MIDWATCH, PROGRAM, printed_now, refused_now
from midwatch_supervisor.cli import main

Capture = pytest.CaptureFixture[str]
LISTING = """
import sys
before = set(sys.modules)
from midwatch_supervisor.cli import main
code = main()
sys.stderr.write("\\n".join(set(sys.modules) - before))
sys.exit(code)
"""
EVENT = b'{"session_id":"s"}'
SETTINGS = '{\n  "model": "x"\n}\n'


@pytest.fixture
def state() -> Iterator[Path]:
    """Short enough for a socket."""
    with TemporaryDirectory(prefix="mw-", dir="/tmp") as made:
        yield Path(made)


def hook(
    state: Path, payload: bytes = EVENT, program: str = PROGRAM, about: Sequence[str] = ("codex",)
) -> subprocess.CompletedProcess[bytes]:
    words = [sys.executable, "-c", program, "hook", *about]
    environ = {**os.environ, "MIDWATCH_STATE": str(state)}
    return subprocess.run(
        words, input=payload, env=environ, capture_output=True, timeout=300, check=False
    )


def said(done: subprocess.CompletedProcess[bytes]) -> tuple[int, bytes, bytes]:
    return done.returncode, done.stdout, done.stderr


def test_the_answer_of_the_listener_is_all_that_an_agent_reads(state: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener, ThreadPoolExecutor(1) as pool:
        listener.bind(str(state / SOCKET))
        listener.listen()
        listener.settimeout(60)

        def serve() -> bytes:
            connection, _ = listener.accept()
            with connection, connection.makefile("rb") as stream:
                line = stream.readline()
                connection.sendall(json.dumps({"print": "{\ud800é}"}).encode() + b"\n")
            return line

        served = pool.submit(serve)
        assert said(hook(state)) == (0, "{?é}".encode(), b"")
        assert served.result(60) == b'{"v":1,"agent":"codex","event":%b}\n' % EVENT


@pytest.mark.parametrize("payload", [EVENT, b"", b"\xff\x00", b"[" * 100_000])
def test_without_a_listener_an_agent_goes_on(state: Path, payload: bytes) -> None:
    assert said(hook(state, payload)) == (0, b"", b"")
    assert len(list(take_inbox(state))) == 1


@pytest.mark.parametrize(
    "words",
    [("instal", "claude-code", "--yes"), ("instal",), ("isntall",), ("uninstal",), ("codex", "x")],
    ids=" ".join,
)
def test_a_word_that_no_agent_says_is_refused_also_without_a_terminal(
    state: Path, words: tuple[str, ...]
) -> None:
    done = hook(state, about=words)
    assert (done.returncode, done.stdout) == (2, b"")
    assert words[0].encode() in done.stderr
    assert list(take_inbox(state)) == []


def test_a_name_that_no_agent_has_is_answered_with_those_that_are_known(state: Path) -> None:
    done = hook(state, about=["claude"])
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr == (
        b"midwatch hook: there are no hooks for 'claude'; known: claude-code, codex, gemini, qwen\n"
    )
    assert list(take_inbox(state)) == []
    assert tuple(ADAPTERS) == KNOWN


def test_the_help_of_what_an_agent_calls_says_who_calls_it(state: Path) -> None:
    done = hook(state, about=["claude-code", "--help"])
    assert done.returncode == 0
    assert b"`midwatch hook install claude-code`" in done.stdout


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("claude-code", b"`midwatch hook install claude-code` makes them call it"),
        ("claude", b"claude-code, codex, gemini, qwen"),
    ],
)
def test_a_person_who_calls_what_is_an_agents_is_told(name: str, said: bytes) -> None:
    ours, theirs = pty.openpty()
    words = [*MIDWATCH, "hook", name]
    done = subprocess.run(words, stdin=theirs, capture_output=True, timeout=300, check=False)
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_folder_that_cannot_be_made_is_no_matter_of_the_agent(state: Path) -> None:
    (state / "file").touch()
    assert said(hook(state / "file" / "below")) == (0, b"", b"")


def test_an_agent_that_never_ends_its_event_is_left_after_four_seconds() -> None:
    words = [*MIDWATCH, "hook", "codex"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.wait(60) == 0
        assert child.stderr
        assert child.stderr.read() == b""


def test_a_hook_imports_nothing_but_the_standard_library(state: Path) -> None:
    done = hook(state, program=LISTING)
    imported = set(done.stderr.decode().split())
    assert done.returncode == 0
    assert "midwatch_agents.hooks.client" in imported
    others = {name for name in imported if name.partition(".")[0] not in sys.stdlib_module_names}
    assert others == {
        "midwatch_supervisor",
        "midwatch_supervisor.cli",
        "midwatch_agents",
        "midwatch_agents.hooks",
        "midwatch_agents.hooks.client",
        "midwatch_agents.hooks.inbox",
    }
    assert imported & {"asyncio", "typing", "dataclasses", "subprocess", "logging"} == set()


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return tmp_path / "claude/settings.json"


def test_installing_shows_the_change_and_uninstalling_takes_it_back(
    capsys: Capture, settings: Path
) -> None:
    settings.parent.mkdir()
    settings.write_text(SETTINGS)
    settings.chmod(0o640)
    out = printed_now(capsys, "hook", "install", "claude-code", "--yes")
    assert f'+            "command": "{Path(sys.executable).with_name("midwatch")} hook' in out
    assert "Sessions of claude-code that you start from now on call Midwatch: `midwatch" in out
    assert settings.read_text() != SETTINGS
    assert settings.stat().st_mode & 0o777 == 0o640
    assert printed_now(capsys, "hook", "install", "claude-code") == (
        f"{settings} already calls Midwatch. A session that began before does not, nor does a "
        "version of claude-code that has no hooks\n"
    )
    assert main(["hook", "uninstall", "claude-code", "--yes"]) == 0
    assert settings.read_text() == SETTINGS
    assert [file.name for file in settings.parent.iterdir()] == ["settings.json"]


def test_settings_that_turn_hooks_off_are_told(capsys: Capture, settings: Path) -> None:
    settings.parent.mkdir()
    settings.write_text('{"disableAllHooks": true}\n')
    for _ in range(2):
        assert printed_now(capsys, "hook", "install", "claude-code", "--yes").endswith(
            f"`disableAllHooks` in {settings} turns all hooks off: nothing calls Midwatch until "
            "you change it\n"
        )


def test_a_file_that_was_made_is_removed_again(capsys: Capture, settings: Path) -> None:
    assert main(["hook", "install", "codex", "--yes"]) == 0
    assert "Codex runs no hook that is not trusted" in capsys.readouterr().out
    (made,) = (settings.parents[1] / "codex").iterdir()
    assert main(["hook", "install", "codex"]) == 0
    assert "Codex runs no hook that is not trusted" in capsys.readouterr().out
    assert main(["hook", "uninstall", "codex", "--yes"]) == 0
    assert not made.exists()
    assert main(["hook", "uninstall", "codex"]) == 0
    assert capsys.readouterr().out.endswith(f"{made} does not call Midwatch\n")


@pytest.mark.parametrize("held", [b"", b"\n", b"{}\r\n"])
def test_a_file_that_held_nothing_or_an_empty_object_stays(
    capsys: Capture, settings: Path, held: bytes
) -> None:
    settings.parent.mkdir()
    settings.write_bytes(held)
    assert main(["hook", "install", "claude-code", "--yes"]) == 0
    assert main(["hook", "uninstall", "claude-code", "--yes"]) == 0
    assert settings.read_bytes() == held
    assert capsys.readouterr().out.endswith(f"wrote {settings}\n")


def test_several_agents_are_set_up_at_once_or_none_of_them(capsys: Capture, settings: Path) -> None:
    assert main(["hook", "install", "claude-code", "aider", "--yes"]) == 2
    assert not settings.exists()
    assert main(["hook", "install", "claude-code", "codex", "--yes"]) == 0
    assert main(["hook", "uninstall", "claude-code", "codex", "--yes"]) == 0
    assert capsys.readouterr().out.count("removed ") == 2
    assert main(["hook", "install"]) == 2
    assert "name an agent: claude-code, codex, gemini, qwen" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_of_several_agents_one_whose_settings_cannot_be_changed_hinders_no_other(
    command: str, capsys: Capture, settings: Path
) -> None:
    assert main(["hook", "install", "claude-code", "--yes"]) == 0
    if command == "install":
        settings.unlink()
    (codex := settings.parents[1] / "codex").mkdir()
    (codex / "hooks.json").write_text("{} // mine\n")
    assert main(["hook", command, "codex", "claude-code", "--yes"]) == 2
    assert f"{codex / 'hooks.json'}: the settings are not plain JSON" in capsys.readouterr().err
    assert settings.exists() == (command == "install")


def test_a_link_to_the_settings_stays_one(settings: Path) -> None:
    kept = settings.parents[1] / "dotfiles.json"
    kept.write_text(SETTINGS)
    settings.parent.mkdir()
    settings.symlink_to(kept)
    assert main(["hook", "install", "claude-code", "--yes"]) == 0
    assert settings.is_symlink()
    assert "midwatch hook claude-code" in kept.read_text()


def test_a_dry_run_writes_nothing(capsys: Capture, settings: Path) -> None:
    out = printed_now(capsys, "hook", "install", "claude-code", "--dry-run")
    assert "+++ " in out
    assert out.endswith(f"\nwould write {settings}\n")
    assert not settings.parent.exists()


def test_without_a_terminal_nothing_is_written_unasked(capsys: Capture, settings: Path) -> None:
    assert main(["hook", "install", "claude-code"]) == 2
    assert "confirm with --yes, or preview with --dry-run" in capsys.readouterr().err
    assert not settings.exists()


def test_settings_with_comments_are_left_as_they_are(capsys: Capture, settings: Path) -> None:
    settings.parent.mkdir()
    settings.write_text("{} // mine\n")
    assert main(["hook", "install", "claude-code", "--yes"]) == 2
    assert f"{settings}: the settings are not plain JSON" in capsys.readouterr().err
    assert settings.read_text() == "{} // mine\n"


def test_an_agent_without_hooks_is_bad_usage(capsys: Capture) -> None:
    assert refused_now(capsys, "hook", "install", "aider") == (
        "there are no hooks for 'aider'; known: claude-code, codex, gemini, qwen\n"
    )


@pytest.mark.parametrize(("answered", "code"), [("no", 1), ("yes", 0), ("change", 2)])
def test_a_person_at_a_terminal_is_asked(settings: Path, answered: str, code: int) -> None:
    settings.parent.mkdir()
    settings.write_text(SETTINGS)
    ours, theirs = pty.openpty()
    words = [*MIDWATCH, "hook", "install", "claude-code"]
    with subprocess.Popen(words, stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs) as child:
        os.close(theirs)
        shown = b""
        while b"continue:" not in shown:
            shown += os.read(ours, 4096)
        if answered == "change":
            settings.write_text("{}")
        os.write(ours, b"no\n" if answered == "no" else b"yes\n")
        assert child.wait(60) == code
    os.close(ours)
    assert ("midwatch hook" in settings.read_text()) is (code == 0)


def test_a_person_who_mistypes_is_told(settings: Path) -> None:
    ours, theirs = pty.openpty()
    words = [*MIDWATCH, "hook", "instal"]
    done = subprocess.run(words, stdin=theirs, capture_output=True, timeout=300, check=False)
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 2
    assert b'Did you mean "install"?' in done.stderr
