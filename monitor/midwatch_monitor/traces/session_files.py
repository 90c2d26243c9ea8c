"""Where programs keep their sessions."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFiles:
    """The sessions of one program on this machine."""

    agent: str
    """The program, and the format of its files."""
    folder: str
    """Below the person's home."""
    variable: str = ""
    """The environment variable that names another folder."""
    patterns: tuple[str, ...]
    """Of the files below the folder."""

    def folder_of(self, environ: Mapping[str, str], home: Path) -> Path:
        """Where the program of this person keeps its things."""
        named = environ.get(self.variable, "") if self.variable else ""
        return Path(named) if named else home / self.folder


_KEPT = (
    SessionFiles(
        agent="claude-code",
        folder=".claude",
        variable="CLAUDE_CONFIG_DIR",
        patterns=("projects/*/*.jsonl", "projects/*/*/subagents/agent-*.jsonl"),
    ),
    SessionFiles(
        agent="codex",
        folder=".codex",
        variable="CODEX_HOME",
        patterns=("sessions/*/*/*/rollout-*.jsonl",),
    ),
    SessionFiles(agent="gemini", folder=".gemini", patterns=("tmp/*/chats/session-*.jsonl",)),
    SessionFiles(agent="qwen", folder=".qwen", patterns=("projects/*/chats/*.jsonl",)),
)
KEPT: Mapping[str, SessionFiles] = MappingProxyType({each.agent: each for each in _KEPT})
"""By the name of the program."""


def find_sessions(
    kept: SessionFiles, environ: Mapping[str, str], home: Path, *, since: datetime
) -> list[Path]:
    """A program's files that were last written at that time or later; see `find_written`."""
    return find_written(kept.folder_of(environ, home), kept.patterns, since=since)


def find_written(folder: Path, patterns: Iterable[str], *, since: datetime) -> list[Path]:
    """The files below a folder that were last written at that time or later, sorted.

    Links that lead out of the folder and what cannot be read are passed over.
    """
    found = {path for pattern in patterns for path in _files(folder, pattern)}
    return sorted(path for path in found if _is_recent(path, folder, since))


def parent_of(path: Path) -> Path | None:
    """The session whose sub-agent keeps this file, by its place; the session need not exist."""
    folder = path.parent
    if folder.name != "subagents" or not path.name.startswith("agent-"):
        return None
    return folder.parent.with_name(f"{folder.parent.name}{path.suffix}")


def _files(folder: Path, pattern: str) -> Iterator[Path]:
    """What can be listed: a folder that fails underway ends the listing."""
    try:
        yield from folder.glob(pattern)
    except OSError:
        return


def _is_recent(path: Path, folder: Path, since: datetime) -> bool:
    try:
        inside = path.resolve().is_relative_to(folder.resolve())
        return inside and path.is_file() and path.stat().st_mtime >= since.timestamp()
    except (OSError, RuntimeError):  # unreadable, gone, or a link that leads to itself
        return False
