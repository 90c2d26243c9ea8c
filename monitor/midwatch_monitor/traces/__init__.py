"""Recorded runs of all known formats, as events for the rules."""

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from midwatch_monitor.errors import TraceError
from midwatch_monitor.records import Event
from midwatch_monitor.traces import (
    claude_code,
    codex,
    gemini,
    mini_swe_agent,
    native,
    openhands,
    qwen,
    swe_agent,
)
from midwatch_monitor.traces.foreign import JsonNode
from midwatch_monitor.traces.json_stream import Damage, first_lines
from midwatch_monitor.traces.session_reader import SessionReader, SessionTail, Tail, read_session

AUTO = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How runs of one format are recognised and read."""

    suffixes: tuple[str, ...]
    """File name endings, for searching folders."""
    folders: bool = False
    """Whether a folder of files can be one run."""
    recognise: Callable[[Path], bool]
    read: Callable[[Path], Iterator[Event | Damage]]
    session: Callable[[Path], SessionReader] | None = None
    """Returns a reader for a session that is still being written, if the format can be followed."""
    tail: Callable[[Path], SessionTail] = Tail
    """Returns the object that follows such a session."""
    head: Callable[[Path], Iterator[JsonNode]] = first_lines
    """Returns the first lines of such a session."""


def _by_lines(
    recognise: Callable[[Path], bool], session: Callable[[Path], SessionReader]
) -> Format:
    return Format(
        suffixes=(".jsonl",),
        recognise=recognise,
        read=lambda path: read_session(path, session(path)),
        session=session,
    )


# The first format that recognises a file is used. Midwatch's own is last: it accepts any `kind`.
_KNOWN = {
    "swe-agent": Format(
        suffixes=(".traj", ".json"), recognise=swe_agent.recognise, read=swe_agent.read
    ),
    "mini-swe-agent": Format(
        suffixes=(".json",), recognise=mini_swe_agent.recognise, read=mini_swe_agent.read
    ),
    "claude-code": _by_lines(claude_code.recognise, lambda _: claude_code.ClaudeCodeSession()),
    "codex": _by_lines(codex.recognise, lambda _: codex.CodexSession()),
    "gemini": Format(
        suffixes=(".jsonl", ".json"),
        recognise=gemini.recognise,
        read=gemini.read,
        session=lambda path: gemini.GeminiSession(folder=gemini.project_folder(path)),
        tail=gemini.tail,
        head=gemini.head,
    ),
    "qwen": _by_lines(qwen.recognise, lambda _: qwen.QwenSession()),
    "openhands": Format(
        suffixes=(".json", ".jsonl"),
        folders=True,
        recognise=openhands.recognise,
        read=openhands.read,
    ),
    "midwatch": Format(suffixes=(".jsonl",), recognise=native.recognise, read=native.read),
}
FORMATS: Mapping[str, Format] = MappingProxyType(_KNOWN)


def recognise(path: Path, format: str = AUTO) -> str | None:
    """Return the name of a trace's format, or `None`; with a `format`, try only that one.

    Raises OSError if it is unreadable.
    """
    known = {name: each for name, each in FORMATS.items() if format in (AUTO, name)}
    if path.is_dir():
        known = {name: each for name, each in known.items() if each.folders}
    return next((name for name, each in known.items() if each.recognise(path)), None)


def open_trace(path: Path, format: str = AUTO) -> Generator[Event | Damage, None, None]:
    """Return the events of a trace, read lazily. Closing the generator closes the file.

    Raises TraceError at once for a file that cannot be read or is not in the format.
    """
    if format not in (AUTO, *FORMATS):
        raise TraceError(f"no trace format is called {format!r}; known: {', '.join(FORMATS)}")
    try:
        found = recognise(path, format)
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from error
    if found is None:
        wanted = "a known trace format" if format == AUTO else f"the {format} trace format"
        raise TraceError(f"{path}: not in {wanted}")
    return _stream_events(path, FORMATS[found])


def _stream_events(path: Path, format: Format) -> Generator[Event | Damage, None, None]:
    """Yield the format's events; raises TraceError if reading fails on the way."""
    try:
        yield from format.read(path)
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from error


def find_traces(folder: Path, format: str = AUTO) -> Iterator[Path]:
    """Yield every known trace in a folder, in sorted order; other files are skipped.

    A trace may be the folder itself, or another one.
    """
    formats = [each for name, each in FORMATS.items() if format in (AUTO, name)]
    whole: Path | None = None
    for path in (folder, *sorted(folder.rglob("*"))):
        if path.parent != whole and any(_is_one(path, each) for each in formats):
            whole = path
            yield path


def _is_one(path: Path, format: Format) -> bool:
    try:
        if path.is_file():
            return path.suffix in format.suffixes and format.recognise(path)
        return format.folders and path.is_dir() and format.recognise(path)
    except OSError:
        return False


__all__ = ["AUTO", "FORMATS", "Damage", "Format", "find_traces", "open_trace", "recognise"]
