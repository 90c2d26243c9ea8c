"""What a text names that not every text could name: files, commands, functions, errors. Pure."""

import re

from midwatch_agents.learning.case import Case
from midwatch_agents.learning.likeness import ANY_DAY, subject, telling

_QUOTED = re.compile(r"`([^`\n]{2,80})`")
_NAME = re.compile(
    r"""
    (?<![\w./-])(?:
        [\w.-]*(?:/[\w.-]+)+                         # src/app.py
      | [A-Za-z][\w-]*(?:\.[A-Za-z]\w*)+             # app.py, json.loads
      | [A-Za-z_]\w*(?=\()                           # round_up(
      | _*[A-Za-z][A-Za-z0-9]*_\w+                   # test_totals
      | [A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+            # TypeError
      | [a-z][a-z0-9]*(?:[A-Z][a-z0-9]*)+            # roundUp
      | [A-Z]{2,}[A-Z0-9]*                           # EACCES
      | --[a-z][\w-]+                                # --verbose
    )
    """,
    re.VERBOSE,
)
_STEP = re.compile(r"(?<!plan )\bsteps?\s+((?:\d{1,6}(?:,? and |, |\b))+)", re.IGNORECASE)
_SEEMING = {"e.g", "i.e", "etc", "ok", "ai", "llm", "todo", "and/or", "n/a", "i/o"}
"""What looks like a name and is none."""
_SHARED = 2
"""Words in common that a text needs where it names nothing."""


def names(text: str) -> frozenset[str]:
    """Files, commands, functions, tests and errors that a text names, in small letters.

    A file counts by its path and by its own name.
    """
    found = {each.casefold().strip(".") for each in _NAME.findall(text)} - _SEEMING
    found |= {each.strip().casefold() for each in _QUOTED.findall(text)}
    found |= {each.rpartition("/")[2] for each in found if "/" in each}
    return frozenset(each for each in found if len(each) > 1)


def specific(text: str, case: Case) -> bool:
    """Whether a text is about this case and not about any.

    Beside names and words of the task, the step or the command that it names may show that.
    """
    comment = case.verdict.comment if case.verdict is not None else ""
    return bool(
        cited_steps(text) & case.citable
        or commands(case) & telling(text)
        or grounded(text, told_in(case), subject(f"{case.title} {case.goal} {comment}"))
    )


def grounded(text: str, told: str, words: frozenset[str]) -> bool:
    """Whether a text speaks of what is told, and not of what any worker could be told.

    It names something that stands there (a file, a command, a function, a test, an error), or it
    has two of the words.
    """
    return speaks(told.casefold(), names(text) - ANY_DAY) or len(words & subject(text)) >= _SHARED


def speaks(told: str, about: frozenset[str]) -> bool:
    """Whether any of these things stands, as a whole, in a text in small letters."""
    return any(re.search(rf"(?<!\w){re.escape(each)}(?!\w)", told) for each in about)


def named_files(text: str, case: Case) -> tuple[str, ...]:
    """Those of the case's files that a text names, by path or by their own name."""
    said = names(text)
    return tuple(
        path
        for path in case.files
        if path.casefold() in said or path.rpartition("/")[2].casefold() in said
    )


def cited_steps(text: str) -> frozenset[int]:
    """The steps that a text names by their numbers; a plan step is none."""
    runs = _STEP.findall(text)
    return frozenset(int(each) for run in runs for each in re.findall(r"\d+", run))


def told_in(case: Case) -> str:
    """All that is said in the case, in small letters."""
    parts = [case.title, case.goal, case.reason, case.notes, case.transcript, *case.files]
    parts += [f"{each.check} {each.detail}" for each in case.checks]
    parts += [f"{each.what} {each.root} {each.remedy}" for each in case.analyses]
    parts += [f"{each.rule} {each.summary}" for each in case.findings]
    parts += [f"{each.message} {each.reason}" for each in case.told]
    if case.verdict is not None:
        parts += [case.verdict.comment, case.verdict.diff]
    return "\n".join(parts).casefold()


def commands(case: Case) -> frozenset[str]:
    """The first words of the acceptance checks: `pytest`, `make`."""
    heads = {each.check.split()[0].casefold() for each in case.checks if each.check.split()}
    return frozenset(each.rpartition("/")[2] for each in heads) - ANY_DAY
