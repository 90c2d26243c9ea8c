"""A step in the form that rules compare: digests instead of texts."""

import re
from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from midwatch_monitor.patterns import Pattern, PatternSet
from midwatch_monitor.records import Edit, Step, StepKind, Writer
from midwatch_monitor.rules.failure_text import (
    count_failing,
    environment_obstacle,
    finds_nothing,
    found_nothing_by_exit_code,
    has_failed,
    is_silent,
    is_under_way,
    signature,
)
from midwatch_monitor.rules.identity import (
    HELD_BACK,
    NO_WORK,
    UNREPORTED,
    answer,
    command,
    digest,
    goes_back,
    identify,
    only_waits,
    result,
    shell_call,
    tool_traits,
    was_refused,
)
from midwatch_monitor.rules.memory import EditMark, Memory, Vocabulary, marks
from midwatch_monitor.rules.speech import searches, speaks, to_people
from midwatch_monitor.shell import reverts, without_documents
from midwatch_monitor.shell.claimed_edits import adds, changes_unnamed, changing, creates, replaced

_CLAIM = Pattern(
    r"(?i)\b(?:all|every|the)(?: of)?(?: the| my| our)?(?: \w+){0,2} (?:tests?|checks?|suite)"
    r"(?: \w+){0,2} (?:now |all |still )?(?:pass(?:es|ed|ing)?|succeed(?:s|ed)?|(?:is|are) green)\b"
    r"|\b(?:tests?|checks?|test suite) (?:is|are) (?:now |all )*(?:green|passing)\b"
    r"|\ball \d+ (?:\w+ )?(?:pass(?:ed|ing)?|green)\b"
    r"|\b(?:tests?|pytest|(?:test )?suite) (?:now pass(?:es)?|pass(?:es)? now)\b"
    r"|\bno (?:more )?(?:failing tests|test failures)\b"
)
_DOUBT = re.compile(
    r"(?i)\b(?:not|n't|no|until|unless|if|whether|should|would|will|could|can|may|might|must|to|"
    r"make sure|ensure|verify|check|see|hope(?:fully)?|expect|before|once|when|after|want|need|"
    r"confirm|so that|except|but|only|other|existing|previous(?:ly)?|were|were?n't|criteri(?:on|a)|"
    r"goal|requirement)\b"
)
"""Words earlier in the sentence that cancel a claim."""
_DOUBT_WITHIN = re.compile(
    r"(?i)\b(?:should|would|will|could|can|may|might|must|to|not|other|existing|previous(?:ly)?)\b"
    r"|n't\b"
)
_SENTENCE = re.compile(r"[.!?;\n]\s|\n")
_ASKED = re.compile(r"^[^.!\n]{0,60}\?")
_EXCEPT = re.compile(
    r"(?i)^[^.!\n]{0,60}\b(?:fail\w*|broken)\b"
    r"|^[^\n]{0,40}\b(?:except|but|besides|apart|other than|although|though)\b"
    r"|^ (?:before|until|unless|if|when|once)\b"
)


def claims(step: Step) -> bool:
    """Whether the text or the notes of a step claim that the tests pass."""
    text = step.text if step.checkpoint is None else step.checkpoint.notes
    return bool(text) and claims_success(text)


def claims_success(text: str) -> bool:
    """Whether a text says that the tests pass, and not only that they should."""
    low = text.lower()  # most texts have none of these words, and this is faster
    if not ("pass" in low or "green" in low or "succe" in low or "fail" in low):
        return False
    for start, end in _CLAIM.spans(text):
        before = _SENTENCE.split(text[max(0, start - 200) : start])[-1]
        doubted = _DOUBT.search(before) or _DOUBT_WITHIN.search(text[start:end])
        after = text[end : end + 60]
        if not (doubted or _EXCEPT.search(after) or _ASKED.search(after)):
            return True
    return False


