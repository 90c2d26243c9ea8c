"""Acceptance checks, run for real: in the open and inside the sandbox."""

from pathlib import Path

import pytest

from midwatch_agents.sandbox import SandboxKind, place
from midwatch_agents.sandbox_mounts import SandboxPaths
from midwatch_monitor.config.tasks import AcceptanceSpec, FileCheck
from midwatch_monitor.records import Acceptance
from midwatch_supervisor.run.completion import check_all, summary


@pytest.fixture(params=list(SandboxKind))
def sandbox_kind(request: pytest.FixtureRequest, bubblewrap: SandboxKind) -> SandboxKind:
    return SandboxKind(request.param)


async def checked(
    folder: Path,
    *checks: AcceptanceSpec,
    sandbox_kind: SandboxKind = SandboxKind.NONE,
    seconds: float = 30.0,
) -> tuple[Acceptance, ...]:
    return await check_all(
        checks,
        place(SandboxPaths(folder=folder), sandbox_kind, network=False, env={}),
        seconds=seconds,
    )


async def test_a_command_passes_with_exit_code_zero_only(
    sandbox_kind: SandboxKind, workspace: Path
) -> None:
    assert await checked(workspace, "true", "echo no >&2; exit 3", sandbox_kind=sandbox_kind) == (
        Acceptance(check="true", passed=True),
        Acceptance(check="echo no >&2; exit 3", passed=False, detail="exit code 3\nno"),
    )


async def test_a_program_that_is_missing_fails_its_check(
    sandbox_kind: SandboxKind, workspace: Path
) -> None:
    (result,) = await checked(workspace, "no-such-program", sandbox_kind=sandbox_kind)
    assert not result.passed
    assert result.detail.startswith("exit code 127\n")


async def test_a_check_that_takes_too_long_fails(
    sandbox_kind: SandboxKind, workspace: Path
) -> None:
    results = await checked(workspace, "sleep 30", "true", sandbox_kind=sandbox_kind, seconds=0.5)
    assert results == (
        Acceptance(check="sleep 30", passed=False, detail="not done after 0.5 s"),
        Acceptance(check="true", passed=True),
    )


@pytest.mark.parametrize(
    ("name", "passed", "detail"),
    [
        ("full.txt", True, ""),
        ("sub folder/full.txt", True, ""),
        ("empty.txt", False, "it is empty"),
        ("missing.txt", False, "it is missing"),
        ("sub folder", False, "it is a folder"),
    ],
)
async def test_a_file_must_be_there_and_not_empty(
    name: str, passed: bool, detail: str, sandbox_kind: SandboxKind, workspace: Path
) -> None:
    (workspace / "sub folder").mkdir()
    (workspace / "empty.txt").touch()
    for folder in (workspace, workspace / "sub folder"):
        (folder / "full.txt").write_text("x")
    (result,) = await checked(workspace, FileCheck(file=name), sandbox_kind=sandbox_kind)
    assert result == Acceptance(check=f"file {name}", passed=passed, detail=detail)


async def test_of_a_long_output_the_end_is_kept(workspace: Path) -> None:
    (result,) = await checked(workspace, "seq 100000; exit 1")
    assert len(result.detail) < 4100
    assert result.detail.startswith("exit code 1\n")
    assert result.detail.endswith("99999\n100000")


async def test_a_workspace_that_is_gone_fails_every_check(tmp_path: Path) -> None:
    results = await checked(tmp_path / "gone", "true", FileCheck(file="a.txt"))
    assert [(each.passed, "does not exist" in each.detail) for each in results] == [
        (False, True),
        (False, True),
    ]


@pytest.mark.parametrize(
    ("results", "line"),
    [
        ((), ""),
        ((Acceptance(check="a", passed=True),), ""),
        (
            (
                Acceptance(check="a", passed=False, detail="exit code 1\nmore"),
                Acceptance(check="b", passed=True),
                Acceptance(check="c", passed=False),
            ),
            "a (exit code 1); c (failed)",
        ),
    ],
)
def test_the_summary_names_what_fails(results: tuple[Acceptance, ...], line: str) -> None:
    assert summary(results) == line
