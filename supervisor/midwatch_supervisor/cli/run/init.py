"""`midwatch init`: the first two files."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from midwatch_monitor.errors import UsageError
from midwatch_supervisor.cli.output import write_line

_STARTERS = ("midwatch.yaml", "tasks.yaml")


def init(
    folder: Annotated[Path, Parameter(name="DIR", help="Where to.")] = Path(),
    *,
    dry_run: Annotated[
        bool, Parameter(negative="", help="Only say what would be written.")
    ] = False,
) -> None:
    """Write a commented configuration and an example task file; nothing is overwritten."""
    targets = [folder / name for name in _STARTERS]
    for target in targets:
        if target.exists() or target.is_symlink():
            raise UsageError(f"{target} exists already, so nothing was written")
    for target in targets:
        if not dry_run:
            _write(target)
        write_line(f"{'would write' if dry_run else 'wrote'} {target}")


def _write(target: Path) -> None:
    text = files("midwatch_supervisor").joinpath("starter", target.name).read_text("utf-8")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}") from error
