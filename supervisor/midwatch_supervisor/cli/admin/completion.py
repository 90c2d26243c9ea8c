"""`midwatch --install-completion`: let the shell complete commands, options and files."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from midwatch_monitor.errors import UsageError
from midwatch_supervisor.cli.output import write_line

Shell = Literal["zsh", "bash", "fish", "powershell"]


def completion_command(app: App) -> Callable[..., None]:
    """Return the command that installs the completion of an app's commands."""

    def install(
        *,
        shell: Annotated[Shell | None, Parameter(help="Default: the shell you are in.")] = None,
        output: Annotated[
            Path | None,
            Parameter(
                name=("--output", "-o"),
                help="Only write the script, to this file; the shell's start-up file is left "
                "alone.",
            ),
        ] = None,
    ) -> None:
        from cyclopts.completion.install import create_install_completion_command

        shell = shell or _shell_in_use()
        if output is None:
            create_install_completion_command(app.install_completion, add_to_startup=True)(
                shell=shell
            )
        else:
            app.install_completion(shell=shell, output=output, add_to_startup=False)
            write_line(f"wrote {output}, for {shell}; no start-up file was changed")

    return install


def _shell_in_use() -> Shell:
    """Return the shell that calls this program. Raises UsageError if it is unknown."""
    from cyclopts.completion.detect import ShellDetectionError, detect_shell

    try:
        return detect_shell()
    except ShellDetectionError as error:
        raise UsageError("cannot tell which shell this is: name it with --shell") from error
