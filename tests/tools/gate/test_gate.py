"""What a worker has to say before a call may run."""

from typing import Any

import pytest

from midwatch_monitor import records as r
from midwatch_monitor.config.settings import ErrorSettings, PlanSettings
from midwatch_monitor.rules.identity import HELD_BACK
from midwatch_tests.factories import analysis, delivery, entries, intervention, step
from midwatch_tools.gate.gate import ALLOWED, Gate, LastFailure, Permission, backoff
from midwatch_tools.tools.proof import Statements

NOTHING = Statements()
PERMANENT, TRANSIENT, UNKNOWN = r.Cause.PERMANENT, r.Cause.TRANSIENT, r.Cause.UNKNOWN
SAME = "E   KeyError: 'a'"
Records = r.Record | tuple[r.Record, ...]


def run(request: int, command: str = "pytest -q", output: str = SAME, **fields: Any) -> r.Step:
    """A command that fails."""
    args = f'{{"command": "{command}"}}'
    given = {"request": request, "args": args, "output": output, "ok": False, "exit_code": 1}
    return step(request, "run_command", **{**given, **fields})


def passing_run(request: int, command: str = "pytest -q") -> r.Step:
    return run(request, command, "", ok=True, exit_code=0)


def edit(request: int, *, writer: r.Writer = r.Writer.WORKER) -> r.Step:
    edits = (r.Edit(path="a.py", digest=f"{request}", writer=writer),)
    args = f'{{"path": "a.py", "content": "{request}"}}'
    return step(request, "write_file", request=request, args=args, path="a.py", edits=edits)


def silent_failure(request: int) -> r.Step:
    return run(request, "./deploy", "", exit_code=2)


def failed_edit(request: int, old: str) -> r.Step:
    """An edit that fails, as it does not name what is there."""
    args = f'{{"old": "{old}", "path": "a.py"}}'
    told = {"args": args, "path": "a.py", "ok": False, "output": "not found"}
    return step(request, "edit_file", request=request, **told)


def report(
    request: int, cause: r.Cause = PERMANENT, *, by: r.AnalysisAuthor = r.AnalysisAuthor.WORKER
) -> tuple[r.Record, ...]:
    return step(request, "report_error", request=request), analysis(cause=cause, by=by)


def guidance(by: r.Actor) -> tuple[r.Record, ...]:
    # In these timelines it is the fourth entry: a failure and an analysis come before.
    return intervention(r.Action.NUDGE, by), delivery(4)


def gate(
    *records: Records,
    attempt: int = 1,
    errors: ErrorSettings | None = None,
    plan: PlanSettings | None = None,
    sees_files: bool = True,
) -> Gate:
    settings = (errors or ErrorSettings(), plan or PlanSettings())
    made = Gate(*settings, attempt=attempt, sees_files=sees_files)
    flat = [each for one in records for each in (one if isinstance(one, tuple) else (one,))]
    for each in entries(*flat):
        made.observe(each)
    return made


def repeated_failures(times: int, *, last: str = SAME, varied: bool = False) -> list[r.Record]:
    """So many failures, an edit after each; `varied` are in other words each time."""
    steps: list[r.Record] = []
    for n in range(times):
        command = f"python3 fail.py arg{n}" if varied else "pytest -q"
        output = last if n == times - 1 else SAME
        steps += [run(2 * n + 1, command, output), edit(2 * n + 2)]
    return steps


def varied_failures(times: int) -> list[r.Record]:
    return repeated_failures(times, varied=True)


def transient_failures(tries: int) -> list[Records]:
    return [run(1), report(2, TRANSIENT), *(run(3 + n) for n in range(tries))]


def finished_plan_step(
    request: int, plan_step: int = 2, *, revision: int = 0
) -> tuple[r.Record, ...]:
    completed = step(request, "complete_step", request=request)
    return completed, r.Change(plan_step=plan_step, plan_steps=3, revision=revision)


