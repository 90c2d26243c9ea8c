"""A step becomes an act that can be compared; what is dear is done only for what comes again."""

import pytest

from midwatch_monitor.records import Checkpoint, Edit, Step, StepKind, Writer
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
from midwatch_stage.factories import step as make_step

LONG = "x" * SHORT
"""Too long to be masked at the first sight."""


def shell(line: str, output: str = "", *, exit_code: int | None = None) -> Step:
    args = f'{{"command": "{line}"}}'
    return make_step(3, "shell", args=args, output=output, exit_code=exit_code, ok=None)


@pytest.mark.parametrize(
    "step",
    [
        Step(number=3, kind=StepKind.MESSAGE, text="well"),
        Step(number=3, kind=StepKind.TOOL, tool="set_plan", ok=False),
        shell("sleep 5", exit_code=1),
        Step(
            number=3,
            kind=StepKind.CHECKPOINT,
            tool="reflect",
            checkpoint=Checkpoint(progress_percent=1, confidence=1),
        ),
    ],
)
def test_words_reports_plans_and_waiting_are_no_work(step: Step) -> None:
    assert Normaliser().act(step)._replace(facets=0, waits=False) == Act(3, work=False)


def test_a_failed_command_tells_how_it_failed() -> None:
    act = Normaliser().act(shell("pytest", "bash: pytest: command not found", exit_code=127))
    assert (act.work, act.failed, act.error, act.shell) == (True, True, True, True)
    assert act.failure
    assert act.blocked == "missing program pytest"


def test_a_command_that_succeeds_is_in_nobodys_way() -> None:
    act = Normaliser().act(shell("cat log", "ValueError: 3 failed, Permission denied", exit_code=0))
    assert (act.failed, act.error, act.failure, act.blocked) == (False, False, 0, "")


def test_a_search_that_finds_nothing_fails_without_an_error() -> None:
    act = Normaliser().act(shell("grep foo a.py", exit_code=1))
    assert (act.failed, act.error) == (True, False)


def test_only_a_look_can_find_nothing() -> None:
    looked, ran = shell("wc -l < a.log", "0", exit_code=0), shell("./conv a.log; echo $?", "0")
    found = [bool(Normaliser().act(each).facets & Facet.NOTHING) for each in (looked, ran)]
    assert found == [True, False]


def test_only_the_workers_own_last_edit_of_a_file_is_kept() -> None:
    edits = (
        Edit(path="a", digest="1"),
        Edit(path="b", digest="1", writer=Writer.PERSON),
        Edit(path="a", digest="2"),
    )
    act = Normaliser().act(Step(number=1, kind=StepKind.TOOL, tool="write", edits=edits))
    assert (act.edits, act.changes, act.shell) == ((edits[2],), True, False)


@pytest.mark.parametrize(
    ("step", "changes"),
    [
        (Step(number=1, kind=StepKind.TOOL, tool="edit", args="12:14\nx"), True),
        (Step(number=1, kind=StepKind.TOOL, tool="edit", args="12:14\nx", ok=False), False),
        (Step(number=1, kind=StepKind.TOOL, tool="edit", path="a.py"), False),
        (Step(number=1, kind=StepKind.TOOL, tool="edit", args='{"path": "a.py"}'), False),
        (Step(number=1, kind=StepKind.TOOL, tool="open", args="a.py"), False),
        (Step(number=1, kind=StepKind.MESSAGE, tool="edit"), False),
    ],
)
def test_an_editor_that_names_no_file_changed_the_open_one(step: Step, *, changes: bool) -> None:
    act = Normaliser().act(step)
    assert (act.changes, act.facets & Facet.EDIT) == (changes, changes * Facet.EDIT)


def test_the_command_of_an_editor_is_none_of_a_shell() -> None:
    args = '{"command": "str_replace", "path": "a.py"}'
    edits = (Edit(path="a.py"),)
    step = Step(number=1, kind=StepKind.TOOL, tool="str_replace_editor", args=args, edits=edits)
    assert not Normaliser().act(step).shell


