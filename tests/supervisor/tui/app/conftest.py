"""A journal with fixed times in which six tasks stand differently, for pictures of the screens."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import (
    Action,
    Activity,
    Actor,
    Alert,
    AlertKey,
    Attempt,
    AttemptTransition,
    Budget,
    Change,
    Commit,
    Ending,
    Fact,
    FactAct,
    FactMark,
    FactReview,
    FactState,
    Feedback,
    Guidelines,
    GuidelinesAct,
    GuidelinesMark,
    Lesson,
    Lifecycle,
    Meter,
    Method,
    NodeState,
    NodeStatus,
    Origin,
    Outcome,
    Plan,
    PlanStep,
    PlanStepState,
    Recall,
    Recalled,
    Record,
    ReviewState,
    Severity,
    Step,
    SupervisedBy,
    VerdictBasis,
)
from midwatch_supervisor.tui.state.feed import NodesNow
from midwatch_tests.factories import (
    acceptance,
    alert,
    decision,
    delivery,
    draft,
    ended,
    feedback,
    intervention,
    outcome,
    reflecting,
    step,
    task_transition,
    transition,
)
from midwatch_tests.nodes import node

BEGIN = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
WORKING = transition()
DONE = ended(reason="every acceptance check passed")
EDITS = AlertKey(rule="repeated_edits", subject="orders/totals.py")
PLAN = Plan(
    steps=(
        PlanStep(title="Find the rounding error", state=PlanStepState.DONE, flag="one case by eye"),
        PlanStep(
            title="Round half up in totals", files=("orders/totals.py",), confidence=60, requests=14
        ),
        PlanStep(title="Say so in the change log"),
    ),
    revision=1,
)


def firing_alert(rule: str, severity: Severity, at: int, *evidence: int, summary: str) -> Alert:
    subject = EDITS.subject if rule == EDITS.rule else ""
    return alert(
        rule,
        severity,
        subject=subject,
        step=at,
        value=len(evidence),
        summary=summary,
        evidence=evidence,
        since_step=evidence[0],
    )


def checkpoint(number: int, progress: int, confidence: int, notes: str) -> Step:
    return reflecting(number, progress, confidence, notes=notes)


def tool_step(number: int, tool: str, args: str, *, ok: bool = True, output: str = "") -> Step:
    return step(number, tool, args=args, ok=ok, output=output)


def usage(requests: int, doing: str, activity: Activity = Activity.COMMAND) -> Change:
    budget = Budget(requests=Meter(used=requests, limit=40), tokens=Meter(used=requests * 900))
    return Change(budget=budget, activity=activity, doing=doing)


class JournalWriter:
    """Writes records into a journal, ten seconds apart."""

    def __init__(self, journal: Journal, run: int) -> None:
        self._journal = journal
        self._run = run
        self._at = BEGIN

    async def add_task(self, name: str, title: str, project: str = "", spec: str = "{}") -> int:
        """Add a task; its id."""
        task = await self._journal.add_task(
            run=self._run, name=name, title=title, spec=spec, at=self._at, project=project
        )
        await self._commit(task.id, None, task_transition(Lifecycle.SUBMITTED))
        return task.id

    async def add_attempt(
        self, task: int, *records: Record, number: int = 1, node: str = "north"
    ) -> Attempt:
        """Add an attempt that has begun to work."""
        whose = {"worker": "coder", "model": "openai:gpt-5", "node": node, "workspace": ""}
        attempt = await self._journal.add_attempt(task=task, number=number, at=self._at, **whose)
        await self._commit(task, None, task_transition())
        await self.write(attempt, WORKING, *records)
        return attempt

    async def write(self, attempt: Attempt, *records: Record) -> int:
        """Add records of an attempt; the id of the last."""
        return await self._commit(attempt.task, attempt.id, *records)

    async def end(self, attempt: Attempt, state: AttemptTransition) -> None:
        """End an attempt and its task."""
        await self.write(attempt, state)
        await self._commit(attempt.task, None, task_transition(state.lifecycle))

    async def _commit(self, task: int, attempt: int | None, *records: Record) -> int:
        last = 0
        for record in records:
            self._at += timedelta(seconds=10)
            made = draft(record, at=self._at, task=task, attempt=attempt)
            last = (await self._journal.commit(Commit(drafts=(made,))))[-1].id
        return last


async def add_stuck_task(log: JournalWriter) -> None:
    """A task that edits one file over and over; a nudge had no effect."""
    attempt = await log.add_attempt(
        await log.add_task("totals", "Totals are rounded half up"),
        PLAN,
        tool_step(1, "read_file", "orders/totals.py"),
        checkpoint(2, 20, 85, "The error is in the rounding."),
        *(tool_step(number, "edit_file", "orders/totals.py") for number in range(3, 6)),
        tool_step(6, "run_command", "python3 -m unittest", ok=False, output="FAILED (failures=2)"),
        checkpoint(7, 40, 60, "Two cases still fail."),
        firing_alert(
            EDITS.rule, Severity.WARNING, 7, 3, 4, 5, summary="orders/totals.py edited 3 times"
        ),
    )
    nudge = await log.write(
        attempt,
        decision(
            message="Write the failing case down first.",
            rationale="Each edit undoes the one before.",
            by=Actor.SUPERVISOR,
        ),
        intervention(
            Action.NUDGE,
            Actor.SUPERVISOR,
            message="Write the failing case down first.",
            answers=(EDITS,),
        ),
    )
    await log.write(
        attempt,
        delivery(nudge, step=7),
        *(tool_step(number, "edit_file", "orders/totals.py") for number in range(8, 11)),
        checkpoint(11, 40, 35, "I try another rounding. [red]No markup[/red] here."),
        outcome(nudge, Outcome.NO_EFFECT, step=11, reason="nothing moved"),
        firing_alert(
            EDITS.rule, Severity.CRITICAL, 11, 3, 4, 5, 8, 9, 10, summary="edited 6 times"
        ),
        usage(22, "edit_file orders/totals.py"),
    )


async def add_held_task(log: JournalWriter) -> None:
    """A task with a decision that waits for a person."""
    attempt = await log.add_attempt(
        await log.add_task("delivery", "Deliveries skip holidays"),
        tool_step(1, "read_file", "orders/delivery.py"),
        checkpoint(2, 30, 72, "Go day by day while it is free."),
        checkpoint(3, 35, 55, "Easter moves."),
        firing_alert("cycle", Severity.WARNING, 3, 1, 2, 3, summary="the same 2 acts 3 times"),
        usage(18, "", Activity.MODEL),
    )
    held = intervention(
        Action.RESTART,
        Actor.SUPERVISOR,
        message="Begin again with a table of holidays.",
        answers=(AlertKey(rule="cycle"),),
        needs_approval=True,
    )
    await log.write(attempt, held)


async def add_other_tasks(log: JournalWriter) -> None:
    """One waits for an answer, one works, one is done after a failed attempt, one is queued."""
    labels = await log.add_attempt(
        await log.add_task("labels", "Labels for parcels"), checkpoint(1, 50, 65, "Which paper?")
    )
    parked = transition(Lifecycle.INPUT_REQUIRED, reason="Which paper size is used?")
    await log.write(labels, usage(9, "", Activity.WAITING), parked)
    shipping = await log.add_task("shipping", "Shipping costs by weight")
    first = await log.add_attempt(shipping, checkpoint(1, 10, 20, "I do not find the table."))
    await log.write(first, ended(Ending.RESTARTED, reason="restart"))
    second = await log.add_attempt(
        shipping,
        checkpoint(1, 100, 95, "All cases pass."),
        acceptance(check="python3 -m unittest"),
        number=2,
    )
    await log.end(second, DONE)
    report = await log.add_attempt(
        await log.add_task("report", "A report for the warehouse"),
        checkpoint(1, 25, 80, "Orders are read."),
    )
    await log.write(
        report, usage(4, "run_command python3 -m unittest"), checkpoint(2, 60, 88, "Good.")
    )
    await log.add_task("discount", "Discounts for regulars")


@pytest.fixture
async def six_tasks(tmp_path: Path) -> AsyncGenerator[Journal]:
    """The journal, of which one task is stuck, two wait, one works, one is over, one is queued."""
    async with await Journal.open(tmp_path / "journal.db") as journal:
        run = await journal.add_run(source="tasks.yaml", settings="{}", at=BEGIN)
        log = JournalWriter(journal, run.id)
        await add_stuck_task(log)
        await add_held_task(log)
        await add_other_tasks(log)
        yield journal


BEFORE = "# How we work\n\n- Run the checks before each edit.\n- Write a failing case down first.\n"
AFTER = BEFORE.replace("before each edit", "after each edit") + "- Keep amounts as integers.\n"


async def add_rejected_attempt(log: JournalWriter) -> tuple[Attempt, int]:
    """An attempt whose result a person rejected, and the lesson that was drawn from it."""
    attempt = await log.add_attempt(
        await log.add_task("totals", "Totals are rounded half up", "shop"),
        checkpoint(1, 100, 95, "All cases pass."),
    )
    await log.end(attempt, DONE)
    verdict = await log.write(
        attempt, feedback(accepted=False, comment="Discounts come out wrong.", author="ada")
    )
    lesson = Lesson(
        text="Rounded before the discount; the cents of a discount were lost. Round once, last.",
        failure_class="wrong_result",
        insights=("Round once, after the discount.",),
        tags=("rounding",),
        files=("orders/totals.py",),
        steps=(1,),
        verdict=verdict,
        origin=Origin.EXPLICIT,
        sources=(attempt.id,),
    )
    return attempt, await log.write(attempt, lesson)


async def add_facts(log: JournalWriter, attempt: Attempt) -> tuple[int, ...]:
    """Facts: one that another one replaced, one that was reviewed, one that nobody looked at."""
    old = Fact(text="Tests run with [b]nose[/b].", files=("setup.cfg",))
    new = Fact(text="Tests run with python3 -m unittest.", files=("setup.cfg",))
    ids = [await log.write(attempt, fact) for fact in (old, new)]
    await log.write(
        attempt,
        FactMark(
            fact=ids[0],
            act=FactAct.REPLACED,
            instead=ids[1],
            reason="setup.cfg names unittest",
            author="openai:gpt-5",
        ),
        FactMark(fact=ids[1], act=FactAct.REVIEWED, author="openai:gpt-5"),
        FactReview(state=ReviewState.OK, facts=tuple(ids), conflicts=1, model="openai:gpt-5"),
    )
    unseen = Fact(text="Amounts are cents.", tags=("money",), state=FactState.UNREVIEWED)
    return (*ids, await log.write(attempt, unseen))


async def add_informed_attempt(log: JournalWriter, lesson: int, fact: int, version: int) -> Attempt:
    """An attempt that was given all of this, and whose result was kept."""
    attempt = await log.add_attempt(
        await log.add_task("discount", "Discounts for regulars", "shop"),
        Recall(
            lessons=(Recalled(lesson=lesson, method=Method.TAGS, score=0.75),),
            facts=(fact,),
            guidelines=version,
            tokens=240,
        ),
        checkpoint(1, 100, 80, "Good."),
    )
    await log.end(attempt, DONE)
    kept = Feedback(accepted=True, origin=Origin.IMPLIED, author="eve", sign=VerdictBasis.KEPT)
    await log.write(attempt, kept)
    return attempt


@asynccontextmanager
async def shop_journal(folder: Path) -> AsyncGenerator[Journal]:
    """A journal of a project from which something was learned; new guidelines are proposed."""
    async with await Journal.open(folder / "journal.db") as journal:
        run = await journal.add_run(source="tasks.yaml", settings="{}", at=BEGIN)
        log = JournalWriter(journal, run.id)
        attempt, lesson = await add_rejected_attempt(log)
        _, fact, _ = await add_facts(log, attempt)
        first = Guidelines(version=1, text=BEFORE, sources=(attempt.id,))
        version = await log.write(attempt, first)
        await log.write(
            attempt, GuidelinesMark(guidelines=version, act=GuidelinesAct.APPROVED, author="ada")
        )
        other = await add_informed_attempt(log, lesson, fact, version)
        proposed = Guidelines(version=2, text=AFTER, base=version, sources=(attempt.id, other.id))
        await log.write(other, proposed)
        yield journal


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncGenerator[Journal]:
    async with shop_journal(tmp_path) as journal:
        yield journal


@pytest.fixture(scope="module")
async def shop_to_read(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Journal]:
    """The same, for tests that write nothing."""
    async with shop_journal(tmp_path_factory.mktemp("shop")) as journal:
        yield journal


def silent_node(name: str, state: NodeState, busy: int, seconds: int, *labels: str) -> NodeStatus:
    """A node that has been silent for some seconds at the end of the pictures' journals."""
    heard = BEGIN + timedelta(minutes=9, seconds=40 - seconds)
    made = node(name, *labels, state=state, slots=4, busy=busy, began=BEGIN, heard=heard)
    return replace(made, version="0.6.0", revision="0003")


