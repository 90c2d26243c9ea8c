"""gemini-cli's loop detection, in its own runtime behind a pipe of JSON lines."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from midwatch_monitor.records import Step, StepKind
from midwatch_peers.detector import Alarm, Detector, Fed

NAME = "gemini-cli-core"
CALLS = "gemini-cli-core, calls only"
_DRIVER = Path(__file__).with_name("gemini_loops.mjs")
_PACKAGE = Path("@google") / "gemini-cli-core"
_CHUNK = 200
"""Characters of text in one streamed event: about what its model sends at a time."""


class _Node:
    """The process; its own clock measures, so that the pipe costs the detector nothing."""

    def __init__(self, package: Path) -> None:
        self._process = subprocess.Popen(
            ["node", str(_DRIVER), str(package)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )
        self.version = str(self._answer().get("version", ""))

    def ask(self, order: dict[str, Any]) -> dict[str, Any]:
        """The answer to an order that has one."""
        self.tell(order)
        return self._answer()

    def tell(self, order: dict[str, Any]) -> None:
        """Give an order that has no answer."""
        pipe = _pipe(self._process.stdin)
        pipe.write(json.dumps(order) + "\n")
        pipe.flush()

    def close(self) -> None:
        """End the process, by force if it does not go by itself."""
        _pipe(self._process.stdin).close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        _pipe(self._process.stdout).close()

    def _answer(self) -> dict[str, Any]:
        line = _pipe(self._process.stdout).readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": "node ended"}
        if "error" in answer:
            self.close()
            raise OSError(answer["error"])
        return answer


class _GeminiWatching:
    def __init__(self, node: _Node, *, texts: bool) -> None:
        self._node = node
        self._texts = texts
        node.tell({"new": True})

    def feed(self, steps: Sequence[Step], *, seconds: float, halt: bool) -> Fed:
        """See Watching. Preparing is the pipe's work here, so it is not told."""
        told = [
            {"number": step.number, "events": _events(step, texts=self._texts)} for step in steps
        ]
        answer = self._node.ask({"steps": told, "seconds": seconds, "halt": halt})
        alarm = answer["alarm"]
        return Fed(
            steps=answer["steps"],
            preparing=None,
            checking=answer["checking"],
            alarm=Alarm(step=alarm["step"], rule=alarm["rule"]) if alarm else None,
        )


def detector(modules: Path | None, *, texts: bool) -> Detector:
    """The service of the package below a `node_modules` folder, with or without streamed text.

    Raises OSError with the reason why not.
    """
    if modules is None:
        raise OSError("no --node-modules given")
    package = modules / _PACKAGE
    if not package.is_dir():
        raise OSError(f"no {_PACKAGE.as_posix()} in the given node_modules")
    node = _Node(package)
    said = "calls and streamed text" if texts else "calls alone"
    return Detector(
        name=NAME if texts else CALLS,
        version=node.version,
        note=f"{said}; its model is never asked; timed by node's own clock",
        start=lambda: _GeminiWatching(node, texts=texts),
        close=node.close,
    )


def _events(step: Step, *, texts: bool) -> list[dict[str, Any]]:
    """Streamed text, then the call that it came with."""
    text = step.text if texts else ""
    events: list[dict[str, Any]] = [
        {"type": "content", "value": text[start : start + _CHUNK]}
        for start in range(0, len(text), _CHUNK)
    ]
    if step.kind is not StepKind.MESSAGE:
        call = {"name": step.tool or "reflect", "args": {"args": step.args}}
        events.append({"type": "tool_call_request", "value": call})
    return events


def _pipe(pipe: IO[str] | None) -> IO[str]:
    if pipe is None:
        raise OSError("the process has no pipe")
    return pipe
