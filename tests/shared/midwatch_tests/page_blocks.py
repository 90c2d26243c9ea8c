"""What pages in Markdown show: blocks of code, and the commands in these and in the text."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
_PATTERNS = ("*.md", "docs/**/*.md", "configs/**/*.md", "*/README.md")
PAGES = sorted({page for pattern in _PATTERNS for page in ROOT.glob(pattern)})
NOW = [page for page in PAGES if page.name != "CHANGELOG.md"]
"""The pages that tell how Midwatch is, and not how it was."""
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
_HEREDOC = re.compile(r"(<<'?(\w+)'?[^\n]*\n).*?^\2$", re.M | re.S)
_RUNNERS = (("uv", "run"), ("runuser", "-u", "postgres", "--"))
"""What may stand before a command and runs it."""


def blocks(page: Path) -> list[tuple[str, str]]:
    """The language and the text of each block of code; empty where no language is named."""
    return _BLOCK.findall(page.read_text("utf-8"))


def prose(page: Path) -> str:
    """A page without its blocks."""
    return _BLOCK.sub("", page.read_text("utf-8"))


def spans(page: Path) -> list[str]:
    """The code within the text of a page, each on one line."""
    return [" ".join(each.split()) for each in re.findall(r"`([^`]+)`", prose(page))]


def shell(language: str, text: str) -> str:
    """What a shell is given of a block; of a session at a terminal, the lines after `$`."""
    return "\n".join(re.findall(r"^\$ (.*)$", text, re.M)) if language == "console" else text


def commands(text: str) -> Iterator[list[str]]:
    """The words of each simple command of a shell's text, without variables and redirections."""
    for line in _HEREDOC.sub(r"\1", text).replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        found: list[list[str]] = [[]]
        redirected = False
        for token in lexer:
            if token[0] in "<>":
                redirected = True
            elif set(token) <= set(";|&()"):
                found.append([])
            elif redirected:
                redirected = False
            else:
                found[-1].append(token)
        yield from (words for each in found if (words := _bare(each)))


def _bare(words: list[str]) -> list[str]:
    while words and re.match(r"\w+=", words[0]):
        words = words[1:]
    for runner in _RUNNERS:
        if tuple(words[: len(runner)]) == runner:
            words = words[len(runner) :]
            if words[:1] == ["--group"]:
                words = words[2:]
    return [words[0].rpartition("/bin/")[2], *words[1:]] if words else []
