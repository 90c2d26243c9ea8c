"""Text search by words: FTS5 in SQLite, full text search in PostgreSQL.

Both receive words, not text, so that they index the same ones. Each word is prefixed with its
project's number (`7_invoice`), so that other projects' texts are not found and do not affect which
words are rare; `bm25` sees only how many there are and how long. Texts no longer in use are
removed, so that they cost nothing and are never found.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import count, pairwise
from math import log1p

from sqlalchemy import Connection, text

MOST_WORDS = 10
"""Number of words in one search."""
_LOOKED_UP = 40
"""Number of a text's words that these are chosen from."""
_MOST_TEXTS = 20_000
"""Limit for the texts that contain the words of a search, added up: a word in every other text
says little, and SQLite ranks about a million texts a second. The rarest word is always used.
"""
_SHORTEST = 3
_LONGEST = 64
"""Most letters of a word that are kept; PostgreSQL accepts at most 2,046 bytes."""
_NAME = re.compile(r"\w+")
_HUMP = re.compile(r"(?<=l)(?=u)|(?<=[ud])(?=ull)")
"""Where a word begins within a name, matched against its letter cases: `lllluuuullll` for
`someHTTPPage`.
"""
_STOP = frozenset(
    _NAME.findall(
        """
        about after all also and any are because been before being both but can could did does
        done each for from had has have how into its itself just let like make may more most must
        not now off one only other our out over own per same shall should since some such than
        that the their them then there these they this those through too under until use used
        using very was way were what when where which while who why will with would you your
        """
    )
)


class TextIndex(StrEnum):
    """Which texts are searched."""

    LESSONS = "lesson_text"
    FACTS = "fact_text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """The text that a lesson or fact is found by, in parts of decreasing weight."""

    text: str
    more: str = ""
    tags: str = ""

    @property
    def words(self) -> list[str]:
        """All words."""
        return words_of(f"{self.text} {self.more} {self.tags}")


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, in order.

    A compound name yields its parts and the whole: `total_cents` and `totalCents` are `total`,
    `cents` and `totalcents`.
    """
    names = _NAME.findall(unicodedata.normalize("NFKC", text))
    return [word.casefold()[:_LONGEST] for name in names for word in _words_in(name)]


def _words_in(name: str) -> Iterator[str]:
    words = [word for part in name.split("_") if part for word in _split_name(part)]
    yield from words
    if len(words) > 1:
        yield "".join(words)


def _split_name(name: str) -> list[str]:
    """Split a compound name: `HTTPServer` is `HTTP`, `Server`; `sha256Sum` is `sha256`, `Sum`;
    `URLs` is one word.
    """
    if name.islower():
        return [name]
    shape = "".join("u" if x.isupper() else "l" if x.islower() else "d" for x in name)
    cuts = (0, *(each.start() for each in _HUMP.finditer(shape)), len(name))
    return [name[start:end] for start, end in pairwise(cuts)]


def search_words(text: str) -> list[str]:
    """Return at most 40 words to search for, longest first, since long words are mostly rare."""
    found = dict.fromkeys(
        word for word in words_of(text) if len(word) >= _SHORTEST and word not in _STOP
    )
    return sorted(found, key=len, reverse=True)[:_LOOKED_UP]


def rarest_words(known: Mapping[str, int]) -> list[str]:
    """Choose words to search by, rarest first, given how many texts contain each."""
    chosen: list[str] = []
    texts = 0
    for many, word in sorted((many, word) for word, many in known.items())[:MOST_WORDS]:
        texts += many
        if chosen and texts > _MOST_TEXTS:
            break
        chosen.append(word)
    return chosen


def put(
    connection: Connection, index: TextIndex, project: int, wordings: Mapping[int, Wording]
) -> None:
    """Index texts of a project by their keys."""
    dialect = connection.dialect.name
    filled = _in_columns if dialect == "sqlite" else _in_vector
    rows = [{"key": key, **filled(project, each)} for key, each in wordings.items()]
    connection.execute(text(_PUT[dialect].format(index=index.value)), rows)


def _in_columns(project: int, wording: Wording) -> dict[str, str]:
    fields = {"text": wording.text, "more": wording.more, "tags": wording.tags}
    return {name: " ".join(_tokens(project, words_of(said))) for name, said in fields.items()}


def _in_vector(project: int, wording: Wording) -> dict[str, str]:
    """Return a vector in PostgreSQL's format: its own parser would split tokens."""
    numbers = count(1)
    fields = {"A": wording.text, "B": wording.more, "C": wording.tags}
    placed = (
        f"'{token}':{next(numbers)}{weight}"
        for weight, said in fields.items()
        for token in _tokens(project, words_of(said))
    )
    return {"words": " ".join(placed)}


