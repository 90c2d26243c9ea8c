"""Sessions of agents that somebody else started, in a home folder of the test's own."""

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from midwatch_monitor.bus import LocalBus
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Action, Actor, Alert, Commit, Entry, Fault, Record, Step
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.traces.session_reader import KEPT
from midwatch_supervisor.present.lookup import task_state
from midwatch_supervisor.sessions.session import Reply
from midwatch_supervisor.sessions.session_journal import SessionJournal
from midwatch_supervisor.sessions.session_watch import IgnoredHook, SessionSources, SessionWatch
from midwatch_tests.factories import draft, intervention
from midwatch_tests.sessions import NOON, Dialect, Line, Lines

FILES = {
    "claude-code": ".claude/projects/-repo/s1.jsonl",
    "codex": ".codex/sessions/2026/11/21/rollout-s1.jsonl",
    "gemini": ".gemini/tmp/h/chats/session-s1.jsonl",
    "qwen": ".qwen/projects/-repo/chats/s1.jsonl",
}
"""Where each program keeps a session, below the home folder."""


def loop(dialect: Dialect, times: int, *, first: int = 1) -> Lines:
    """The same failing command, so many times."""
    lines = Lines()
    for n in range(first, first + times):
        lines += [*dialect.called("make", f"c{n}"), *dialect.came("make", f"c{n}", "boom", 2)]
    return lines


def asked(dialect: Dialect, text: str = "Mend it.") -> Lines:
    """The beginning of a session."""
    return [*dialect.head, *dialect.prompt(text, NOON)]


def at(time: datetime, lines: Sequence[Line]) -> Lines:
    """The same lines, all written at that time."""
    return [{**e, "timestamp": time.isoformat()} if "timestamp" in e else e for e in lines]


def hook(name: str, transcript: object) -> dict[str, object]:
    """A hook of the session that is kept in a file."""
    return {"hook_event_name": name, "transcript_path": str(transcript)}


class Away(Journal):
    """A journal that is away for the next so many commits of steps."""

    times = 0

    async def commit(self, commit: Commit) -> tuple[Entry, ...]:
        """Store it, or raise JournalError."""
        if self.times and any(isinstance(each.record, Step) for each in commit.drafts):
            self.times -= 1
            raise JournalError("away")
        return await super().commit(commit)


class ForeignAgents:
    """A home folder with sessions, and who watches it; one journal."""

    def __init__(self, journal: Journal, home: Path) -> None:
        self.journal = journal
        self.home = home
        self.now = datetime.now(UTC)
        self.watch = self._watch(())

    def another_watch(self, *paths: Path, agents: Sequence[str] = ()) -> SessionWatch:
        """A watch that knows only what the journal knows, as after a crash.

        It is of these paths and programs; of all programs without any.
        """
        self.watch.close()
        self.watch = self._watch(paths, agents)
        return self.watch

    def _watch(self, paths: Sequence[Path], agents: Sequence[str] = ()) -> SessionWatch:
        operator = SessionJournal(
            journal=self.journal, settings=Settings(), bus=LocalBus(), clock=lambda: self.now
        )
        sources = SessionSources(
            agents=tuple(KEPT[each] for each in agents or (() if paths else KEPT)),
            paths=tuple(paths),
            since=self.now - timedelta(hours=1),
        )
        return SessionWatch(operator, sources, environ={}, home=self.home)

    def file(self, name: str) -> Path:
        """A file below the home folder, with the folder that it is in."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def write(self, name: str, lines: Sequence[object]) -> Path:
        """Append lines to a file below the home folder."""
        path = self.file(name)
        with path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(each) + "\n" for each in lines)
        os.utime(path, (self.now.timestamp(), self.now.timestamp()))
        return path

    def write_sub_agent(self, lines: Lines) -> Path:
        """Append lines to the file of a sub-agent of Claude Code's session."""
        told = [{**each, "isSidechain": True, "agentId": "a1"} for each in lines]
        return self.write(".claude/projects/-repo/s1/subagents/agent-a1.jsonl", told)

    async def hook(self, said: Mapping[str, object]) -> Reply:
        """What a hook of Claude Code is answered, by which nothing is delivered yet."""
        event = {"session_id": "s1", "cwd": "/repo", **said}
        heard = await self.watch.hear(json.dumps({"agent": "claude-code", "event": event}).encode())
        assert not isinstance(heard, IgnoredHook)
        self.heard, reply = heard
        return reply

    async def say(self, action: Action, message: str = "Look.", *, to: int = 0) -> None:
        """What an operator says to an attempt, by default the first."""
        state = (await self.attempts())[to]
        said = intervention(action, Actor.OPERATOR, author="ann", message=message)
        said = draft(said, at=self.now, task=state.task, attempt=state.id)
        await self.journal.commit(Commit(drafts=(said,)))

    async def attempts(self) -> list[AttemptState]:
        """Where every attempt stands, oldest first."""
        found = list[AttemptState]()
        for run in await self.journal.runs():
            for task in await self.journal.tasks(run.id):
                found += (await task_state(self.journal, task)).attempts.values()
        return found

    async def attempt(self) -> AttemptState:
        """Where the only attempt stands."""
        (state,) = await self.attempts()
        return state

    async def records(self, *kinds: type[Record]) -> list[Record]:
        """All that the journal holds of these kinds."""
        return [entry.record async for entry in self.journal.all_entries(kinds=kinds)]

    async def steps(self) -> list[Step]:
        """All steps, in their order."""
        return [each for each in await self.records(Step) if isinstance(each, Step)]

    async def faults(self) -> list[Fault]:
        """All faults, in their order."""
        return [each for each in await self.records(Fault) if isinstance(each, Fault)]

    async def alarms(self) -> list[tuple[str, int, str]]:
        """Each change of an alert: its rule, the step and the state."""
        found = [each for each in await self.records(Alert) if isinstance(each, Alert)]
        return [(each.key.rule, each.step, each.state.value) for each in found]
