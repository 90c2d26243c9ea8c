"""The journal's tables.

Append-only: a change of state is a new row in `entry`. Only erasure deletes, and only rows about
the present are updated: a lease, a guard, a post, a node, a writer's receipt, an escalation's
`closed_at`; and an attempt's `bundle`, which holds its newest snapshot.

From `lesson` on, the tables are an index of what was learned. They contain nothing that is not in
the log: every row is made from entries, in the transaction that appends them, and each state
(`obsolete`, `live`, `accepted`, `open` …) is updated by the entry that changes it. The words for
text search are in `lesson_text` and `fact_text`, in each database's own form: see `search`.

A new journal gets all tables at once (`schema.make`); an older one by the migrations. A test
compares the two.
"""

import zlib
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    DDL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Dialect,
    Float,
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
    event,
)

from midwatch_monitor.errors import JournalCorruptError
from midwatch_monitor.time_range import plausible

REVISION = "0004"
"""The migration that leads to these tables."""
OLDEST = "0003"
"""The oldest revision whose Midwatch can work with these tables alongside this one."""
READABLE = "0003"
"""The oldest revision whose tables this Midwatch can read."""

IDENTIFIER = BigInteger().with_variant(Integer, "sqlite")
"""SQLite numbers rows itself only if the type is exactly INTEGER."""
MOST_BYTES = 128 * 1024 * 1024
"""Largest size of one unpacked row, checked on writing and on reading. Packed, it may be a
thousandth of that. A message is part of a request to a model, and no provider accepts requests
larger than 100 MB.
"""
UNREADABLE = datetime(1970, 1, 1, tzinfo=UTC)
"""Read in place of an invalid time, or of one at either end of the calendar."""


def unpack(packed: bytes, most: int = MOST_BYTES) -> bytes:
    """Unpack a body. Raises JournalCorruptError if it is damaged, or larger than `most`."""
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
        raise JournalCorruptError("a history in the journal is damaged: it is truncated")
    return body


