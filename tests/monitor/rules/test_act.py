"""A step becomes an act that can be compared; what is dear is done only for what comes again."""

import pytest

from midwatch_monitor.records import Edit, Step, StepKind, Writer
from midwatch_monitor.rules.act import (
    NO_COMMAND,
    Act,
    ActPast,
    CheckKind,
    CommandFacts,
    Facet,
    Normaliser,
    command_facts,
    runs_tests,
)
from midwatch_monitor.rules.identity import SHORT, answer, result
from midwatch_tests.factories import edit, message, reflecting
from midwatch_tests.factories import step as call

LONG = "x" * SHORT
"""Too long to be masked at the first sight."""


def shell(line: str, output: str = "", *, exit_code: int | None = None) -> Step:
    args = f'{{"command": "{line}"}}'
    return call(3, "shell", args=args, output=output, exit_code=exit_code, ok=None)


def acts(*steps: Step) -> list[Act]:
    normaliser = Normaliser()
    return [normaliser.act(each) for each in steps]


@pytest.mark.parametrize(
    "step",
    [
        message(3),
        call(3, "set_plan", ok=False),
        shell("sleep 5", exit_code=1),
        reflecting(3),
    ],
)
def test_words_reports_plans_and_waiting_are_no_work(step: Step) -> None:
    assert Normaliser().act(step)._replace(facets=0, waits=False) == Act(3, work=False)


MISSING = "bash: pytest: command not found"


@pytest.mark.parametrize(
    ("step", "failed", "error", "blocked"),
    [
        (shell("pytest", MISSING, exit_code=127), True, True, "missing program pytest"),
        (shell("cat log", "ValueError: Permission denied", exit_code=0), False, False, ""),
        (shell("grep foo a.py", exit_code=1), True, False, ""),
    ],
    ids=["it fails", "it quotes", "it finds nothing"],
)
def test_an_act_tells_whether_and_how_it_failed(
    step: Step, failed: bool, error: bool, blocked: str
) -> None:
    act = Normaliser().act(step)
    assert (act.failed, act.error, act.blocked) == (failed, error, blocked)
    assert (act.work, bool(act.failure), act.shell) == (True, error, True)


def test_only_a_look_can_find_nothing() -> None:
    looked, ran = acts(
        shell("wc -l < a.log", "0", exit_code=0), shell("./conv a.log; echo $?", "0")
    )
    assert (bool(looked.facets & Facet.NOTHING), bool(ran.facets & Facet.NOTHING)) == (True, False)


def test_only_the_workers_own_last_edit_of_a_file_is_kept() -> None:
    edits = edit("a", "1"), edit("b", "1", writer=Writer.PERSON), edit("a", "2")
    [act] = acts(call(tool="write", edits=edits))
    assert (act.edits, act.changes, act.shell) == ((edits[2],), True, False)


@pytest.mark.parametrize(
    ("step", "changes"),
    [
        (call(tool="edit", args="12:14\nx"), True),
        (call(tool="edit", args="12:14\nx", ok=False), False),
        (call(tool="edit", path="a.py"), False),
        (call(tool="edit", args='{"path": "a.py"}'), False),
        (call(tool="open", args="a.py"), False),
        (message(tool="edit"), False),
    ],
)
def test_an_editor_that_names_no_file_changed_the_open_one(step: Step, *, changes: bool) -> None:
    act = Normaliser().act(step)
    assert (act.changes, act.facets & Facet.EDIT) == (changes, changes * Facet.EDIT)


def test_the_command_of_an_editor_is_none_of_a_shell() -> None:
    args = '{"command": "str_replace", "path": "a.py"}'
    [act] = acts(call(tool="str_replace_editor", args=args, edits=(edit(),)))
    assert not act.shell


@pytest.mark.parametrize(
    ("line", "reverted"), [("cd src && git restore b.py", ("src/b.py",)), ("git status", ())]
)
def test_a_command_that_puts_files_back_changes_them(line: str, reverted: tuple[str, ...]) -> None:
    [act] = acts(shell(line, exit_code=0))
    assert (act.reverted, act.changes) == (reverted, bool(reverted))


