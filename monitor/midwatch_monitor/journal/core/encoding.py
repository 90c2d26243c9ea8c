"""Records as stored in the journal: a kind's name and JSON, masked when written and when read.

An unreadable row is reported once, and the others are still read. The same applies to rows of kinds
that only a newer Midwatch knows, since it may write to the same journal.
"""

import dataclasses
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from secrets import token_bytes
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, SchemaSerializer
from sqlalchemy import Connection, Row, Select

from midwatch_monitor.config.problem import error_line
from midwatch_monitor.errors import JournalCorruptError, JournalTooNewError
from midwatch_monitor.journal.core.engine import Store
from midwatch_monitor.records import Alert, Draft, Entry, Fault, Hint, Record, Step
from midwatch_monitor.records.entry import KINDS
from midwatch_monitor.secrets.masking import Masker, Secrets

_WORDS = {kind: word for word, kind in KINDS.items()}


def kind_of(word: type[Record]) -> str:
    """Return the name of a kind of record, as used in the journal and in hints."""
    return KINDS[word]


def hint_of(entry: Entry) -> Hint:
    """Return the bus hint for an entry, which says that it exists and where to look."""
    record = entry.record
    step, note = None, ""
    if isinstance(record, Step):
        step = record.number
    elif isinstance(record, Alert):
        step, note = record.step, f"{record.key.rule} {record.severity} {record.state}"
    return Hint(
        entry=entry.id,
        kind=kind_of(type(record)),
        task=entry.task,
        attempt=entry.attempt,
        step=step,
        note=note,
    )


def record_json(record: Record) -> str:
    """Return a record as JSON, with all fields that are not `None`: defaults may change later."""
    try:
        body = _serializer(type(record)).to_json(record, exclude_none=True, warnings=False)
    except PydanticSerializationError:
        # A command's output may contain an unpaired surrogate, which UTF-8 cannot encode.
        return _encode_plainly(record).encode("utf-8", "replace").decode()
    # Encoding by type writes NaN as `null`. Rarely, a text contains `null` too.
    return body.decode() if b":null" not in body else _encode_plainly(record)


@cache
def _serializer(word: type[Record]) -> SchemaSerializer:
    return _adapter(KINDS[word]).serializer


def _encode_plainly(record: Record) -> str:
    said = {name: each for name, each in dataclasses.asdict(record).items() if each is not None}
    return json.dumps(said, default=_plain_value, ensure_ascii=False, separators=(",", ":"))


def _plain_value(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} cannot be stored in a record")


def read(kind: str, body: str) -> Record:
    """Return the record from JSON made by `record_json`.

    Raises JournalTooNewError for a kind that this version does not know, and JournalCorruptError
    for an invalid body.
    """
    if kind not in _WORDS:
        raise JournalTooNewError(f"the journal holds a {kind!r}: a newer Midwatch wrote it")
    try:
        return _adapter(kind).validate_json(body)
    except ValidationError as error:
        faults = error_line(error.errors(include_url=False))
        # Without the cause, which would be printed with the content.
        raise JournalCorruptError(f"the journal holds a broken {kind!r}: {faults}") from None


@cache
def _adapter(kind: str) -> TypeAdapter[Record]:
    return TypeAdapter(_WORDS[kind])


NO_MORE = Secrets()
"""Masks by shape and by name, without known values."""
_OPTION = "midwatch_masker"


def use_masker(store: Store, secrets: Secrets) -> Masker:
    """Make every connection of a store mask with the journal's key."""
    masker = Masker(secrets, store.mask_key or token_bytes())
    for engine in (store.writing, store.reading):
        if engine is not None:
            engine.update_execution_options(**{_OPTION: masker})
    return masker


def mask_drafts(connection: Connection, drafts: Sequence[Draft]) -> Sequence[Draft]:
    """Return drafts without secrets. Drafts with a `seq` were already masked by the recorder."""
    record = _masker(connection).record
    return [
        draft
        if draft.seq is not None or (said := record(draft.record)) is draft.record
        else replace(draft, record=said)
        for draft in drafts
    ]


def mask_text(connection: Connection, text: str) -> str:
    """Return a text that is not part of a record, masked."""
    return _masker(connection).text(text)


def _masker(connection: Connection) -> Masker:
    found = connection.get_execution_options().get(_OPTION)
    return found if isinstance(found, Masker) else _default_masker()


@cache
def _default_masker() -> Masker:
    """Return the masker for a store that is used without a journal."""
    return Masker(Secrets(), token_bytes())


log = logging.getLogger(__name__)

PART = "journal"
"""The part of Midwatch named in the fault for an unreadable entry."""
_MOST_NAMED = 50
"""Number of rows that one process reports; for more, see `midwatch db check`."""
_named: set[tuple[str, str]] = set()

R = TypeVar("R", bound=Record)


def pass_over(connection: Connection, name: str, why: str) -> None:
    """Report a row of a journal, once."""
    row = (str(connection.engine.url), name)
    if row in _named or len(_named) > _MOST_NAMED:
        return
    _named.add(row)
    if len(_named) > _MOST_NAMED:
        log.warning("more rows cannot be read: `midwatch db check` lists them")
    else:
        log.warning("%s cannot be read and is skipped: %s", name, why)


def record_in(connection: Connection, name: str, kind: str, body: str) -> Record | Fault:
    """Return the record of a row, or a fault that names the row if it cannot be read.

    The fault keeps the row's place among the entries, so that they can be counted and followed.
    """
    try:
        return _masker(connection).record(read(kind, body))  # an older Midwatch masked nothing
    except (JournalCorruptError, JournalTooNewError) as error:
        pass_over(connection, name, str(error))
        return Fault(part=PART, error=f"{name} cannot be read: {error}")


def record_of(connection: Connection, name: str, word: type[R], body: str | None) -> R | None:
    """Return a row's record of a known kind; `None` if it is missing or unreadable."""
    record = None if body is None else record_in(connection, name, kind_of(word), body)
    return record if isinstance(record, word) else None


def rows_of(
    connection: Connection, query: Select[*tuple[Any, ...]], word: type[R], limit: int | None = None
) -> list[tuple[Row[Any], R]]:
    """Return the rows of a query with their records, at most `limit` readable ones.

    The query must select each row's `entry` and `body`, in a fixed order.
    """
    found: list[tuple[Row[Any], R]] = []
    seen = 0
    while True:
        wanted = None if limit is None else limit - len(found)
        rows = connection.execute(query.limit(wanted).offset(seen or None)).all()
        seen += len(rows)
        for row in rows:
            record = record_of(connection, f"entry {row.entry}", word, row.body)
            if record is not None:
                found.append((row, record))
        if wanted is None or len(rows) < wanted or len(found) == limit:
            return found
