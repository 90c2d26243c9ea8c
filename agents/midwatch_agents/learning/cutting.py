"""Markdown made shorter, and still Markdown: cut at whole blocks and sentences. Pure."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

_FENCE = re.compile(r"\s*(?:[-*+]\s+|\d+[.)]\s+|>\s*)?(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}(\s|$)")
_RULE = re.compile(r" {0,3}([-*_])(\s*\1){2,}\s*$")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)\s*$")
_ITEM = re.compile(r"\s*(?:>\s*)*(?:[-*+]|\d{1,9}[.)])(\s|$)")
_ROW = re.compile(r"\s*\|")
_NO_ROW = re.compile(r"\s*[^\s|]")
_WHOLE = re.compile(r" {0,3}<[a-zA-Z/!?]")
"""What begins a block of HTML, which is kept whole or not at all."""
_STOP = re.compile(r"[.!?\u2026]+[\"')\]*_`\u2019\u201d\u00bb]*(?=\s|$)|[\u3002\uff01\uff1f]")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[*_])(?:[A-Za-z]|e\.g|i\.e|etc|vs|cf|approx|incl|resp|no|fig|ca|Dr|Mr|Mrs|Ms|St)"
    r"\.[\"')\]*_]*$",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?:^|\n)\s*(?:>\s*)*\(?\d{1,9}\.$")
_OPENING = re.compile(r"(?<![\w*])_(?=\S)")
_CLOSING = re.compile(r"(?<=\S)_(?![\w*])")

Fits = Callable[[str], bool]


class _Kind(Enum):
    TEXT = auto()
    """A paragraph or a list item: it may end after each of its sentences."""
    WHOLE = auto()
    """Code, a table, HTML: whole or not at all."""
    HEAD = auto()
    """A heading or a line across: nothing without what follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """Lines that belong together: their indexes from `start` up to `end`."""

    start: int
    end: int
    kind: _Kind


def word_count(text: str) -> int:
    """How many words a text has: whatever stands between white space."""
    return len(text.split())


def cut_markdown(text: str, fits: Fits) -> str:
    """The longest beginning of a Markdown text that fits and ends at a sound place.

    That is after a block, a list item or a sentence. Line breaks and lists stay as they are; code,
    tables and HTML are kept whole or left out, and a code block that nobody closed is closed. No
    heading and no line that ends in a colon is left over at the end. Empty where not even the
    first sentence fits. `fits` must hold for each beginning of a text that it holds for.
    """
    lines = text.replace("\r\n", "\n").strip("\n").rstrip().split("\n")
    blocks = list(_blocks(lines))  # closes the last block of code, where that is open
    whole = "\n".join(lines)
    if not blocks or fits(whole):
        return whole

    def before(count: int) -> str:
        return "\n".join(lines[: blocks[count - 1].end]) if count else ""

    counts = range(1, len(blocks) + 1)
    kept = bisect_left(counts, 1, key=lambda count: int(not fits(before(count))))
    block = blocks[kept]
    if block.kind is _Kind.TEXT:
        lead = "\n".join(lines[: block.start])
        lead = f"{lead}\n" if lead else ""
        part = _sentences("\n".join(lines[block.start : block.end]), lambda s: fits(lead + s))
        if part:
            return lead + part
    while kept and _leads(lines, blocks[kept - 1]):
        kept -= 1
    return before(kept)


def _leads(lines: Sequence[str], block: _Block) -> bool:
    """Whether a block says nothing without the next one."""
    return block.kind is _Kind.HEAD or lines[block.end - 1].rstrip(" *_").endswith(":")


def _sentences(text: str, fits: Fits) -> str:
    """The most whole sentences of a block that fit, with no markup left open; may be none."""
    ends = [stop.end() for stop in _STOP.finditer(text) if _ends(text, stop)]
    count = bisect_left(ends, 1, key=lambda end: int(not fits(text[:end])))
    return next((text[:end] for end in reversed(ends[:count]) if _sound(text[:end])), "")


def _ends(text: str, stop: re.Match[str]) -> bool:
    """Whether a stop ends a sentence: `e.g.` and `1.` do not, nor what goes on in small letters."""
    if "." not in stop[0]:
        return True
    tail = text[max(0, stop.end() - 40) : stop.end()]
    rest = text[stop.end() : stop.end() + 40].lstrip(" \n\"'([*_`")
    return not (_ABBREVIATION.search(tail) or _NUMBER.search(tail) or rest[:1].islower())


def _sound(part: str) -> bool:
    """Whether the inline markup of the beginning of a block is closed."""
    bare = "\n".join(_ITEM.sub("", line, count=1) for line in part.split("\n"))
    stars = len(re.findall(r"(?<=\S)\*+|\*+(?=\S)", bare))
    pairs = bare.count("[") == bare.count("]") and bare.count("(") == bare.count(")")
    lines_under = len(_OPENING.findall(bare)) == len(_CLOSING.findall(bare))
    return pairs and lines_under and not stars % 2 and not bare.count("`") % 2


def _blocks(lines: list[str]) -> Iterator[_Block]:
    at = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        end, kind = _end(lines, at)
        yield _Block(start=at, end=end, kind=kind)
        at = end


def _end(lines: list[str], at: int) -> tuple[int, _Kind]:
    """Where the block that begins at a line ends, and what it is."""
    line = lines[at]
    if fence := _FENCE.match(line):
        return _fenced(lines, at, fence[1]), _Kind.WHOLE
    if _HEADING.match(line) or _RULE.match(line):
        return at + 1, _Kind.HEAD
    if _ROW.match(line):
        return _until(lines, at + 1, _NO_ROW), _Kind.WHOLE
    if _WHOLE.match(line):
        return _until(lines, at + 1), _Kind.WHOLE
    end = _until(lines, at + 1, _FENCE, _HEADING, _RULE, _UNDERLINE, _ITEM, _ROW)
    if end < len(lines) and not _ITEM.match(line) and _UNDERLINE.match(lines[end]):
        return end + 1, _Kind.HEAD
    # A table without bars at its edges is known by its second line alone.
    second = lines[at + 1] if at + 1 < end else ""
    table = "|" in second and not second.strip("|-: ")
    return end, _Kind.WHOLE if table else _Kind.TEXT


def _until(lines: Sequence[str], at: int, *begins: re.Pattern[str]) -> int:
    """The first line from there on that is empty, or with which another block begins."""
    while at < len(lines) and lines[at].strip() and not any(it.match(lines[at]) for it in begins):
        at += 1
    return at


def _fenced(lines: list[str], at: int, fence: str) -> int:
    """The line after a block of code; the fence is added where it is missing."""
    closing = re.compile(rf"\s*(?:>\s*)?{re.escape(fence[0])}{{{len(fence)},}}\s*$")
    for number in range(at + 1, len(lines)):
        if closing.match(lines[number]):
            return number + 1
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    lines.append(indent + fence)
    return len(lines)
