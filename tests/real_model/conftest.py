"""A real model's server, and runs with it that several tests look at."""

from collections.abc import Generator

import pytest
from case import RunResult, reason_to_skip, serve_model, supervise, work

WORKER_RUNS = 4


@pytest.fixture(scope="session")
def url() -> Generator[str]:
    """Where the model is; skipped where its packages are not installed."""
    if reason := reason_to_skip():
        pytest.skip(reason)
    with serve_model() as address:
        yield address


@pytest.fixture(scope="session")
def worker_runs(url: str, tmp_path_factory: pytest.TempPathFactory) -> list[RunResult]:
    """Runs of the model as the worker."""
    return [work(url, tmp_path_factory.mktemp("worker")) for _ in range(WORKER_RUNS)]


@pytest.fixture(scope="session")
def supervisor_run(url: str, tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """A run of the model as the supervisor of a worker that goes round."""
    return supervise(url, tmp_path_factory.mktemp("supervisor"))
