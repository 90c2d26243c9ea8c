"""Turns of tasks as DBOS hands them out; the only module that uses DBOS.

A turn is a workflow of one step. DBOS keeps it in the schema `dbos` of the journal's database,
gives it to one node at a time, and refuses what a node says about a turn that it has lost. DBOS
only says which node may look at a task; all facts about tasks come from the journal.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from typing import TYPE_CHECKING, Any, Protocol, Self

from midwatch_monitor.errors import JournalError, MissingExtraError, UsageError
from midwatch_monitor.journal.core.engine import explain_errors, url_name, url_of
from midwatch_monitor.records import Run

if TYPE_CHECKING:
    from dbos import DBOSClient, WorkflowStatus

APPLICATION = "midwatch"
VERSION = "midwatch-1"
"""Version of the turns' format; nodes with another one do not take them."""
WORKFLOW = "midwatch_turn"
MAX_LABELS = 6
"""Maximum number of labels of a node: it listens to a queue for every subset of them."""
POLL_SECONDS = 0.3
"""Seconds between two requests of a node to each of its queues."""
LOG_LEVEL = "ERROR"
"""DBOS warns of every lost connection, several times a second, although it retries by itself."""
_CLIENT_CONNECTIONS = 2
_NODE_CONNECTIONS = 6
"""DBOS's default is twenty, out of the hundred that a database has for all clients."""
_MOST_FORGOTTEN = 2000
PUT_BACK = "put back"
"""Result of a turn that is in its queue again, and so has not ended."""
_UNDER_WAY = ["ENQUEUED", "DELAYED", "PENDING"]
_PENDING = "PENDING"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedTurn:
    """Names one turn of a task: `<fleet>:<run>:<task>:<number>`."""

    fleet: str
    run: str
    """The run's id and start time: a new journal may use the ids of an old one again."""
    task: int
    number: int
    """Counts from 1. Handing out the same number twice makes one turn."""

    def __str__(self) -> str:
        return f"{self.fleet}:{self.run}:{self.task}:{self.number}"

    @property
    def next(self) -> "QueuedTurn":
        """The turn after this one."""
        return QueuedTurn(fleet=self.fleet, run=self.run, task=self.task, number=self.number + 1)

    @classmethod
    def of(cls, fleet: str, run: Run, task: int, number: int) -> "QueuedTurn":
        """Return a turn of a task of a run."""
        return cls(fleet=fleet, run=run_key(run), task=task, number=number)

    @classmethod
    def read(cls, text: str) -> "QueuedTurn | None":
        """Parse a turn from its text; `None` if it is not one."""
        fleet, _, rest = text.partition(":")
        words = rest.split(":")
        if len(words) != 3 or not all(word.isdecimal() for word in words[1:]):
            return None
        return cls(fleet=fleet, run=words[0], task=int(words[1]), number=int(words[2]))


def run_key(run: Run) -> str:
    """Return the name of a run in turns."""
    return f"{run.id}-{run.started_at:%Y%m%dT%H%M%S}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnUnderWay:
    """A turn that a node has or that waits for one."""

    ticket: QueuedTurn
    holder: str = ""
    """Process that has it; empty while it waits."""


def queue_for(fleet: str, labels: Iterable[str]) -> str:
    """Return the queue of the tasks that ask for these labels."""
    wanted = "+".join(sorted(set(labels)))
    return f"{fleet}/{wanted}" if wanted else fleet


def queues_of(fleet: str, labels: Sequence[str]) -> tuple[str, ...]:
    """Return the queues of a node with these labels, one for every subset of them.

    Raises UsageError for too many labels.
    """
    known = sorted(set(labels))
    if len(known) > MAX_LABELS:
        raise UsageError(f"a node may have {MAX_LABELS} labels at most, not {len(known)}")
    sets = (each for size in range(len(known) + 1) for each in combinations(known, size))
    return tuple(queue_for(fleet, each) for each in sets)


def system_url(location: str) -> str:
    """Return the URL of the turns' database, which is the journal's.

    Raises UsageError if it is not PostgreSQL, and JournalAccessError if it is not a URL.
    """
    url = url_of(location)
    if url.get_backend_name() != "postgresql":
        raise UsageError(
            "a fleet needs a journal in PostgreSQL (--journal postgresql://… or "
            "MIDWATCH_JOURNAL); on one machine `midwatch run` needs none"
        )
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


