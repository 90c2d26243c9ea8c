"""What a person changed afterwards, read from a unified diff. Pure."""

import re
from dataclasses import dataclass, replace

_FILE = re.compile(r"^(?:\+\+\+|---) (?:[ab]/)?(?P<path>[^\t\n]+)")
_GIT = re.compile(r"^diff --git a/(?P<path>.+) b/(?P=path)$")
_CHARS = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """One file that was changed, with the first lines that were."""

    path: str
    before: str = ""
    """The first line that was taken away; empty if there is none."""
    after: str = ""
    """The first line that was put in its place."""

    @property
    def told(self) -> str:
        """The change as a thing to do instead; empty where it shows no line."""
        if self.before and self.after:
            return f"In {self.path} write `{self.after}` instead of `{self.before}`"
        if self.after:
            return f"In {self.path} there must be `{self.after}`"
        return f"In {self.path} leave out `{self.before}`" if self.before else ""


def rewrites(diff: str) -> tuple[Rewrite, ...]:
    """The files of a diff, each with its first changed lines; a cut diff gives what is there."""
    found: dict[str, Rewrite] = {}
    path = ""
    lines = diff.splitlines()
    for number, line in enumerate(lines):
        after = lines[number + 1] if number + 1 < len(lines) else ""
        before = lines[number - 1] if number else ""
        named = _path(line, before, after)
        if named is not None:
            path = named or path
            found.setdefault(path, Rewrite(path=path))
        elif path and line[:1] in {"+", "-"}:
            found[path] = _with(found[path], line)
    return tuple(each for name, each in found.items() if name)


def _path(line: str, before: str, after: str) -> str | None:
    """The file that a line of the head of a file's part names; `None` for any other line."""
    if match := _GIT.match(line):
        return match["path"].strip()
    # A line that is taken away may begin with two dashes itself: only a pair is a head.
    first = line.startswith("--- ") and after.startswith("+++ ")
    second = line.startswith("+++ ") and before.startswith("--- ")
    match = _FILE.match(line) if first or second else None
    if match is None:
        return None
    path = match["path"].strip()
    return "" if path == "/dev/null" else path


def _with(known: Rewrite, line: str) -> Rewrite:
    text = " ".join(line[1:].split()).replace("`", "'")[:_CHARS]
    if line[0] == "-":
        return replace(known, before=known.before or text)
    return replace(known, after=known.after or text)
