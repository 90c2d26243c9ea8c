"""A person takes back what was handed over: a task that has not begun, or one under way."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from midwatch_monitor.bus import Bus
from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.commits import TURNS, commit_unmoved
from midwatch_monitor.journal.core.encoding import hint_of
from midwatch_monitor.records import (
    Action,
    Actor,
    AttemptTransition,
    Commit,
    Draft,
    Ending,
    Intervention,
    Keeper,
    Lifecycle,
    Record,
    Run,
    Task,
    TaskTransition,
)
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.task import TaskState
from midwatch_supervisor.present.lookup import assignment_of

_TRIES = 20
"""How often a task may move between a look and the word that follows from it."""


class Course(StrEnum):
    """What becomes of a task that is withdrawn."""

    CANCELED = "canceled"
    """Nobody is at work on it: it is over."""
    STOPPING = "stopping"
    """Its attempt is stopped like any other, and the task ends with it."""
    SPLIT = "split"
    """Its parts are withdrawn, and it ends with them."""
    SPLITTING = "splitting"
    """Its parts are not there yet: one has to ask again."""
    KEPT = "kept"
    """It waits within a program that Midwatch only watches, and that alone knows what is next."""
    OVER = "over"


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal:
    """What was done about one task, or would be."""

    task: Task
    course: Course
    lifecycle: Lifecycle
    """Of the task by now."""
    attempt: AttemptState | None = None
    """The one that is stopped."""
    intervention: int | None = None
    """By which it is, by journal id; `None` where it would be."""
    already: bool = False
    """Whether that was on its way before."""

    @property
    def refused(self) -> bool:
        """Whether nothing came of it, though the task is not over."""
        return self.course in {Course.SPLITTING, Course.KEPT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A task with what its run has beside it, as it stood at one moment."""

    account: TaskState
    after: int
    """The newest entry by which that is told."""
    parts: tuple[Task, ...] = ()
    parts_over: bool = True

    @property
    def course(self) -> Course:
        """What becomes of it if nothing else does, whoever keeps its run."""
        last = self.account.latest
        if self.account.transition.lifecycle.over:
            return Course.OVER
        if last is not None and last.transition.lifecycle in _AT_WORK:
            return Course.STOPPING
        if last is not None and last.split and not self.parts:
            return Course.SPLITTING
        # With all its parts over it is only put together.
        return Course.CANCELED if self.parts_over else Course.SPLIT


_AT_WORK = frozenset({Lifecycle.WORKING, Lifecycle.INPUT_REQUIRED})
"""An attempt that is only submitted has no worker yet that could be stopped."""


def stop_on_its_way(attempt: AttemptState) -> int | None:
    """The stop that will reach an attempt, by journal id; `None` if there is none."""
    coming = attempt.interventions.on_their_way
    return next((each.id for each in coming if each.action is Action.STOP), None)


def dependents_first(tasks: Sequence[Task]) -> list[Task]:
    """Tasks of one run, each before those that it depends on. Pure.

    The other way round a node could begin with what depends on one that is withdrawn, to say that
    it has failed by that.
    """
    assigned = {task.name: assignment_of(task) for task in tasks}
    named = {task.name: task for task in tasks}
    placed: dict[str, Task] = {}

    def place(name: str) -> None:
        if name in placed or name not in named:
            return
        of = assigned[name]
        for before in () if of is None else of.task.depends_on:
            place(before)
        placed[name] = named[name]

    for task in tasks:
        place(task.name)
    return list(placed.values())[::-1]


def wholes(tasks: Iterable[Task]) -> list[Task]:
    """The tasks without those that came of a split: these are withdrawn with the whole."""
    return [
        task for task in tasks if (assigned := assignment_of(task)) is None or not assigned.parent
    ]


