"""Whether another attempt follows, which worker makes it, and which work it takes over."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from midwatch_monitor.records import Action, Actor, Ending, Terms
from midwatch_supervisor.decide.history import AttemptEvidence
from midwatch_supervisor.run.task_agents import TaskAgents

AGAIN = frozenset({Ending.RESTARTED, Ending.UNACCEPTED})
"""Endings after which another attempt may succeed. The causes of the others persist."""


def wanted_again(earlier: Sequence[AttemptEvidence]) -> bool:
    """Whether a person has begun the task again after its last attempt ended."""
    return bool(earlier) and earlier[-1].state.interventions.begin_again


def may_follow(earlier: Sequence[AttemptEvidence], *, most: int) -> bool:
    """Whether the task may have another attempt; `most` is its `max_attempts`.

    That limits automatic attempts only: an operator may always order another.
    """
    if len(earlier) < most:
        return True
    orders = earlier[-1].state.interventions.delivered if earlier else ()
    return any(
        each.action is Action.RESTART and each.intervention.by is Actor.OPERATOR for each in orders
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NextAttempt:
    """Worker and model of the next attempt, and the work that it takes over."""

    worker: str
    model: str
    keep: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    """Names of the tasks that must be over first, and whose work it builds on."""


def end_terms(attempt: AttemptEvidence) -> Terms:
    """Return the terms of the restart or split that ended an attempt; empty terms without one."""
    ends = [
        each.intervention.terms
        for each in attempt.state.interventions.delivered
        if each.action in {Action.RESTART, Action.SPLIT}
    ]
    return ends[-1] if ends else Terms()


def next_attempt(agents: TaskAgents, earlier: Sequence[AttemptEvidence]) -> NextAttempt:
    """Return the worker and model of the next attempt.

    The last restart may name them. Otherwise the previous attempt's worker continues, with the
    model that it ended with. The tasks that any earlier restart waited for stay in `after`.
    """
    if not earlier:
        name = agents.names[0]
        return NextAttempt(worker=name, model=agents.models(name)[0])
    terms = [end_terms(each) for each in earlier]
    last, said = earlier[-1], terms[-1]
    worker = said.worker if said.worker in agents.names else last.attempt.worker
    known = agents.models(worker)
    before = last.state.model if worker == last.attempt.worker else ""
    model = next((each for each in (said.model, before) if each and each in known), known[0])
    return NextAttempt(
        worker=worker,
        model=model,
        keep=said.keep,
        after=tuple(dict.fromkeys(each.after for each in terms if each.after)),
    )


def circular(waits: Mapping[str, Iterable[str]], who: str, whom: str) -> bool:
    """Whether `whom` waits for `who`, directly or through others, according to `waits`."""
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