LOOKED = step(4, "read_file", request=4, args="{}")
FAILED = gate(run(1))
LASTING = (run(1), report(2))
BEGUN = r.Change(plan_step=1, plan_steps=3, revision=0)
CHECK = r.PlanCheck(plan_step=2, assumption="a", reality="r", impact="i")
ONE_TRY = ErrorSettings(unknown=UNKNOWN)
TRIED = [run(1), report(2, UNKNOWN), run(3)]
ANALYSE_NOTHING = ErrorSettings(require_analysis=False)
MANY = gate(*(run(n, f"make {n}") for n in range(1, 400)))
NEWS = (run(8, "make test", "TypeError: b"), edit(9))
CHANGING = "sed -i s/a/b/ x.py"
OWN_TOOL = step(2, "update_document", request=2)
WORD = "nothing was edited since. Call `report_error`"
AGAIN = "again, after your analysis"
LASTS = "failed (E   KeyError: 'a'); by your analysis the cause is permanent"


RUNS: dict[str, tuple[Gate, r.Step]] = {
    "never done": (gate(), run(1)),
    "it succeeded": (gate(passing_run(1)), run(2)),
    "another act": (FAILED, run(2, "ls")),
    "an edit between": (gate(run(1), edit(2)), run(3)),
    "it succeeded since": (gate(run(1), passing_run(2)), run(3)),
    "failed in the same turn": (FAILED, run(1)),
    "a search that found nothing": (gate(run(1, "grep x a.py", "")), run(2, "grep x a.py")),
    "waiting": (gate(run(1, "sleep 5")), run(2, "sleep 5")),
    "a refused call never ran": (gate(run(1, output=f"{HELD_BACK}no")), run(2)),
    "an edit in other words": (gate(failed_edit(1, "  x")), failed_edit(2, "    x")),
    "permanent, and an edit since": (gate(*LASTING, edit(4)), run(5)),
    "permanent, and a person's edit": (gate(*LASTING, edit(4, writer=r.Writer.PERSON)), run(5)),
    "permanent, and an install": (gate(*LASTING, passing_run(4, "pip install x")), run(5)),
    "permanent, and an operator's word": (gate(*LASTING, guidance(r.Actor.OPERATOR)), run(5)),
    "unknown has one more try": (gate(run(1), report(2, UNKNOWN), errors=ONE_TRY), run(3)),
    "two equal failures": (gate(*repeated_failures(2)), run(9)),
    "a failure that moves": (gate(*repeated_failures(3, last="E   TypeError: b")), run(9)),
    "equal failures, analysed": (gate(*repeated_failures(3), report(7)), run(8)),
    "equal failures are left out": (
        gate(*repeated_failures(5), errors=ErrorSettings(equal_failures=0)),
        run(20),
    ),
    "forgotten": (MANY, run(500, "make 1")),
    "no analysis is required": (gate(run(1), attempt=2, errors=ANALYSE_NOTHING), run(2)),
    "a later attempt, analysed": (gate(report(1, UNKNOWN), attempt=2), LOOKED),
    **{
        f"Midwatch's own {tool}": (gate(attempt=3), step(1, tool, request=1))
        for tool in ("reflect", "report_error", "check_plan", "request_budget")
    },
    "two by other commands": (gate(*varied_failures(2)), run(9)),
    "reading": (gate(*varied_failures(4)), step(9, "read_file", request=9)),
    "editing": (gate(*varied_failures(4)), edit(9)),
    "reading by command": (gate(*varied_failures(4)), run(9, "cat fail.py")),
    "installing": (gate(*varied_failures(4)), run(9, "pip install x")),
    "editing by command": (gate(*varied_failures(4)), run(9, "sed -i s/1/2/ fail.py")),
    "other commands, analysed": (gate(*varied_failures(3), report(7)), run(8)),
    "a new command after another failure": (gate(*varied_failures(3), *NEWS), run(10)),
    "silent failures are not equal": (
        gate(*(run(n, f"python3 quiet.py {n}", "[exit code: 1]") for n in range(1, 5))),
        run(9, "python3 quiet.py 9"),
    ),
    "unseen, what may be an edit": (
        gate(run(1), passing_run(2, CHANGING), sees_files=False),
        run(3),
    ),
    "unseen, the agent's own tool": (gate(run(1), OWN_TOOL, sees_files=False), run(3)),
}