def test_a_long_output_is_masked_from_the_second_visit_on() -> None:
    visits = [shell("pytest", f"{LONG} in {n}.1s", exit_code=0) for n in range(3)]
    first, second, third = (each.result for each in acts(*visits))
    assert first != second == third == result(visits[0], answer(visits[0]))
    one, same = acts(shell("ls", LONG), shell("ls", LONG))  # nothing to mask
    assert one.result == same.result


FULL_RECORD = shell("get 7", '{"id": 7, "seat": "14A", "state": "confirmed"}')
PLAIN_RECORD = shell("list", "7 confirmed, seat 14A, id 7 (state).")
CHANGE = call(3, "edit", path="a.py", edits=(edit("a.py", "d"),))
ONE, OTHER = (shell("pytest", f"{n} failed, 8 passed, 1 skipped") for n in (1, 2))
LINES = [f"{n}: the line of {n}" + "." * 40 for n in range(30)]
CHECKS = [
    shell("checks", f"lint pass\n{state}", exit_code=int("pass\ne2e pass" not in state))
    for state in (
        "unit pass\ne2e pending",
        "unit pass\ne2e fail",
        "unit fail\ne2e pass",
        "unit pass\ne2e pass",
    )
]
OTHERS = [shell(f"get {n}", f"{n} {n + 1000} {n + 2000} {n + 3000}") for n in range(200)]


@pytest.mark.parametrize(
    ("steps", "nothing_new"),
    [
        pytest.param(
            [FULL_RECORD, PLAIN_RECORD, shell("list", "7 confirmed, seat 14B, id 7 (state).")],
            [False, True, False],
            id="every word was heard, in another order and dress",
        ),
        pytest.param([FULL_RECORD, CHANGE, PLAIN_RECORD], [False] * 3, id="before a change"),
        pytest.param(
            [ONE, OTHER, shell("git bisect good", "63 left"), ONE],
            [False] * 4,
            id="of another commit",
        ),
        pytest.param([ONE, OTHER, ONE], [False, False, True], id="of the same commit"),
        pytest.param(
            [shell(f"send {n}", '{"ok": true}') for n in range(3)],
            [False] * 3,
            id="an acknowledgement is never old",
        ),
        pytest.param(
            [shell(f"look {n}", f"09:1{n}:07 seat 14A is free") for n in range(2)],
            [False, True],
            id="times are no words",
        ),
        pytest.param(
            [
                shell(f"read {n}", "\n".join(each))
                for n, each in enumerate((LINES, LINES[5:25], [*LINES[9:24], LINES[9][3:]]))
            ],
            [False, True, False],
            id="a long answer line by line",
        ),
        pytest.param(
            [shell(each, "word\n" * 700) for each in "ab"], [False] * 2, id="a very long answer"
        ),
        pytest.param(CHECKS, [False, False, True, False], id="a check passes at last"),
        pytest.param(
            [FULL_RECORD, *OTHERS, PLAIN_RECORD], [False] * 202, id="only the newest are known"
        ),
    ],
)
def test_an_answer_says_nothing_new_if_all_its_words_were_heard_since_the_last_change(
    steps: list[Step], nothing_new: list[bool]
) -> None:
    assert [bool(act.facets & Facet.NOTHING_NEW) for act in acts(*steps)] == nothing_new


def test_an_act_knows_whether_it_failed_when_it_was_last_done() -> None:
    found = acts(*(shell("make", "x", exit_code=each) for each in (1, None, 0, 0, 2)))
    assert [act.failed_before for act in found] == [None, True, True, False, False]


@pytest.mark.parametrize("failed", [None, False, True])
@pytest.mark.parametrize("fewest", [None, 0, 1_000_000])
def test_the_past_of_an_act_fits_into_a_number_of_thirty_two_bits(
    failed: bool | None, fewest: int | None
) -> None:
    for passed in (False, True):
        past = ActPast(failed=failed, passed=passed, fewest=fewest)
        assert ActPast.read(past.written) == past
        assert past.written < 2**32


