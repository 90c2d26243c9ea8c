"""Real agents of other makers, with a scripted model on loopback in the place of theirs.

They are not installed by the project: see "Real agents" in CONTRIBUTING.md.
"""

import asyncio
import json
import os
import re
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from midwatch_monitor.records import Action, Actor, Alert, AttemptTransition, Intervention, Step
from midwatch_supervisor.operator.actions import OperatorActions
from midwatch_tests.fake_agents import beside, enough, question
from midwatch_tests.harness import RunHarness
from midwatch_tests.model_stub import ModelStub

PLACE = os.environ.get("MIDWATCH_REAL_AGENTS", "")
WHY = "MIDWATCH_REAL_AGENTS names no folder of installed agents (CONTRIBUTING.md)"
pytestmark = [pytest.mark.long, pytest.mark.skipif(not PLACE, reason=WHY)]
MODULES = Path(PLACE) / "node_modules"
TASKS = """
workers: {{real: {{kind: {kind}, command: {command}}}}}
models: {{supervisor: none, worker: none}}
tasks: [
  {{id: hello, goal: "SCRIPT={script} Write hello.txt.", worker: real, acceptance: [{check}]}}]
"""
Tasks = Callable[[str], str]


@pytest.fixture
async def stub() -> AsyncGenerator[ModelStub]:
    """The model that all of them ask."""
    async with ModelStub.serve() as model:
        yield model


def opencode(home: Path, model: ModelStub) -> list[str]:
    """opencode, that knows of no other model."""
    told = {"name": "stub", "tool_call": True, "limit": {"context": 100_000, "output": 8_000}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": model.url, "apiKey": "none"},
        "models": {"stub-model": told},
    }
    settings = {
        "model": "stub/stub-model",
        "small_model": "stub/stub-model",
        "autoupdate": False,
        "share": "disabled",
        "enabled_providers": ["stub"],
        "permission": {"bash": "ask"},
        "provider": {"stub": provider},
    }
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.json").write_text(json.dumps(settings))
    (folder / "node_modules").symlink_to(MODULES)  # else it fetches its plugins itself
    away = ("MODELS_FETCH", "LSP_DOWNLOAD", "AUTOUPDATE")
    program = MODULES / "opencode-linux-x64" / "bin" / "opencode"
    return [*(f"OPENCODE_DISABLE_{each}=1" for each in away), str(program), "acp"]


def gemini(home: Path, model: ModelStub) -> list[str]:
    """Gemini CLI, that sends nothing home."""
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    }
    (home / ".gemini").mkdir(parents=True)
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    program = MODULES / "@google" / "gemini-cli" / "bundle" / "gemini.js"
    words = ("--acp", "-m", "gemini-2.5-pro", "--approval-mode", "yolo")
    env = ("GEMINI_API_KEY=none", "GEMINI_CLI_TRUST_WORKSPACE=true")
    return [*env, f"GOOGLE_GEMINI_BASE_URL={model.gemini_url}", "node", str(program), *words]


@pytest.fixture(params=[opencode, gemini], ids=lambda agent: agent.__name__)
def tasks(request: pytest.FixtureRequest, tmp_path: Path, stub: ModelStub) -> Tasks:
    """A task file for a real agent whose model plays a script."""
    agent = request.param
    home = tmp_path / "agent-home"
    home.mkdir()
    kept = (f"{key}={os.environ[key]}" for key in ("PATH", "LANG") if key in os.environ)
    command = ["env", "-i", f"HOME={home}", *kept, *agent(home, stub)]

    def format_tasks(script: str) -> str:
        words = json.dumps(command)
        return TASKS.format(
            kind=agent.__name__, command=words, script=script, check="test -f hello.txt"
        )

    return format_tasks


def model_requests(model: ModelStub) -> str:
    """All that the model was asked."""
    return "\n".join(json.dumps(each, ensure_ascii=False) for each in model.requests)


async def test_a_task_is_done_and_its_edits_and_reports_are_recorded(
    harness: RunHarness, tasks: Tasks
) -> None:
    assert await harness.run(tasks("reflect")) == 0
    steps = await harness.told(Step)
    assert [each.checkpoint.confidence for each in steps if each.checkpoint] == [60]
    assert [edit.path for each in steps for edit in each.edits] == ["hello.txt"]


async def test_a_loop_is_found_and_the_nudge_stands_in_a_request_of_its_model(
    harness: RunHarness, tasks: Tasks, stub: ModelStub
) -> None:
    assert await harness.run(tasks("loop")) == 0
    assert "repeated_call" in {each.key.rule for each in await harness.told(Alert)}
    (nudge, *_) = await harness.told(Intervention)
    assert nudge.action is Action.NUDGE
    assert "from your policy]" in model_requests(stub)


async def test_a_hang_is_stopped_and_leaves_no_process(
    harness: RunHarness, tasks: Tasks, stub: ModelStub
) -> None:
    async def act_as_operator() -> None:
        await harness.until(lambda: "Write hello.txt." in model_requests(stub))
        await harness.say(Intervention(action=Action.STOP, by=Actor.OPERATOR, message="Stop."))

    code, _ = await asyncio.gather(harness.run(tasks("hang")), act_as_operator())
    assert code != 0
    assert remaining_processes(harness.folder) == []