@pytest.mark.parametrize(
    ("line", "reverted"),
    [
        ("git checkout -- a.py", ("a.py",)),
        ("cd src && git restore b.py", ("src/b.py",)),
        ("git status", ()),
        ("pytest", ()),
    ],
)
def test_a_command_that_puts_files_back_changes_them(line: str, reverted: tuple[str, ...]) -> None:
    act = Normaliser().act(shell(line, exit_code=0))
    assert (act.reverted, act.changes) == (reverted, bool(reverted))


def test_a_long_output_is_masked_from_the_second_visit_on() -> None:
    normaliser = Normaliser()
    visits = [shell("pytest", f"{LONG} in {n}.1s", exit_code=0) for n in range(3)]
    first, second, third = (normaliser.act(each).result for each in visits)
    assert first != second == third == result(visits[0], answer(visits[0]))


def test_a_long_output_with_nothing_to_mask_is_known_at_the_second_visit() -> None:
    normaliser = Normaliser()
    first, second = (normaliser.act(shell("ls", LONG)).result for _ in range(2))
    assert first == second


def nothing_new(*steps: Step) -> list[bool]:
    """Of which steps the answer says nothing new."""
    normaliser = Normaliser()
    return [bool(normaliser.act(each).facets & Facet.NOTHING_NEW) for each in steps]


FULL_RECORD = shell("get 7", '{"id": 7, "seat": "14A", "state": "confirmed"}')
PLAIN_RECORD = shell("list", "7 confirmed, seat 14A, id 7 (state).")


def test_an_answer_in_other_order_and_dress_whose_every_word_was_heard_says_nothing_new() -> None:
    other_seat = shell("list", "7 confirmed, seat 14B, id 7 (state).")
    assert nothing_new(FULL_RECORD, PLAIN_RECORD, other_seat) == [False, True, False]


def test_what_was_heard_before_a_change_may_be_news_after_it() -> None:
    change = make_step(3, "edit", path="a.py", edits=(Edit(path="a.py", digest="d"),))
    assert nothing_new(FULL_RECORD, change, PLAIN_RECORD) == [False, False, False]


def test_another_commit_may_say_the_same_and_it_is_news() -> None:
    one, other = (shell("pytest", f"{n} failed, 8 passed, 1 skipped") for n in (1, 2))
    swap = shell("git bisect good", "63 left")
    assert nothing_new(one, other, swap, one) == [False] * 4
    assert nothing_new(one, other, one)[-1]


def test_an_acknowledgement_says_nothing_that_could_be_old() -> None:
    assert nothing_new(*(shell(f"send {n}", '{"ok": true}') for n in range(3))) == [False] * 3


def test_times_are_no_words() -> None:
    looks = [shell(f"look {n}", f"09:1{n}:07 seat 14A is free") for n in range(2)]
    assert nothing_new(*looks) == [False, True]


def test_a_long_answer_is_heard_line_by_line() -> None:
    lines = [f"{n}: the line of {n}" + "." * 40 for n in range(30)]
    page, part, turned = (
        shell(f"read {n}", "\n".join(each))
        for n, each in enumerate((lines, lines[5:25], [*lines[9:24], "the line of 9" + "." * 40]))
    )
    assert nothing_new(page, part, turned) == [False, True, False]


def test_a_very_long_answer_always_says_something() -> None:
    assert nothing_new(shell("a", "word\n" * 700), shell("b", "word\n" * 700)) == [False, False]


def test_a_check_that_passes_at_last_says_so_in_words_that_were_heard() -> None:
    states = ["lint pass\nunit pass\ne2e pending", "lint pass\nunit pass\ne2e fail"]
    mixed = "lint pass\nunit fail\ne2e pass"
    acts = [shell("checks", state, exit_code=1) for state in (*states, mixed)]
    passed = shell("checks", "lint pass\nunit pass\ne2e pass", exit_code=0)
    assert nothing_new(*acts, passed)[-2:] == [True, False]


