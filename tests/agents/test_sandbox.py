"""The sandbox for workers' commands, and what they see of the disk."""

import asyncio
import os
import sys
from pathlib import Path

import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import LocalWorkspace
from pydantic_ai.models.test import TestModel
from pydantic_ai.workspaces import (
    CommandResult,
    LocalWorkspaceBackend,
    WorkspaceRef,
    WorkspaceTimeoutError,
)
from pydantic_ai_harness import Shell

from midwatch_agents.command_prefix import PrefixedCommands
from midwatch_agents.sandbox import MARK, SandboxKind, find_sandbox, place
from midwatch_agents.sandbox_mounts import SandboxPaths, clean_git_config, mounts
from midwatch_monitor.config.settings import Sandbox
from midwatch_monitor.errors import SandboxError

CONNECT = (
    "import socket; socket.create_connection(('127.0.0.1', {port}), timeout=5); print('connected')"
)


@pytest.mark.parametrize("attended", [True, False])
@pytest.mark.parametrize("wish", list(Sandbox))
async def test_without_bubblewrap_a_start_may_be_refused(wish: Sandbox, attended: bool) -> None:
    found = find_sandbox(wish, attended=attended, program="no-such-program")
    if wish is Sandbox.REQUIRED or (wish is Sandbox.DEFAULT and not attended):
        with pytest.raises(SandboxError, match="required, but no-such-program is not installed"):
            await found
    else:
        assert await found is SandboxKind.NONE


async def test_a_bubblewrap_that_fails_is_none() -> None:
    assert await find_sandbox(Sandbox.AUTO, program="false") is SandboxKind.NONE
    with pytest.raises(SandboxError, match="false fails: exit code 1"):
        await find_sandbox(Sandbox.REQUIRED, program="false")


async def test_off_is_off_even_where_there_is_one(bubblewrap: SandboxKind) -> None:
    assert await find_sandbox(Sandbox.OFF) is SandboxKind.NONE
    assert await find_sandbox(Sandbox.REQUIRED) is bubblewrap


PROGRAM = """
import asyncio
from pathlib import Path
from midwatch_agents.sandbox import SandboxKind, place
from midwatch_agents.sandbox_mounts import SandboxPaths
paths = SandboxPaths(folder=Path({folder!r}))
workspace = place(paths, SandboxKind.BUBBLEWRAP, network={network}, env={{}})
asyncio.run(workspace.run({command!r}, shell=True))
"""


async def run(
    folder: Path,
    command: str,
    sandbox_kind: SandboxKind,
    *,
    network: bool = False,
    seconds: float = 60,
    read: tuple[str, ...] = (),
) -> CommandResult:
    workspace = place(
        SandboxPaths(folder=folder, read=read), sandbox_kind, network=network, env={MARK: "1.1"}
    )
    return await workspace.run(command, shell=True, timeout=seconds)


async def test_a_command_writes_in_its_workspace_only(
    bubblewrap: SandboxKind, tmp_path: Path
) -> None:
    workspace = tmp_path / "a folder 'with' \"quotes\""
    workspace.mkdir()
    elsewhere = Path(__file__).with_name("out.txt")
    command = f"echo in > in.txt; echo out > ../out.txt; echo out > '{elsewhere}'"
    result = await run(workspace, command, bubblewrap)
    assert result.exit_code != 0
    assert (workspace / "in.txt").read_text() == "in\n"
    assert not (tmp_path / "out.txt").exists()
    assert not elsewhere.exists()


@pytest.mark.parametrize("sandbox_kind", list(SandboxKind))
async def test_every_command_carries_the_mark_and_no_secret(
    sandbox_kind: SandboxKind, bubblewrap: SandboxKind, workspace: Path
) -> None:
    result = await run(workspace, "env", sandbox_kind)
    names = {line.partition("=")[0] for line in result.stdout.splitlines()}
    assert f"{MARK}=1.1" in result.stdout.splitlines()
    assert not {name for name in names if "KEY" in name or "TOKEN" in name}


@pytest.mark.parametrize(("network", "said"), [(True, "connected\n"), (False, "")])
async def test_the_network_is_open_only_where_it_is_wished(
    network: bool, said: str, bubblewrap: SandboxKind, workspace: Path
) -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        command = f'python3 -c "{CONNECT.format(port=port)}"'
        result = await run(workspace, command, bubblewrap, network=network)
    assert result.stdout == said


async def test_the_home_directory_can_be_written_and_keeps_nothing(
    bubblewrap: SandboxKind, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))
    (tmp_path / "ada").mkdir()
    result = await run(workspace, "ls -A ~; echo x > ~/x && cat ~/x", bubblewrap)
    assert result.stdout == "x\n"
    assert not (tmp_path / "ada/x").exists()


