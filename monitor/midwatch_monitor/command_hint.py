"""Commands as shown to people, with the journal where it must be named."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from shlex import quote

_OPTION: ContextVar[str] = ContextVar("midwatch_journal_option", default="")


@contextmanager
def naming_journal(journal: str | None) -> Generator[None]:
    """Name this journal in all commands shown in the block; the default journal needs no name."""
    token = _OPTION.set(f" --journal {quote(_without_password(journal))}" if journal else "")
    try:
        yield
    finally:
        _OPTION.reset(token)


def command(words: str) -> str:
    """Return a command as a person types it: for `show 3`, `midwatch show 3 --journal x.db`."""
    return f"midwatch {words}{_OPTION.get()}"


def journal_width() -> int:
    """Return the length of the journal option, which truncated texts must allow for."""
    return len(_OPTION.get())


def _without_password(journal: str) -> str:
    """Return a path, or a URL without its password."""
    if "://" not in journal:
        return journal
    # Imported here: database modules are slow to import, and import this one.
    from midwatch_monitor.errors import JournalAccessError
    from midwatch_monitor.journal.core.engine import url_name, url_of

    try:
        url = url_of(journal)
    except JournalAccessError:
        return "URL"
    secret = url.password is not None or "password" in url.query
    return url_name(url) if secret else journal
