"""The few threads that read, beside the one that writes."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event, Thread, get_ident
from typing import TypeVar

from sqlalchemy import Connection, Engine

from midwatch_monitor.journal.core.engine import READERS, explaining
from midwatch_monitor.journal.core.outage import Patience

T = TypeVar("T")

_CLOSE_SECONDS = 3.0
"""How long closing waits for a database that does not answer."""


class Reader:
    """Answers questions to the database, some at the same time, and rides out its outages."""

    def __init__(self, engine: Engine, *, name: str, patience: Patience) -> None:
        self._engine = engine
        self._name = name
        self._patience = patience
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="journal-reader")
        self._begun: dict[int, float] = {}

    @property
    def stuck(self) -> float:
        """For how many seconds the database has not answered; 0 while it is not asked."""
        begun = list(self._begun.values())
        return time.monotonic() - min(begun) if begun else 0.0

    def submit(self, work: Callable[[Connection], T], unwanted: Event) -> "Future[T]":
        """Ask beside what else is asked; fails with what the work raised, or with a JournalError.

        Once nobody wants the answer any more, an outage is no longer waited for.
        """
        return self._threads.submit(self._answer, work, unwanted)

    def close(self, cut: Callable[[], None]) -> None:
        """Wait for what is under way, but not for a database that does not answer.

        `cut` must end the connections that it does not answer over.
        """
        self._patience.end()
        ending = Thread(target=self._threads.shutdown, name="journal-closing", daemon=True)
        ending.start()
        while ending.is_alive():
            ending.join(_CLOSE_SECONDS / 2)
            # What is asked just now may also turn out not to be answered.
            if self.stuck > _CLOSE_SECONDS:
                cut()

    def _answer(self, work: Callable[[Connection], T], unwanted: Event) -> T:
        with explaining(self._name, self._patience.seconds):
            return self._patience.hold(lambda: self._ask(work), lambda _: unwanted.is_set())

    def _ask(self, work: Callable[[Connection], T]) -> T:
        thread = get_ident()
        self._begun[thread] = time.monotonic()
        try:
            with self._engine.connect() as connection:
                return work(connection)
        finally:
            del self._begun[thread]
