"""Where the sessions of coding agents lie."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from midwatch_monitor.traces import FORMATS
from midwatch_monitor.traces.session_reader import KEPT, find_sessions, parent_of

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
PLACES = {
    "claude-code": ".claude/projects/-repo/s.jsonl",
    "codex": ".codex/sessions/2026/11/21/rollout-1.jsonl",
    "gemini": ".gemini/tmp/repo/chats/session-1.jsonl",
    "qwen": ".qwen/projects/-repo/chats/s.jsonl",
}


def kept(path: Path, at: datetime = NOW) -> Path:
    """A file that was last written then."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}\n")
    os.utime(path, (at.timestamp(), at.timestamp()))
    return path


def found(agent: str, home: Path, **environ: str) -> list[Path]:
    return find_sessions(KEPT[agent], environ, home, since=NOW)


@pytest.mark.parametrize("agent", list(KEPT))
def test_a_program_keeps_its_sessions_below_its_folder(tmp_path: Path, agent: str) -> None:
    session = kept(tmp_path / PLACES[agent])
    kept(session.with_name("notes.txt"))
    kept(session.parent.parent / "else" / "deeper" / "other.jsonl")
    assert found(agent, tmp_path) == [session]
    assert KEPT[agent].agent == agent
    assert agent in FORMATS


@pytest.mark.parametrize(
    ("agent", "variable"), [("claude-code", "CLAUDE_CONFIG_DIR"), ("codex", "CODEX_HOME")]
)
def test_a_variable_names_another_folder_unless_it_is_empty(
    tmp_path: Path, agent: str, variable: str
) -> None:
    at_home = kept(tmp_path / PLACES[agent])
    place = PLACES[agent].partition("/")[2]
    elsewhere = kept(tmp_path / "else" / place)
    assert found(agent, tmp_path, **{variable: str(tmp_path / "else")}) == [elsewhere]
    assert found(agent, tmp_path, **{variable: ""}) == [at_home]


def test_sub_agents_have_sessions_of_their_own(tmp_path: Path) -> None:
    session = kept(tmp_path / ".claude" / "projects" / "-repo" / "s.jsonl")
    child = kept(session.with_suffix("") / "subagents" / "agent-1.jsonl")
    assert found("claude-code", tmp_path) == [child, session]
    assert parent_of(child) == session
    assert parent_of(session) is None


def test_what_was_last_written_before_is_left_out(tmp_path: Path) -> None:
    folder = tmp_path / ".qwen" / "projects" / "-repo" / "chats"
    kept(folder / "old.jsonl", NOW - timedelta(seconds=1))
    new = [kept(folder / f"{name}.jsonl", NOW + timedelta(seconds=1)) for name in "ba"]
    assert found("qwen", tmp_path) == sorted(new)


def test_links_that_lead_out_and_what_is_no_file_are_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / ".qwen" / "projects" / "-repo" / "chats"
    session, outside = kept(folder / "s.jsonl"), kept(tmp_path / "else" / "chats" / "o.jsonl")
    (folder / "inside.jsonl").symlink_to(session)
    (folder / "outside.jsonl").symlink_to(outside)
    (folder / "nowhere.jsonl").symlink_to(folder / "gone")
    (folder / "itself.jsonl").symlink_to(folder / "itself.jsonl")
    (folder / "folder.jsonl").mkdir()
    (tmp_path / ".qwen" / "projects" / "linked").symlink_to(outside.parent.parent)
    assert found("qwen", tmp_path) == [folder / "inside.jsonl", session]


def test_a_program_that_was_never_started_has_no_sessions(tmp_path: Path) -> None:
    assert [found(agent, tmp_path) for agent in KEPT] == [[], [], [], []]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unreadable for root")
def test_folders_that_cannot_be_read_are_passed_over(tmp_path: Path) -> None:
    session = kept(tmp_path / ".qwen" / "projects" / "a" / "chats" / "s.jsonl")
    closed = kept(tmp_path / ".qwen" / "projects" / "b" / "chats" / "s.jsonl").parent
    closed.chmod(0)
    try:
        assert found("qwen", tmp_path) == [session]
    finally:
        closed.chmod(0o700)
