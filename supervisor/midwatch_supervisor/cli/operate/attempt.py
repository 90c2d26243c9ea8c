"""The attempt that a person acts on."""

from dataclasses import dataclass

from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Task
from midwatch_monitor.state.attempt import AttemptState
from midwatch_supervisor.present.lookup import account_of, assignment_of, find


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAttempt:
    """An attempt with its task, as it stands now."""

    task: Task
    account: AttemptState

    @property
    def name(self) -> str:
        """What people call it: `fix#2`."""
        return f"{self.task.name}#{self.account.attempt.number}"


async def open_attempt(journal: Journal, id: str) -> OpenAttempt:
    """The attempt that `id` names, or the latest of a task; raises UsageError if it is over."""
    target = await begun_attempt(journal, id)
    if target.account.lifecycle.over:
        said = f"{target.name} is over: {target.account.status}; nothing reaches it any more"
        if assignment_of(target.task) is not None:
            said += f", but `midwatch tell {target.task.name} --restart` begins the task again"
        raise UsageError(said)
    return target


async def begun_attempt(journal: Journal, id: str) -> OpenAttempt:
    """The attempt that `id` names, or the latest of a task, also one that is over."""
    found = await find(journal, id)
    tasks = await account_of(journal, found.task)
    account = tasks.attempts[found.attempt.id] if found.attempt else tasks.latest
    if account is None:
        name = found.task.name
        raise UsageError(f"{name} has no attempt yet; `midwatch cancel {name}` takes it back")
    return OpenAttempt(task=found.task, account=account)