NODES = (
    silent_node("east", NodeState.UP, 2, 1, "gpu"),
    silent_node("north", NodeState.LOST, 1, 95),
    silent_node("west", NodeState.DRAINING, 1, 0, "gpu", "large"),
)


@pytest.fixture
async def three_nodes(tmp_path: Path) -> AsyncGenerator[Journal]:
    """A run of a fleet: one attempt works, one lost its node, one went on elsewhere."""
    async with await Journal.open(tmp_path / "journal.db") as journal:
        run = await journal.add_run(
            source="tasks.yaml", settings="{}", at=BEGIN, supervised_by=SupervisedBy.MONITOR
        )
        log = JournalWriter(journal, run.id)
        said = checkpoint(1, 40, 80, "It goes well.")
        names = ("totals", "east"), ("delivery", "north"), ("labels", "north")
        tasks = [(await log.add_task(name, "", spec="tasks.yaml"), node) for name, node in names]
        *_, moved = [await log.add_attempt(task, said, node=node) for task, node in tasks]
        await log.write(moved, Change(lifecycle=Lifecycle.WORKING), Change(node="west"))
        yield journal


@pytest.fixture
def nodes_now() -> NodesNow:
    """How the nodes of `three_nodes` stand."""

    async def read_nodes() -> tuple[NodeStatus, ...]:
        return NODES

    return read_nodes
