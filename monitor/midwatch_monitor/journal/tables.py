"""The journal's tables.

Append-only: a change of state is a new row in `entry`. Only a lease and an escalation's
`closed_at` are ever updated, and only erasure deletes.
"""

import zlib
from datetime import UTC, datetime

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)

from midwatch_monitor.errors import JournalCorruptError

REVISION = "0001"
"""The migration that makes the tables as they stand here."""

IDENTIFIER = BigInteger().with_variant(Integer, "sqlite")
"""SQLite numbers rows by itself only where the type is exactly INTEGER."""


class Packed(TypeDecorator[bytes]):
    """JSON of any length, compressed: histories repeat themselves, and nobody queries inside."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: bytes | None, dialect: Dialect) -> bytes | None:
        return None if value is None else zlib.compress(value)

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> bytes | None:
        if value is None:
            return None
        try:
            return zlib.decompress(value)
        except zlib.error as error:
            raise JournalCorruptError(f"a history in the journal is damaged: {error}") from error


class Moment(TypeDecorator[datetime]):
    """A point in time: stored as UTC, and aware when it comes back."""

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
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pk",
        "fk": "%(table_name)s_%(column_0_name)s_fk",
        "uq": "%(table_name)s_%(column_0_N_name)s_uq",
        "ix": "%(table_name)s_%(column_0_N_name)s_ix",
    }
)

run = Table(
    "run",
    metadata,
    Column("id", IDENTIFIER, primary_key=True),
    Column("started_at", Moment, nullable=False),
    Column("source", Text, nullable=False),
    Column("settings", Text, nullable=False),
    sqlite_autoincrement=True,
)

task = Table(
    "task",
    metadata,
    Column("id", IDENTIFIER, primary_key=True),
    Column("run", IDENTIFIER, ForeignKey("run.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("spec", Text, nullable=False),
    UniqueConstraint("run", "name"),
    sqlite_autoincrement=True,
)

attempt = Table(
    "attempt",
    metadata,
    Column("id", IDENTIFIER, primary_key=True),
    Column("task", IDENTIFIER, ForeignKey("task.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("worker", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("node", Text, nullable=False),
    Column("workspace", Text, nullable=False),
    Column("started_at", Moment, nullable=False),
    UniqueConstraint("task", "number"),
    sqlite_autoincrement=True,
)

lease = Table(
    "lease",
    metadata,
    Column("attempt", IDENTIFIER, ForeignKey("attempt.id"), primary_key=True, autoincrement=False),
    Column("incarnation", Integer, nullable=False),
    Column("holder", Text, nullable=False),
    Column("at", Moment, nullable=False),
)

# AUTOINCREMENT: an id is never given twice, also after an erasure, so a follower of
# `id > last` misses nothing.
entry = Table(
    "entry",
    metadata,
    Column("id", IDENTIFIER, primary_key=True),
    Column("at", Moment, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("task", IDENTIFIER, ForeignKey("task.id"), nullable=False),
    Column("attempt", IDENTIFIER, ForeignKey("attempt.id")),
    Column("seq", Integer),
    Column("body", Text, nullable=False),
    UniqueConstraint("attempt", "seq"),
    Index(None, "attempt", "id"),
    Index(None, "task", "id"),
    Index(None, "kind", "id"),
    sqlite_autoincrement=True,
)

message = Table(
    "message",
    metadata,
    Column("attempt", IDENTIFIER, ForeignKey("attempt.id"), primary_key=True),
    Column("idx", Integer, primary_key=True, autoincrement=False),
    Column("body", Packed, nullable=False),
)

result = Table(
    "result",
    metadata,
    Column("attempt", IDENTIFIER, ForeignKey("attempt.id"), primary_key=True),
    Column("call", Text, primary_key=True),
    Column("body", Packed, nullable=False),
)

escalation = Table(
    "escalation",
    metadata,
    Column("id", IDENTIFIER, primary_key=True),
    Column("attempt", IDENTIFIER, ForeignKey("attempt.id"), nullable=False),
    Column("opened_at", Moment, nullable=False),
    Column("closed_at", Moment),
    sqlite_autoincrement=True,
)

# At most one open escalation per attempt.
Index(
    "escalation_open",
    escalation.c.attempt,
    unique=True,
    sqlite_where=escalation.c.closed_at.is_(None),
    postgresql_where=escalation.c.closed_at.is_(None),
)
