"""A real, very weak model breaks nothing: neither as the worker nor as the supervisor.

What it says differs from run to run. So these tests hold whatever it says, and `run.py` counts how
often which of it happened.
"""

from case import RunResult


def test_whatever_the_worker_says_the_run_ends_in_a_known_way(worker_runs: list[RunResult]) -> None:
    assert [run.errors for run in worker_runs if run.has_crashed] == []
    assert {run.ending for run in worker_runs} <= {"done", "unaccepted", "out-of-budget", "stuck"}


def test_the_budget_of_the_worker_holds(worker_runs: list[RunResult]) -> None:
    assert all(1 <= run.requests <= run.limit for run in worker_runs)


def test_only_the_acceptance_check_makes_a_task_completed(worker_runs: list[RunResult]) -> None:
    assert [run.ending == "done" for run in worker_runs] == [run.is_accepted for run in worker_runs]


def test_a_worker_that_goes_round_is_found(worker_runs: list[RunResult]) -> None:
    assert [run.calls for run in worker_runs if run.goes_round and not run.alarms] == []


def test_whatever_the_supervisor_says_the_run_ends_in_a_known_way(
    supervisor_run: RunResult,
) -> None:
    assert not supervisor_run.has_crashed, supervisor_run.errors
    assert supervisor_run.ending in {"out-of-budget", "stuck"}


def test_each_escalation_is_decided_by_the_model_or_where_it_cannot_by_the_policy(
    supervisor_run: RunResult,
) -> None:
    assert supervisor_run.lines_of("decision")
    assert supervisor_run.lost_escalations == 0
    first = supervisor_run.lines_of("decision")[0]
    assert first["by"] == "supervisor" or "the model smollm2-135m failed" in first["rationale"]


def test_what_is_decided_stops_a_worker_that_goes_round(supervisor_run: RunResult) -> None:
    assert supervisor_run.requests < supervisor_run.limit
    assert supervisor_run.delivered_actions[-1] == "stop"