_TESTS = (
    r"(?i)\b(?:pytest|py\.test|tox|nox|unittest|runtests|nosetests|jest|vitest|mocha|rspec|phpunit"
    r"|ctest|gradlew? \S*test|mvnw? \S*test|(?:npm|yarn|pnpm|bun)(?: run)? \S*test"
    r"|(?:go|cargo|dotnet|make|mix|swift|rake|manage\.py) \S*test|bin/test|test_runner)"
)
"""Commands and tools that run tests."""
_RUN = r"(?:^|[\s;&|(/])(?:python[\d.]*|node|ruby|perl|php|java|bash|sh|\./\S+)\s"
"""Commands that run a program of the project."""
_SWAPS = r"\bgit (?:-\S+ )*(?:bisect|switch|checkout|reset|merge|pull|rebase|cherry-pick)\b"
_ABORTS = re.compile(r" --(?:abort|quit)\b")
"""Those that only return to the starting point."""
_RETURNS = r"\b(?:checkout|restore|stash)\b|--hard\b"
_INSTALLS = (
    r"\b(?:pip3?|uv|conda|mamba|poetry|npm|yarn|pnpm|gem|bundle|composer|brew|apt|apt-get|apk|dnf)"
    r"(?: pip)?(?: -\S+)* (?:install|add|upgrade|update|remove|uninstall)\b"
)
_MEASURES = (
    r"(?i)\b(?:bench\w*|hyperfine|wrk2?|hey|ab|k6|locust|siege|vegeta|timeit|perf|pgbench|iperf3?"
    r"|\w*latency|explain analyze)\b"
)
"""Commands that measure durations: in their output, a different duration is news."""
_COMMAND = PatternSet(_TESTS, _RUN, _SWAPS, _RETURNS, _INSTALLS, _MEASURES)
_TEST_TOOL = re.compile(r"(?i)(?:^|[_.])(?:test|tests|pytest|check|checks)(?:_|$)")
_SHORT = 500
"""Longest command that is cached, in characters: short ones recur in every attempt."""


class CheckKind(Enum):
    """How an act checks the work."""

    NONE = 0
    RUN = 1
    """It ran a part of the project."""
    TESTS = 2


class CommandFacts(NamedTuple):
    """Facts about a command."""

    check: CheckKind = CheckKind.NONE
    """Whether it checks the work."""
    reverts: tuple[str, ...] = ()
    """Files it restores from version control."""
    swaps: bool = False
    """Whether it replaces the whole tree of files, if it succeeds."""
    installs: bool = False
    """Whether it changes the installed programs and libraries, if it succeeds."""
    sleeps: bool = False
    """Whether it waits before it does something."""
    measures: bool = False
    """Whether it measures how long something takes."""


NO_COMMAND = CommandFacts()


def command_facts(line: str) -> CommandFacts:
    """Return the facts about a command."""
    return _command_facts(line) if len(line) <= _SHORT else _find_facts(line)


@lru_cache(maxsize=512)
def _command_facts(line: str) -> CommandFacts:
    return _find_facts(line)


def _find_facts(line: str) -> CommandFacts:
    line = without_documents(line)
    found = _COMMAND.within(line)
    tests, runs, swaps, returns, installs, measures = map(found.__contains__, range(6))
    check = CheckKind.TESTS if tests else CheckKind.RUN if runs else CheckKind.NONE
    put_back = reverts(line) if returns and "git" in line else ()
    swaps = swaps and not put_back and _ABORTS.search(line) is None
    sleeps = line.startswith("sleep ")
    return CommandFacts(check, put_back, swaps, installs, sleeps, measures and not tests)


@lru_cache(maxsize=512)
def check_of_tool(tool: str) -> CheckKind:
    """Return how a tool without a command checks the work, judging by its name."""
    return (
        CheckKind.TESTS
        if _TEST_TOOL.search(tool) and not tool_traits(tool).awaits_message
        else CheckKind.NONE
    )


def runs_tests(tool: str, line: str) -> bool:
    """Whether a call runs tests."""
    return (command_facts(line).check if line else check_of_tool(tool)) is CheckKind.TESTS


_ACTS = 64
"""Number of acts remembered; only results of repeated acts are masked."""


class Facet:
    """Properties of an event. A detector gets the events with facets it hears; while awake, all.

    Plain integers, because enum flags are ten times slower to combine and compare.
    """

    MESSAGE = 1
    CHECKPOINT = 2
    CHANGE = 4
    EDIT = 8
    """Files changed."""
    FAILURE = 16
    """An act failed."""
    CHECK = 32
    """The work was run or tested."""
    MOVED = 64
    """Something moved: see `Movement`."""
    CLAIM = 256
    """The worker says that the tests pass."""
    RETURN = 512
    """A file returned to an earlier content."""
    SPEECH = 1024
    """Words to a person or another agent."""
    NOTHING = 2048
    """A search or a page showed nothing."""
    NOTHING_NEW = 4096
    """Neither its answer nor whether it failed is new since the last change."""
    REPEAT = 128
    """A repeated act that showed nothing new."""
    UNREPORTED = 8192
    """What it showed is unknown, so it equals no other result."""


