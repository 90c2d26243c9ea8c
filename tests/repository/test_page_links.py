"""Links between pages and to their headings lead somewhere, and files that pages name exist."""

import re
from functools import cache
from pathlib import Path

import pytest

from midwatch_tests.page_blocks import PAGES, ROOT, prose, spans

TOP = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name != ".venv"}
MODULES = [str(file) for top in sorted(TOP) for file in (ROOT / top).rglob("*.py")]
OF_READERS = {"tests/test_rounding.py"}
"""Files of the projects that pages tell of."""
_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
_PATH = re.compile(r"\.?[\w-]+(?:/[\w.*…-]+)+/?")


@cache
def anchors(page: Path) -> frozenset[str]:
    """What a link may name of a page: its headings as forges write them."""
    found: list[str] = []
    for heading in re.findall(r"^#+ (.+)$", prose(page), re.M):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        count = sum(each == slug or each.startswith(f"{slug}-") for each in found)
        found.append(f"{slug}-{count}" if slug in found else slug)
    return frozenset(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    wrong: list[str] = []
    for file, anchor in _LINK.findall(prose(page)):
        target = (page.parent / file).resolve() if file else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(f"{file}#{anchor}")
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_file_of_the_repository_that_a_page_names_exists(page: Path) -> None:
    named = {text for text in spans(page) if _PATH.fullmatch(text)} - OF_READERS
    ours = {text for text in named if text.partition("/")[0] in TOP or text.endswith(".py")}
    assert [text for text in sorted(ours) if not _exists(text, page.parent)] == []


def _exists(text: str, beside: Path) -> bool:
    """Whether a path leads to a file; `…` stands for the package of a folder.

    Of a module, its last folder may do.
    """
    top = text.partition("/")[0]
    pattern = text.rstrip("/").replace("/…/", f"/midwatch_{top}/")
    if any(ROOT.glob(pattern)) or (beside / pattern).exists():
        return True
    return text.endswith(".py") and any(each.endswith(f"/{text}") for each in MODULES)


def test_a_heading_is_found_by_the_name_that_forges_give_it() -> None:
    assert "an-agent-of-your-own" in anchors(ROOT / "README.md")
    assert "midwatch-lessons-list" in anchors(ROOT / "docs" / "reference" / "commands.md")
