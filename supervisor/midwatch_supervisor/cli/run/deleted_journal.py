"""A run whose journal file is deleted ends: SQLite would go on writing what nobody can read."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal.core.engine import is_url

_LOOK_SECONDS = 0.5


@asynccontextmanager
async def ended_without(location: str) -> AsyncGenerator[None]:
    """End what is done in here once the journal at that path is gone. Raises JournalError then.

    What would be logged of it says nothing more, and is dropped. A database on a server cannot go
    like that.
    """
    if is_url(location) or location == ":memory:":
        yield
        return
    file = _JournalFile(Path(location))
    main = asyncio.current_task()
    assert main is not None
    watching = asyncio.create_task(file.end(main))
    handler = logging.lastResort
    if handler is not None:
        handler.addFilter(file.keeps)
    try:
        yield
    except BaseException as error:
        if not file.gone:
            raise
        raise _lost(location, main) from error
    else:
        if file.gone:
            raise _lost(location, main)
    finally:
        watching.cancel()
        if handler is not None:
            handler.removeFilter(file.keeps)


def _lost(location: str, main: "asyncio.Task[object]") -> JournalError:
    if main.cancelling():
        main.uncancel()
    return JournalError(
        f"the journal {location} was deleted under this run, which has ended: start it again"
    )


class _JournalFile:
    """The file that was opened."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened = self._identity()

    @property
    def gone(self) -> bool:
        """Whether another file stands there, or none."""
        return self._identity() != self._opened

    def keeps(self, record: logging.LogRecord) -> bool:
        """Whether a record says more than that the journal is gone."""
        return not self.gone

    async def end(self, main: "asyncio.Task[object]") -> None:
        """Cancel the task once the file is gone."""
        while True:
            if self.gone:
                main.cancel()
                return
            await asyncio.sleep(_LOOK_SECONDS)

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino
