"""Opens files of a workspace so that no link made by a worker leads outside."""

import os
import shutil
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO


def open_file(folder: Path, name: str) -> BinaryIO:
    """Open a file below a folder for reading.

    Raises OSError if it is no plain file, or if a part of its path is a link: a worker may replace
    a folder by a link between a check and the opening.
    """
    parts = Path(name).parts
    if not parts or Path(name).is_absolute() or ".." in parts:
        raise FileNotFoundError(2, "not in the workspace", name)
    above = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts[:-1]:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
            os.close(above)
            above = below
        opened = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=above)
    finally:
        os.close(above)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError(22, "not a plain file", name)
    return os.fdopen(opened, "rb")


def entries_below(folder: Path, *, hidden: Collection[str] = ()) -> Iterator[os.DirEntry[str]]:
    """Yield all entries below a folder, a folder before its content, without following links.

    Not recursive, because a worker can nest folders deeper than Python can call. Folders that
    cannot be read, or whose path is too long, count as empty.
    """
    pending = [os.fspath(folder)]
    while pending:
        with suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.name not in hidden:
                    yield entry
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)


def copy_file(old: Path, new: Path, name: str) -> None:
    """Copy a file from one workspace to another; if it is gone, remove it there.

    A file behind a linked folder, on either side, is left alone.
    """
    source, target = old / name, new / name
    if _behind_link(old, name) or _behind_link(new, name):
        return
    if source.is_symlink():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        target.symlink_to(source.readlink())
    elif source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        with open_file(old, name) as opened, target.open("xb") as written:
            shutil.copyfileobj(opened, written)
        shutil.copystat(source, target, follow_symlinks=False)
    elif not source.is_dir():
        with suppress(IsADirectoryError, NotADirectoryError):
            target.unlink(missing_ok=True)


def _behind_link(folder: Path, name: str) -> bool:
    return any((folder / above).is_symlink() for above in Path(name).parents)
