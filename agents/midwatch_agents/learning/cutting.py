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
    """Lines that belong together, by their indexes; `end` is not one of them."""

    start: int
    end: int
    kind: _Kind


def word_count(text: str) -> int:
    """How many words a text has: whatever stands between white space."""
    return len(text.split())


def cut_markdown(
    text: str, *, words: int | None = None, chars: int | None = None, octets: int | None = None
) -> str:
    """The longest beginning of a Markdown text within the limits that ends at a sound place.

    That is after a block, a list item or a sentence. Line breaks and lists stay as they are; code,
    tables and HTML are kept whole or left out, and a code block that nobody closed is closed. No
    heading and no line that ends in a colon is left over at the end. Empty where not even the
    first sentence fits.

    Args:
        text: Markdown.
        words: Most words, as `word_count` counts them.
        chars: Most characters.
        octets: Most bytes in UTF-8.
    """

    def fits(part: str) -> bool:
        return (
            (words is None or word_count(part) <= words)
            and (chars is None or len(part) <= chars)
            and (octets is None or len(part.encode("utf-8", "replace")) <= octets)
        )

    lines = text.replace("\r\n", "\n").strip("\n").rstrip().split("\n")
    blocks = list(_blocks(lines))  # closes the last block of code, where that is open
    whole = "\n".join(lines)
    return whole if fits(whole) else _cut(lines, blocks, fits)


def _cut(lines: Sequence[str], blocks: Sequence[_Block], fits: Fits) -> str:
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
        return _while(lines, at, _ROW), _Kind.WHOLE
    end = at + 1
    if _WHOLE.match(line):
        while end < len(lines) and lines[end].strip():
            end += 1
        return end, _Kind.WHOLE
    while end < len(lines) and lines[end].strip() and not _begins(lines[end]):
        end += 1
    if end < len(lines) and not _ITEM.match(line) and _UNDERLINE.match(lines[end]):
        return end + 1, _Kind.HEAD
    return _table(lines, at, end)


def _table(lines: Sequence[str], at: int, end: int) -> tuple[int, _Kind]:
    """A table without bars at its edges is known by its second line alone."""
    second = lines[at + 1] if at + 1 < end else ""
    bars = "|" in second and not second.strip("|-: ")
    return end, _Kind.WHOLE if bars else _Kind.TEXT


def _begins(line: str) -> bool:
    """Whether a line begins a block of its own right after another line."""
    found = (_FENCE, _HEADING, _RULE, _UNDERLINE, _ITEM, _ROW)
    return any(pattern.match(line) for pattern in found)


def _while(lines: Sequence[str], at: int, pattern: re.Pattern[str]) -> int:
    while at < len(lines) and pattern.match(lines[at]):
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