class Act(NamedTuple):
    """What rules compare of one step. Digests have 64 bits; 0 means "says nothing"."""

    number: int
    work: bool
    """Whether it counts as work: a tool call that does more than report, wait or go back."""
    action: int = 0
    result: int = 0
    failed: bool | None = None
    error: bool = False
    """Whether it failed, other than by finding nothing."""
    failure: int = 0
    """Digest of what failed, according to the output."""
    blocked: str = ""
    """What in the environment blocked it."""
    edits: tuple[Edit, ...] = ()
    """The worker's own edits, the last one of each file."""
    marks: tuple[EditMark, ...] = ()
    """All edits, in a form that is fast to compare."""
    reverted: tuple[str, ...] = ()
    """Files that a command restored from version control."""

    changes: bool = False
    """Whether files changed, even if it is unknown which."""
    waits: bool = False
    """Whether it gives others time: it waits, possibly before a look, or looks at others' work."""
    swaps: bool = False
    """Whether the whole file tree or the installed programs were replaced, so that anything may
    give another result.
    """
    shell: bool = False
    """Whether it was a command, whose text may not show what it wrote."""
    check: CheckKind = CheckKind.NONE
    """How it checked the work."""
    failed_before: bool | None = None
    """Whether the same act failed the last time."""
    better: bool = False
    """Whether it does better than ever before: it passes, or fails in fewer places."""
    claims: bool = False
    """Whether the worker says in it that the tests pass."""
    facets: int = 0
    """Its properties, as far as this step alone shows them: a combination of `Facet`."""
    adds: bool = False
    """Whether its edits only add to the files."""
    creates: bool = False
    """Whether it says that it creates the files it changes."""
    again: bool = False
    """Whether the same act was done before, with any result."""
    installs: bool = False
    """Whether it changed the installed programs and libraries."""


_WORK = True
"""`Act.work` of a step that counts."""
_KINDS = {StepKind.MESSAGE: Facet.MESSAGE, StepKind.CHECKPOINT: Facet.CHECKPOINT}


class Normaliser:
    """Turns the steps of one attempt into acts. Expensive work is done only for repeated acts."""

    __slots__ = ("_acts", "_vocabulary")

    def __init__(self) -> None:
        self._acts = Memory(_ACTS)
        self._vocabulary = Vocabulary()

    def act(self, step: Step) -> Act:
        """Return one step as an act; its output must be unwrapped (`unwrap`)."""
        edits = _worker_edits(step.edits) if step.edits else ()
        if step.ok is False and was_refused(step):
            return _held_back(step)
        waiting = only_waits(step)
        if step.kind is not StepKind.TOOL or step.tool in NO_WORK or waiting or goes_back(step):
            return _act_without_work(step, edits, waiting=waiting)
        (line, arguments), tool = shell_call(step), tool_traits(step.tool)
        told = command_facts(line) if line else NO_COMMAND
        action, fails = identify(step, line, arguments), has_failed(step)
        known, count = self._acts.get(action), count_failing(step.output) if fails else None
        again = known is not None
        before, after = _read_past(known or 0), _past_after(known or 0, fails, count)
        if after != known:
            self._acts.put(action, after)
        error = bool(fails) and not found_nothing_by_exit_code(step, line)
        check, claimed = told.check if line else check_of_tool(step.tool), claims(step)
        said = answer(step, precise=again, whole=told.measures or tool.stores_work)
        polls = again and check is CheckKind.NONE and is_under_way(step)
        changes = bool(edits or told.reverts) or (not fails and _changes_unnamed(step))
        swaps = not fails and (told.swaps or (told.installs and not again))
        facets = _facets(step, changes=changes, fails=fails, check=check, claimed=claimed)
        new = self._vocabulary.learn(said, anew=changes or swaps)
        facets |= Facet.NOTHING_NEW if not new and known in (None, after) else 0
        return Act(  # positional: keywords take more than twice as long
            step.number,
            _WORK,
            action,
            result(step, said),
            fails,
            error,
            signature(step) if error else 0,
            environment_obstacle(step.output) if fails else "",
            edits,
            _edit_marks(step),
            told.reverts,
            changes,
            told.sleeps or polls or tool.awaits_message,
            swaps,
            bool(line) and not changing(step.tool),
            check,
            before.failed,
            before.beaten(fails, count),
            claimed,
            facets,
            bool(edits) and adds(step.tool, step.args, line),
            bool(edits) and creates(step.tool, step.args, line),
            again,
            told.installs and not fails,
        )


