"""Files that a command writes: none is overwritten by accident, and none is left half."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from midwatch_monitor.errors import UsageError
from midwatch_monitor.private import private_file


def refuse_existing(target: Path, *, force: bool) -> None:
    """Raise UsageError for a file that is there already, unless that is wanted."""
    if not force and (target.exists() or target.is_symlink()):
        raise UsageError(f"{target} exists already; --force overwrites it")


@contextmanager
def new_file(target: Path) -> Generator[BinaryIO]:
    """A file that gets its name only once it is whole. Raises UsageError if it cannot be."""
    if target.exists() and not target.is_file():
        raise UsageError(f"{target} is no file")
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        private_file(part)
        with part.open("wb") as stream:
            try:
                yield stream
            except BaseException:
                part.unlink()
                raise
        part.replace(target)
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}") from error
