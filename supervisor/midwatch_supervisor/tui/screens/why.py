"""Why a line of the fleet stands where it does, in a few words: the most urgent thing. Pure."""

from typing import NamedTuple

from midwatch_monitor.records import Activity, Lifecycle
from midwatch_supervisor.present.plain import one_line
from midwatch_supervisor.present.text_line import Tone, because, blocked
from midwatch_supervisor.present.waiting import Wait, attempt_waits_for
from midwatch_supervisor.tui.state.attention import waiting_attempt
from midwatch_supervisor.tui.state.checkpoint_history import EqualCheckpoints
from midwatch_supervisor.tui.state.row import Need, Row
from midwatch_supervisor.tui.widgets.table import long_span

_ACTIVITIES = {
    Activity.MODEL: "asks the model",
    Activity.WAITING: "waits for a person",
    Activity.RATE_LIMITED: "rate-limited",
    Activity.IDLE: "-",
    Activity.COMMAND: "runs a tool",
}

_TIMES = "\N{MULTIPLICATION SIGN}"


class Why(NamedTuple):
    """A text of one line, harmless, and how it is meant."""

    text: str
    tone: Tone = Tone.PLAIN


def why(row: Row, wait: Wait | None) -> Why:
    """What is to be said of a row; `wait` is what a task waits for that has not begun."""
    text, tone = _why(row, wait)
    return Why(one_line(text), tone)


def _why(row: Row, wait: Wait | None) -> Why:
    state = row.state
    if row.adrift and row.lifecycle is Lifecycle.WORKING:
        return Why("needs a node", Tone.WARN)
    if row.attempt is None and wait is not None:
        return Why(wait.short, Tone.WARN if wait.vain else Tone.DIM)
    if row.need is Need.OVER:
        return _ended(row)
    if row.need <= Need.STUCK or state.open_requests:
        return Why(waiting_attempt(row).what, Tone.BAD if row.need is Need.STUCK else Tone.WARN)
    if state.outage is not None:
        return Why(f"waits for {attempt_waits_for(state)}", Tone.WARN)
    if state.firing:
        return Why("; ".join(each.summary or each.key.rule for each in state.firing), Tone.WARN)
    newest = row.checkpoints.newest
    if newest is not None:
        return _reported(newest)
    return Why(state.doing or _ACTIVITIES[state.activity], Tone.DIM)


def _ended(row: Row) -> Why:
    verdict = row.state.verdict
    if row.rejected and verdict is not None:
        return Why(f"not accepted{because(verdict.comment)}", Tone.WARN)
    return Why(row.state.transition.reason or "-", Tone.DIM)


def _reported(newest: EqualCheckpoints) -> Why:
    said = newest.checkpoint
    if said.blockers:
        return Why(f"{blocked(said.blockers)}{repeated(newest)}", Tone.WARN)
    text = f'"{said.notes}"' if said.notes else f"reported: {said.decision}"
    return Why(f"{text}{repeated(newest)}", Tone.WARN if newest.count > 2 else Tone.PLAIN)


def repeated(said: EqualCheckpoints) -> str:
    """How often and for how long the same was said: ` x8, 2 min`; empty for once."""
    return f" {_TIMES}{said.count}, {long_span(said.seconds)}" if said.count > 1 else ""