class Packed(TypeDecorator[bytes]):
    """JSON of any length, compressed: histories are repetitive, and are not queried."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: bytes | None, dialect: Dialect) -> bytes | None:
        return None if value is None else zlib.compress(value)

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> bytes | None:
        return None if value is None else unpack(value)


class UtcTime(TypeDecorator[datetime]):
    """A time, stored as UTC and timezone-aware when read.

    An invalid one is read as `UNREADABLE`: the rest of the row is still useful.
    """

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is not None and value.tzinfo is None:
            raise ValueError(f"{value} has no time zone")
        return value and value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is not None and not plausible(value):
            return UNREADABLE
        return value and (value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC))

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


def _add_partial_index(index: str) -> None:
    """Add an index over some rows only. As an `Index`, it would import both dialects."""
    event.listen(metadata, "after_create", DDL(f"CREATE {index}"))


project = Table(
    "project",
    metadata,
    Column("id", IDENTIFIER, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    sqlite_autoincrement=True,
)

run = Table(
    "run",
    metadata,
    Column("id", IDENTIFIER, primary_key=True),
    Column("started_at", UtcTime, nullable=False),
    Column("source", Text, nullable=False),
    Column("settings", Text, nullable=False),
    Column("keeper", String(10), nullable=False, server_default="process"),
    sqlite_autoincrement=True,
)

# A run submitted with the caller's key: submitting the key again to that fleet finds the run.
submission = Table(
    "submission",
    metadata,
    Column("fleet", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("run", IDENTIFIER, ForeignKey("run.id"), nullable=False),
    Index(None, "run"),
)

# `trial_of` is the project whose guidelines an older Midwatch tried out in the task: nothing is
# learned from the task, and it is erased with that project.
task = Table(
    "task",
    metadata,
    Column("id", IDENTIFIER, primary_key=True),
    Column("run", IDENTIFIER, ForeignKey("run.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("spec", Text, nullable=False),
    Column("project", IDENTIFIER, ForeignKey("project.id")),
    Column("trial_of", IDENTIFIER, ForeignKey("project.id")),
    UniqueConstraint("run", "name"),
    Index(None, "project"),
    Index(None, "trial_of"),
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
    Column("started_at", UtcTime, nullable=False),
    UniqueConstraint("task", "number"),
    sqlite_autoincrement=True,
)

lease = Table(
    "lease",
    metadata,
    Column("attempt", IDENTIFIER, ForeignKey("attempt.id"), primary_key=True, autoincrement=False),
    Column("incarnation", Integer, nullable=False),
    Column("holder", Text, nullable=False),
    Column("at", UtcTime, nullable=False),
)

# A monitor's lease on an attempt: its holder judges time, escalates and decides.
guard = Table(
    "guard",
    metadata,
    Column("attempt", IDENTIFIER, ForeignKey("attempt.id"), primary_key=True, autoincrement=False),
    Column("holder", Text, nullable=False),
    Column("incarnation", Integer, nullable=False),
    Column("until", UtcTime, nullable=False),
)

# Duties that one process holds at a time, by name: learning, dispatching.
post = Table(
    "post",
    metadata,
    Column("name", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("incarnation", Integer, nullable=False),
    Column("until", UtcTime, nullable=False),
)

# One row for each start of a node.
node = Table(
    "node",
    metadata,
    Column("name", Text, primary_key=True),
    Column("boot", Text, primary_key=True),
    Column("state", String(10), nullable=False),
    Column("slots", Integer, nullable=False),
    Column("busy", Integer, nullable=False),
    Column("labels", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("revision", Text, nullable=False),
    Column("started_at", UtcTime, nullable=False),
    Column("beat_at", UtcTime, nullable=False),
    Column("doubted_at", UtcTime),
    Column("fleet", Text, nullable=False),
)

# The newest snapshot's files, as a git bundle.
bundle = Table(
    "bundle",
    metadata,
    Column("attempt", IDENTIFIER, ForeignKey("attempt.id"), primary_key=True, autoincrement=False),
    Column("commit", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

# One row: the oldest revision whose Midwatch can work with these tables, and the key for marks of
# masked secrets, which no export contains.
compatibility = Table(
    "compatibility",
    metadata,
    Column("oldest", Text, primary_key=True),
    Column("mask_key", Text, nullable=False, server_default=""),
)

# The last transaction of each process that writes to PostgreSQL: after a lost connection, it shows
# whether that transaction was committed.
receipt = Table(
    "receipt",
    metadata,
    Column("writer", Text, primary_key=True),
    Column("number", IDENTIFIER, nullable=False),
    Column("at", UtcTime, nullable=False),
)

# AUTOINCREMENT: an id is never reused, even after an erasure, so a follower of `id > last` misses
# nothing.
entry = Table(
    "entry",
    metadata,
    Column("id", IDENTIFIER, primary_key=True),
    Column("at", UtcTime, nullable=False),
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
    Column("opened_at", UtcTime, nullable=False),
    Column("closed_at", UtcTime),
    Index(None, "attempt"),
    sqlite_autoincrement=True,
)

# At most one open escalation per attempt.
_add_partial_index("UNIQUE INDEX escalation_open ON escalation (attempt) WHERE closed_at IS NULL")


def _entry_key(name: str = "entry") -> Column[int]:
    """Return the key column of a table whose rows are made from one entry each."""
    return Column(name, IDENTIFIER, ForeignKey("entry.id"), primary_key=True, autoincrement=False)


def _key_part(of: str) -> Column[int]:
    """Return a part of the primary key that refers to another row."""
    column = "id" if of in {"project", "attempt"} else "entry"
    key = ForeignKey(f"{of}.{column}")
    return Column(of, IDENTIFIER, key, primary_key=True, autoincrement=False)


def _reference_to(table: str) -> Column[int]:
    return Column(table, IDENTIFIER, ForeignKey(f"{table}.id"), nullable=False)


def _tags(of: str) -> Table:
    tag = Column("tag", Text, primary_key=True)
    return Table(f"{of}_tag", metadata, _key_part("project"), tag, _key_part(of), Index(None, of))


def _sources(of: str) -> Table:
    attempt = _key_part("attempt")
    return Table(f"{of}_source", metadata, _key_part(of), attempt, Index(None, "attempt"))


lesson = Table(
    "lesson",
    metadata,
    _entry_key(),
    _reference_to("project"),
    Column("task", Text, nullable=False),
    _reference_to("attempt"),
    Column("verdict", IDENTIFIER, ForeignKey("entry.id")),
    Column("obsolete", Boolean, nullable=False),
    Column("rating", Integer, nullable=False),
    Index(None, "project", "task", "obsolete", "entry"),
    Index(None, "project", "entry"),
    Index(None, "attempt"),
    Index(None, "verdict"),
)

lesson_tag, lesson_source = _tags("lesson"), _sources("lesson")

# `accepted` and `origin` are set once there is a verdict on the attempt.
lesson_use = Table(
    "lesson_use",
    metadata,
    _key_part("lesson"),
    _key_part("attempt"),
    Column("method", String(10), nullable=False),
    Column("score", Float, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("accepted", Boolean),
    Column("origin", String(10)),
    CheckConstraint(
        "method IN ('task', 'tags', 'kind', 'files', 'text', 'manual')", name="lesson_use_method"
    ),
    Index(None, "attempt"),
)

fact = Table(
    "fact",
    metadata,
    _entry_key(),
    _reference_to("project"),
    _reference_to("attempt"),
    Column("state", String(10), nullable=False),
    Column("live", Boolean, nullable=False),
    Column("ended", String(10)),
    Column("instead", IDENTIFIER, ForeignKey("fact.entry")),
    Column("reason", Text, nullable=False),
    Index(None, "project", "entry"),
    Index(None, "attempt"),
    Index(None, "instead"),
)

fact_tag, fact_source = _tags("fact"), _sources("fact")

# `before` is the version in force when this one was approved.
guidelines = Table(
    "guidelines",
    metadata,
    _entry_key(),
    _reference_to("project"),
    Column("version", Integer, nullable=False),
    Column("state", String(10), nullable=False),
    Column("before", IDENTIFIER, ForeignKey("guidelines.entry")),
    Column("decided_at", UtcTime),
    Column("author", Text, nullable=False),
    Column("comment", Text, nullable=False),
    UniqueConstraint("project", "version"),
    Index(None, "before"),
)

# At most one version in force per project.
_add_partial_index("UNIQUE INDEX guidelines_live ON guidelines (project) WHERE state = 'live'")

summary = Table(
    "summary",
    metadata,
    _entry_key(),
    _reference_to("project"),
    _reference_to("attempt"),
    UniqueConstraint("attempt"),
    Index(None, "project", "entry"),
)

reflection = Table(
    "reflection",
    metadata,
    _entry_key(),
    _reference_to("project"),
    Column("watermark", IDENTIFIER, nullable=False),
    Index(None, "project", "entry"),
)

# What is still to be learned from an entry, and the number of failed tries.
chore = Table(
    "chore",
    metadata,
    _entry_key("about"),
    Column("chore", String(10), primary_key=True),
    _reference_to("project"),
    _reference_to("attempt"),
    Column("open", Boolean, nullable=False),
    Column("tries", Integer, nullable=False),
    Index(None, "project"),
    Index(None, "attempt"),
)

_add_partial_index("INDEX chore_open ON chore (about) WHERE open")

erasure = Table(
    "erasure",
    metadata,
    Column("id", IDENTIFIER, primary_key=True),
    Column("at", UtcTime, nullable=False),
    Column("author", Text, nullable=False),
    Column("tasks", Integer, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("entries", Integer, nullable=False),
    sqlite_autoincrement=True,
)


def _create_word_tables(dialect: str, *statements: str) -> None:
    """Create the tables for the words of lessons and facts after the others."""
    for name in ("lesson_text", "fact_text"):
        for statement in statements:
            made = DDL(statement.format(name=name)).execute_if(dialect=dialect)
            event.listen(metadata, "after_create", made)


_create_word_tables(
    "sqlite",
    # The words are already split and folded; `ascii` treats all other letters as parts of words.
    "CREATE VIRTUAL TABLE {name} USING fts5"
    """(text, more, tags, tokenize = "ascii tokenchars '_'")""",
    "INSERT INTO {name} ({name}, rank) VALUES ('rank', 'bm25(4, 2, 1)')",
    "CREATE VIRTUAL TABLE {name}_words USING fts5vocab({name}, row)",
)
_create_word_tables(
    "postgresql",
    "CREATE TABLE {name} (id BIGINT PRIMARY KEY, words TSVECTOR NOT NULL)",
    "CREATE INDEX {name}_words_ix ON {name} USING gin (words)",
)

NUMBERED = tuple(each for each in metadata.sorted_tables if each.kwargs.get("sqlite_autoincrement"))
"""Tables whose ids the database assigns: an id is never reused, even after an erasure."""
