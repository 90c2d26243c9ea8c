"""Texts by their words: FTS5 in SQLite, full text search in PostgreSQL.

Both are given words, not text, so that both know the same ones, whatever their own way to cut.
What is no longer given to anybody is taken out, so that it costs nothing and is never found.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection, bindparam, text

MOST_WORDS = 10
"""Words that one search is made of."""
_LOOKED_UP = 40
"""Words of a text among which these are chosen."""
_MOST_TEXTS = 10_000
"""Texts that the words of one search may be found in, one by one: what is in every other text
tells little, and SQLite weighs about a million texts a second. The rarest word counts always."""
_SHORTEST = 3
_WORD = re.compile(r"[^\W_]+")
_STOP = frozenset(
    _WORD.findall(
        """
        about after all also and any are because been before being both but can could did does
        done each for from had has have how into its itself just let like make may more most must
        not now off one only other our out over own per same shall should since some such than
        that the their them then there these they this those through too under until use used
        using very was way were what when where which while who why will with would you your
        """
    )
)


class Shelf(StrEnum):
    """What is searched."""

    LESSONS = "lesson_text"
    FACTS = "fact_text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """The words of one text, by what they weigh, the heaviest first."""

    text: str
    more: str = ""
    tags: str = ""


def words_of(text: str) -> list[str]:
    """The words of a text in small letters, in their order."""
    return _WORD.findall(text.lower())


def telling(text: str) -> list[str]:
    """The words worth looking for, at most 40: the longest first, which are mostly rare."""
    found = dict.fromkeys(
        word for word in words_of(text) if len(word) >= _SHORTEST and word not in _STOP
    )
    return sorted(found, key=len, reverse=True)[:_LOOKED_UP]


def rarest(known: Mapping[str, int]) -> list[str]:
    """Of words and the number of texts that each stands in, those to search by, rarest first."""
    chosen: list[str] = []
    texts = 0
    for word, many in sorted(known.items(), key=lambda each: each[1])[:MOST_WORDS]:
        texts += many
        if chosen and texts > _MOST_TEXTS:
            break
        chosen.append(word)
    return chosen


def put(
    connection: Connection, shelf: Shelf, project: int, wordings: Mapping[int, Wording]
) -> None:
    """Let texts of a project be found, by their keys."""
    rows = [
        {
            "key": key,
            "project": _token(project),
            "text": _joined(wording.text),
            "more": _joined(wording.more),
            "tags": _joined(wording.tags),
        }
        for key, wording in wordings.items()
    ]
    connection.execute(text(_PUT[connection.dialect.name].format(shelf=shelf.value)), rows)


def take_out(connection: Connection, shelf: Shelf, keys: Iterable[int]) -> None:
    """Let texts be found no longer."""
    rows = [{"key": key} for key in keys]
    if rows:
        key = _KEY[connection.dialect.name]
        connection.execute(text(f"DELETE FROM {shelf.value} WHERE {key} = :key"), rows)


def forget(connection: Connection, shelf: Shelf, keys: Sequence[int]) -> None:
    """Take texts out and leave no trace of their words.

    FTS5 only notes that a text is gone until the parts of its index are merged into one.
    """
    take_out(connection, shelf, keys)
    if keys and connection.dialect.name == "sqlite":
        name = shelf.value
        connection.execute(text(f"INSERT INTO {name} ({name}) VALUES ('optimize')"))


def found(
    connection: Connection, shelf: Shelf, project: int, wanted: str, limit: int
) -> list[tuple[int, float]]:
    """The texts of a project that share words with a wanted one: their keys, and how well they fit.

    The best first, at most `limit`; how well is positive.
    """
    words = telling(wanted)
    dialect = connection.dialect.name
    if dialect == "sqlite":
        words = rarest(_known(connection, shelf, words))
    if not words:
        return []
    words = words[:MOST_WORDS]
    asked = _ASK[dialect](words)
    rows = connection.execute(
        text(_FIND[dialect].format(shelf=shelf.value)),
        {"of": _OF[dialect].format(_token(project), asked), "asked": asked, "limit": limit},
    )
    return [(row.key, row.score) for row in rows]


def _known(connection: Connection, shelf: Shelf, words: Sequence[str]) -> dict[str, int]:
    """In how many texts each word stands; without those that stand in none."""
    query = text(f"SELECT term, doc FROM {shelf.value}_words WHERE term IN :words")
    rows = connection.execute(
        query.bindparams(bindparam("words", expanding=True)), {"words": list(words)}
    )
    return {row.term: row.doc for row in rows}


def _joined(text: str) -> str:
    return " ".join(words_of(text))


def _token(project: int) -> str:
    return f"p{project}"


def _in_sqlite(words: Sequence[str]) -> str:
    return " OR ".join(f'"{word}"' for word in words)


def _in_postgresql(words: Sequence[str]) -> str:
    return " | ".join(f"'{word}':ABC" for word in words)


_ASK = {"sqlite": _in_sqlite, "postgresql": _in_postgresql}
_OF = {
    "sqlite": 'project : "{}" AND {{text more tags}} : ({})',
    "postgresql": "'{}':D & ({})",
}
_KEY = {"sqlite": "rowid", "postgresql": "id"}
_PUT = {
    "sqlite": (
        "INSERT INTO {shelf} (rowid, project, text, more, tags)"
        " VALUES (:key, :project, :text, :more, :tags)"
    ),
    "postgresql": (
        "INSERT INTO {shelf} (id, words) VALUES (:key,"
        " setweight(to_tsvector('simple', :project), 'D')"
        " || setweight(to_tsvector('simple', :text), 'A')"
        " || setweight(to_tsvector('simple', :more), 'B')"
        " || setweight(to_tsvector('simple', :tags), 'C'))"
    ),
}
# In PostgreSQL the project is no part of the rank, which would be 0 with a word that weighs 0.
_FIND = {
    "sqlite": (
        "SELECT rowid AS key, -rank AS score FROM {shelf}"
        " WHERE {shelf} MATCH :of ORDER BY rank LIMIT :limit"
    ),
    "postgresql": (
        "SELECT id AS key, ts_rank(ARRAY[0.0, 0.25, 0.5, 1.0]::real[], words, asked) AS score"
        " FROM {shelf}, to_tsquery('simple', :of) AS of, to_tsquery('simple', :asked) AS asked"
        " WHERE words @@ of ORDER BY score DESC, id DESC LIMIT :limit"
    ),
}
