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
from midwatch_supervisor.cli import main
from midwatch_tests.command import MIDWATCH, PROGRAM, printed_now, refused_now

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
NONE_FOR = "there are no hooks for {!r}; known: claude-code, codex, gemini, qwen\n"


@pytest.fixture
def state() -> Iterator[Path]:
    """Short enough for a socket."""
    with TemporaryDirectory(prefix="mw-", dir="/tmp") as made:
        yield Path(made)


def run_hook(
    state: Path, payload: bytes = EVENT, program: str = PROGRAM, about: Sequence[str] = ("codex",)
) -> tuple[int, bytes, bytes]:
    """The exit code of a hook, and what it printed."""
    words = [sys.executable, "-c", program, "hook", *about]
    environ = {**os.environ, "MIDWATCH_STATE": str(state)}
    done = subprocess.run(
        words, input=payload, env=environ, capture_output=True, timeout=300, check=False
    )
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
        assert run_hook(state) == (0, "{?é}".encode(), b"")
        assert served.result(60) == b'{"v":1,"agent":"codex","event":%b}\n' % EVENT


@pytest.mark.parametrize("payload", [EVENT, b"\xff\x00", b"[" * 100_000])
def test_without_a_listener_an_agent_goes_on(state: Path, payload: bytes) -> None:
    assert run_hook(state, payload) == (0, b"", b"")
    assert len(list(take_inbox(state))) == 1


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("instal claude-code --yes", 2, "instal"),
        ("uninstal", 2, "uninstal"),
        ("codex x", 2, "codex"),
        ("claude", 0, f"midwatch hook: {NONE_FOR.format('claude')}"),
    ],
)
def test_a_word_that_no_agent_says_is_refused_also_without_a_terminal(
    state: Path, words: str, code: int, said: str
) -> None:
    ended, out, err = run_hook(state, about=words.split())
    assert (ended, out, said in err.decode()) == (code, b"", True)
    assert list(take_inbox(state)) == []
    assert tuple(ADAPTERS) == KNOWN


def test_the_help_of_what_an_agent_calls_says_who_calls_it(state: Path) -> None:
    code, out, _ = run_hook(state, about=["claude-code", "--help"])
    assert (code, b"`midwatch hook install claude-code`" in out) == (0, True)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("claude-code", b"`midwatch hook install claude-code` makes them call it"),
        ("claude", b"claude-code, codex, gemini, qwen"),
        ("instal", b'Did you mean "install"?'),
    ],
)
def test_a_person_who_calls_what_is_an_agents_or_mistypes_is_told(name: str, said: bytes) -> None:
    ours, theirs = pty.openpty()
    words = [*MIDWATCH, "hook", name]
    done = subprocess.run(words, stdin=theirs, capture_output=True, timeout=300, check=False)
    os.close(ours)
    os.close(theirs)
    assert (done.returncode, said in done.stderr) == (2, True)


def test_a_folder_that_cannot_be_made_is_no_matter_of_the_agent(state: Path) -> None:
    (state / "file").touch()
    assert run_hook(state / "file" / "below") == (0, b"", b"")


