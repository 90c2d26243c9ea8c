"""What the columns of the journal's tables hold, and what keys and indexes are called."""

import zlib
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    DateTime,
    Dialect,
    Integer,
    LargeBinary,
    MetaData,
    TypeDecorator,
)

from midwatch_monitor.errors import JournalCorruptError
from midwatch_monitor.time_range import plausible

IDENTIFIER = BigInteger().with_variant(Integer, "sqlite")
"""SQLite numbers rows by itself only where the type is exactly INTEGER."""


MOST_BYTES = 128 * 1024 * 1024
"""What one packed row may come to, and is let in as. Packed JSON may be a thousandth of that.

A message stands in a request to a model, and no provider takes one of more than 100 MB.
"""
UNREADABLE = datetime(1970, 1, 1, tzinfo=UTC)
"""What is read where a time should stand and none does, or one at an end of the calendar."""


def unpack(packed: bytes, most: int = MOST_BYTES) -> bytes:
    """What was packed. Raises JournalCorruptError for what is damaged, or more than `most`."""
    unpacking = zlib.decompressobj()
    try:
        body = unpacking.decompress(packed, most + 1)
    except (zlib.error, TypeError) as error:
        raise JournalCorruptError(f"a history in the journal is damaged: {error}") from error
    if len(body) > most:
        raise JournalCorruptError(
            f"a history in the journal unpacks to more than {most // 1024**2} MiB"
        )
    if not unpacking.eof:
        raise JournalCorruptError("a history in the journal is damaged: it breaks off")
    return body


class Packed(TypeDecorator[bytes]):
    """JSON of any length, compressed: histories repeat themselves, and nobody queries inside."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: bytes | None, dialect: Dialect) -> bytes | None:
        return None if value is None else zlib.compress(value)

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> bytes | None:
        return None if value is None else unpack(value)


class Moment(TypeDecorator[datetime]):
    """A point in time: stored as UTC, and aware when it comes back.

    What cannot be read comes back as `UNREADABLE`: a row is more than its time.
    """

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if not plausible(value):
            return UNREADABLE
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:
        process = super().result_processor(dialect, coltype)
        if process is None:
            return None

        def read(value: Any) -> datetime | None:
            try:
                return process(value)
            except (ValueError, TypeError):
                return UNREADABLE

        return read


metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pk",
        "fk": "%(table_name)s_%(column_0_name)s_fk",
        "uq": "%(table_name)s_%(column_0_N_name)s_uq",
        "ix": "%(table_name)s_%(column_0_N_name)s_ix",
    }
)