def test_only_the_newest_words_are_known() -> None:
    others = [shell(f"get {n}", f"{n} {n + 1000} {n + 2000} {n + 3000}") for n in range(200)]
    assert not nothing_new(FULL_RECORD, *others, PLAIN_RECORD)[-1]


@pytest.mark.parametrize(
    ("line", "check"),
    [
        ("pytest -q", CheckKind.TESTS),
        ("cd x && go test ./...", CheckKind.TESTS),
        ("python try.py", CheckKind.RUN),
        ("./run now", CheckKind.RUN),
        ("ls", CheckKind.NONE),
        ("cat tests/a.py", CheckKind.NONE),
    ],
)
def test_an_act_tells_whether_it_checked_the_work(line: str, check: CheckKind) -> None:
    assert Normaliser().act(shell(line)).check is check


@pytest.mark.parametrize("tool", ["run_tests", "pytest", "check"])
def test_a_tool_that_runs_tests_checks_the_work(tool: str) -> None:
    act = Normaliser().act(Step(number=1, kind=StepKind.TOOL, tool=tool))
    assert act.check is CheckKind.TESTS


def test_an_act_knows_whether_it_failed_when_it_was_last_done() -> None:
    normaliser = Normaliser()
    exits = [1, None, 0, 0, 2]
    acts = [normaliser.act(shell("make", "x", exit_code=each)) for each in exits]
    assert [act.failed_before for act in acts] == [None, True, True, False, False]


@pytest.mark.parametrize("failed", [None, False, True])
@pytest.mark.parametrize("fewest", [None, 0, 1, 999_999, 1_000_000])
def test_the_past_of_an_act_fits_into_a_number_of_thirty_two_bits(
    failed: bool | None, fewest: int | None
) -> None:
    for passed in (False, True):
        past = ActPast(failed=failed, passed=passed, fewest=fewest)
        assert ActPast.read(past.written) == past
        assert past.written < 2**32


def test_an_act_goes_better_than_ever_when_it_first_passes_and_with_fewer_failures() -> None:
    normaliser = Normaliser()
    codes = (
        (1, "3 failed"),
        (1, "2 failed"),
        (1, "3 failed"),
        (0, "ok"),
        (1, "1 failed"),
        (0, "ok"),
    )
    better = [
        normaliser.act(shell("pytest", output, exit_code=code)).better for code, output in codes
    ]
    assert better == [False, True, False, True, True, False]


@pytest.mark.parametrize(
    ("step", "facets"),
    [
        (shell("ls", exit_code=0), 0),
        (shell("ls", exit_code=2), Facet.FAILURE),
        (shell("pytest", exit_code=1), Facet.FAILURE | Facet.CHECK),
        (shell("python a.py", exit_code=0), Facet.CHECK),
        (shell("git checkout a.py", exit_code=0), Facet.EDIT),
        (Step(number=1, kind=StepKind.MESSAGE), Facet.MESSAGE),
        (Step(number=1, kind=StepKind.CHECKPOINT), Facet.CHECKPOINT),
        (
            Step(number=1, kind=StepKind.MESSAGE, edits=(Edit(path="a"),)),
            Facet.MESSAGE | Facet.EDIT,
        ),
        (Step(number=1, kind=StepKind.TOOL, tool="set_plan"), 0),
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
    assert (command_facts(script).check, command_facts(line).check) == (
        CheckKind.TESTS,
        CheckKind.TESTS,
    )


def test_a_runner_and_its_argument_stand_on_one_line() -> None:
    assert command_facts("go \ntest x").check is CheckKind.NONE


@pytest.mark.parametrize(
    ("tool", "line", "runs"),
    [("bash", "pytest", True), ("run_tests", "", True), ("run_tests", "ls", False)],
)
def test_of_a_tool_with_a_command_the_command_says_whether_it_tests(
    tool: str, line: str, runs: bool
) -> None:
    assert runs_tests(tool, line) is runs
