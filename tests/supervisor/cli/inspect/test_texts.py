"""What the reading commands print of one journal, for people and for programs.

It stands in `texts.txt` beside this file; `MIDWATCH_UPDATE=1` writes it anew.
"""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.config.tasks import TaskSpec
from midwatch_tests import factories as make
from midwatch_tests.command import assignment, printed
from midwatch_tests.harness import PastAttempts

TEXTS = Path(__file__).with_name("texts.txt")
COMMANDS = (
    *("status --all", "show totals", "show chart", "show busy"),
    *("report", "report lessons", "feedback list", "lessons list", "lessons show {lesson}"),
    *("facts list --all", "facts show {fact}", "facts show {gone}"),
    *("guidelines list", "guidelines show", "guidelines diff"),
)

BOTH = [(each, json) for each in COMMANDS for json in ("", " --json")]
CALIBRATED = ("calibration", "calibration --json", "show task-19")
HERE_AND_NOW = {r"\S+journal\.db": "JOURNAL", r", as of .*": "", r"2026-11-2\d \d\d:\d\d": "TIME"}


READ = r.PlanStep(
    title="read", state=r.PlanStepState.DONE, confidence=40, requests=12, flag="by eye"
)
MOOT = r.PlanCheck(
    plan_step=2,
    assumption="a module",
    reality="none",
    impact="",
    proposed=("x",),
    ruling=r.Ruling.PENDING,
)
SWITCH = make.decision(
    r.Action.SWITCH_MODEL,
    by=r.Actor.SUPERVISOR,
    author="m",
    diagnosis=r.Diagnosis.PROVIDER,
    rationale="It times out.",
    terms=r.Terms(model="big"),
    refused="no such model",
)


async def make_failed_attempt(past: PastAttempts) -> r.Attempt:
    """An attempt of which all can be told that is done about one that goes wrong."""
    task = TaskSpec(id="totals", goal="Round the\ntotals.", acceptance=("pytest",))
    attempt = await past.attempt(task=assignment().model_copy(update={"task": task}))
    circling = make.alert(subject="a.py", summary="round and round", evidence=(3, 5))
    done = r.Completion(plan_step=1, goal="it reads", confidence=75, accepted=True, flag="by eye")
    why = r.Analysis(what="", cause=r.Cause.PERMANENT, root="no ES6", remedy="require()", about=7)
    more = r.BudgetRequest(wanted=r.Grant(requests=20), reason="two files left")
    plan = r.Plan(steps=(READ, r.PlanStep(title="round")))
    asked = await past.say(attempt, make.transition(), plan, circling, MOOT, done, why, more)
    gone = replace(circling, state=r.AlertState.RESOLVED, resolution=r.Resolution.CLEARED)
    await past.journal.open_escalation(
        attempt=attempt.id,
        task=attempt.task,
        alerts=(circling.key,),
        reason="it circles",
        at=past.at,
    )
    by: dict[str, Any] = {"by": r.Actor.SUPERVISOR, "author": "m"}
    nudge = make.decision(rationale="The same edit again.", steps=(3, 5), **by)
    grant = make.intervention(
        r.Action.GRANT_BUDGET, terms=r.Terms(grant=r.Grant(requests=5)), petition=asked
    )
    told = make.intervention(message="Look\nup.", answers=(circling.key,), **by)
    id = await past.say(attempt, SWITCH, nudge, grant, told)
    await past.say(
        attempt,
        make.delivery(id, step=9),
        gone,
        make.outcome(id, reason="it moved"),
        r.Fault(part="silence", error="ValueError: x"),
        make.acceptance(check="pytest", passed=False, detail="1 failed"),
        make.step(17, "run", args="pytest", ok=False, exit_code=1),
        r.Spending(role="planner", model="m", requests=1, tokens=900),
        make.ended(r.Ending.UNACCEPTED, reason="no"),
    )
    over = make.task_transition(r.Lifecycle.FAILED, reason="no", passed=0, total=1)
    await past.say(attempt, over)
    return attempt