class Withdrawing:
    """Withdraws tasks of a journal under a person's name."""

    def __init__(
        self, journal: Journal, *, bus: Bus, author: str, why: str = "", dry_run: bool = False
    ) -> None:
        """`dry_run` only says what would be done."""
        self._journal = journal
        self._bus = bus
        self._reason = f"canceled by {author}" + (why and f": {why}")
        self._author = author
        self._dry_run = dry_run

    async def withdraw(self, run: Run, task: Task) -> list[Withdrawal]:
        """Withdraw a task, and the parts that it was split into; what came of each.

        Raises JournalError.
        """
        for _ in range(_TRIES):
            look = await self._look(task)
            done = await self._act(run, look)
            if done is not None:
                break
        else:
            raise JournalError(f"{task.name} moves all the time: say it again")
        if done.course is not Course.SPLIT:
            return [done]
        found = [
            each for part in dependents_first(look.parts) for each in await self.withdraw(run, part)
        ]
        return [done, *found]

    async def _look(self, task: Task) -> Look:
        account, after = await self._account(task)
        if account.latest is None or not account.latest.split or account.transition.lifecycle.over:
            return Look(account=account, after=after)
        parts = tuple(
            each
            for each in await self._journal.tasks(task.run)
            if (assigned := assignment_of(each)) is not None and assigned.parent == task.name
        )
        over = [(await self._account(each))[0].transition.lifecycle.over for each in parts]
        return Look(account=account, after=after, parts=parts, parts_over=all(over))

    async def _account(self, task: Task) -> tuple[TaskState, int]:
        account, after = TaskState(task=task), 0
        async for entry in self._journal.all_entries(task=task.id, kinds=TURNS):
            if account.lacks(entry) and entry.attempt is not None:
                account.meet(await self._journal.attempt(entry.attempt))
            account.fold(entry)
            after = entry.id
        return account, after

    async def _act(self, run: Run, look: Look) -> Withdrawal | None:
        """Do what a look asks for; `None` where the task is not as it was then any more."""
        course = look.course
        embedded = assignment_of(look.account.task) is None
        if course is Course.CANCELED and embedded and run.keeper is Keeper.PROCESS:
            course = Course.KEPT
        match course:
            case Course.STOPPING if look.account.latest is not None:
                return await self._stop(look, look.account.latest)
            case Course.CANCELED:
                return await self._cancel(look)
            case _:
                account = look.account
                return Withdrawal(
                    task=account.task, course=course, lifecycle=account.transition.lifecycle
                )

    async def _stop(self, look: Look, attempt: AttemptState) -> Withdrawal | None:
        known = stop_on_its_way(attempt)
        intervention = known
        if known is None and not self._dry_run:
            order = Intervention(
                action=Action.STOP, by=Actor.OPERATOR, author=self._author, message=self._reason
            )
            intervention = await self._commit(look, (attempt.attempt.id, order))
            if intervention is None:
                return None
        return Withdrawal(
            task=look.account.task,
            course=Course.STOPPING,
            lifecycle=look.account.transition.lifecycle,
            attempt=attempt,
            intervention=intervention,
            already=known is not None,
        )

    async def _cancel(self, look: Look) -> Withdrawal | None:
        records: list[tuple[int | None, Record]] = []
        last = look.account.latest
        if last is not None and not last.transition.lifecycle.over:
            state = AttemptTransition(
                lifecycle=Lifecycle.CANCELED, reason=self._reason, ending=Ending.CANCELED
            )
            records.append((last.attempt.id, state))
        records.append((None, TaskTransition(lifecycle=Lifecycle.CANCELED, reason=self._reason)))
        if not self._dry_run and await self._commit(look, *records) is None:
            return None
        return Withdrawal(
            task=look.account.task,
            course=Course.CANCELED,
            lifecycle=look.account.transition.lifecycle if self._dry_run else Lifecycle.CANCELED,
        )

    async def _commit(self, look: Look, *records: tuple[int | None, Record]) -> int | None:
        """Store records of attempts or of the task; the last one's id, `None` where it moved."""
        task, at = look.account.task.id, await self._journal.now()
        drafts = tuple(
            Draft(record=record, at=at, task=task, attempt=attempt) for attempt, record in records
        )
        entries = await self._journal.write(
            commit_unmoved, Commit(drafts=drafts), task=task, after=look.after
        )
        for entry in entries or ():
            self._bus.publish(hint_of(entry))
        return entries[-1].id if entries else None
