"""What masks the secrets in records on their way into a journal, and out of it."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from secrets import token_bytes

from sqlalchemy import Connection

from midwatch_monitor.journal.core.engine import Store
from midwatch_monitor.records import Draft, Record
from midwatch_monitor.secrets.masking import Masker, Secrets

NO_MORE = Secrets()
"""What is known by its shape or name is masked, and no value besides."""
_OPTION = "midwatch_masker"


def use_masker(store: Store, secrets: Secrets) -> Masker:
    """Let every connection of a store mask with the key of the journal."""
    masker = Masker(secrets, store.mask_key or token_bytes())
    for engine in (store.writing, store.reading):
        if engine is not None:
            engine.update_execution_options(**{_OPTION: masker})
    return masker


def masked(connection: Connection, drafts: Sequence[Draft]) -> Sequence[Draft]:
    """Drafts without secrets. What has a `seq` is the recorder's, which has masked it already."""
    record = _masker(connection).record
    return [
        draft
        if draft.seq is not None or (said := record(draft.record)) is draft.record
        else replace(draft, record=said)
        for draft in drafts
    ]


def shown(connection: Connection, record: Record) -> Record:
    """A record as it is given out: an older Midwatch masked nothing."""
    return _masker(connection).record(record)


def _masker(connection: Connection) -> Masker:
    found = connection.get_execution_options().get(_OPTION)
    return found if isinstance(found, Masker) else _own()


@cache
def _own() -> Masker:
    """For a store that is used without a journal."""
    return Masker(Secrets(), token_bytes())