async def make_learned_records(past: PastAttempts, by: r.Attempt) -> dict[str, int]:
    """What was learned of an attempt; the ids."""
    no = r.Feedback(accepted=False, comment="still rounds down", author="ada", diff="-a\n+b\n")
    verdict = await past.say(by, no)
    lesson = r.Lesson(
        text="It edited src/cart.py only.\nThe rounding is in src/money.py: change it there.",
        failure_class="wrong_location",
        insights=("Change src/money.py.",),
        tags=("python",),
        kind="coder",
        files=("src/money.py",),
        steps=(3, 5),
        verdict=verdict,
        origin=r.Origin.EXPLICIT,
        sources=(by.id,),
    )
    fact = r.Fact(
        text="The tests need Redis",
        certainty=r.Certainty.CONFIRMED,
        files=("tests/conftest.py",),
        tags=("db",),
        value='{"port": 6379}',
        state=r.FactState.REVIEWED,
    )
    ids = {"lesson": await past.say(by, lesson), "fact": await past.say(by, fact)}
    ids["gone"] = await past.say(by, r.Fact(text="The tests need Postgres"))
    await past.say(
        by,
        r.LessonMark(lesson=ids["lesson"], act=r.LessonAct.RATED, rating=4, comment="good"),
        r.FactMark(fact=ids["gone"], act=r.FactAct.REPLACED, instead=ids["fact"], reason="newer"),
        r.FactReview(state=r.ReviewState.OK, facts=(1,), modified=1),
        r.Spending(role="reflector", model="m", requests=1, tokens=90, cost_usd=0.01),
        r.Study(
            about=verdict, chore=r.Chore.LESSON, state=r.StudyState.REFUSED, reason="too vague"
        ),
    )
    text = "## Working style\n\n- Run the failing test first.\n- {}"
    first = r.Guidelines(version=1, text=text.format("Ask."), sources=(by.id,), model="m")
    ids["guidelines"] = await past.say(by, first)
    live = r.GuidelinesMark(
        guidelines=ids["guidelines"], act=r.GuidelinesAct.APPROVED, author="Ada", comment="Good."
    )
    second = r.Guidelines(
        version=2, text=text.format("Look at it all."), base=ids["guidelines"], model="m"
    )
    await past.say(by, live, second, r.Reflection(watermark=1, proposed=True))
    return ids


async def make_compared_attempts(past: PastAttempts, ids: dict[str, int]) -> None:
    """Attempts that were given a lesson or not, of which one was nudged, and which are done."""
    for task, group in (("chart", r.Group.TREATMENT), ("sums", r.Group.CONTROL)):
        attempt = await past.attempt(task=task)
        used = make.change(budget=r.Budget(tokens=r.Meter(used=500)))
        recalled = r.Recalled(lesson=ids["lesson"], method=r.Method.TAGS, score=0.25)
        given = r.Recall(
            lessons=(recalled,),
            facts=(ids["fact"],),
            guidelines=ids["guidelines"],
            group=group,
            tokens=99,
            seconds=0.01,
        )
        steps = [make.step(number, "look", request=number) for number in range(1, 5)]
        alert = make.alert(step=4, evidence=(2, 3, 4))
        await past.say(attempt, given, make.transition(), used, *steps, alert)
        id = await past.say(attempt, make.intervention(answers=(alert.key,)))
        await past.say(
            attempt,
            make.delivery(id, step=4),
            replace(alert, state=r.AlertState.RESOLVED, resolution=r.Resolution.CLEARED),
            make.outcome(id),
            replace(make.reflecting(5, 90, 80), request=5),
            make.ended(reason="it passes"),
            make.task_transition(r.Lifecycle.COMPLETED, passed=1, total=1),
            make.summary(turns=4, model="m"),
        )


async def at_work(past: PastAttempts) -> None:
    """An attempt that is under way."""
    await past.say(
        await past.attempt(task="busy"),
        make.transition(),
        make.plan("a", "b", done=1),
        make.change(budget=r.Budget(requests=r.Meter(used=3, limit=60))),
        make.message(1),
        make.reflecting(2),
        make.message(3),
        make.alert(),
    )


async def overconfident(past: PastAttempts) -> None:
    """Ten attempts at 60 of which two succeed, ten at 90 of which eight do."""
    for number in range(20):
        confidence, good = ((60, 2), (90, 8))[number % 2]
        attempt = await past.attempt(task=f"task-{number}")
        await past.say(attempt, make.reflecting(1, 40, confidence))
        await past.end(attempt, r.Ending.DONE if number // 2 < good else r.Ending.STUCK)


async def printed_text(capsys: pytest.CaptureFixture[str], command: str) -> str:
    """What a command prints, without what is of this moment and of this machine."""
    out = await printed(capsys, *command.split())
    for part, name in HERE_AND_NOW.items():
        out = re.sub(part, name, out)
    return f"$ midwatch {command}\n{out}"


@pytest.mark.usefixtures("named_by_the_environment")
async def test_each_reading_command_prints_what_the_golden_file_says(
    past: PastAttempts, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    ids = await make_learned_records(past, await make_failed_attempt(past))
    await make_compared_attempts(past, ids)
    await at_work(past)
    blocks = [await printed_text(capsys, f"{each}{json}".format(**ids)) for each, json in BOTH]
    await overconfident(past)
    blocks += [await printed_text(capsys, each) for each in CALIBRATED]
    found = "\n".join(blocks)
    if os.environ.get("MIDWATCH_UPDATE"):
        TEXTS.write_text(found, encoding="utf-8")
    assert found == TEXTS.read_text(encoding="utf-8")