class ActPast(NamedTuple):
    """How the same act went before; fits into one number of the memory."""

    failed: bool | None = None
    """Whether it failed the last time; `None` if unknown."""
    passed: bool = False
    """Whether it ever succeeded."""
    fewest: int | None = None
    """The smallest number of failures."""

    @classmethod
    def read(cls, number: int) -> "ActPast":
        """Decode a number from the memory."""
        fewest = number >> 3
        failed = (None, False, True)[number & 3]
        return cls(failed, bool(number & 4), fewest - 1 if fewest else None)

    def then(self, failed: bool | None, count: int | None) -> "ActPast":
        """Return the past after one more try; unknown results change nothing."""
        known = [each for each in (self.fewest, count) if each is not None]
        last = self.failed if failed is None else failed
        return ActPast(last, self.passed or failed is False, min(known, default=None))

    @property
    def written(self) -> int:
        """The past encoded as a number for the memory."""
        fewest = 0 if self.fewest is None else min(self.fewest, 1_000_000) + 1
        return fewest << 3 | self.passed << 2 | (0 if self.failed is None else 1 + self.failed)

    def beaten(self, failed: bool | None, count: int | None) -> bool:
        """Whether the act does better than ever before."""
        if failed:
            return count is not None and self.fewest is not None and count < self.fewest
        return failed is False and bool(self.failed) and not self.passed


# Cached because most acts share a few pasts.
@lru_cache(maxsize=1024)
def _read_past(number: int) -> ActPast:
    return ActPast.read(number)


@lru_cache(maxsize=1024)
def _past_after(number: int, failed: bool | None, count: int | None) -> int:
    return ActPast.read(number).then(failed, count).written


def _facets(
    step: Step, *, changes: bool, fails: bool | None, check: CheckKind, claimed: bool
) -> int:
    """Return the facets of a step of work that the step alone shows."""
    return (
        (Facet.EDIT if changes else 0)
        | (Facet.FAILURE if fails else 0)
        | (Facet.CHECK if check is not CheckKind.NONE else 0)
        | (Facet.CLAIM if claimed else 0)
        | (Facet.NOTHING if _only_looks(changes, check) and _finds_nothing(step) else 0)
        | (Facet.SPEECH if speaks(step) else 0)
        | (Facet.UNREPORTED if step.output == UNREPORTED else 0)
    )


def _only_looks(changes: bool, check: CheckKind) -> bool:
    """Whether an act may only look: it changes nothing and runs nothing."""
    return not changes and check is CheckKind.NONE


def _held_back(step: Step) -> Act:
    """Return the act of a refused call, which never ran: it did not fail, but repeating it is a
    loop.
    """
    own = step.tool in NO_WORK  # their arguments are words, which differ each time
    return Act(
        number=step.number,
        work=True,
        action=digest(step.tool) if own else identify(step, command(step)),
        result=digest(HELD_BACK),
    )


def _act_without_work(step: Step, edits: tuple[Edit, ...], *, waiting: bool) -> Act:
    """Return the act of a step that is not work: words, a report, waiting or going back."""
    said = claims(step)
    facets = _KINDS.get(step.kind, 0) | (Facet.EDIT if edits else 0)
    facets |= Facet.CLAIM if said else 0
    facets |= Facet.SPEECH if waiting and to_people(step.tool) else 0
    return Act(
        step.number,
        work=False,
        edits=edits,
        marks=_edit_marks(step),
        changes=bool(edits),
        waits=waiting,
        claims=said,
        facets=facets,
    )


def _finds_nothing(step: Step) -> bool:
    """Whether a search or a page showed nothing."""
    return finds_nothing(step) or (is_silent(step.output) and searches(step))


def _changes_unnamed(step: Step) -> bool:
    """Whether an editor changed its open file without naming it."""
    return not (step.path or step.edits) and changes_unnamed(step.tool, step.args)


def _edit_marks(step: Step) -> tuple[EditMark, ...]:
    """Return the step's edits in a form that is fast to compare."""
    edits = step.edits
    if not edits:
        return ()
    part = len(edits) == 1 and not (edits[0].digest or edits[0].deleted)
    return marks(edits, *replaced(step.args)) if part else marks(edits)


def _worker_edits(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    if not edits:
        return ()
    return tuple({edit.path: edit for edit in edits if edit.writer is Writer.WORKER}.values())