@pytest.mark.parametrize("tasks", [opencode], indirect=True)
@pytest.mark.parametrize("allowed", [True, False])
async def test_a_command_that_it_asks_for_runs_once_a_person_has_approved_it(
    harness: RunHarness, tasks: Tasks, stub: ModelStub, *, allowed: bool
) -> None:
    async def act_as_operator() -> None:
        asked = await question(harness)
        operator = OperatorActions(harness.journal, author="ada")
        no = "" if allowed else "Do not look."
        await operator.settle(
            asked.attempt, asked.id, asked.request, agreed=allowed, comment=no, step=1
        )
        if not allowed:
            await harness.until(lambda: "Do not look." in model_requests(stub))
        await enough(harness, asked)

    wanted = tasks("fix").replace("kind: opencode", "kind: opencode, permission: ask")
    code, _ = await asyncio.gather(harness.run(beside(harness, wanted)), act_as_operator())
    assert code == 0
    (looked,) = [each for each in await harness.told(Step) if "cat " in each.args]
    assert (looked.tool, looked.ok, "hello" in looked.output) == ("bash", allowed, allowed)


async def test_killed_it_goes_on_in_its_own_session(
    harness: RunHarness, tasks: Tasks, stub: ModelStub
) -> None:
    (harness.folder / "tasks.yaml").write_text(tasks("slow").replace("test -f hello.txt", "':'"))
    (harness.folder / "midwatch.yaml").write_text("run: {sandbox: off}\n")
    process = await harness.start("run", "tasks.yaml", "--headless")

    await harness.until(lambda: has_called_tool(harness))
    process.kill()
    await process.wait()
    again = await harness.start("resume", "--headless")
    await harness.until(lambda: "Your work was interrupted" in model_requests(stub))
    (harness.folder / "agent-home" / "go").touch()
    output, errors = await again.communicate()
    assert again.returncode == 0, (output, errors)
    last = json.dumps(stub.requests[-1])
    assert "Your work was interrupted" in last
    assert "SCRIPT=slow" in last
    assert remaining_processes(harness.folder) == []


async def test_gemini_that_somebody_starts_is_guided_and_stopped_over_its_hooks(
    harness: RunHarness, stub: ModelStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = harness.folder / "agent-home"
    home.mkdir()
    prompt = ("-p", "SCRIPT=fail Write hello.txt.")
    command = [
        part for each in gemini(home, stub) for part in (prompt if each == "--acp" else [each])
    ]
    with TemporaryDirectory(prefix="mw-", dir="/tmp") as state:
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("MIDWATCH_STATE", state)
        installing = await harness.start("hook", "install", "gemini", "--yes")
        await installing.communicate()
        watching = await harness.start("attach", "gemini", "--headless")
        await harness.until(lambda: (Path(state) / "hook.sock").exists())
        env = (f"{each}={os.environ[each]}" for each in ("HOME", "MIDWATCH_STATE", "PATH"))
        agent = await asyncio.create_subprocess_exec(
            "env", "-i", f"TMPDIR={state}", *env, *command, cwd=harness.folder
        )
        await harness.until(lambda: "from your policy]" in model_requests(stub))
        await harness.say(Intervention(action=Action.STOP, by=Actor.OPERATOR, message="Enough."))
        async with asyncio.timeout(300):
            await agent.wait()
        await harness.until(lambda: is_over(harness))
        watching.terminate()
        await watching.communicate()
    steps = await harness.told(Step)
    assert {each.tool for each in steps} == {"run_shell_command"}
    assert {each.exit_code for each in steps} >= {3}
    assert [each.reason for each in await harness.told(AttemptTransition)][-1].endswith("Enough.")


SERVER = [sys.executable, "-c", "import midwatch_supervisor.cli as c; c.main()", "mcp"]
"""`midwatch mcp`."""


@pytest.mark.parametrize(
    ("agent", "file", "told"),
    [
        (
            opencode,
            ".config/opencode/opencode.json",
            {"mcp": {"midwatch": {"type": "local", "command": SERVER, "enabled": True}}},
        ),
        (
            gemini,
            ".gemini/settings.json",
            {"mcpServers": {"midwatch": {"command": SERVER[0], "args": SERVER[1:]}}},
        ),
    ],
)
async def test_their_own_client_of_mcp_connects_to_ours(
    agent: Callable[[Path, ModelStub], list[str]],
    file: str,
    told: dict[str, object],
    tmp_path: Path,
    stub: ModelStub,
) -> None:
    words = agent(tmp_path, stub)
    settings = tmp_path / file
    settings.write_text(json.dumps(json.loads(settings.read_text()) | told))
    mode = next(at for at, word in enumerate(words) if word in {"acp", "--acp"})
    kept = f"PATH={os.environ['PATH']}"
    process = await asyncio.create_subprocess_exec(
        *("env", "-i", f"HOME={tmp_path}", kept, *words[:mode], "mcp", "list"),
        cwd=tmp_path,
        stdout=PIPE,
        stderr=STDOUT,
    )
    said, _ = await asyncio.wait_for(process.communicate(), 60)
    assert re.search(r"✓ midwatch\b.*[Cc]onnected", said.decode(), re.DOTALL), said.decode()


async def is_over(harness: RunHarness) -> bool:
    """Whether the attempt is over."""
    return any(each.lifecycle.over for each in await harness.told(AttemptTransition))


async def has_called_tool(harness: RunHarness) -> bool:
    """Whether the first attempt has called a tool."""
    known = await harness.told(AttemptTransition)
    return bool(known) and bool(await harness.journal.messages(1))


def remaining_processes(folder: Path) -> list[str]:
    """The processes that have their home below a folder."""
    found: list[str] = []
    for each in Path("/proc").iterdir():
        try:
            if each.name.isdigit() and f"HOME={folder}".encode() in (each / "environ").read_bytes():
                found.append((each / "cmdline").read_text())
        except OSError:
            continue
    return found
