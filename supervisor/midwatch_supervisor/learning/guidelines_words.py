"""Versions of the guidelines in words, and as fields of a JSON object."""

from collections.abc import Sequence
from difflib import unified_diff

from midwatch_monitor.records import GuidelinesState, KnownGuidelines

_NEXT = {
    GuidelinesState.PROPOSED: "waits for `midwatch guidelines approve`",
    GuidelinesState.LIVE: "is in force",
    GuidelinesState.FORMER: "was in force",
    GuidelinesState.REJECTED: "was turned down",
}


def version_fields(known: KnownGuidelines, *, text: bool = False) -> dict[str, object]:
    """A version as JSON has it; with its text where that is wanted."""
    of = known.guidelines
    fields: dict[str, object] = {
        "type": "guidelines",
        "id": known.id,
        "at": known.at.isoformat(),
        "project": known.project,
        "version": of.version,
        "state": known.state.value,
        "words": len(of.text.split()),
        "sources": list(of.sources),
        "base": of.base,
        "model": of.model,
        "decided_at": known.decided_at.isoformat() if known.decided_at else None,
        "author": known.author,
        "comment": known.comment,
    }
    return {**fields, "text": of.text} if text else fields


def version_line(known: KnownGuidelines) -> str:
    """A version in one line."""
    of = known.guidelines
    size = f"{len(of.text.split())} words from {_counted(len(of.sources), 'attempt')}"
    decided = f", {known.author}" if known.author else ""
    why = f": {known.comment}" if known.comment else ""
    return f"version {of.version} ({known.id}) {_NEXT[known.state]}{decided}{why}; {size}"


def changes(before: KnownGuidelines | None, after: KnownGuidelines) -> list[str]:
    """What a version would change, as a unified diff in lines; empty if nothing."""
    old = before.guidelines.text if before else ""
    return list(
        unified_diff(
            old.splitlines(),
            after.guidelines.text.splitlines(),
            fromfile=f"version {before.guidelines.version}" if before else "nothing",
            tofile=f"version {after.guidelines.version}",
            lineterm="",
        )
    )


def change_fields(
    before: KnownGuidelines | None, after: KnownGuidelines, lines: Sequence[str]
) -> dict[str, object]:
    """What a version would change as JSON has it."""
    body = [line for line in lines if not line.startswith(("+++", "---"))]
    return {
        "type": "diff",
        "project": after.project,
        "from": before.guidelines.version if before else None,
        "to": after.guidelines.version,
        "added": sum(line.startswith("+") for line in body),
        "removed": sum(line.startswith("-") for line in body),
        "diff": "\n".join(lines),
    }


def outdated(known: KnownGuidelines, live: KnownGuidelines | None) -> bool:
    """Whether a proposal was written over another version than the one in force."""
    return known.guidelines.base != (live.id if live else None)


def _counted(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count} {noun}s"
