"""A program that runs one attempt in processes of its own, and kills them where it is told to.

It reads lines `FOLDER WHERE` and answers each with the exit code of a process that began or
resumed the run in that folder. The process is killed by SIGKILL right after the commit WHERE:
`record-3` is the third of the recorder, `decision` the first that holds a decision; at `never` it
is not killed.
Processes are forked from this one, which has imported all that they need.
"""

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import kill_script

from midwatch_monitor.config.settings import MonitorSettings, RunSettings, Sandbox, Settings
from midwatch_monitor.config.tasks import TaskFile
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.encoding import kind_of
from midwatch_monitor.records import Commit, Entry
from midwatch_supervisor.learning.run_learning import RunLearning
from midwatch_supervisor.present.assignment import assignments
from midwatch_supervisor.run.launch import begin_run, conduct, load_run

TASKS = TaskFile.model_validate(
    {
        "models": {"worker": "none"},
        "workers": {"coder": {"agent": "kill_script:worker"}},
        "tasks": [
            {"id": "fix", "goal": "Write out.txt.", "acceptance": ["grep -qx three out.txt"]}
        ],
    }
)
SETTINGS = Settings(
    monitor=MonitorSettings(poll_seconds=0.05, outcome_after=1000),
    run=RunSettings(sandbox=Sandbox.OFF, grace_seconds=1),
)


class KillingJournal(Journal):
    """A journal that takes the whole process with it after one commit."""

    where = "never"
    recorded = 0

    async def commit(self, commit: Commit) -> tuple[Entry, ...]:
        entries = await super().commit(commit)
        self._end_after(commit)
        return entries

    async def answer(self, commit: Commit) -> tuple[Entry, ...] | None:
        entries = await super().answer(commit)
        self._end_after(commit)
        return entries

    def _end_after(self, commit: Commit) -> None:
        if self.where in self._places(commit):
            os.kill(os.getpid(), signal.SIGKILL)

    def _places(self, commit: Commit) -> list[str]:
        places = [kind_of(type(draft.record)) for draft in commit.drafts]
        if commit.incarnation is not None and commit.drafts:
            self.recorded += 1
            places.append(f"record-{self.recorded}")
        return places


async def work(where: str, home: Path) -> int:
    """Begin the run of this folder, or resume it; answers the exit code."""
    async with await KillingJournal.open(kill_script.JOURNAL) as journal:
        journal.where = where
        if runs := await journal.runs():
            resources, jobs = await load_run(journal, runs[0], home=home, learning=RunLearning)
        else:
            wanted = assignments(TASKS, home)
            resources, jobs = await begin_run(
                journal, wanted, source="", settings=SETTINGS, home=home, learning=RunLearning
            )
        return await conduct(resources, jobs, _ignore)


async def _ignore(entries: Sequence[Entry]) -> None:
    return


def work_in_process(folder: str, where: str) -> int:
    """Work in `folder` in a process of its own; answers its exit code, or the signal as -N."""
    process = os.fork()
    if process == 0:
        code = 70
        try:
            os.chdir(folder)
            code = asyncio.run(work(where, Path("home").resolve()))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def main() -> None:
    """Answer one line after the other."""
    for line in sys.stdin:
        folder, where = line.rsplit(maxsplit=1)
        sys.stdout.write(f"{work_in_process(folder, where)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
