"""What follows an attempt: whether another may, by whom, with what of the work before it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Action,
    Attempt,
    Change,
    Delivery,
    DeliveryState,
    Ending,
    Intervention,
    Terms,
)
from midwatch_supervisor.run.task_agents import TaskAgents
from midwatch_supervisor.workspaces.changes import records

AGAIN = frozenset({Ending.RESTARTED, Ending.UNACCEPTED})
"""Endings after which another attempt may succeed. The others have a reason that stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextAttempt:
    """Who makes the next attempt, and what it takes over."""

    worker: str
    model: str
    keep: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    """The tasks that must be over first, and whose work is built upon."""


async def end_terms(journal: Journal, attempt: Attempt) -> Terms:
    """What the intervention that ended an attempt said in detail; nothing if none ended it."""
    issued: dict[int, Intervention] = {}
    terms = Terms()
    after = 0
    while page := await journal.entries(after, attempt=attempt.id, kinds=(Intervention, Delivery)):
        for entry in page:
            match entry.record:
                case Intervention(action=Action.RESTART | Action.SPLIT) as intervention:
                    issued[entry.id] = intervention
                case Delivery(state=DeliveryState.DELIVERED, intervention=id) if id in issued:
                    terms = issued[id].terms
                case _:
                    pass
        after = page[-1].id
    return terms


async def model_in_force(journal: Journal, attempt: Attempt) -> str:
    """The model that an attempt ended with: its first, or what it was switched to."""
    model = attempt.model
    async for record in records(journal, attempt, (Change,)):
        if isinstance(record, Change) and record.model is not None:
            model = record.model
    return model


async def next_attempt(
    journal: Journal, agents: TaskAgents, earlier: Sequence[Attempt]
) -> NextAttempt:
    """Who makes the next attempt.

    That is whom the last restart named, else the worker before with the model that it ended
    with. What an earlier restart had to wait for is built upon ever after.
    """
    if not earlier:
        name = agents.names[0]
        return NextAttempt(worker=name, model=agents.models(name)[0])
    terms = [await end_terms(journal, attempt) for attempt in earlier]
    last, said = earlier[-1], terms[-1]
    worker = said.worker if said.worker in agents.names else last.worker
    known = agents.models(worker)
    before = await model_in_force(journal, last) if worker == last.worker else ""
    model = next((each for each in (said.model, before) if each and each in known), known[0])
    return NextAttempt(
        worker=worker,
        model=model,
        keep=said.keep,
        after=tuple(dict.fromkeys(each.after for each in terms if each.after)),
    )


def circular(waits: Mapping[str, Iterable[str]], who: str, whom: str) -> bool:
    """Whether `whom` waits, itself or through others, for `who`, by who waits for whom."""
    seen: set[str] = set()
    ahead = [whom]
    while ahead:
        name = ahead.pop()
        if name == who:
            return True
        if name not in seen:
            seen.add(name)
            ahead += waits.get(name, ())
    return False
