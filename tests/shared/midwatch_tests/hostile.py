"""Text that would steer a terminal or forge a line, in every field that a journal has for text."""

from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import TypeVar, cast

from midwatch_monitor import records as r
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_tests import factories as make
from midwatch_tests.command import write
from midwatch_tests.nodes import node

T = TypeVar("T")

FORGED = "attempt 9, forged#1: completed"
"""What must begin no line, and what shows that the text of others was printed at all."""
_ENDS = "\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029"
HOSTILE = "".join(f"{end}{FORGED}" for end in _ENDS) + (
    "\x1b[2J\x1b]0;title\x07\x9b31m\x90q\x9c\x08\x7f\u202e\u2066\u200f\u061c\u200b\u2060\ufeff\t<b>"
)
"""As any journal keeps it: PostgreSQL takes no NUL."""


def hostile(value: T) -> T:
    """The value with every text in it made hostile, whatever fields there are."""
    return cast("T", _hostile(value))


def _hostile(value: object) -> object:
    if isinstance(value, str) and not isinstance(value, Enum):
        return value + HOSTILE
    if isinstance(value, tuple):
        return tuple(map(_hostile, cast("tuple[object, ...]", value)))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: _hostile(getattr(value, f.name)) for f in fields(value)})
    return value


KEY = r.AlertKey(rule="cycle", subject="a.py")
TERMS = r.Terms(model="big", worker="w", keep=("a",), after="b")
RECORDS: tuple[r.Record, ...] = (
    r.Plan(steps=(r.PlanStep(title="read", files=("a.py",), acceptance=("true",), flag="by eye"),)),
    make.step(
        1, "edit", args="{}", path="a.py", edits=(make.edit(),), ok=False, exit_code=1, output="out"
    ),
    make.reflecting(2, 4, 5, blockers=("no",), files_done=("a",), notes="n"),
    make.message(3, "said"),
    r.Change(model="big", doing="make"),
    r.PlanCheck(
        plan_step=1,
        assumption="a",
        reality="b",
        impact="c",
        options=("o",),
        choice="o",
        proposed=("x",),
        ruling=r.Ruling.PENDING,
        reason="r",
    ),
    r.BudgetRequest(wanted=r.Grant(requests=2), reason="more"),
    r.PermissionRequest(tool="t", what="w", step=1),
    r.Completion(plan_step=1, goal="g", confidence=7, accepted=True, flag="f", doubts=("d",)),
    make.analysis(),
    r.Spending(role="planner", model="m", requests=1),
    make.acceptance(passed=False, detail="no"),
    make.alert(severity=r.Severity.CRITICAL, key=KEY, evidence=(1, 2), step=2),
    r.Fault(part="rule", error="broke"),
    make.summary(turns=3, model="m"),
)
DECISION = make.decision(
    plan=("x",), terms=TERMS, by=r.Actor.SUPERVISOR, author="sup", refused="no", message="Do it."
)
NUDGE = make.intervention(by=r.Actor.SUPERVISOR, author="s", message="Look.", terms=TERMS)


class HostilePast:
    """A journal full of hostile text, and what its records are called."""

    def __init__(self, journal: Journal, *, spec: str) -> None:
        self._spec = spec
        self._journal = journal
        self._at = datetime.now(UTC) - timedelta(hours=1)
        self.ids: dict[str, int] = {}

    async def write(self) -> None:
        """Write two tasks, `done` and `under` way, with all that is recorded of such."""
        over, other = await self._attempt("done"), await self._attempt("under")
        await self._learn(over)
        await self._say(over, make.ended(r.Ending.ERROR))
        await self._say(over, r.TaskTransition(lifecycle=r.Lifecycle.FAILED, passed=0, total=1))
        await self._say(over, r.Feedback(accepted=False, comment="No.", author="ann", diff="d"))
        for attempt in (over, other):
            await self._say(attempt, *RECORDS)
            await self._escalate(attempt)
        held = replace(NUDGE, needs_approval=True)
        self.ids["held"] = await self._say(other, held)
        self.ids["held2"] = await self._say(other, held)
        lost = hostile(node("node", "gpu", state=r.NodeState.LOST, began=self._at))
        await Nodes(self._journal).enter(lost, alive_seconds=1)

    async def _attempt(self, name: str) -> r.Attempt:
        supervised_by = r.SupervisedBy.MONITOR if name == "under" else r.SupervisedBy.PROCESS
        run = await self._journal.add_run(
            source=hostile("t.yaml"), settings="{}", at=self._at, supervised_by=supervised_by
        )
        task = await self._journal.add_task(
            run=run.id,
            name=hostile(name),
            title=hostile("A title"),
            spec=self._spec,
            project=hostile("shop"),
            at=self._at,
        )
        texts = {"worker": "coder", "model": "m", "node": "node", "workspace": "/w"}
        made = await self._journal.add_attempt(
            task=task.id,
            number=1,
            at=self._at,
            **{key: hostile(text) for key, text in texts.items()},
        )
        await self._say(made, make.transition(reason="begun"))
        return made

    async def _escalate(self, attempt: r.Attempt) -> None:
        await self._journal.open_escalation(
            attempt=attempt.id,
            task=attempt.task,
            alerts=(hostile(KEY),),
            reason=hostile("stuck"),
            at=self._at,
        )
        id = await self._say(attempt, DECISION, NUDGE)
        delivered = make.delivery(id, step=2, author="a", comment="c")
        await self._say(attempt, delivered, make.outcome(id, r.Outcome.NO_EFFECT))

    async def _learn(self, attempt: r.Attempt) -> None:
        say, ids = self._say, self.ids
        ids["lesson"] = await say(
            attempt,
            r.Lesson(text="Look.", insights=("i",), tags=("t",), kind="k", files=("f",), model="m"),
        )
        ids["fact"] = await say(
            attempt, r.Fact(text="A port.", files=("f",), tags=("t",), value="v", sources=(1,))
        )
        ids["gone"] = await say(attempt, r.Fact(text="Another."))
        retired = r.FactMark(fact=ids["gone"], act=r.FactAct.RETIRED, reason="no", author="ann")
        await say(attempt, retired)
        recalled = (r.Recalled(lesson=ids["lesson"], method=r.Method.TAGS),)
        await say(attempt, r.Recall(lessons=recalled, facts=(ids["fact"],)))
        await say(
            attempt,
            r.Study(
                about=ids["lesson"], chore=r.Chore.LESSON, state=r.StudyState.REFUSED, reason="r"
            ),
        )
        ids["guidelines"] = await say(attempt, r.Guidelines(version=1, text="## Do", model="m"))

    async def _say(self, attempt: r.Attempt, *records: r.Record) -> int:
        self._at += timedelta(seconds=1)
        return await write(self._journal, attempt, self._at, *map(hostile, records))
