"""What it takes to find lessons, beside a plain FTS5 query for the same words, in pairs.

Run it with `uv run python tests/benchmarks/retrieval.py [--lessons 100000] [--steps 1000000]`. It
makes a journal of that size in a temporary folder, nine tenths of it in one project, and asks it
for 3 to 10 words at a time, with a task, a tag and a file. The plain query is over an FTS5 table in
the same file that holds nothing but the words of the lessons. Ratios of one run compare;
milliseconds of two runs do not, because the machine's clock does not stand still.
"""

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from sqlalchemy import Connection, func, insert, select, text

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core import tables
from midwatch_monitor.journal.core.encoding import record_json
from midwatch_monitor.journal.learned import search
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.journal.learned.lessons import index_tags, wording_of
from midwatch_monitor.journal.learned.search import TextIndex
from midwatch_monitor.records import LearnedQuery, Lesson, Step, StepKind

AT = datetime(2026, 1, 1, tzinfo=UTC)
TASKS = 500
VOCABULARY = 20_000
LIMIT = 50
BATCH = 2_000
OUTPUT = "line of output\n" * 60
Row = dict[str, object]
PLAIN = "SELECT rowid FROM plain WHERE plain MATCH :words ORDER BY rank LIMIT :limit"


class Language:
    """Texts of made-up words; the n-th is about n times as rare as the first, as in real ones."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        letters = "abcdefghijklmnopqrstuvwxyz"
        self._words = [
            "".join(chance.choices(letters, k=chance.randint(4, 10))) for _ in range(VOCABULARY)
        ]
        self._weights = [1 / (rank + 10) for rank in range(VOCABULARY)]

    def text(self, words: int) -> str:
        """So many words."""
        return " ".join(self.chance.choices(self._words, self._weights, k=words))

    def lesson(self) -> Lesson:
        """A lesson of the usual length."""
        return Lesson(
            text=self.text(40),
            insights=(self.text(10), self.text(10)),
            tags=(f"tag-{self.chance.randrange(200)}",),
            files=(f"src/{self.text(1)}.py",),
        )

    def wanted(self, words: int) -> LearnedQuery:
        """What an attempt may be about."""
        return LearnedQuery(
            project="project-0",
            task=f"task-{self.chance.randrange(TASKS)}",
            text=self.text(words),
            tags=(f"tag-{self.chance.randrange(200)}",),
            files=(f"src/{self.text(1)}.py",),
        )


async def fill(journal: Journal, language: Language, lessons: int, steps: int) -> None:
    """Make a journal of that size."""
    run = await journal.add_run(source="benchmark", settings="{}", at=AT)
    for number in range(TASKS):
        project = f"project-{0 if number % 10 else 1 + number % 7}"
        task = await journal.add_task(
            run=run.id, name=f"task-{number}", title="", spec="{}", project=project, at=AT
        )
        await journal.add_attempt(
            task=task.id, number=1, worker="w", model="m", node="n", workspace="", at=AT
        )
    for some in batches(steps):
        await journal.write(add_steps, some)
    await journal.write(make_plain)
    owners = {each.id: each.project for each in await journal.tasks(run.id)}
    for some in batches(lessons):
        of = {number: language.lesson() for number in some}
        await journal.write(add_lessons, of, owners)


def batches(many: int) -> Iterator[Sequence[int]]:
    """The numbers below `many`, some at a time."""
    numbers = iter(range(many))
    while some := list(islice(numbers, BATCH)):
        yield some


def add_steps(connection: Connection, numbers: Sequence[int]) -> None:
    """Steps of all attempts in turn, straight into the table: as commits they take hours."""
    body = record_json(Step(number=1, kind=StepKind.MESSAGE, text="I look.", output=OUTPUT))
    rows = [
        {"at": AT, "kind": "step", "task": (of := number % TASKS + 1), "attempt": of, "body": body}
        for number in numbers
    ]
    connection.execute(insert(tables.entry), rows)


def make_plain(connection: Connection) -> None:
    """A table of nothing but words."""
    connection.execute(text("CREATE VIRTUAL TABLE plain USING fts5(words)"))


def add_lessons(
    connection: Connection, told: Mapping[int, Lesson], owners: Mapping[int, str]
) -> None:
    """Lessons of all attempts in turn, with their places in the index, in bulk too."""
    last = connection.execute(select(func.max(tables.entry.c.id))).scalar_one()
    keys = dict(enumerate(told.items(), last + 1))
    projects = {each.name: each.id for each in connection.execute(select(tables.project))}
    entries: list[Row] = []
    rows: list[Row] = []
    tags: list[Row] = []
    uses: list[Row] = []
    for key, (number, lesson) in keys.items():
        of = number % TASKS + 1
        project = projects[owners[of]]
        place = {"task": of, "attempt": of}
        entries.append(
            {"id": key, "at": AT, "kind": "lesson", "body": record_json(lesson), **place}
        )
        here = {"project": project, "task": f"task-{number % TASKS}", "attempt": of}
        rows.append({"entry": key, "obsolete": False, "rating": 0, **here})
        use = {"lesson": key, "attempt": of, "method": "text", "score": 0.5, "at": AT}
        uses.append({**use, "accepted": bool(number % 2), "origin": "automatic"})
        for tag in index_tags(lesson.tags, lesson.files):
            tags.append({"project": project, "tag": tag, "lesson": key})
        search.put(connection, TextIndex.LESSONS, project, {key: wording_of(lesson)})
    connection.execute(insert(tables.entry), entries)
    connection.execute(insert(tables.lesson), rows)
    connection.execute(insert(tables.lesson_tag), tags)
    connection.execute(insert(tables.lesson_use), uses)
    connection.execute(
        text("INSERT INTO plain (rowid, words) VALUES (:key, :words)"),
        [
            {"key": key, "words": " ".join((each.text, *each.insights, *each.tags, *each.files))}
            for key, (_, each) in keys.items()
        ],
    )


def plainly(connection: Connection, wanted: LearnedQuery) -> int:
    """Look for any of the words; how many lessons were found."""
    words = " OR ".join(f'"{word}"' for word in wanted.text.split())
    return len(connection.execute(text(PLAIN), {"words": words, "limit": LIMIT}).all())


async def pair(journal: Journal, wanted: LearnedQuery, *, plain_first: bool) -> tuple[float, float]:
    """Seconds of the plain query, and of all that finding candidates takes."""
    taken: dict[bool, float] = {}
    for plain in (plain_first, not plain_first):
        began = time.perf_counter()
        if plain:
            await journal.read(plainly, wanted)
        else:
            await Learned(journal).candidates(wanted, limit=LIMIT)
        taken[plain] = time.perf_counter() - began
    return taken[True], taken[False]


async def measure(journal: Journal, language: Language, pairs: int) -> None:
    """Print both times and their ratio for each number of words."""
    print("words  plain ms  candidates ms  ratio (median of pairs)")
    every: list[float] = []
    for words in range(3, 11):
        await pair(journal, language.wanted(words), plain_first=True)  # warms up
        taken = [
            await pair(journal, language.wanted(words), plain_first=bool(number % 2))
            for number in range(pairs)
        ]
        plain, found = (statistics.median(each) * 1000 for each in zip(*taken, strict=True))
        ratios = [theirs / ours for ours, theirs in taken]
        every += ratios
        print(f"{words:5}  {plain:8.1f}  {found:13.1f}  {statistics.median(ratios):.2f}")
    worst = statistics.quantiles(every, n=20)[-1]
    print(f"over all: ratio {statistics.median(every):.2f}, 19 of 20 below {worst:.2f}")


async def main(lessons: int, steps: int, pairs: int) -> None:
    """Fill a journal, measure in it, and delete it."""
    language = Language(random.Random(7))
    with tempfile.TemporaryDirectory() as folder:
        async with await Journal.open(Path(folder) / "journal.db") as journal:
            began = time.perf_counter()
            await fill(journal, language, lessons, steps)
            print(f"{lessons} lessons and {steps} steps in {time.perf_counter() - began:.0f} s")
            await measure(journal, language, pairs)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lessons", type=int, default=2_000)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--pairs", type=int, default=15)
    given = parser.parse_args()
    asyncio.run(main(given.lessons, given.steps, given.pairs))
