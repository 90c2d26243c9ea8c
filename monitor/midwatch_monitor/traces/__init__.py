"""Recorded runs of any known format, as the events that the rules are fed."""

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
    """How runs of one origin are known and read."""

    suffixes: tuple[str, ...]
    """What its files are called, for looking through folders."""
    recognise: Callable[[Path], bool]
    read: Callable[[Path], Iterator[Event | Damage]]
    session: Callable[[Path], SessionReader] | None = None
    """A reader of one that is still written, where it can be followed."""
    tail: Callable[[Path], SessionTail] = Tail
    """Who follows it then."""
    head: Callable[[Path], Iterator[JsonNode]] = first_lines
    """What it says of itself first."""


def _by_lines(
    recognise: Callable[[Path], bool], session: Callable[[Path], SessionReader]
) -> Format:
    return Format(
        suffixes=(".jsonl",),
        recognise=recognise,
        read=lambda path: read_session(path, session(path)),
        session=session,
    )


# The first that recognises a file has it. Midwatch's own comes last: any `kind` will do there.
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
        suffixes=(".json", ".jsonl"), recognise=openhands.recognise, read=openhands.read
    ),
    "midwatch": Format(suffixes=(".jsonl",), recognise=native.recognise, read=native.read),
}
FORMATS: Mapping[str, Format] = MappingProxyType(_KNOWN)


def recognise(path: Path, format: str = AUTO) -> str | None:
    """The name of the format that a file is in, or `None`; with a `format`, only that will do.

    Raises OSError if it is unreadable.
    """
    known = ((name, each) for name, each in FORMATS.items() if format in (AUTO, name))
    return next((name for name, each in known if each.recognise(path)), None)


def open_trace(path: Path, format: str = AUTO) -> Generator[Event | Damage, None, None]:
    """The events of a trace, read as they are asked for. Closing it closes the file.

    Raises TraceError at once for a file that cannot be read, or that is not in the format.
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
    return _stream(path, FORMATS[found])


def _stream(path: Path, format: Format) -> Generator[Event | Damage, None, None]:
    """What the format reads; a file that fails underway is a trace error, as one at the start."""
    try:
        yield from format.read(path)
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from error


def find_traces(folder: Path, format: str = AUTO) -> Iterator[Path]:
    """Every known trace below a folder, in sorted order; other files are passed over."""
    formats = [each for name, each in FORMATS.items() if format in (AUTO, name)]
    for path in sorted(folder.rglob("*")):
        if any(path.suffix in each.suffixes and _is_one(path, each) for each in formats):
            yield path


def _is_one(path: Path, format: Format) -> bool:
    try:
        return path.is_file() and format.recognise(path)
    except OSError:
        return False


__all__ = ["AUTO", "FORMATS", "Damage", "Format", "find_traces", "open_trace", "recognise"]