class Queue(Protocol):
    """Hands out turns of a fleet; see `TurnQueue`."""

    @property
    def fleet(self) -> str: ...
    async def under_way(self) -> list[TurnUnderWay]: ...
    async def last_numbers(self, run: Run) -> dict[int, int]: ...
    async def hand_out(
        self, ticket: QueuedTurn, *, labels: Iterable[str] = (), delay_seconds: float = 0.0
    ) -> None: ...
    async def rescue(
        self, ticket: QueuedTurn, *, labels: Iterable[str] = (), holder: str = ""
    ) -> bool: ...
    async def drop(self, ticket: QueuedTurn) -> None: ...
    async def forget(self, before: datetime) -> None: ...


class TurnQueue:
    """Hands out turns and keeps track of them, but does not run any."""

    def __init__(self, client: "DBOSClient", *, fleet: str, name: str) -> None:
        """Use `open` instead."""
        self._client = client
        self._name = name
        self.fleet = fleet

    @classmethod
    async def open(cls, location: str, *, fleet: str) -> Self:
        """Connect to the database of a journal, and create what DBOS needs there.

        Raises UsageError if it is not PostgreSQL, MissingExtraError without DBOS, and JournalError
        if it cannot be reached.
        """
        url = system_url(location)
        name = url_name(url_of(location))
        with _explain_errors(name):
            return cls(await asyncio.to_thread(_open_client, url), fleet=fleet, name=name)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self._client.destroy)

    async def _list_turns(self, **wanted: Any) -> "list[WorkflowStatus]":
        """Return the turns that DBOS knows. Raises JournalError."""
        with _explain_errors(self._name):
            return await self._client.list_workflows_async(
                name=WORKFLOW, load_input=False, load_output=False, **wanted
            )

    async def under_way(self) -> list[TurnUnderWay]:
        """Return the turns of this fleet that a node has or that wait for one."""
        found = await self._list_turns(status=_UNDER_WAY, workflow_id_prefix=f"{self.fleet}:")
        return [
            TurnUnderWay(
                ticket=ticket,
                holder=(each.executor_id or "") if each.status == _PENDING else "",
            )
            for each in found
            if (ticket := QueuedTurn.read(each.workflow_id)) is not None
            and ticket.fleet == self.fleet
        ]

    async def last_numbers(self, run: Run) -> dict[int, int]:
        """Return the number of each task's last turn in a run, by task id."""
        last: dict[int, int] = {}
        for each in await self._list_turns(workflow_id_prefix=f"{self.fleet}:{run_key(run)}:"):
            ticket = QueuedTurn.read(each.workflow_id)
            if ticket is not None:
                last[ticket.task] = max(ticket.number, last.get(ticket.task, 0))
        return last

    async def hand_out(
        self, ticket: QueuedTurn, *, labels: Iterable[str] = (), delay_seconds: float = 0.0
    ) -> None:
        """Put a turn into its queue; doing it again changes nothing."""
        from dbos import EnqueueOptions

        wanted = sorted(set(labels))
        options = EnqueueOptions(
            workflow_name=WORKFLOW,
            queue_name=queue_for(self.fleet, wanted),
            workflow_id=str(ticket),
            app_version=VERSION,
        )
        if delay_seconds > 0:
            options["delay_seconds"] = delay_seconds
        with _explain_errors(self._name):
            await self._client.enqueue_async(options, str(ticket), wanted)

    async def rescue(
        self, ticket: QueuedTurn, *, labels: Iterable[str] = (), holder: str = ""
    ) -> bool:
        """Take a turn from its holder, and put it back into its place in the queue.

        What the holder says about the turn from then on is refused. With `holder`, only if that
        process still has it. Returns whether it was taken.
        """
        held = {"workflow_ids": [str(ticket)], "status": _PENDING, "executor_id": holder}
        if holder and not await self._list_turns(**held):
            return False
        queue = queue_for(self.fleet, labels)
        with _explain_errors(self._name):
            await self._client.resume_workflow_async(str(ticket), queue_name=queue)
        return True

    async def drop(self, ticket: QueuedTurn) -> None:
        """Cancel a turn that nobody has or needs."""
        with _explain_errors(self._name):
            await self._client.cancel_workflow_async(str(ticket))

    async def forget(self, before: datetime) -> None:
        """Delete turns that ended before that time, at most a few thousand at once."""
        ended = await self._list_turns(
            workflow_id_prefix=f"{self.fleet}:",
            completed_before=before.isoformat(),
            limit=_MOST_FORGOTTEN,
        )
        if ended:
            with _explain_errors(self._name):
                await self._client.delete_workflows_async([each.workflow_id for each in ended])


