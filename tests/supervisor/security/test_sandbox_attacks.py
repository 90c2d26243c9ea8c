"""What a worker tries from inside the sandbox of a run, by commands and by its file tools."""

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest

from midwatch_agents.sandbox import SandboxKind
from midwatch_agents.scripted import Call, Phase, Script, Turn
from midwatch_monitor.config.settings import Mode, RunSettings, Sandbox
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.records import Step
from midwatch_tests.harness import RunHarness
from midwatch_tests.repository import new_repository
from midwatch_tools.git import run_git

ROOT = Path(__file__).parents[3]
SECRET = "owned-by-ada"
REACHED = "reached-it"
CORE = "/proc/sys/kernel/core_pattern"
"""It may name a program, which the kernel starts outside as root when another one crashes."""
LOCK = "flock held sleep 1000"
TASKS = f"""
    models: {{worker: "scripted:{__name__}@0", supervisor: none}}
    defaults: {{workspace: project}}
    tasks: [{{id: fix, goal: Fix it., acceptance: ["true"], max_attempts: 1}}]
"""
CONNECT = "import socket; socket.socket(socket.AF_UNIX).connect({path!r}); print({said!r})"

calls: list[tuple[str, dict[str, str]]] = []
"""What the worker calls, one after the other."""


def script_for(role: Role, key: str) -> Script:
    turns = (Turn(calls=(Call(tool=tool, args=json.dumps(args)),)) for tool, args in calls)
    return Script(phases=(Phase(turns=(*turns, Turn(say="Done."))),))


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder that is not below `/tmp`, which every sandbox has for itself."""
    cache = ROOT / ".pytest_cache"
    cache.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        yield Path(folder)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Somebody's home directory, with what nobody else should see."""
    folder = tmp_path / "ada"
    for name in (".ssh/id_x", ".npmrc", ".cargo/credentials.toml", ".netrc", "notes.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(SECRET)
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Path:
    """A repository with a password in the URL of its remote."""
    folder = new_repository(tmp_path / "project", {"a.txt": "one\n"})
    run_git(folder, "remote", "add", "origin", f"https://ada:{SECRET}@example.org/x.git")
    return folder


@pytest.fixture
async def neighbour() -> AsyncGenerator[None]:
    """Another process of the same user, with a key in its environment."""
    environ = {**os.environ, "OPENAI_API_KEY": SECRET}
    process = await asyncio.create_subprocess_exec("sleep", "1000", env=environ)
    yield
    process.kill()
    await process.wait()


@pytest.fixture
async def docker(tmp_path: Path) -> AsyncGenerator[Path]:
    """The socket of a service that does what it is told, to whoever can connect."""
    path = Path(tempfile.mkdtemp(prefix="s")) / "docker.sock"  # its path must be short

    def close_connection(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_unix_server(close_connection, path):
        yield path
    shutil.rmtree(path.parent)


async def worker_outputs(harness: RunHarness, *wanted: tuple[str, dict[str, str]]) -> list[str]:
    """What a worker of a run gets to see for its calls; the run ends well."""
    calls[:] = wanted
    run = RunSettings(sandbox=Sandbox.REQUIRED, grace_seconds=2)
    harness.settings = harness.settings.model_copy(update={"run": run, "mode": Mode.OFF})
    assert await harness.run(TASKS) == 0
    return [step.output for step in await harness.told(Step) if step.tool]


def command(text: str) -> tuple[str, dict[str, str]]:
    return "run_command", {"command": f"({text}); true"}


IN_VAIN = {
    "the home directory is empty, and the rest of the disk too": (
        "cat ~/.ssh/id_x ~/.npmrc ~/.netrc ~/notes.txt",
        "cat ~/.cargo/credentials.toml",
        "cat {home}/.ssh/id_x",
        "ln {home}/.ssh/id_x here; cat here",
        "ln -s {home}/.ssh/id_x there; cat there",
        "test -s /etc/shadow && echo {REACHED}",
        "grep -r {SECRET} {home.parent}",
        "for each in /boot /srv /mnt /media /sys; do test -e $each && echo {REACHED}; done",
    ),
    "the journal and other workspaces are out of sight": (
        "cat {other}",
        "grep -r {SECRET} {other.parent.parent.parent}",
        "test -e {journal} && echo {REACHED}",
        "echo x >> {journal} && echo {REACHED}",
        "echo x > ../out.txt && echo {REACHED}",
        "cat {project}/a.txt && echo {REACHED}",
    ),
    "no process and no key of others is seen": (
        "cat /proc/*/environ",
        "env | grep -i -e key -e token",
        "test $(ls -d /proc/[0-9]* | wc -l) -gt 9 && echo {REACHED}",
        "cat /proc/*/root{home}/.ssh/id_x /proc/*/cwd/.ssh/id_x",
    ),
    "the link to the repository cannot be replaced": (
        "rm -f .git && echo {REACHED}",
        "mv .git elsewhere && echo {REACHED}",
        "echo 'gitdir: elsewhere' > .git && echo {REACHED}",
        "ln -sf /etc/passwd .git && echo {REACHED}",
        "mkdir new && mv -T new .git && echo {REACHED}",
        "cd .. && mv fix-1 fix-2 && echo {REACHED}",
        "git config core.fsmonitor 'touch x' && echo {REACHED}",
        "git config --worktree core.fsmonitor 'touch x' && echo {REACHED}",
        "touch $(git rev-parse --git-common-dir)/x && echo {REACHED}",
        "umount .git && echo {REACHED}",
    ),
    "no rights are gained and nothing is mounted": (
        "unshare --map-root-user --mount true && echo {REACHED}",
        "unshare --mount true && echo {REACHED}",
        "umount -l /usr && echo {REACHED}",
        "mount -t tmpfs none /mnt && echo {REACHED}",
        "nsenter --target 1 --mount true && echo {REACHED}",
        "grep -q 'CapEff:.*[1-9a-f]' /proc/self/status && echo {REACHED}",
        "cp {CORE} core; cat core > {CORE} && echo {REACHED}",
        "echo x > /proc/sys/kernel/hostname && echo {REACHED}",
        "echo x > /usr/bin/x && echo {REACHED}",
        "touch /x && echo {REACHED}",
    ),
    "no service of the machine is reached": (
        'python3 -c "{connect}"',
        "test -S {docker} && echo {REACHED}",
        'test -n "$(find /run -type s)" && echo {REACHED}',
    ),
}


@pytest.mark.usefixtures("neighbour", "bubblewrap")
async def test_no_command_sees_a_secret_or_reaches_what_is_not_its_own(
    harness: RunHarness, project: Path, home: Path, journal_file: Path, docker: Path
) -> None:
    other = harness.home / "work/r7/fix-1/note.txt"
    other.parent.mkdir(parents=True)
    other.write_text(SECRET)
    names = {"project": project, "home": home, "journal": journal_file, "docker": docker}
    connect = CONNECT.format(path=str(docker), said=REACHED)
    fixed = {"SECRET": SECRET, "REACHED": REACHED, "CORE": CORE, "connect": connect, "other": other}
    tried = [(why, each.format(**names, **fixed)) for why, all in IN_VAIN.items() for each in all]
    seen = await worker_outputs(harness, *(command(each) for _, each in tried))
    assert len(seen) == len(tried)
    won = [
        each for each, said in zip(tried, seen, strict=True) if SECRET in said or REACHED in said
    ]
    assert won == []
    (folder,) = (harness.home / "work/r1").iterdir()
    assert (folder / ".git").read_text().startswith(f"gitdir: {project}")


async def test_git_reads_inside_and_shows_no_password(
    harness: RunHarness, project: Path, bubblewrap: SandboxKind
) -> None:
    commands = (
        "git log --oneline",
        "git blame a.txt",
        "echo two >> a.txt; git diff; git status --short",
        "git remote --verbose; cat $(git rev-parse --git-common-dir)/config",
    )
    log, blame, diff, config = await worker_outputs(harness, *map(command, commands))
    assert "First" in log
    assert "one" in blame
    assert "+two" in diff
    assert " M a.txt" in diff
    assert "repositoryformatversion" in config
    assert SECRET not in config


async def test_the_file_tools_follow_no_link_out_of_the_workspace(
    harness: RunHarness, project: Path, home: Path, bubblewrap: SandboxKind
) -> None:
    seen = await worker_outputs(
        harness,
        command(f"ln -s {home} out; ln -s {home}/.ssh/id_x key"),
        ("read_file", {"path": "key"}),
        ("read_file", {"path": "out/notes.txt"}),
        ("write_file", {"path": "out/new.txt", "content": "x"}),
        ("write_file", {"path": "key", "content": "x"}),
    )
    assert not [said for said in seen if SECRET in said]
    assert (home / ".ssh/id_x").read_text() == SECRET
    assert not (home / "new.txt").exists()


async def test_what_drops_its_mark_and_its_session_ends_with_the_attempt(
    harness: RunHarness, project: Path, bubblewrap: SandboxKind
) -> None:
    left = f"env -i {shutil.which('setsid')} {LOCK} >/dev/null 2>&1 & until [ -e held ]; do :; done"
    await worker_outputs(harness, command(left))
    (folder,) = (harness.home / "work/r1").iterdir()
    done = await asyncio.create_subprocess_exec("flock", "--wait", "30", folder / "held", "true")
    assert await done.wait() == 0
