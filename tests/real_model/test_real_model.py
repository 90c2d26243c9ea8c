"""A real, very weak model breaks nothing: neither as the worker nor as the supervisor.

What it says differs from run to run. So these tests hold whatever it says, and `run.py` counts how
often which of it happened.
"""

from case import RunResult


def test_whatever_the_worker_says_the_run_ends_in_a_known_way(worked: list[RunResult]) -> None:
    assert [run.errors for run in worked if run.crashed] == []
    assert {run.ending for run in worked} <= {"done", "unaccepted", "out-of-budget", "stuck"}


def test_the_budget_of_the_worker_holds(worked: list[RunResult]) -> None:
    assert all(1 <= run.requests <= run.limit for run in worked)


def test_only_the_acceptance_check_makes_a_task_completed(worked: list[RunResult]) -> None:
    assert [run.ending == "done" for run in worked] == [run.accepted for run in worked]


def test_a_worker_that_goes_round_is_found(worked: list[RunResult]) -> None:
    assert [run.calls for run in worked if run.went_round and not run.alarms] == []


def test_whatever_the_supervisor_says_the_run_ends_in_a_known_way(supervised: RunResult) -> None:
    assert not supervised.crashed, supervised.errors
    assert supervised.ending in {"out-of-budget", "stuck"}


def test_each_escalation_is_decided_by_the_model_or_where_it_cannot_by_the_policy(
    supervised: RunResult,
) -> None:
    assert supervised.of("decision")
    assert supervised.lost == 0
    first = supervised.of("decision")[0]
    assert first["by"] == "supervisor" or "the model smollm2-135m failed" in first["rationale"]


def test_what_is_decided_stops_a_worker_that_goes_round(supervised: RunResult) -> None:
    assert supervised.requests < supervised.limit
    assert supervised.delivered[-1] == "stop"
