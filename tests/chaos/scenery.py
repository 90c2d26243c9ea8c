"""Where a run through chaos takes place: a repository, its tasks and the configuration."""

import json
import os
import subprocess
from pathlib import Path

from chaos_script import KINDS

SLOTS = 4
"""Of each node."""
LOST_AFTER = 4.0
"""Seconds."""
REQUESTS = 22
"""Of an attempt on average, nearly."""
_PACES = {"steady": 1.5, "looping": 0.4, "stubborn": 0.4, "asking": 1.0}
"""How long each kind of worker thinks, against the mean."""

CONFIG = {
    "run": {"sandbox": "off", "grace_seconds": 2},
    "monitor": {"poll_seconds": 0.2, "tick_seconds": 1, "outcome_after": 3},
    "errors": {"require_analysis": False},
    "plan": {"require_check": False},
    "supervisor": {"cooldown": 0},
    "policy": {
        "ladder": ["nudge", "restart", "stop"],
        "rules": {"explicit_escalation": ["ask_operator", "stop"]},
        "max_interventions": 20,
        "max_task_interventions": 40,
    },
    "learning": {"end_seconds": 0},
    "journal": {"patience_seconds": 60},
    "fleet": {
        "name": "chaos",
        "slots": SLOTS,
        "beat_seconds": 0.4,
        "lost_after_seconds": LOST_AFTER,
        "lease_seconds": 4,
        "save_seconds": 1,
        "drain_seconds": 5,
        "broker": {"keepalive_seconds": 2, "max_wait_seconds": 2},
    },
}
"""What differs from the built-in defaults: shorter times, as nobody has all night here."""


def pace(*, attempts: int, nodes: int, seconds: float) -> float:
    """The mean pause before an answer, so that all attempts would take a third of the time."""
    rounds = max(1.0, attempts / (nodes * SLOTS))
    return min(2.0, max(0.02, 0.33 * seconds / rounds / REQUESTS))


def build(folder: Path, *, attempts: int, pause: float) -> Path:
    """Write the repository, `midwatch.yaml` and the task file; answers the path of the latter."""
    repository = folder / "repository"
    repository.mkdir(parents=True)
    (repository / "README.md").write_text("A project that is worked on in a storm.\n")
    _git(repository, "init", "--quiet", "--initial-branch=main")
    _git(repository, "add", "--all")
    _git(repository, "commit", "--quiet", "--message", "Before the storm")
    (folder / "midwatch.yaml").write_text(json.dumps(CONFIG, indent=1))
    path = folder / "tasks.yaml"
    path.write_text(json.dumps(_tasks(attempts, pause), indent=1))
    return path


def _tasks(attempts: int, pause: float) -> object:
    workers = {
        kind: {"model": f"scripted:chaos_script@{max(0.01, pause * share):.3f}"}
        for kind, share in _PACES.items()
    }
    tasks = [
        {
            "id": f"{kind}-{number:02}",
            "goal": "Write the file that says so.",
            "worker": kind,
            "acceptance": [f"grep -qx done {kind}-{number:02}.done.txt"],
            "max_attempts": 6,
        }
        for number, kind in enumerate(KINDS[at % len(KINDS)] for at in range(attempts))
    ]
    defaults = {"workspace": "repository", "budget": {"requests": 2000}}
    models = {"worker": "scripted:chaos_script"}
    # JSON is YAML.
    return {"models": models, "defaults": defaults, "workers": workers, "tasks": tasks}


def _git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=Chaos", "-c", "user.email=chaos@midwatch.invalid")
    hooks = ("-c", f"core.hooksPath={os.devnull}", "-c", "commit.gpgsign=false")
    environ = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    subprocess.run(
        ["git", *identity, *hooks, *words], cwd=folder, env=environ, check=True, capture_output=True
    )