@pytest.mark.parametrize(("state", "now"), RUNS.values(), ids=RUNS)
def test_a_call_runs(state: Gate, now: r.Step) -> None:
    assert state.may(now, NOTHING) == ALLOWED


REFUSED: dict[str, tuple[Gate, r.Step, str]] = {
    **{
        f"done again: {same}": (FAILED, run(2, same), "`pytest -q` failed (E   KeyError: 'a'), and")
        for same in ("pytest -q", "pytest  -q", "pytest -q  # again")
    },
    "it asks for an analysis": (FAILED, run(2), "nothing was edited since. Call `report_error`"),
    "silent": (
        gate(silent_failure(1)),
        silent_failure(2),
        "`./deploy` failed, and nothing was edited",
    ),
    "a person's edit": (gate(run(1), edit(2, writer=r.Writer.PERSON)), run(3), WORD),
    "its own edit": (gate(run(1, edits=(r.Edit(path="log", digest="1"),))), run(2), WORD),
    "the same edit": (gate(failed_edit(1, "  x")), failed_edit(2, "  x"), WORD),
    "analysed before": (gate(report(1, TRANSIENT), run(2)), run(3), WORD),
    "watch spoke": (gate(run(1), report(2, TRANSIENT, by=r.AnalysisAuthor.WATCH)), run(3), WORD),
    "transient, tried": (gate(*transient_failures(3)), run(9), "waiting did not help"),
    "permanent": (gate(*LASTING), run(5), LASTS),
    "permanent, and a look": (gate(*LASTING, LOOKED), run(5), LASTS),
    "permanent, and a look by a command": (
        gate(*LASTING, passing_run(4, "cd src && cat a.py | head -5; git diff")),
        run(5),
        LASTS,
    ),
    "permanent, and another failure": (gate(*LASTING, run(4, "make", "E  other")), run(5), LASTS),
    "permanent, and the policy's word": (gate(*LASTING, guidance(r.Actor.POLICY)), run(5), LASTS),
    "permanent, and again": (
        gate(*LASTING, passing_run(3, "pip install x"), run(4)),
        run(5),
        AGAIN,
    ),
    "unknown": (gate(run(1), report(2, UNKNOWN)), run(3), "is unknown, which counts as permanent"),
    "unknown, tried": (gate(*TRIED, errors=ONE_TRY), run(4), AGAIN),
    "unknown, tried once": (
        gate(*TRIED, report(4, UNKNOWN), errors=ONE_TRY),
        run(5),
        "counts as permanent",
    ),
    "equal": (gate(*repeated_failures(3)), run(9), "3 times in the same way"),
    "the fourth equal": (gate(*repeated_failures(3), report(7), run(8), edit(9)), run(10), AGAIN),
    "remembered": (MANY, run(500, "make 399"), WORD),
    "a later attempt": (gate(attempt=2), LOOKED, "this is attempt 2. Before any work, call `repo"),
    **{
        f"equal by other commands: {other}": (
            gate(*varied_failures(3)),
            run(9, other),
            "the same failure came 3 times, by whatever command: E   KeyError",
        )
        for other in ("python3 fail.py arg9", "python3 fail.py arg0", "pytest -q")
    },
    "the fourth by other commands": (
        gate(*varied_failures(3), report(7), run(8), edit(9)),
        run(10, "pytest -x"),
        "came 4 times",
    ),
    "one of those that failed so": (
        gate(*varied_failures(3), *NEWS),
        run(10, "python3 fail.py arg1"),
        "came 3 times",
    ),
    "seen, and no edit": (gate(run(1), passing_run(2, CHANGING)), run(3), WORD),
    "seen, the agent's own tool": (gate(run(1), OWN_TOOL), run(3), WORD),
    "unseen, a look": (
        gate(run(1), passing_run(2, "cat x.py"), sees_files=False),
        run(3),
        "nothing was changed, as far as is known, since",
    ),
}


@pytest.mark.parametrize(("state", "now", "words"), REFUSED.values(), ids=REFUSED)
def test_a_call_is_refused_with_the_reason(state: Gate, now: r.Step, words: str) -> None:
    assert words in state.may(now, NOTHING).refusal