def test_an_act_goes_better_than_ever_when_it_first_passes_and_with_fewer_failures() -> None:
    outputs = ("3 failed", "2 failed", "3 failed", "ok", "1 failed", "ok")
    found = acts(*(shell("pytest", each, exit_code=int(each != "ok")) for each in outputs))
    assert [act.better for act in found] == [False, True, False, True, True, False]


@pytest.mark.parametrize(
    ("step", "facets"),
    [
        (shell("ls", exit_code=0), 0),
        (shell("ls", exit_code=2), Facet.FAILURE),
        (shell("pytest", exit_code=1), Facet.FAILURE | Facet.CHECK),
        (shell("python a.py", exit_code=0), Facet.CHECK),
        (shell("git checkout a.py", exit_code=0), Facet.EDIT),
        (message(), Facet.MESSAGE),
        (Step(number=1, kind=StepKind.CHECKPOINT), Facet.CHECKPOINT),
        (message(edits=(Edit(path="a"),)), Facet.MESSAGE | Facet.EDIT),
        (call(tool="set_plan", ok=None), 0),
    ],
)
def test_an_act_says_what_it_is_so_that_only_who_hears_that_is_asked(
    step: Step, facets: int
) -> None:
    assert Normaliser().act(step).facets == facets


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("ls", NO_COMMAND),
        ("pytest -q", CommandFacts(CheckKind.TESTS)),
        ("echo the latest\ncat log", NO_COMMAND),
        ("cat tests/a.py", NO_COMMAND),
        ("go \ntest x", NO_COMMAND),
        ("./run now", CommandFacts(CheckKind.RUN)),
        ("python a.py", CommandFacts(CheckKind.RUN)),
        ("git checkout a.py", CommandFacts(reverts=("a.py",))),
        ("git switch main", CommandFacts(swaps=True)),
        ("sleep 5; Make test", CommandFacts(CheckKind.TESTS, sleeps=True)),
        ("git merge main", CommandFacts(swaps=True)),
        ("git merge --abort", NO_COMMAND),
        ("pip install -U attrs", CommandFacts(installs=True)),
        ("npm --silent install left", CommandFacts(installs=True)),
        ("cat > a.md <<'E'\nRun pytest, or git checkout a.py.\nE", NO_COMMAND),
        ("cat > a.md <<E && pytest\nRun it.\nE", CommandFacts(CheckKind.TESTS)),
        ("cat > a.md <<E\nRun it.\nE\npytest", CommandFacts(CheckKind.TESTS)),
        ("wrk -d10s http://localhost/", CommandFacts(measures=True)),
        ("python bench.py", CommandFacts(CheckKind.RUN, measures=True)),
        ("pytest benchmarks/ --latency", CommandFacts(CheckKind.TESTS)),
        ("python - <<E\nprint('pytest')\nE", CommandFacts(CheckKind.RUN)),
        ("cd a && bash -e <<E\npytest\nE", CommandFacts(CheckKind.TESTS)),
    ],
)
def test_a_command_tells_what_it_is(line: str, told: CommandFacts) -> None:
    assert command_facts(line) == told


@pytest.mark.parametrize("line", ["go test ./...", "PyTest", "npm run my-test", "./gradlew aTest"])
def test_tests_are_found_on_any_line_of_a_long_script(line: str) -> None:
    script = "\n".join(["echo of 3 latest words"] * 100 + [line] + ["cat a"] * 100)
    found = command_facts(script).check, command_facts(line).check
    assert found == (CheckKind.TESTS, CheckKind.TESTS)


@pytest.mark.parametrize(
    ("tool", "line", "runs"),
    [
        ("bash", "pytest", True),
        ("run_tests", "", True),
        ("pytest", "", True),
        ("check", "", True),
        ("run_tests", "ls", False),
    ],
)
def test_of_a_tool_with_a_command_the_command_says_whether_it_tests(
    tool: str, line: str, runs: bool
) -> None:
    assert runs_tests(tool, line) is runs
