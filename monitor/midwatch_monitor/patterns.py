"""Regular expressions of RE2: linear time, whatever the pattern and the text.

RE2 knows no lookaround, and its classes and word boundaries are those of ASCII.
"""

from collections.abc import Iterator, Sequence
from typing import Any, cast

import re2  # pyright: ignore[reportMissingTypeStubs]

_re2: Any = re2


def escape(text: str) -> str:
    """The pattern that matches a text."""
    return _re2.escape(text)


def fault(pattern: str) -> str:
    """Why a text is no pattern; empty if it is one."""
    try:
        Pattern(pattern)
    except _re2.error as error:
        said = error.args[0]
        return said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    return ""


class Pattern:
    """A compiled pattern."""

    def __init__(self, pattern: str) -> None:
        self._compiled = _re2.compile(pattern, options=_options())
        self._group: int = self._compiled.groupindex.get("secret", 0)
        self.is_part = self._group != 0
        """Whether only a part of what it matches is meant."""

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where it, or its group `secret`, stands in a text."""
        # As bytes: of a `str` RE2's wrapper works out the place of every character first.
        data = text.encode(errors="surrogatepass")
        place, before = 0, 0
        for found in self._compiled.finditer(data):
            start, end = cast("tuple[int, int]", found.span(self._group))
            if start < 0:
                continue
            if len(data) == len(text):
                yield start, end
            else:
                before += _length(data[place:start])
                place = start
                yield before, before + _length(data[start:end])

    def findall(self, text: str) -> list[str]:
        """What stands there."""
        return [text[start:end] for start, end in self.spans(text)]


def _length(data: bytes) -> int:
    return len(data.decode(errors="surrogatepass"))


class PatternSet:
    """Patterns that are looked for together, in one pass."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._set = _re2.Set.SearchSet(_options())
        for pattern in patterns:
            self._set.Add(pattern)
        self._set.Compile()
        self._match = self._set.Match

    def match(self, text: str) -> Sequence[int]:
        """Which of them are somewhere in a text, by their places. Raises UnicodeEncodeError."""
        return self._match(text) or ()

    def anywhere(self, text: str) -> bool:
        """Whether one of them is in a text."""
        return bool(self.within(text))

    def within(self, text: str) -> Sequence[int]:
        """The same in their order, of a text that may hold half a surrogate pair."""
        return sorted(self._match(text.encode(errors="surrogatepass")) or ())


def _options() -> Any:
    options = _re2.Options()
    options.log_errors = False
    return options
