"""What a command prints, as plain lines or one JSON object a line, and the files it writes."""

import errno
import json
import os
import re
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO

from midwatch_monitor.errors import UsageError
from midwatch_monitor.private_files import private_file
from midwatch_supervisor.present.text_line import visible

NOT_WRITTEN = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT})
"""Error numbers of a stream that takes no more output."""


def write_line(*texts: str) -> None:
    """Print a line for people of each text.

    A newline in it comes from foreign text and is shown as a mark, as is anything else that would
    control the terminal.
    """
    for text in texts:
        _write_escaped(sys.stdout, visible(text))


def write_diff(text: str) -> bool:
    """Print a diff, in git's colours on a terminal; return whether nothing had to be escaped.

    Unlike `write_line`, keeps spaces, tabs and the carriage return of a line's end, so that the
    diff can be applied. `NO_COLOR` in the environment turns colours off.
    """
    coloured, exact = sys.stdout.isatty() and not os.environ.get("NO_COLOR"), True
    for line in text.removesuffix("\n").split("\n"):
        code = next((code for start, code in _COLOURS if line.startswith(start)), "")
        shown = _patch_line(line)
        exact = exact and shown == line
        _write_escaped(sys.stdout, f"\x1b[{code}m{shown}\x1b[m" if coloured and code else shown)
    return exact


def _patch_line(line: str) -> str:
    if line.isprintable():
        return line
    end = "\r" if line.endswith("\r") else ""
    parts = _SPACES.split(line.removesuffix(end))
    return "".join(part if _SPACES.fullmatch(part) else visible(part) for part in parts) + end


_SPACES = re.compile("([\t\xa0\u1680\u2000-\u200a\u202f\u205f\u3000])")
"""Spaces that do not count as printable but do no harm on a terminal."""


_COLOURS = (
    *((start, "1") for start in ("diff ", "index ", "--- ", "+++ ", "new file", "deleted file")),
    *(("@@", "36"), ("+", "32"), ("-", "31")),
)


def write_json(*objects: Mapping[str, object]) -> None:
    """Print each object on a line, with JSON's own escapes for what cannot be printed.

    On a stream whose encoding is not Unicode, that is everything beyond ASCII.
    """
    utf = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    for fields in objects:
        line = json.dumps(fields, ensure_ascii=not utf, allow_nan=False)
        if not line.isprintable():  # such characters occur only in strings
            line = "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in line)
        _write_escaped(sys.stdout, line)


def write_either(fields: Mapping[str, object], *texts: str, json: bool) -> None:
    """Print a JSON object if `json` is set, else lines for people."""
    if json:
        write_json(fields)
    else:
        write_line(*texts)


def write_columns(rows: Sequence[Sequence[str]]) -> None:
    """Print rows of words as a table, each column as wide as its longest word."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        write_line("  ".join(map(str.ljust, row, widths)).rstrip())


def write_error(*texts: str) -> None:
    """Print lines for people on stderr, as `write_line` does."""
    for text in texts:
        _write_escaped(sys.stderr, visible(text))


def confirm(what: str, *notices: str) -> bool:
    """Print the notices and return whether the person at the terminal types the whole word `yes`.

    Raises UsageError if nobody is at a terminal; `what` says what would happen.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"this would {what}: confirm with --yes, or preview with --dry-run")
    write_error(*notices, "Type `yes` to continue:")
    return sys.stdin.readline().strip().lower() == "yes"


def open_closed_streams() -> None:
    """Replace each output stream that the caller closed by one that discards everything."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: PTH123, SIM115 - as long as the process
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: PTH123, SIM115


def drop_output() -> None:
    """Discard the rest of stdout, so that the interpreter's last flush cannot fail."""
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - devnull is no path of ours
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


@contextmanager
def outlasting_reader() -> Generator[None]:
    """Print from work that continues when the reader is gone or the disk is full."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        if error.errno not in NOT_WRITTEN:
            raise
        drop_output()
        if error.errno != errno.EPIPE:  # else nobody is there to read why
            write_error(f"the output cannot be written: {error.strerror}")


_DRAWN = "█▒░·─│"
"""The characters that draw bars and lines."""
_DRAWN_PLAIN = str.maketrans(_DRAWN, "#=-.-|")


def _write_escaped(stream: TextIO, line: str) -> None:
    """Write a line; escape what the encoding lacks, and bytes in file names that are not text.

    Bars and lines are drawn in ASCII then: an escape is six times as wide.
    """
    encoding = stream.encoding or "utf-8"
    if _DRAWN.encode(encoding, "ignore").decode(encoding) != _DRAWN:
        line = line.translate(_DRAWN_PLAIN)
    stream.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def write_new(target: Path, text: str, *, parents: bool = False) -> None:
    """Write a file that does not exist yet, with `parents` also its folder. Raises UsageError."""
    try:
        if parents:
            target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror or error}") from error


def require_absent(target: Path) -> None:
    """Raise UsageError for a file that exists, saying that nothing was written."""
    if target.exists() or target.is_symlink():
        raise UsageError(f"{target} exists already, so nothing was written")


def refuse_existing(target: Path, *, force: bool) -> None:
    """Raise UsageError for a file that exists, unless `force` allows to replace it."""
    if not force and (target.exists() or target.is_symlink()):
        raise UsageError(f"{target} exists already; --force overwrites it")


@contextmanager
def new_file(target: Path) -> Generator[BinaryIO]:
    """Open a file that gets its name only once complete. Raises UsageError if that fails."""
    if target.exists() and not target.is_file():
        raise UsageError(f"{target} is not a file")
    if not target.parent.exists():
        raise UsageError(f"{target} cannot be written: the folder {target.parent} does not exist")
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
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


@contextmanager
def output_stream(target: str) -> Generator[BinaryIO]:
    """Open a new file, or stdout for `-`; the output is UTF-8, whatever the terminal's encoding."""
    if target == "-":
        sys.stdout.flush()
        yield sys.stdout.buffer
    else:
        with new_file(Path(target)) as stream:
            yield stream
