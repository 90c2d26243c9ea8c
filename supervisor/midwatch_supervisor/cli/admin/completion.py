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
        from cyclopts.completion.install import add_to_rc_file

        shell = shell or _shell_in_use()
        path = app.install_completion(shell=shell, output=output, add_to_startup=False)
        added = output is None and shell != "fish" and add_to_rc_file(path, app.name[0], shell)
        change = "its start-up file now loads it" if added else "no start-up file was changed"
        write_line(f"wrote {path}, for {shell}; {change}")
        if output is None:
            needs = ", if your .zshrc calls compinit" if shell == "zsh" else ""
            write_line(f"It works in each {shell} that you start from now on{needs}")

    return install


def _shell_in_use() -> Shell:
    """Return the shell that calls this program. Raises UsageError if it is unknown."""
    from cyclopts.completion.detect import ShellDetectionError, detect_shell

    try:
        return detect_shell()
    except ShellDetectionError as error:
        raise UsageError("cannot tell which shell this is: name it with --shell") from error
