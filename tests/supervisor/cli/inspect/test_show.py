"""`midwatch show` over a real journal: what happened, what was learned, and its lookup."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.config.tasks import TaskSpec, WorkerSpec
from midwatch_monitor.journal import Journal
from midwatch_stage import factories as make
from midwatch_stage.command import ask, new_attempt, new_task, printed, read, refused, write
from midwatch_stage.harness import PastAttempts
from midwatch_supervisor.present.assignment import Assignment

pytestmark = pytest.mark.usefixtures("named_by_the_environment")

Capture = pytest.CaptureFixture[str]
Write = Callable[..., Awaitable[int]]


async def task_of(journal: Journal) -> r.Task:
    wanted = TaskSpec(id="totals", goal="Round the\ntotals.", acceptance=("pytest",))
    spec = Assignment(task=wanted, worker="w", spec=WorkerSpec(), models={}, workspace=None)
    return await new_task(journal, "totals", title="Totals", spec=spec.model_dump_json())


async def eventful(journal: Journal) -> None:
    """An attempt with everything in it; its entries are numbered from 3."""
    attempt = await new_attempt(journal, await task_of(journal))
    key = r.AlertKey(rule="cycle", subject="a.py")
    circling = make.alert(
        "cycle",
        state=r.AlertState.RESOLVED,
        subject="a.py",
        summary="round and round",
        evidence=(3, 5),
        resolution=r.Resolution.CLEARED,
    )
    read = r.PlanStep(
        title="read", state=r.PlanStepState.DONE, confidence=40, requests=12, flag="by eye"
    )
    moot = r.PlanCheck(
        plan_step=2,
        assumption="a module",
        reality="none",
        impact="",
        proposed=("x",),
        ruling=r.Ruling.PENDING,
    )
    done = r.Completion(plan_step=1, goal="it reads", confidence=75, accepted=True, flag="by eye")
    why = r.Analysis(what="", cause=r.Cause.PERMANENT, root="no ES6", remedy="require()", about=7)
    more = r.BudgetRequest(wanted=r.Grant(requests=20), reason="two files left")
    plan = r.Plan(steps=(read, r.PlanStep(title="round")))
    asked = await write(journal, attempt, make.AT, plan, circling, moot, done, why, more)
    await journal.open_escalation(
        attempt=attempt.id, task=attempt.task, alerts=(key,), reason="it circles", at=make.AT
    )
    by: dict[str, Any] = {"by": r.Actor.SUPERVISOR, "author": "m"}
    switch = make.decision(
        r.Action.SWITCH_MODEL,
        diagnosis=r.Diagnosis.PROVIDER,
        rationale="It times out.",
        terms=r.Terms(model="big"),
        refused="no such model",
        **by,
    )
    nudge = make.decision(rationale="The same edit again.", steps=(3, 5), **by)
    grant = make.intervention(
        r.Action.GRANT_BUDGET, terms=r.Terms(grant=r.Grant(requests=5)), petition=asked
    )
    told = make.intervention(message="Look\nup.", **by)
    id = await write(journal, attempt, make.AT, switch, nudge, grant, told)
    await write(
        journal,
        attempt,
        make.AT,
        make.delivery(id, step=9),
        make.outcome(id, reason="it moved"),
        r.Fault(part="silence", error="ValueError: x"),
        make.acceptance(check="pytest", passed=False, detail="1 failed"),
        make.step(17, "run", args="pytest", ok=False, exit_code=1),
        r.Spending(role="planner", model="m", requests=1, tokens=900),
        make.ended(r.Ending.UNACCEPTED, reason="no"),
    )


async def test_a_task_is_shown_with_all_that_happened(journal: Journal, capsys: Capture) -> None:
    await eventful(journal)
    assert await read(capsys, "show", "totals") == [
        "task totals (run 1): Totals",
        "status: submitted",
        "goal:",
        "  Round the",
        "  totals.",
        "used apart from the workers:",
        "  planner (m): 1 request, 900 tokens",
        "",
        "attempt 1, totals#1: failed (unaccepted): no",
        "  health ok, last step 17",
        "  coder with m on here, in /w",
        "  used: 0 requests, 0 tokens, 0 min",
        "  plan:",
        "    [x] 1. read (confidence 40 %; 12 requests; flag: by eye)",
        "    [ ] 2. round",
        "  plan checks:",
        "    5 plan step 2, pending: a module → none; proposes: x",
        "  completions:",
        "    accepted with a flag, plan step 1 at 75 %: it reads; flag: by eye",
        "  analyses:",
        "    (permanent, step 7): no ES6 → require()",
        "  budget requests:",
        "    8 20 requests (granted 5 requests): two files left",
        "  acceptance:",
        "    FAILED pytest: 1 failed",
        "  alerts:",
        "    resolved warning cycle (a.py): round and round (steps 3, 5)",
        "  decisions:",
        "    escalation 1 open: cycle: it circles",
        "      REFUSED: switch_model (model big) by m: no such model",
        "      nudge by m: wrong approach (steps 3, 5): The same edit again.",
        "  interventions:",
        "    12 grant_budget (5 requests) by policy: issued",
        "    13 nudge by m (supervisor): delivered, recovered: it moved",
        "      Look",
        "      up.",
        "  faults of the watch:",
        "    the rule silence failed and is off: ValueError: x",
        "  last steps:",
        "    step 17, run: FAILED (exit code 1): pytest",
    ]


async def test_as_json_it_is_the_lines_of_the_run(journal: Journal, capsys: Capture) -> None:
    await eventful(journal)
    lines = await ask(capsys, "show", "totals")
    assert [line["type"] for line in lines] == [
        *("task", "attempt", "alert", "escalation", "decision", "decision", "intervention"),
        *("intervention", "intervention", "intervention", "fault", "step", "attempt"),
    ]
    assert {line["task"] for line in lines} == {"totals"}


@pytest.mark.parametrize(
    ("records", "lines"),
    [
        ((r.Change(model="big"),), ["  coder with big (before: m) on here, in /w"]),
        (
            (make.transition(r.Lifecycle.FAILED, reason="in two", ending=r.Ending.SPLIT),),
            [
                "waits for: the tasks that it was split into",
                "attempt 1, fix#1: split: in two",
                "  health ok, last step 0",
            ],
        ),
    ],
)
async def test_an_attempt_that_was_switched_or_split_says_so(
    write: Write, capsys: Capture, records: tuple[r.Record, ...], lines: list[str]
) -> None:
    await write(r.Plan(steps=(r.PlanStep(title="fix it"),)), *records)
    shown = await read(capsys, "show", "fix")
    assert [each for each in lines if each not in shown] == []
    assert "  plan:" not in shown  # the task alone is none


async def test_an_attempt_without_a_folder_and_one_that_shows_the_use_of_its_task(
    journal: Journal, capsys: Capture
) -> None:
    task = await task_of(journal)
    for number in (1, 2):
        await new_attempt(journal, task, number, workspace="")
    lines = await read(capsys, "show", "totals")
    used = [line.partition(":")[0] for line in lines if line.startswith("  used")]
    assert used == ["  used", "  used of the task's budget"]
    assert "  coder with m on here" in lines


async def test_the_outcome_of_a_restart_stands_with_the_restart(
    journal: Journal, capsys: Capture
) -> None:
    task = await task_of(journal)
    first, second = [await new_attempt(journal, task, number) for number in (1, 2)]
    id = await write(journal, first, make.AT, make.intervention(r.Action.RESTART))
    await write(journal, second, make.AT, make.outcome(id, r.Outcome.NO_EFFECT, reason=""))
    lines = await read(capsys, "show", "totals#1")
    assert f"    {id} restart by policy: issued, no effect" in lines


@pytest.mark.parametrize(
    ("state", "author", "comment", "said"),
    [
        (r.DeliveryState.REJECTED, "Ann", "Keep it", "rejected by Ann: Keep it"),
        (
            *(r.DeliveryState.APPROVED, "policy", "nobody answered within 5 minutes"),
            "approved by policy: nobody answered within 5 minutes; delivered",
        ),
    ],
)
async def test_who_approved_or_rejected_an_intervention_and_why_stands_with_it(
    write: Write, capsys: Capture, state: r.DeliveryState, author: str, comment: str, said: str
) -> None:
    id = await write(make.intervention(r.Action.RESTART, needs_approval=True))
    await write(make.delivery(id, state, author=author, comment=comment))
    if state is r.DeliveryState.APPROVED:
        await write(make.delivery(id))
    assert f"    {id} restart by policy: {said}" in await read(capsys, "show", "fix")
    *_, shown = [line for line in await ask(capsys, "show", "fix") if "outcome" in line]
    assert (shown["settled_by"], shown["comment"]) == (author, comment)


@pytest.fixture
async def two_runs(journal: Journal) -> None:
    """Tasks of like names: `totals` in both runs, `labels` in the first only."""
    first = await task_of(journal)
    labels = await new_task(journal, "labels", run=first.run)
    second = await task_of(journal)
    for name in ("total", "1"):
        await new_task(journal, name, run=second.run)
    for task, number in ((first, 1), (first, 2), (labels, 1), (second, 1), (second, 2)):
        await new_attempt(journal, task, number)
    nudges = [make.intervention()] * 9
    asked = make.escalation(70, attempt=2)
    await write(journal, await journal.attempt(2), make.AT, *nudges, asked)


@pytest.mark.parametrize(
    ("id", "task", "attempts"),
    [
        ("totals", "task totals (run 2): Totals", ["attempt 4, totals#1", "attempt 5, totals#2"]),
        ("lab", "task labels (run 1)", ["attempt 3, labels#1"]),
        ("total", "task total (run 2)", []),
        ("1", "task 1 (run 2)", []),  # a name wins over an attempt
        ("2", "task totals (run 1): Totals", ["attempt 2, totals#2"]),
        ("totals#2", "task totals (run 2): Totals", ["attempt 5, totals#2"]),
        ("lab#1", "task labels (run 1)", ["attempt 3, labels#1"]),
        ("15", "task totals (run 1): Totals", ["attempt 2, totals#2"]),  # an intervention
        ("70", "task totals (run 1): Totals", ["attempt 2, totals#2"]),  # an escalation
    ],
)
@pytest.mark.usefixtures("two_runs")
async def test_a_task_an_attempt_and_what_is_about_it_are_named_by_id_name_or_beginning(
    capsys: Capture, id: str, task: str, attempts: list[str]
) -> None:
    head, *lines = await read(capsys, "show", id)
    shown = [line.partition(":")[0] for line in lines if line.startswith("attempt ")]
    assert (head, shown) == (task, attempts)


@pytest.mark.parametrize(
    ("id", "said"),
    [
        ("x", "there is no task or attempt `x`; the tasks are: totals, total, 1, labels\n"),
        ("71", "there is no task or attempt `71`; the tasks are: totals, total, 1, labels\n"),
        ("tot", "`tot` could mean any of totals, total\n"),
        ("totals#7", "there is no attempt totals#7; known: totals#1, totals#2\n"),
        ("total#1", "there is no attempt total#1; known: none yet\n"),
    ],
)
@pytest.mark.usefixtures("two_runs")
async def test_what_is_not_there_is_bad_usage(capsys: Capture, id: str, said: str) -> None:
    assert await refused(capsys, "show", id) == said


CENT = r.Lesson(
    text="Round the price, not the sum.", failure_class="loop", origin=r.Origin.EXPLICIT
)


@pytest.fixture
async def taught(past: PastAttempts) -> r.Attempt:
    """An attempt that was given something, ended, and was learned from."""
    before = await past.attempt(task="before")
    lesson = await past.say(before, CENT)
    fact = await past.say(before, r.Fact(text="The port of the tests is 8765."))
    version = await past.say(before, r.Guidelines(version=1, text="Run the tests."))
    attempt = await past.attempt(task="totals")
    given = r.Recall(
        lessons=(r.Recalled(lesson=lesson, method=r.Method.TAGS, score=0.25),),
        facts=(fact,),
        guidelines=version,
        group=r.Group.TREATMENT,
        tokens=99,
        seconds=0.01,
    )
    await past.say(attempt, given)
    end = await past.end(attempt, r.Ending.DONE)
    summary = r.Summary(text="It went well.", topics=("a", "b", "c"), turns=4)
    await past.say(attempt, summary)
    verdict = await past.say(attempt, r.Feedback(accepted=False, comment="No.", author="ann"))
    refused = r.StudyState.REFUSED
    await past.say(
        attempt,
        r.Study(about=verdict, chore=r.Chore.LESSON, state=refused, reason="too vague"),
        r.Study(about=end, chore=r.Chore.SUMMARY, state=r.StudyState.DONE),
    )
    return attempt


async def test_the_lines_tell_what_was_given_by_id_and_in_words_and_what_came_of_it(
    taught: r.Attempt, capsys: Capture
) -> None:
    lines = {line["type"]: line for line in await ask(capsys, "show", "totals")}
    recall, summary, verdict = lines["recall"], lines["summary"], lines["feedback"]
    assert (recall["attempt"], recall["number"], recall["group"]) == (taught.id, 1, "treatment")
    assert recall["lessons"] == [
        {
            "id": 3,
            "method": "tags",
            "score": 0.25,
            "text": CENT.text,
            "failure_class": "loop",
            "origin": "explicit",
            "source_attempt": 1,
        }
    ]
    assert recall["facts"] == [{"id": 4, "text": "The port of the tests is 8765."}]
    assert recall["guidelines"] == {"id": 5, "version": 1}
    assert (summary["text"], summary["turns"]) == ("It went well.", 4)
    assert (verdict["accepted"], verdict["origin"], verdict["author"]) == (False, "explicit", "ann")
    study = lines["study"]
    assert (study["about"], study["reason"]) == (verdict["id"], "too vague")
    source = {line["type"]: line for line in await ask(capsys, "show", "before")}
    told = source["lesson"]["text"], source["fact"]["certainty"]
    assert told == (CENT.text, "inferred")


async def test_people_are_told_the_same_in_short(
    past: PastAttempts, taught: r.Attempt, capsys: Capture
) -> None:
    output = await printed(capsys, "show", "totals")
    assert (
        "  lessons and facts it was given:\n"
        "    given:\n"
        "    1 lesson, 1 fact, guidelines v1, 99 tokens\n"
        "    lessons:\n"
        "    - 3 (found by tags, fits 25 %) Round the price, not the sum.\n"
        "    facts:\n"
        "    - 4 The port of the tests is 8765.\n"
        "    guidelines:\n"
        "    Run the tests.\n"
        "    group:\n"
        "    treatment\n"
        "    found in:\n"
        "    0.010 seconds\n"
        "  verdicts and lessons:\n"
        "    summary: It went well.\n"
        "    verdict: result rejected by ann: No.\n"
    ) in output
    assert "    learning: no lesson: too vague" in output
    await past.attempt(task="bare")
    assert "learned" not in await printed(capsys, "show", "bare")
