"""agent-loop-guard's `LoopGuard`: similarity of calls and outputs in a window."""

from importlib.metadata import version

from midwatch_monitor.records import Step, StepKind
from midwatch_peers.detector import Detector, InProcess

NAME = "agent-loop-guard"
CALLS = "agent-loop-guard, calls only"


class _GuardSensor:
    def __init__(self, *, outputs: bool) -> None:
        from loop_guard import LoopGuard

        self._guard = LoopGuard()
        self._outputs = outputs

    def prepare(self, step: Step) -> Step | None:
        """The step if it is a call; the guard knows no messages."""
        return None if step.kind is StepKind.MESSAGE else step

    def check(self, prepared: Step | None) -> str:
        """Its strategy, from its first level (warn) on."""
        from loop_guard.decision import Action

        if prepared is None:
            return ""
        output = prepared.output if self._outputs else None
        decision = self._guard.check(prepared.tool or "reflect", prepared.args, output)
        return "" if decision.action is Action.CONTINUE else decision.strategy


def detector(*, outputs: bool) -> Detector:
    """The guard with its defaults, with or without the outputs, which it takes as an option."""
    return Detector(
        name=NAME if outputs else CALLS,
        version=version("agent-loop-guard"),
        note="from its level warn on" + ("" if outputs else "; not given the outputs"),
        start=lambda: InProcess(_GuardSensor(outputs=outputs)),
    )
