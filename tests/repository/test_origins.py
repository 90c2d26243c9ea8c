"""docs/origins.md: each thing that was asked for has exactly one row, and the row is filled in."""

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"\| ([A-Z]?\d+b?) \| (.+) \| (.+) \| (.+) \|")
SERIES = {"D": 75, "S": 60, "R": 74, "V": 27, "C": 18, "": 22}


def rows() -> list[tuple[str, ...]]:
    """Id, what it is, place, and what shows it, of each row."""
    text = (ROOT / "docs" / "origins.md").read_text("utf-8")
    return [match.groups() for line in text.splitlines() if (match := ROW.fullmatch(line))]


def test_every_id_has_exactly_one_row() -> None:
    wanted = [
        f"{letter}{number}" for letter, last in SERIES.items() for number in range(1, last + 1)
    ]
    assert Counter(row[0] for row in rows()) == Counter([*wanted, "D64b"])


def test_every_cell_is_filled_in() -> None:
    assert [row[0] for row in rows() if not all(cell.strip() for cell in row)] == []


def test_a_row_is_here_or_says_why_not() -> None:
    said = re.compile(r"`tests/|left out: |replaced: |for information")
    assert [row[0] for row in rows() if not said.search(row[3])] == []


def test_every_module_that_a_row_names_exists() -> None:
    # In parentheses stands the setting or the name that matters there.
    cells = [re.sub(r"\([^)]*\)", "", row[2]) for row in rows()]
    places = {place for cell in cells for place in re.findall(r"`([a-z]+(?:\.[a-z_]+)+)`", cell)}
    missing = [place for place in sorted(places) if not _is_module(place)]
    assert not missing, missing


def _is_module(place: str) -> bool:
    folder, *names = place.split(".")
    path = ROOT.joinpath(folder, f"midwatch_{folder}", *names)
    return path.is_dir() or path.with_suffix(".py").exists()


def test_every_file_that_a_row_names_exists() -> None:
    paths = {path for row in rows() for path in re.findall(r"`([\w.-]+/[\w./-]+)`", " ".join(row))}
    missing = [path for path in sorted(paths) if not (ROOT / path).exists()]
    assert not missing, missing
