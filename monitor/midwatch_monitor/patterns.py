"""Regular expressions by RE2, in linear time for any pattern and text.

RE2 has no lookaround, and its classes and word boundaries are ASCII only.
"""

from collections.abc import Iterator, Sequence
from typing import Any, cast

import re2  # pyright: ignore[reportMissingTypeStubs]

_re2: Any = re2


def escape(text: str) -> str:
    """Return the pattern that matches a text literally."""
    return _re2.escape(text)


def fault(pattern: str) -> str:
    """Return why a text is not a valid pattern, or an empty string if it is one."""
    try:
        Pattern(pattern)
    except _re2.error as error:
        said = error.args[0]
        return said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    return ""


class Pattern:
    """A compiled pattern. Its group `secret`, if any, marks the part of a match that counts."""

    def __init__(self, pattern: str) -> None:
        self._compiled = _re2.compile(pattern, options=_options())
        self._group: int = self._compiled.groupindex.get("secret", 0)
        self.is_part = self._group != 0
        """Whether the pattern has a group `secret`."""

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield start and end of every match in a text, or of its group `secret`."""
        # As bytes: for a `str`, RE2's wrapper first computes the offset of every character.
        data = text.encode(errors="surrogatepass")
        place, before = 0, 0
        for found in self._compiled.finditer(data):
            start, end = cast("tuple[int, int]", found.span(self._group))
            if start < 0:
                continue
            if len(data) == len(text):
                yield start, end
            else:
                before += _character_count(data[place:start])
                place = start
                yield before, before + _character_count(data[start:end])

    def findall(self, text: str) -> list[str]:
        """Return the text of every match, or of its group `secret`."""
        return [text[start:end] for start, end in self.spans(text)]


def _character_count(data: bytes) -> int:
    return len(data.decode(errors="surrogatepass"))


class PatternSet:
    """Patterns that are searched for together, in one pass."""

    def __init__(self, *patterns: str) -> None:
        self._set = _re2.Set.SearchSet(_options())
        for pattern in patterns:
            self._set.Add(pattern)
        self._set.Compile()
        self._match = self._set.Match

    def match(self, text: str) -> Sequence[int]:
        """Return the indexes of the patterns that a text contains. Raises UnicodeEncodeError."""
        return self._match(text) or ()

    def anywhere(self, text: str) -> bool:
        """Return whether a text contains any of the patterns."""
        return bool(self.within(text))

    def within(self, text: str) -> Sequence[int]:
        """Return the sorted indexes of the patterns in a text that may contain lone surrogates."""
        return sorted(self._match(text.encode(errors="surrogatepass")) or ())


def _options() -> Any:
    options = _re2.Options()
    options.log_errors = False
    return options
