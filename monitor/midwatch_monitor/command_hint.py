"""How people are told a command of Midwatch: with the journal, where that must be named."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from shlex import quote

_OPTION: ContextVar[str] = ContextVar("midwatch_journal_option", default="")


@contextmanager
def naming_journal(journal: str | None) -> Generator[None]:
    """In here commands that are told name this journal; none where it is the one by default."""
    token = _OPTION.set(f" --journal {quote(_shown(journal))}" if journal else "")
    try:
        yield
    finally:
        _OPTION.reset(token)


def command(words: str) -> str:
    """A command as a person types it here: of `show 3`, `midwatch show 3 --journal x.db`."""
    return f"midwatch {words}{_OPTION.get()}"


def journal_width() -> int:
    """The characters of the journal in such a command, which a text that is cut must allow for."""
    return len(_OPTION.get())


def _shown(journal: str) -> str:
    """A path or a URL without its password."""
    if "://" not in journal:
        return journal
    # What speaks to databases takes long to import, and names commands itself.
    from midwatch_monitor.errors import JournalAccessError
    from midwatch_monitor.journal.core.engine import url_name, url_of

    try:
        url = url_of(journal)
    except JournalAccessError:
        return "URL"
    secret = url.password is not None or "password" in url.query
    return url_name(url) if secret else journal