def test_an_agent_that_never_ends_its_event_is_left_after_four_seconds() -> None:
    words = [*MIDWATCH, "hook", "codex"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.wait(60) == 0
        assert child.stderr
        assert child.stderr.read() == b""


def test_a_hook_imports_nothing_but_the_standard_library(state: Path) -> None:
    code, _, errors = run_hook(state, program=LISTING)
    imported = set(errors.decode().split())
    assert code == 0
    others = {name for name in imported if name.partition(".")[0] not in sys.stdlib_module_names}
    hooks = {f"midwatch_agents.hooks{each}" for each in ("", ".client", ".inbox")}
    assert others == hooks | {"midwatch_agents", "midwatch_supervisor", "midwatch_supervisor.cli"}
    assert imported & {"asyncio", "typing", "dataclasses", "subprocess", "logging"} == set()


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the settings of Claude Code are; those of Codex are beside."""
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    (tmp_path / "claude").mkdir()
    return tmp_path / "claude" / "settings.json"


def change_hooks(command: str, *agents: str, code: int = 0) -> None:
    assert main(["hook", command, *agents, "--yes"]) == code


def test_installing_shows_the_change_and_uninstalling_takes_it_back(
    capsys: Capture, settings: Path
) -> None:
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
    change_hooks("uninstall", "claude-code")
    assert settings.read_text() == SETTINGS
    assert [file.name for file in settings.parent.iterdir()] == ["settings.json"]


def test_settings_that_turn_hooks_off_are_told(capsys: Capture, settings: Path) -> None:
    settings.write_text('{"disableAllHooks": true}\n')
    for _ in range(2):
        assert printed_now(capsys, "hook", "install", "claude-code", "--yes").endswith(
            f"`disableAllHooks` in {settings} turns all hooks off: nothing calls Midwatch until "
            "you change it\n"
        )


def test_a_file_that_was_made_is_removed_again(capsys: Capture, settings: Path) -> None:
    note = "Codex runs no hook that is not trusted"
    assert note in printed_now(capsys, "hook", "install", "codex", "--yes")
    (made,) = (settings.parents[1] / "codex").iterdir()
    assert note in printed_now(capsys, "hook", "install", "codex")
    change_hooks("uninstall", "codex")
    assert not made.exists()
    said = f"{made} does not call Midwatch\n"
    assert printed_now(capsys, "hook", "uninstall", "codex") == said


@pytest.mark.parametrize("held", [b"", b"{}\r\n"])
def test_a_file_that_held_nothing_or_an_empty_object_stays(settings: Path, held: bytes) -> None:
    settings.write_bytes(held)
    change_hooks("install", "claude-code")
    change_hooks("uninstall", "claude-code")
    assert settings.read_bytes() == held


def test_several_agents_are_set_up_at_once_or_none_of_them(capsys: Capture, settings: Path) -> None:
    said = NONE_FOR.format("aider")
    assert refused_now(capsys, "hook", "install", "claude-code", "aider", "--yes") == said
    assert not settings.exists()
    change_hooks("install", "claude-code", "codex")
    change_hooks("uninstall", "claude-code", "codex")
    assert capsys.readouterr().out.count("removed ") == 2
    said = "name an agent: claude-code, codex, gemini, qwen"
    assert said in refused_now(capsys, "hook", "install")


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_of_several_agents_one_whose_settings_cannot_be_changed_hinders_no_other(
    command: str, capsys: Capture, settings: Path
) -> None:
    if command == "uninstall":
        change_hooks("install", "claude-code")
    (codex := settings.parents[1] / "codex").mkdir()
    (codex / "hooks.json").write_text("{} // mine\n")
    said = refused_now(capsys, "hook", command, "codex", "claude-code", "--yes")
    assert f"{codex / 'hooks.json'}: the settings are not plain JSON" in said
    assert (codex / "hooks.json").read_text() == "{} // mine\n"
    assert settings.exists() == (command == "install")


def test_a_link_to_the_settings_stays_one(settings: Path) -> None:
    kept = settings.parents[1] / "dotfiles.json"
    kept.write_text(SETTINGS)
    settings.symlink_to(kept)
    change_hooks("install", "claude-code")
    assert settings.is_symlink()
    assert "midwatch hook claude-code" in kept.read_text()


def test_unasked_or_in_a_dry_run_nothing_is_written(capsys: Capture, settings: Path) -> None:
    out = printed_now(capsys, "hook", "install", "claude-code", "--dry-run")
    assert "+++ " in out
    assert out.endswith(f"\nwould write {settings}\n")
    said = "confirm with --yes, or preview with --dry-run"
    assert said in refused_now(capsys, "hook", "install", "claude-code")
    assert list(settings.parent.iterdir()) == []


@pytest.mark.parametrize(("answered", "code"), [("no", 1), ("yes", 0), ("change", 2)])
def test_a_person_at_a_terminal_is_asked(settings: Path, answered: str, code: int) -> None:
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