def remove_texts(connection: Connection, index: TextIndex, keys: Iterable[int]) -> None:
    """Remove texts from the index."""
    rows = [{"key": key} for key in keys]
    if rows:
        key = _KEY[connection.dialect.name]
        connection.execute(text(f"DELETE FROM {index.value} WHERE {key} = :key"), rows)


def forget(connection: Connection, index: TextIndex, keys: Sequence[int]) -> None:
    """Remove texts and all traces of their words.

    FTS5 only marks a text as deleted until the parts of its index are merged.
    """
    remove_texts(connection, index, keys)
    if keys and connection.dialect.name == "sqlite":
        name = index.value
        connection.execute(text(f"INSERT INTO {name} ({name}) VALUES ('optimize')"))


def find(
    connection: Connection, index: TextIndex, project: int, wanted: str, limit: int
) -> list[tuple[int, float]]:
    """Return at most `limit` of a project's texts that share words with a text, best first.

    The result is each text's key with its score, which is positive.
    """
    tokens = _tokens(project, search_words(wanted))
    known = _count_texts(connection, index, tokens) if tokens else {}
    if not known:
        return []
    asked = _in_sqlite if connection.dialect.name == "sqlite" else _in_postgresql
    find, values = asked({token: known[token] for token in rarest_words(known)})
    rows = connection.execute(text(find.format(index=index.value)), {**values, "limit": limit})
    return [(row.key, row.score) for row in rows]


def _count_texts(connection: Connection, index: TextIndex, tokens: Sequence[str]) -> dict[str, int]:
    """Return in how many texts each word occurs, counting only up to a limit.

    Words that occur in none are left out.
    """
    query = text(_KNOWN[connection.dialect.name].format(index=index.value))
    rows = connection.execute(query, {"tokens": json.dumps(tokens), "most": _MOST_TEXTS})
    return {row.token: row.many for row in rows if row.many}


def _in_sqlite(chosen: Mapping[str, int]) -> tuple[str, dict[str, str]]:
    return _FIND_IN_SQLITE, {"any": " OR ".join(f'"{token}"' for token in chosen)}


def _in_postgresql(chosen: Mapping[str, int]) -> tuple[str, dict[str, str]]:
    """Rank with the weight of each word's rarity, which `bm25` includes and `ts_rank` does not."""
    worth = [{"token": token, "worth": log1p(_MOST_TEXTS / chosen[token])} for token in chosen]
    values = {"any": " | ".join(f"'{token}'" for token in chosen), "each": json.dumps(worth)}
    return _FIND_IN_POSTGRESQL, values


def _tokens(project: int, words: Iterable[str]) -> list[str]:
    """Return words with their project's prefix. A word contains no `_`, so prefixes are
    unambiguous.
    """
    return [f"{project}_{word}" for word in words]


_KEY = {"sqlite": "rowid", "postgresql": "id"}
_PUT = {
    "sqlite": "INSERT INTO {index} (rowid, text, more, tags) VALUES (:key, :text, :more, :tags)",
    "postgresql": "INSERT INTO {index} (id, words) VALUES (:key, CAST(:words AS tsvector))",
}
_KNOWN = {
    "sqlite": (
        "SELECT term AS token, min(doc, :most) AS many FROM {index}_words"
        " WHERE term IN (SELECT value FROM json_each(:tokens))"
    ),
    "postgresql": (
        "SELECT token, (SELECT count(*) FROM (SELECT FROM {index}"
        " WHERE words @@ CAST(quote_literal(token) AS tsquery) LIMIT :most) AS few) AS many"
        " FROM json_array_elements_text(CAST(:tokens AS json)) AS token"
    ),
}
_FIND_IN_SQLITE = (
    "SELECT rowid AS key, -rank AS score FROM {index}"
    " WHERE {index} MATCH :any ORDER BY rank LIMIT :limit"
)
_FIND_IN_POSTGRESQL = (
    "WITH word AS MATERIALIZED (SELECT CAST(quote_literal(token) AS tsquery) AS asked, worth"
    " FROM json_to_recordset(CAST(:each AS json)) AS one(token text, worth float))"
    " SELECT id AS key, (SELECT sum(worth * ts_rank("
    "ARRAY[0.0, 0.25, 0.5, 1.0]::real[], words, asked)) FROM word) AS score"
    " FROM {index} WHERE words @@ CAST(:any AS tsquery) ORDER BY score DESC, id DESC LIMIT :limit"
)
