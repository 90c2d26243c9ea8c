"""Acceptance checks: commands that Midwatch runs itself. Only they make a task completed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from midwatch_monitor.config.tasks import AcceptanceSpec, FileCheck
from midwatch_monitor.records import Acceptance

if TYPE_CHECKING:
    from pydantic_ai.workspaces import Workspace

_MAX_DETAIL = 4_000


async def check_all(
    checks: Sequence[AcceptanceSpec], workspace: "Workspace", *, seconds: float
) -> tuple[Acceptance, ...]:
    """Run every check, the failing ones too, each for at most `seconds`."""
    return tuple([await _check(check, workspace, seconds) for check in checks])


async def _check(check: AcceptanceSpec, workspace: "Workspace", seconds: float) -> Acceptance:
    if isinstance(check, FileCheck):
        return await _file(check.file, workspace)
    return await _command(check, workspace, seconds)


async def _file(path: str, workspace: "Workspace") -> Acceptance:
    from pydantic_ai.workspaces import WorkspaceError

    name = f"file {path}"
    try:
        # Not by its content: a worker can make a file of terabytes, which would all be read.
        entry = await workspace.stat(path)
    except FileNotFoundError:
        return Acceptance(check=name, passed=False, detail="it is missing")
    except (OSError, WorkspaceError) as error:
        return Acceptance(check=name, passed=False, detail=str(error))
    if entry.is_dir:
        return Acceptance(check=name, passed=False, detail="it is a folder")
    return Acceptance(
        check=name, passed=bool(entry.size), detail="" if entry.size else "it is empty"
    )


async def _command(command: str, workspace: "Workspace", seconds: float) -> Acceptance:
    from pydantic_ai.workspaces import WorkspaceError, WorkspaceTimeoutError

    try:
        result = await workspace.run(command, shell=True, timeout=seconds)
    except WorkspaceTimeoutError:
        return Acceptance(check=command, passed=False, detail=f"not done after {seconds:g} s")
    except WorkspaceError as error:
        return Acceptance(check=command, passed=False, detail=str(error))
    said = (result.stdout + result.stderr).strip()[-_MAX_DETAIL:]
    detail = f"exit code {result.exit_code}\n{said}" if result.exit_code else ""
    return Acceptance(check=command, passed=result.exit_code == 0, detail=detail)


def summary(results: Sequence[Acceptance]) -> str:
    """The failing checks in one line; empty if there are none."""
    return "; ".join(
        f"{result.check} ({result.detail.splitlines()[0] if result.detail else 'failed'})"
        for result in results
        if not result.passed
    )
