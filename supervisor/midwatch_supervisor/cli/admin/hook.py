"""`midwatch hook install` and `uninstall`: add Midwatch's hooks to agents' settings, or remove
them.

`midwatch hook AGENT` is called by the agent itself and is handled in `midwatch_agents.hooks`.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from midwatch_agents.hooks.adapters import ADAPTERS, HookAdapter
from midwatch_agents.hooks.settings_file import hooks_switch, install_hooks, uninstall_hooks
from midwatch_monitor.errors import UsageError
from midwatch_supervisor.cli.journals import DryRunOption
from midwatch_supervisor.cli.output import confirm, new_file, write_diff, write_error, write_line

app = App(name="hook")

AgentsArgument = Annotated[
    str, Parameter(name="AGENT", help=f"One or more of {', '.join(ADAPTERS)}.")
]
YesOption = Annotated[
    bool, Parameter(name="--yes", help="Do not ask for confirmation; needed without a terminal.")
]


@app.command(name="install")
def install(*agents: AgentsArgument, yes: YesOption = False, dry_run: DryRunOption = False) -> int:
    """Make agents call Midwatch at each of their steps, with a hook in their settings.

    Shows the change first. The rest of the settings stays as it is.
    """
    return _change_each(agents, lambda adapter: _install_hooks(adapter, yes=yes, dry_run=dry_run))


def _change_each(agents: Sequence[str], change: Callable[[HookAdapter], int]) -> int:
    """Change the settings of each agent, report those that fail, and return the exit code."""
    codes = [0]
    for adapter in _find_adapters(agents):
        try:
            codes.append(change(adapter))
        except UsageError as error:
            write_error(str(error))
            codes.append(2)
    return max(codes)


def _install_hooks(adapter: HookAdapter, *, yes: bool, dry_run: bool) -> int:
    command = f"{shlex.quote(_own_program())} hook {adapter.name}"
    file, before, after = _plan_change(adapter, lambda text: install_hooks(text, adapter, command))
    switch = hooks_switch(before or "", adapter)
    off = f"`{switch}` in {file} turns all hooks off: nothing calls Midwatch until you change it"
    if after == before:
        called = (
            f"{file} already calls Midwatch. A session that began before does not, nor does a "
            f"version of {adapter.name} that has no hooks"
        )
        write_line(off if switch else called)
        _write_note(adapter)
        return 0
    code = _change_file(file, before, after, yes=yes, dry_run=dry_run)
    if code == 0 and switch:
        write_line(off)
    elif code == 0 and not dry_run:
        write_line(
            f"Sessions of {adapter.name} that you start from now on call Midwatch: `midwatch "
            "attach` shows them, and lets you guide and stop them"
        )
        _write_note(adapter)
    return code


def _write_note(adapter: HookAdapter) -> None:
    if adapter.note:
        write_line(adapter.note)


@app.command(name="uninstall")
def uninstall(
    *agents: AgentsArgument, yes: YesOption = False, dry_run: DryRunOption = False
) -> int:
    """Remove from agents' settings what `install` added."""

    def remove(adapter: HookAdapter) -> int:
        file, before, after = _plan_change(adapter, lambda text: uninstall_hooks(text, adapter))
        if after == before:
            write_line(f"{file} does not call Midwatch")
            return 0
        return _change_file(file, before, after, yes=yes, dry_run=dry_run)

    return _change_each(agents, remove)


def _agent_command(name: str) -> Callable[..., None]:
    """Return the command that explains to a person that only an agent should call it."""

    def called(*_: Annotated[str, Parameter(show=False)]) -> None:
        raise UsageError(
            f"`midwatch hook {name}` is for the hooks of {name}, which tell it on standard input "
            f"what happens: `midwatch hook install {name}` makes them call it"
        )

    called.__doc__ = (
        f"Report to `midwatch attach` what {name} does; its hooks call this at each step.\n\n"
        f"`midwatch hook install {name}` makes them do so."
    )
    return called


for _name in ADAPTERS:
    app.command(_agent_command(_name), name=_name, group="Called by the hooks themselves")


def _find_adapters(names: Sequence[str]) -> list[HookAdapter]:
    known = ", ".join(ADAPTERS)
    if not names:
        raise UsageError(f"name an agent: {known}")
    if unknown := [each for each in names if each not in ADAPTERS]:
        raise UsageError(f"there are no hooks for {unknown[0]!r}; known: {known}")
    return [ADAPTERS[each] for each in dict.fromkeys(names)]


def _plan_change(
    adapter: HookAdapter, change: Callable[[str | None], str | None]
) -> tuple[Path, str | None, str | None]:
    """Return an agent's settings file, with links resolved, its text now and its new text."""
    file = adapter.settings_file(os.environ, Path.home()).resolve()
    before = _read_file(file)
    try:
        return file, before, change(before)
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from error


def _own_program() -> str:
    """Return the path of this `midwatch`: an agent may have another `PATH`."""
    called = Path(sys.argv[0])
    found = str(called) if called.name == "midwatch" else shutil.which("midwatch")
    beside = Path(sys.executable).with_name("midwatch")
    return str(Path(found or beside).absolute())


def _read_file(file: Path) -> str | None:
    try:
        return file.read_bytes().decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from error


def _change_file(
    file: Path, before: str | None, after: str | None, *, yes: bool, dry_run: bool
) -> int:
    """Show the change, make it if the person agrees, and return the exit code."""
    old, new = (before or "").splitlines(), (after or "").splitlines()
    write_diff("\n".join(unified_diff(old, new, str(file), str(file), lineterm="")))
    if dry_run:
        write_line(f"would {'remove' if after is None else 'write'} {file}")
        return 0
    if not yes and not confirm(f"change {file}"):
        write_error("nothing was changed")
        return 1
    if _read_file(file) != before:
        raise UsageError(f"{file} was changed meanwhile, so nothing was written: try again")
    try:
        if after is None:
            file.unlink()
        else:
            _replace_file(file, after.encode())
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}") from error
    write_line(f"{'removed' if after is None else 'wrote'} {file}")
    return 0


def _replace_file(file: Path, text: bytes) -> None:
    """Replace a file whole or not at all, keeping its permissions. Raises OSError, UsageError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o600
    with new_file(file) as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
        os.fchmod(stream.fileno(), mode)