async def test_another_virtual_environment_in_the_path_runs_its_python(
    bubblewrap: SandboxKind, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv = tmp_path / "project/.venv"
    make = (sys.executable, "-m", "venv", "--without-pip", venv)
    assert await (await asyncio.create_subprocess_exec(*make)).wait() == 0
    monkeypatch.setenv("PATH", f"{venv}/bin:{os.environ['PATH']}")
    result = await run(workspace, 'python -c "import json, sys; print(sys.prefix)"', bubblewrap)
    assert result.stdout == f"{venv}\n"


async def test_what_the_owner_shows_can_be_read_and_not_written(
    bubblewrap: SandboxKind, workspace: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.txt").write_text("a\n")
    command = f"cat {data}/a.txt; echo b > {data}/b.txt"
    result = await run(workspace, command, bubblewrap, read=(str(data),))
    assert (result.stdout, result.exit_code != 0) == ("a\n", True)
    assert not (data / "b.txt").exists()
    assert (await run(workspace, command, bubblewrap)).stdout == ""


LEFT = (
    "env -i $(which setsid) flock lock sleep 1000 >/dev/null 2>&1 & until [ -e lock ]; do :; done"
)


async def prove_free(workspace: Path) -> None:
    """Prove that nobody has the lock any more."""
    done = await asyncio.create_subprocess_exec("flock", "--wait", "60", workspace / "lock", "true")
    assert await done.wait() == 0


async def test_a_detached_process_ends_too(bubblewrap: SandboxKind, workspace: Path) -> None:
    assert (await run(workspace, LEFT, bubblewrap)).exit_code == 0
    await prove_free(workspace)


@pytest.mark.matrix
async def test_a_detached_process_ends_when_its_commands_time_is_over(
    bubblewrap: SandboxKind, workspace: Path
) -> None:
    with pytest.raises(WorkspaceTimeoutError):
        await run(workspace, f"{LEFT}; sleep 1000", bubblewrap, seconds=3)
    await prove_free(workspace)


async def test_a_detached_process_ends_when_its_command_is_cancelled(
    bubblewrap: SandboxKind, workspace: Path
) -> None:
    command = asyncio.create_task(run(workspace, f"{LEFT}; sleep 1000", bubblewrap, seconds=600))
    async with asyncio.timeout(300):
        while not (workspace / "lock").exists():
            await asyncio.wait({command}, timeout=0.01)
    command.cancel()
    await asyncio.wait({command})
    await prove_free(workspace)


@pytest.mark.parametrize("network", [True, pytest.param(False, marks=pytest.mark.matrix)])
async def test_a_command_ends_when_midwatch_is_killed(
    network: bool, bubblewrap: SandboxKind, workspace: Path
) -> None:
    program = PROGRAM.format(folder=str(workspace), network=network, command=f"{LEFT}; sleep 1000")
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    async with asyncio.timeout(300):
        while not (workspace / "lock").exists() and process.returncode is None:
            await asyncio.wait({asyncio.create_task(process.wait())}, timeout=0.01)
    process.kill()
    assert await process.wait() == -9
    await prove_free(workspace)


CONFIG = """\
[core]
	repositoryformatversion = 1
	bare = false
	fsmonitor = touch x
	sshCommand = ssh -i ~/.ssh/id_x
[remote "origin"]
	url = https://ada:secret@example.org/x.git
	bare = secret
[extensions] ; no others
	objectFormat = sha256
[credential]
	helper = store --file=secret
[include]
	path = ../secret
[core "x"]
	eol = secret
"""


class SlowBackend(LocalWorkspaceBackend):
    """On a machine that takes too long to start a process."""

    async def run(self, *args: object, **options: object) -> CommandResult:
        raise TimeoutError("local workspace subprocess operation exceeded its grace period")


class SlowWorkspace(LocalWorkspace[object]):
    """The workspace there."""

    def get_workspace(self, ctx: RunContext[object], *, ref: WorkspaceRef | None) -> SlowBackend:
        return SlowBackend(self.working_dir)


async def test_a_slow_start_of_a_process_fails_the_call_and_not_the_attempt(tmp_path: Path) -> None:
    place = PrefixedCommands(SlowWorkspace(tmp_path))
    agent = Agent(TestModel(call_tools=["run_command"]), capabilities=[place, Shell[object]()])
    said = (await agent.run("Run it.")).all_messages_json().decode()
    assert "the machine was too busy to start or end the command in time: try it again" in said


def test_a_repositorys_configuration_keeps_only_how_it_is_stored() -> None:
    assert clean_git_config(CONFIG).splitlines() == [
        "[core]",
        "\trepositoryformatversion = 1",
        "\tbare = false",
        "[extensions]",
        "\tobjectFormat = sha256",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "[core] bare = secret:\n",
        '[core]\n\tbare = "secret"\n',
        "[core]\n\teol = a\\\nsecret:1\n",
        "[extensions]\n\tpartialClone = https://ada:secret@example.org\n",
    ],
)
def test_what_is_written_in_an_odd_way_is_left_out(text: str) -> None:
    assert "secret" not in clean_git_config(text)


class Disk:
    """Folders below one, and what of them a worker in `work/r1/a` is shown."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = self.make("work/r1/a")
        self.home = self.make("ada")

    def make(self, name: str) -> Path:
        folder = self.root / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def arguments(self, *read: str, path: str = "", hidden: tuple[Path, ...] = ()) -> list[str]:
        paths = SandboxPaths(folder=self.folder, read=read, hidden=hidden)
        return [*mounts(paths, {"HOME": str(self.home), "PATH": path})]

    def mount_options(
        self, *read: str, path: str = "", hidden: tuple[Path, ...] = ()
    ) -> dict[str, str]:
        """The option for each place below the root, in order."""
        found: dict[str, str] = {}
        last = ""
        for word in self.arguments(*read, path=path, hidden=hidden):
            last = word if word.startswith("--") else last
            if word.startswith(f"{self.root}/") and last != "--remount-ro":
                found[word.removeprefix(f"{self.root}/")] = last
        return found


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


OWN = {"ada": "--tmpfs", "work/r1": "--tmpfs", "work/r1/a": "--bind"}


def test_nothing_is_shown_but_the_workspace_and_an_empty_home(disk: Disk) -> None:
    assert disk.mount_options() == OWN
    arguments = disk.arguments()
    assert arguments[:2] == ["--tmpfs", "/"]
    assert arguments[-2:] == ["--remount-ro", "/"]


def test_caches_are_shown_without_the_credentials_beside_them(disk: Disk) -> None:
    for name in ("ada/.cargo/registry", "ada/.m2/repository", "ada/.config/gh", "ada/.aws"):
        disk.make(name)
    (disk.home / ".cargo/credentials.toml").touch()
    cargo, maven = "ada/.cargo/registry", "ada/.m2/repository"
    assert disk.mount_options() == {**OWN, cargo: "--ro-bind-try", maven: "--ro-bind-try"}


@pytest.mark.parametrize("name", ["", ".", "bin", "/", "{home}", "{root}", "{home}/.local"])
def test_a_folder_of_programs_that_shows_too_much_is_not_shown(name: str, disk: Disk) -> None:
    disk.make("ada/.local")
    path = name.format(home=disk.home, root=disk.root)
    assert disk.mount_options(path=path) == OWN


def test_a_virtual_environment_in_the_path_is_shown_with_its_python(disk: Disk) -> None:
    python, venv = disk.make("pythons/3.12/bin"), disk.make("project/.venv/bin")
    (venv.parent / "pyvenv.cfg").write_text(f"home = {python}\nversion = 3.12\n")
    shown = disk.mount_options(path=str(venv))
    assert {"pythons/3.12", "project/.venv"} <= shown.keys()
    assert not {"project", "pythons"} & shown.keys()


def test_shims_in_the_path_are_shown_with_the_programs_that_they_call(disk: Disk) -> None:
    shims, calls = disk.make("pyenv/shims"), disk.make("pyenv/libexec").parent
    others = disk.make("tools/shims")
    assert disk.mount_options(path=f"{shims}:{others}").keys() - OWN.keys() == {
        calls.name,
        "tools/shims",
    }


def test_what_is_to_be_read_is_shown_and_the_journal_in_it_only_by_name(disk: Disk) -> None:
    home = disk.make("project/.midwatch")
    disk.make("ada/data")
    shown = disk.mount_options(str(disk.root / "project"), "~/data", hidden=(home,))
    assert [*shown] == ["ada", "project", "ada/data", "project/.midwatch", "work/r1", "work/r1/a"]
    assert shown["project/.midwatch"] == "--tmpfs"
    assert shown["ada/data"] == "--ro-bind-try"
    assert disk.mount_options(str(home), hidden=(home,))["project/.midwatch"] == "--ro-bind-try"


def test_the_home_directory_stays_empty_even_where_it_is_named(disk: Disk) -> None:
    assert disk.mount_options(str(disk.home), str(disk.root)) == {
        **OWN,
        **disk.mount_options(str(disk.root)),
    }
    assert disk.mount_options(str(disk.home))["ada"] == "--tmpfs"
