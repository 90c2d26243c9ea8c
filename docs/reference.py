"""Writes the reference pages from the code: `uv run python docs/reference.py`."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests" / "shared"))

from midwatch_tests.reference import pages

DOCS = Path(__file__).parent

if __name__ == "__main__":
    for name, text in pages().items():
        (DOCS / name).write_text(text, "utf-8")