@contextmanager
def _explain_errors(name: str) -> Generator[None]:
    """Translate errors of DBOS and its database into errors of the journal."""
    with explain_errors(name):
        try:
            yield
        except ImportError as error:
            raise MissingExtraError("a fleet", "fleet") from error
        except Exception as error:
            if type(error).__module__.startswith("dbos"):
                raise JournalError(f"{name}: {type(error).__name__}: {error}") from error
            raise


def _open_client(url: str) -> "DBOSClient":
    from dbos import DBOS, DBOSClient, DBOSPortableJSONSerializer

    logging.getLogger("dbos").setLevel(LOG_LEVEL)
    # Does nothing if everything exists; others may do it at the same time.
    DBOS.migrate(url)
    return DBOSClient(
        system_database_url=url,
        application_name=APPLICATION,
        serializer=DBOSPortableJSONSerializer(),
        system_database_pool_size=_CLIENT_CONNECTIONS,
        retry_connection_errors=False,
    )


TurnWork = Callable[[QueuedTurn, Sequence[str]], Coroutine[Any, Any, str]]
"""Runs a turn of a task that asks for these labels."""


class TurnReceiver:
    """Takes turns for a node, and runs them on the loop on which it was opened.

    There is one for each process, because there is one DBOS.
    """

    def __init__(self, work: TurnWork, *, holder: str, fleet: str) -> None:
        """Have `work` run turns; its result ends the turn, and it should not raise.

        `PUT_BACK` ends nothing: the next node that takes the turn runs it from the beginning.
        """
        self._work = work
        self._holder = holder
        self._fleet = fleet

    async def open(self, location: str, *, labels: Sequence[str], slots: int) -> None:
        """Begin to take turns of tasks that ask for some of these labels.

        Raises as `TurnQueue.open` does, and UsageError for too many labels.
        """
        queues, url = queues_of(self._fleet, labels), system_url(location)
        loop = asyncio.get_running_loop()
        with _explain_errors(url_name(url_of(location))):
            # In a thread: on this loop DBOS would also run its own work, and block it.
            await asyncio.to_thread(self._launch, url, queues, slots, loop)

    async def close(self, *, seconds: float = 0.0) -> None:
        """Take no more turns, and wait at most `seconds` for those that are running."""
        from dbos import DBOS

        await asyncio.to_thread(
            DBOS.destroy, destroy_registry=True, workflow_completion_timeout_sec=math.ceil(seconds)
        )

    def _launch(
        self, url: str, queues: Sequence[str], slots: int, loop: asyncio.AbstractEventLoop
    ) -> None:
        from dbos import DBOS, DBOSPortableJSONSerializer

        DBOS(
            config={
                "name": APPLICATION,
                "system_database_url": url,
                "executor_id": self._holder,
                "application_version": VERSION,
                "log_level": LOG_LEVEL,
                "serializer": DBOSPortableJSONSerializer(),
                "sys_db_pool_size": _NODE_CONNECTIONS,
            }
        )

        async def work(ticket: str, labels: list[str]) -> str:
            known = QueuedTurn.read(ticket)
            if known is None:
                return "no turn of ours"
            doing = asyncio.run_coroutine_threadsafe(self._work(known, labels), loop)
            done = await asyncio.wrap_future(doing)
            if done == PUT_BACK:
                # DBOS stores no result of a canceled execution. Otherwise it would wait, as long
                # as the turn lasts, for the result that another process will store.
                raise asyncio.CancelledError
            return done

        step = DBOS.step(name=f"{WORKFLOW}_step")(work)

        async def turn(ticket: str, labels: list[str]) -> str:
            return await step(ticket, labels)

        DBOS.workflow(name=WORKFLOW, max_recovery_attempts=None)(turn)
        DBOS.listen_queues(queues)
        DBOS.launch()
        for queue in queues:
            _allow_slots(queue, slots)


def _allow_slots(queue: str, slots: int) -> None:
    """Make a queue give at least `slots` turns to one node.

    The number belongs to the queue, not to the node: it is the largest of all its nodes, and a node
    with fewer slots gives back what it cannot run.
    """
    from dbos import DBOS

    for _ in range(3):  # another node may change it at the same time
        known = DBOS.retrieve_queue(queue)
        if known is not None and (known.worker_concurrency or 0) >= slots:
            return
        DBOS.register_queue(
            queue,
            worker_concurrency=slots,
            polling_interval_sec=POLL_SECONDS,
            on_conflict="always_update",
        )
