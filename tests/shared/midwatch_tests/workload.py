"""What agents send, made up: each event is new, and little of it is worth an alert."""

import json
import random
from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from typing import Any

from midwatch_monitor.records import Checkpoint, Edit, Step, StepKind
from midwatch_tests.factories import AT

MIX = "of 8 events 3 read a file, 2 edit one, 2 run a command, 1 is a checkpoint"
_WORDS = ["module", "class", "function", "value", "return", "import", "parse", "token"]


class Workload:
    """One attempt's events in their order, a second apart, numbered from 1.

    Outputs of tools have 1.2 kB on average, about as those of real coding agents.
    """

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._numbers = count(1)
        self._reports = count(0)

    def mixed(self) -> Iterator[Step]:
        """Without end: see `MIX`."""
        cycle = (self._read, self._edit, self._run) * 2 + (self._read, self._report)
        while True:
            for make in cycle:
                yield make()

    def steps(self) -> Iterator[Step]:
        """The same without checkpoints."""
        cycle = (self._read, self._edit, self._run) * 2 + (self._read,)
        while True:
            for make in cycle:
                yield make()

    def checkpoints(self) -> Iterator[Step]:
        """Nothing but checkpoints."""
        while True:
            yield self._report()

    def _read(self) -> Step:
        path = self._path()
        args = json.dumps({"path": path, "offset": self._chance.randrange(2_000)})
        return self._tool("read_file", args, self._lines(120), path=path)

    def _edit(self) -> Step:
        path = self._path()
        edit = Edit(path=path, digest=self._digest(), before=self._digest())
        args = json.dumps({"path": path, "old": self._text(12), "new": self._text(12)})
        return self._tool("edit_file", args, "written", path=path, edits=(edit,))

    def _run(self) -> Step:
        args = json.dumps({"command": f"python -m pytest -q tests/{self._text(1)}_test.py"})
        passed = f"{self._chance.randrange(1, 900)} passed\n"
        return self._tool("run_command", args, passed + self._lines(30), exit_code=0)

    def _tool(self, tool: str, args: str, output: str, **fields: Any) -> Step:
        most = {"args": args, "output": output, "tokens": self._chance.randrange(400, 4_000)}
        return self._step(tool=tool, kind=StepKind.TOOL, ok=True, **most, **fields)

    def _report(self) -> Step:
        done = next(self._reports)
        report = Checkpoint(
            progress_percent=3 * done % 99,
            plan_step=1 + 3 * done // 99,
            confidence=self._chance.randrange(70, 80),
            files_done=(self._path(),),
            notes=self._text(12),
            estimated_steps_left=self._chance.randrange(5, 40),
        )
        tokens = self._chance.randrange(100, 400)
        return self._step(kind=StepKind.CHECKPOINT, tokens=tokens, checkpoint=report)

    def _step(self, **fields: Any) -> Step:
        n = next(self._numbers)
        at = AT + timedelta(seconds=n)
        return Step(number=n, request=n, at=at, call=f"call-{n}", **fields)

    def _path(self) -> str:
        return f"src/{self._text(1)}/{self._text(1)}_{self._chance.randrange(40)}.py"

    def _digest(self) -> str:
        return f"{self._chance.getrandbits(64):016x}"

    def _text(self, words: int) -> str:
        return " ".join(self._chance.choices(_WORDS, k=words))

    def _lines(self, most: int) -> str:
        lines = self._chance.randrange(1, most)
        return "\n".join(self._text(6) for _ in range(lines))
