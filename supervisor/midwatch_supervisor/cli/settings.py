"""The configuration that a command uses."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from midwatch_monitor.config.settings import Settings

ConfigOption = Annotated[
    list[Path] | None,
    Parameter(
        name="--config",
        help="Configuration file; may be repeated, the last one wins. "
        "Default: $MIDWATCH_CONFIG, else midwatch.yaml in this folder, else the built-in one.",
    ),
]
JsonOption = Annotated[bool, Parameter(name="--json", help="Print only JSON, one object per line.")]


def _check_port(_kind: object, port: int, least: int = 1) -> None:
    if not least <= port <= 65_535:
        raise ValueError(f"Must be a port, from {least} to 65535.")


def _check_any_port(kind: object, port: int) -> None:
    _check_port(kind, port, least=0)


Port = Annotated[int, Parameter(validator=_check_port)]
AnyPort = Annotated[int, Parameter(validator=_check_any_port)]
"""A port number, or 0 for any free one."""


def _check_target(_kind: object, target: str) -> None:
    if target.startswith("-") and target != "-":
        raise ValueError(f"Must be a file; write ./{target} for one of that name.")


StdoutOrFile = Annotated[
    str, Parameter(name="--output", allow_leading_hyphen=True, validator=_check_target)
]
"""Where output is written: a file, or `-` for stdout."""


def settings_in_force(config: Sequence[Path] | None) -> "Settings":
    """Load the settings from `--config`, else the usual places, overridden by the environment."""
    from midwatch_monitor.config.source import load_settings

    return load_settings(config_files(config), environ=os.environ)


def config_files(config: Sequence[Path] | None) -> Sequence[Path]:
    """Return the files from `--config`, else those in the usual places; there may be none."""
    if config:
        return config
    named = os.environ.get("MIDWATCH_CONFIG")
    if named:
        return [Path(named)]
    beside = Path("midwatch.yaml")
    return [beside] if beside.is_file() else []
