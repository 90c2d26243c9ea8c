"""`midwatch doctor`: what works here, and what to do about the rest."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from midwatch_agents.sandbox import SandboxKind
from midwatch_monitor.journal.core.engine import Access
from midwatch_monitor.journal.core.schema import open_store
from midwatch_supervisor.cli import main
from midwatch_supervisor.cli.admin.checks import EXTRAS, State, extra_finding, git_finding
from midwatch_tests.broker import Broker, program
from midwatch_tests.command import MIDWATCH, printed, printed_now
from midwatch_tests.foreign import FILES, asked
from midwatch_tests.sessions import DIALECTS, write

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
KEY = "sk-7f3a19-secret"


@pytest.fixture(autouse=True)
def folder(no_models: None, tmp_path: Path, monkeypatch: Patch) -> Path:
    """An empty project of a person with one key and no agents, who wants no sandbox at any cost."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "MIDWATCH_CONFIG", "MIDWATCH_JOURNAL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    (made := tmp_path / "project").mkdir()
    (made / "midwatch.yaml").write_text("run: {sandbox: auto}\n")
    monkeypatch.chdir(made)
    return made


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: Patch) -> Path:
    """The only folder on the PATH besides git's and bubblewrap's, without anything in it."""
    (made := tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{made}:/usr/bin:/bin")
    return made


def write_script(file: Path, text: str) -> None:
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


def findings(capsys: Capture, *words: str) -> tuple[int, dict[str, dict[str, str]]]:
    code = main(["doctor", "--json", *words])
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(list(each) == ["type", "name", "state", "detail", "fix"] for each in told)
    assert {each["type"] for each in told} == {"check"}
    return code, {each["name"]: each for each in told}


def test_with_a_key_a_run_has_what_it_needs_and_the_key_is_not_shown(
    capsys: Capture, folder: Path
) -> None:
    out = printed_now(capsys, "doctor")
    assert KEY not in out
    lines = out.splitlines()
    assert lines[0] == "Midwatch"
    assert lines[-1] == "`midwatch run` has what it needs here"
    assert f"  ✓ journal        {folder}/.midwatch/journal.db: the first run creates it" in lines
    assert "  ✓ keys           set: OPENAI_API_KEY" in lines
    assert "  ✓ for a goal     openai:gpt-5.2: OPENAI_API_KEY is set" in lines
    assert [each.name for each in folder.iterdir()] == ["midwatch.yaml"]


def test_without_any_model_it_says_which_keys_help_and_asks_no_other_machine(
    capsys: Capture, monkeypatch: Patch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    code, found = findings(capsys)
    assert (code, found["keys"]["state"], found["for a goal"]["state"]) == (1, "unused", "failed")
    assert "set one of ANTHROPIC_API_KEY" in found["for a goal"]["detail"]
    monkeypatch.setenv("OLLAMA_HOST", "ollama.invalid")
    code, found = findings(capsys)
    assert (code, found["for a goal"]["state"]) == (0, "missing")
    assert "Ollama was not contacted" in found["for a goal"]["detail"]


def test_without_git_and_bubblewrap_it_says_what_to_install(
    capsys: Capture, folder: Path, monkeypatch: Patch
) -> None:
    monkeypatch.setenv("PATH", str(folder))
    code, found = findings(capsys)
    assert code == 1
    assert (found["git"]["state"], found["git"]["fix"]) == ("failed", "install git 2.31 or newer")
    assert found["sandbox"]["state"] == "missing"
    assert found["sandbox"]["detail"].startswith("bwrap is not installed: workers' commands")
    (folder / "midwatch.yaml").unlink()  # by default a run that nobody watches is refused
    _, found = findings(capsys)
    assert found["sandbox"]["state"] == "failed"
    assert "`run.sandbox: off`" in found["sandbox"]["fix"]


@pytest.mark.usefixtures("bubblewrap")
async def test_the_sandbox_is_really_tried(capsys: Capture) -> None:
    assert "  ✓ sandbox        bubblewrap: a command ran in it" in await printed(capsys, "doctor")


def test_a_wrong_configuration_takes_no_other_check_along(capsys: Capture, folder: Path) -> None:
    (folder / "midwatch.yaml").write_text("mode: on\nplam: {}\n")
    code, found = findings(capsys)
    wrong = found["configuration"]
    assert (code, wrong["state"], found["git"]["state"]) == (1, "failed", "ok")
    assert wrong["detail"].startswith("midwatch.yaml:1: mode: must be one of")
    assert wrong["fix"] == "midwatch config check midwatch.yaml"


def test_what_a_run_refuses_of_notifications_and_telemetry_is_told(
    capsys: Capture, folder: Path, monkeypatch: Patch
) -> None:
    hook = "webhook: 'http://127.0.0.1:9/', secret_env"
    (folder / "midwatch.yaml").write_text(
        "run: {sandbox: auto}\n"
        f"notify: {{targets: {{phone: {{{hook}: HOOK}}, team: {{{hook}: OPENAI_API_KEY}}}}}}\n"
        "telemetry: {endpoint: 'http://127.0.0.1:9', headers_env: HEADERS}\n"
    )
    code, found = findings(capsys)
    assert code == 1
    assert found["notify phone"]["detail"] == "the environment variable HOOK is not set"
    assert "HEADERS is not set" in found["telemetry"]["detail"]
    checks = ("notify phone", "notify team", "telemetry")
    assert [found[each]["state"] for each in checks] == ["failed", "ok", "failed"]
    monkeypatch.setenv("HOOK", "s")
    monkeypatch.setenv("HEADERS", "a=b")
    code, found = findings(capsys)
    assert (code, found["notify phone"]["state"]) == (0, "ok")
    assert found["telemetry"]["detail"] == "spans are sent to http://127.0.0.1:9"


def test_the_models_and_workers_of_the_tasks_are_looked_for(
    capsys: Capture, folder: Path, programs: Path
) -> None:
    (folder / "tasks.yaml").write_text(
        "models: {worker: openai:gpt-5, supervisor: openrouter:large, reviewer: none,\n"
        "  planner: ollama:qwen3, reflector: {name: q, base_url: 'http://h/v1', api_key_env: K}}\n"
        "workers: {qwen: {kind: qwen}, codex: {kind: codex}}\n"
        "tasks: [{id: a, goal: b, worker: qwen, acceptance: ['true']}]\n"
    )
    write_script(programs / "qwen", "echo 1.0")
    code, found = findings(capsys)
    assert code == 1
    assert found["tasks"]["detail"] == "tasks.yaml"
    assert {name: each["state"] for name, each in found.items() if ":" in name or name == "q"} == {
        "openai:gpt-5": "ok",
        "openrouter:large": "failed",
        "ollama:qwen3": "failed",
        "q": "failed",
    }
    assert "OPENROUTER_API_KEY" in found["openrouter:large"]["detail"]
    assert found["ollama:qwen3"]["fix"] == "ollama serve"
    assert found["q"]["detail"] == "set K to the key of http://h/v1"
    assert found["worker qwen"]["detail"] == "qwen --acp"
    assert "there is no program 'codex-acp'" in found["worker codex"]["detail"]


def test_an_agent_is_told_with_its_version_its_hooks_and_its_sessions(
    capsys: Capture, folder: Path, programs: Path
) -> None:
    write_script(programs / "claude", "echo '2.1 (Claude Code)'")
    session = folder.with_name("home") / FILES["claude-code"]
    session.parent.mkdir(parents=True)
    write(session, asked(DIALECTS["claude-code"]))
    said = f"{programs}/claude 2.1 (Claude Code); its hooks {{}}; 1 session in the last day"
    _, found = findings(capsys)
    not_yet = "do not call Midwatch (midwatch hook install claude-code)"
    assert found["claude-code"]["detail"] == said.format(not_yet)
    assert main(["hook", "install", "claude-code", "--yes"]) == 0
    capsys.readouterr()
    _, found = findings(capsys)
    assert found["claude-code"]["detail"] == said.format("call Midwatch")
    assert found["codex"]["state"] == "unused"


def test_hooks_that_cannot_call_midwatch_are_told_with_what_to_do(
    capsys: Capture, folder: Path, programs: Path
) -> None:
    for each in ("claude", "codex", "gemini"):
        write_script(programs / each, "echo 1.0")
    assert main(["hook", "install", "claude-code", "codex", "gemini", "--yes"]) == 0
    home = folder.with_name("home")
    claude, gemini = home / ".claude/settings.json", home / ".gemini/settings.json"
    claude.write_text(json.dumps({**json.loads(claude.read_text()), "disableAllHooks": True}))
    moved = re.sub(r"[^\"]*/midwatch", "/old/midwatch", gemini.read_text())
    gemini.write_text(moved)
    capsys.readouterr()
    _, found = findings(capsys)
    assert "; `disableAllHooks` turns its hooks off; " in found["claude-code"]["detail"]
    assert found["claude-code"]["fix"] == f"change it in {claude}"
    assert "; its hooks call /old/midwatch, which does not exist; " in found["gemini"]["detail"]
    assert found["gemini"]["fix"] == "midwatch hook install gemini"
    assert {found[each]["state"] for each in ("claude-code", "gemini")} == {"missing"}
    assert "Codex runs no hook that is not trusted" in found["codex"]["detail"]


async def test_an_agent_that_starts_in_no_sandbox_is_told_with_what_to_name(
    capsys: Capture, programs: Path, bubblewrap: SandboxKind
) -> None:
    assert bubblewrap is SandboxKind.BUBBLEWRAP
    (elsewhere := programs.with_name("elsewhere")).mkdir()
    (elsewhere / "sh").symlink_to("/bin/sh")
    write_script(programs / "qwen", "echo 1.0")
    write_script(programs / "opencode", "echo 1.0")
    (programs / "opencode").write_text(f"#!{elsewhere}/sh\necho 1.0\n")
    _, found = await asyncio.to_thread(findings, capsys)
    assert (found["qwen"]["state"], found["opencode"]["state"]) == ("ok", "missing")
    assert "add its folder to `run.sandbox_read`" in found["opencode"]["detail"]


def test_an_agent_that_hangs_is_told_and_ended_with_all_that_it_started(
    capsys: Capture, programs: Path
) -> None:
    write_script(programs / "claude", f"sleep 600 & echo $! > {programs}/pid; wait")
    code, found = findings(capsys)
    assert (code, found["claude-code"]["state"]) == (0, "missing")
    assert found["claude-code"]["detail"] == (
        f"{programs}/claude --version: no answer in time; its hooks do not call Midwatch "
        "(midwatch hook install claude-code); 0 sessions in the last day"
    )
    pid = (programs / "pid").read_text().strip()
    status = Path(f"/proc/{pid}/stat")
    assert not status.exists() or status.read_text().rpartition(") ")[2][0] == "Z"


def test_a_journal_is_opened_and_told_as_it_is(capsys: Capture, folder: Path) -> None:
    open_store(journal := folder / "j.db", Access.CREATE).close()
    _, found = findings(capsys, "--journal", str(journal))
    assert found["journal"]["detail"] == f"{journal}: writable, up to date"
    journal.write_text("no journal" * 100)
    code, found = findings(capsys, "--journal", str(journal))
    assert (code, found["journal"]["state"]) == (1, "failed")
    assert "is not a journal, or it is damaged" in found["journal"]["detail"]


def test_a_database_is_connected_to_and_told_without_its_password(
    capsys: Capture, postgres_journal: str, postgres: str
) -> None:
    code, found = findings(capsys, "--journal", postgres_journal)
    assert (code, found["journal"]["state"]) == (0, "ok")
    code, found = findings(capsys, "--journal", postgres)
    assert (code, found["journal"]["fix"]) == (1, f"midwatch db upgrade --journal {postgres}")
    code, found = findings(capsys, "--journal", f"postgresql://ada:{KEY}@127.0.0.1:1/x")
    assert (code, found["journal"]["state"]) == (1, "failed")
    assert KEY not in str(found)


@pytest.mark.skipif(program() is None, reason="mosquitto is not installed")
def test_a_broker_is_connected_to_and_not_needed(
    capsys: Capture, folder: Path, monkeypatch: Patch
) -> None:
    monkeypatch.setenv("MIDWATCH_FLEET__BROKER__USERNAME", "vm")
    monkeypatch.setenv("MIDWATCH_BROKER_PASSWORD", "wrong")
    with Broker(folder / "broker", secure=True, accounts={"vm": KEY}) as broker:
        monkeypatch.setenv("MIDWATCH_FLEET__BROKER__URL", broker.url)
        _, found = findings(capsys)
        assert found["broker"]["state"] == "missing"
        check = "check the account, and its password in $MIDWATCH_BROKER_PASSWORD"
        assert found["broker"]["detail"].endswith(f"refuses the user 'vm': {check}")
        monkeypatch.setenv("MIDWATCH_BROKER_PASSWORD", KEY)
        _, found = findings(capsys)
        assert found["broker"]["state"] == "ok"
        broker.kill()
        code, found = findings(capsys)
    assert (code, found["broker"]["state"]) == (0, "missing")


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_a_machine_without_any_network_is_enough() -> None:
    """A new network namespace has nothing but loopback, and that is down."""
    words = ("bwrap", "--unshare-net", "--dev-bind", "/", "/", *MIDWATCH)
    done = subprocess.run(
        [*words, "doctor"], capture_output=True, text=True, check=False, timeout=300, env=os.environ
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "`midwatch run` has what it needs here" in done.stdout


def test_every_extra_is_told() -> None:
    project = tomllib.loads((Path(__file__).parents[4] / "pyproject.toml").read_text("utf-8"))
    assert list(EXTRAS) == list(project["project"]["optional-dependencies"])


@pytest.mark.parametrize(
    ("there", "needed", "state"),
    [(True, True, State.OK), (False, True, State.FAILED), (False, False, State.UNUSED)],
)
def test_an_extra_is_missed_only_where_it_is_needed(
    state: State, *, there: bool, needed: bool
) -> None:
    found = extra_finding("groq", "models", there=there, needed=needed)
    assert found.state is state
    assert (found.fix == "pip install 'midwatch[groq]'") is not there


@pytest.mark.parametrize(
    ("version", "state"),
    [("2.31.0", State.OK), ("3.0", State.OK), ("2.30.9", State.FAILED), ("", State.FAILED)],
)
def test_an_old_git_is_not_enough(version: str, state: State) -> None:
    assert git_finding(f"git version {version}" if version else "").state is state