WAITS: dict[str, tuple[Gate, float]] = {
    "at first": (gate(*transient_failures(0)), 1.0),
    "doubled": (gate(*transient_failures(1)), 2.0),
    "doubled again": (gate(*transient_failures(2)), 4.0),
    "analysed anew": (gate(*transient_failures(3), report(8, TRANSIENT)), 1.0),
    "called permanent before": (gate(*LASTING, report(3, TRANSIENT)), 1.0),
    "unknown": (gate(run(1), report(2, UNKNOWN), errors=ErrorSettings(unknown=TRANSIENT)), 1.0),
    "though failures are equal": (
        gate(*varied_failures(2), run(6), report(7, TRANSIENT), run(8), run(9)),
        4.0,
    ),
}


@pytest.mark.parametrize(("state", "seconds"), WAITS.values(), ids=WAITS)
def test_a_transient_failure_is_tried_again_after_a_wait(state: Gate, seconds: float) -> None:
    assert state.may(run(10), NOTHING) == Permission(wait=seconds)


def test_the_longest_wait_is_a_setting() -> None:
    errors = ErrorSettings(backoff_seconds=1.5, max_backoff_seconds=5)
    assert [backoff(n, errors) for n in (1, 2, 3, 4)] == [1.5, 3.0, 5.0, 5.0]


# -- in the same turn ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "now", "cause", "verdict"),
    [
        (FAILED, run(2), TRANSIENT, Permission(wait=1.0)),
        (gate(attempt=2), LOOKED, UNKNOWN, ALLOWED),
        (gate(*varied_failures(3)), run(9), PERMANENT, ALLOWED),
    ],
)
def test_an_analysis_in_the_turn_counts(
    state: Gate, now: r.Step, cause: r.Cause, verdict: Permission
) -> None:
    assert state.may(now, Statements(cause=cause)) == verdict


def test_an_analysis_in_the_turn_that_calls_it_permanent_lets_nothing_run_unchanged() -> None:
    assert FAILED.may(run(2), Statements(cause=PERMANENT)).refusal


@pytest.mark.parametrize("order", [1, -1])
def test_it_does_not_matter_which_call_of_a_turn_ends_first(order: int) -> None:
    both = [report(2, TRANSIENT), run(2)][::order]
    assert gate(run(1), *both).may(run(3), NOTHING) == Permission(wait=2.0)
    beside = [report(1, TRANSIENT), run(1)][::order]
    assert WORD in gate(*beside).may(run(2), NOTHING).refusal, "it is of no failure beside it"


def test_the_last_failure_is_known_with_what_stood_in_the_way() -> None:
    blocked = run(2, "make", "sh: gcc: command not found")
    assert gate(run(1), blocked, passing_run(3, "ls")).last_failure == LastFailure(
        number=2, act="`make`", blocked="missing program gcc", words="sh: gcc: command not found"
    )


# -- the check of a plan step ------------------------------------------------------------------


UNCHECKED: dict[str, tuple[r.Record, ...]] = {
    "the first plan step": (BEGUN,),
    "the check is in": (BEGUN, *finished_plan_step(1), CHECK),
    "a revision": (BEGUN, r.Change(plan_step=1, plan_steps=2, revision=1)),
    "a revision that goes on": (BEGUN, *finished_plan_step(1, revision=1)),
    "the plan is done": (BEGUN, *finished_plan_step(1, 4)),
    "one step": (
        r.Change(plan_step=1, plan_steps=1, revision=0),
        r.Change(plan_step=2, plan_steps=1),
    ),
    "an attempt that begins later": (r.Change(plan_step=2, plan_steps=3, revision=0),),
}


@pytest.mark.parametrize("records", UNCHECKED.values(), ids=UNCHECKED)
def test_no_check_is_asked_for(records: tuple[r.Record, ...]) -> None:
    assert gate(*records).may(LOOKED, NOTHING) == ALLOWED


def test_every_transition_has_its_own_check_where_checks_are_asked_for() -> None:
    records = (BEGUN, finished_plan_step(1), CHECK, finished_plan_step(2, 3))
    assert "plan step 3 begins" in gate(*records).may(LOOKED, NOTHING).refusal
    off = PlanSettings(require_check=False)
    assert gate(*records, plan=off).may(LOOKED, NOTHING) == ALLOWED
