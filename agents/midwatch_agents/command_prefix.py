"""A workspace that starts its commands through another program."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass

from pydantic_ai.capabilities import WrapperCapability
from pydantic_ai.tools import RunContext
from pydantic_ai.workspaces import (
    CommandResult,
    Workspace,
    WorkspaceBackend,
    WorkspaceCommand,
    WorkspaceError,
    WorkspaceRef,
    WorkspaceTimeoutError,
    WrapperWorkspace,
)


class PrefixedWorkspace(WrapperWorkspace):
    """Puts a prefix before every command of the wrapped workspace."""

    def __init__(self, wrapped: Workspace, prefix: tuple[str, ...]) -> None:
        super().__init__(wrapped)
        self._prefix = prefix

    async def run(
        self,
        command: WorkspaceCommand,
        *,
        shell: bool = False,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the interface's own
    ) -> CommandResult:
        words = ["/bin/sh", "-c", command] if isinstance(command, str) and shell else command
        if isinstance(words, str) or (shell and words is command):
            raise TypeError("a shell takes a string, anything else a sequence")
        try:
            return await self.wrapped.run([*self._prefix, *words], env=env, timeout=timeout)
        except WorkspaceTimeoutError:
            raise
        except TimeoutError as error:  # pydantic-ai allows a start 5 s; only the call has failed
            raise WorkspaceError(
                "the machine was too busy to start or end the command in time: try it again"
            ) from error


@dataclass
class PrefixedCommands(WrapperCapability[object]):
    """Puts a prefix before every command in the workspace of another capability."""

    _: KW_ONLY

    prefix: tuple[str, ...] = ()

    def get_workspace(
        self, ctx: RunContext[object], *, ref: WorkspaceRef | None
    ) -> WorkspaceBackend | None:
        backend = super().get_workspace(ctx, ref=ref)
        if backend is None:
            return None
        workspace = backend if isinstance(backend, Workspace) else Workspace(backend)
        return PrefixedWorkspace(workspace, self.prefix)
