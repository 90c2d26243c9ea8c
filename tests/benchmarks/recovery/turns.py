"""What a simulated worker says and hears, turn by turn."""

import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field

REPLANNED = re.compile(r"remaining plan steps")
_FAILED = re.compile(r"\[exit code: [1-9-]|rror\b|^FAIL", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One call of a tool."""

    tool: str
    args: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One answer of the worker. Without an act its text is the last word of the attempt."""

    acts: tuple[Act, ...] = ()
    say: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What came back since the worker's last answer."""

    results: tuple[str, ...] = ()
    """Of its own acts, in their order."""
    guidance: tuple[str, ...] = ()
    """What a supervisor or an operator said, as the worker reads it."""

    @property
    def failed(self) -> bool:
        """Whether an act failed, as far as its words tell."""
        return any(_FAILED.search(result) for result in self.results)


@dataclass(slots=True, kw_only=True)
class Diary:
    """What the worker would say of its work if it were asked now; plays keep it up to date."""

    progress: int = 0
    confidence: int = 80
    blockers: tuple[str, ...] = ()
    notes: str = "It goes on."
    belief: str = "the change so far was not the right one"
    """What it takes for the root cause of the last failure."""
    passing: bool = False
    """Whether it takes the last failure for a passing one."""
    remaining: tuple[str, ...] = ("Find the cause of the failure", "Mend it", "Run the tests")
    """The plan steps that it would write if it had to write new ones."""
    failures: list[str] = field(default_factory=list[str])


Play = Generator[Turn, Heard, None]
"""One attempt of a simulated worker."""


def run(command: str, *, say: str = "") -> Turn:
    """Run a command."""
    return Turn(acts=(Act(tool="run_command", args={"command": command}),), say=say)


def read(path: str, *, say: str = "") -> Turn:
    """Read a file."""
    return Turn(acts=(Act(tool="read_file", args={"path": path}),), say=say)


def write(path: str, content: str, *, say: str = "") -> Turn:
    """Write a whole file."""
    return Turn(acts=(Act(tool="write_file", args={"path": path, "content": content}),), say=say)


def plan_step_done(goal: str, files: tuple[str, ...], proof: str) -> Turn:
    """Claim that the plan step in hand is done, with a check that was seen to pass."""
    claim = {"what": f"`{proof}` succeeds", "state": "passed", "reason": "it was run"}
    args = {"goal": goal, "files": [*files], "structural": [], "functional": [claim]}
    return Turn(acts=(Act(tool="complete_step", args={**args, "confidence": 90}),))


def end(say: str) -> Turn:
    """The last word."""
    return Turn(say=say)
