"""The reading tools for a program: the lines that commands print, as one block of data."""

import json
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, cast

from pydantic import Field

from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.fleet.nodes import Nodes
from midwatch_monitor.records import Alert, Change, Step
from midwatch_monitor.state.intervention import InterventionState
from midwatch_monitor.state.need import needs_person
from midwatch_supervisor.cli.inspect.show import (
    decision_lines,
    intervention_lines,
    record_line,
    shown_records,
)
from midwatch_supervisor.cli.inspect.status import latest, read_states, status_line
from midwatch_supervisor.cli.journals import journal_to_read
from midwatch_supervisor.cli.operate.approval import question_states
from midwatch_supervisor.cli.operate.tell import OpenAttempt, begun_attempt
from midwatch_supervisor.operator.tasks import OpenQuestion, question_name, questions
from midwatch_supervisor.present.intervention_text import (
    alert_text,
    intervention_text,
    request_text,
)
from midwatch_supervisor.present.json_lines import MAX_TEXT, JsonLine
from midwatch_supervisor.present.lookup import chosen_runs, find, task_state
from midwatch_supervisor.present.waiting import attempt_waits_for, need_words
from midwatch_tools.data_blocks import EVIDENCE, DataBlocks, cut

_MAX_LINES = 200
"""Lines in one answer."""
_MAX_CHARS = 30_000
"""Characters in one answer: some clients take no more than 25,000 tokens."""
_MAX_LINE = 4_000
_MAX_ITEMS = 30
"""Longest list in a line."""
_MAX_EVIDENCE = 12
"""Steps listed as the evidence of one alert, the newest."""
LARGEST = 2**63 - 1
"""The largest number that a journal can hold."""

Named = Annotated[
    str,
    Field(
        min_length=1,
        max_length=200,
        coerce_numbers_to_str=True,  # lists show it as a number
        description="A task's name, an attempt's id, or TASK#N for its attempt number N.",
    ),
]
RunArgument = Annotated[
    int | None, Field(ge=1, le=LARGEST, description="Number of the run; by default the latest.")
]
Last = Annotated[int, Field(ge=1, le=_MAX_LINES, description="How many of the newest records.")]


class ReadingTools:
    """The tools that read. The journal is opened for each call: it may be created or moved
    meanwhile.
    """

    def __init__(self, journal: str | None) -> None:
        self._journal = journal

    async def list_attempts(
        self, run: RunArgument = None, *, only_needing_a_person: bool = False
    ) -> str:
        """Where the tasks of a run and their latest attempts stand, a JSON object a line."""
        lines = list[str]()
        async with await journal_to_read(self._journal) as journal:
            runs = await chosen_runs(journal, run)
            nodes = await Nodes(journal).all()
            chosen = await latest(journal, runs) if run is None else runs
            async for _, tasks, ours in read_states(journal, chosen, nodes):
                wanted = tasks
                if only_needing_a_person:
                    wanted = [each for each in tasks if each.latest and needs_person(each.latest)]
                lines += [_json_text(asdict(status_line(task, ours))) for task in wanted]
        return block("attempts", lines)

    async def timeline(self, attempt: Named, last: Last = 50) -> str:
        """What an attempt did and what was said to it, a JSON object a line, oldest first."""
        lines = deque[JsonLine](maxlen=last)
        async with await journal_to_read(self._journal) as journal:
            async for shown in shown_records(journal, await find(journal, attempt)):
                lines.append(shown.fields)
        return block("timeline", [_json_text(each) for each in lines], newest=True)

    async def why(self, attempt: Named) -> str:
        """Which alerts fire for an attempt, the steps that they rest on, and what was done."""
        async with await journal_to_read(self._journal) as journal:
            target = await begun_attempt(journal, attempt)
            return block("why", [each async for each in _reason_lines(journal, target)])

    async def waiting(self) -> str:
        """What waits for a person in all runs.

        `approve` and `reject` take the `id` of what `asks` lists; `guide` answers anything else.
        """
        async with await journal_to_read(self._journal) as journal:
            return block("waiting", [each async for each in _read_waiting(journal)])


async def _reason_lines(journal: Journal, target: OpenAttempt) -> AsyncIterator[str]:
    state = target.state
    yield f"{target.name}: {state.status}"
    if waits := attempt_waits_for(state):
        yield f"waits for: {waits}"
    if not state.firing:
        yield "no alert fires"
        return
    numbers = {n for alert in state.firing for n in alert.evidence[-_MAX_EVIDENCE:]}
    entries = journal.all_entries(attempt=state.id, kinds=(Step,))
    steps = {
        each.record.number: each.record
        async for each in entries
        if isinstance(each.record, Step) and each.record.number in numbers
    }
    for alert in state.firing:
        yield alert_text(alert, state.alert_status(alert.key))
        for number in alert.evidence[-_MAX_EVIDENCE:]:
            if number in steps:
                yield f"  step {number}, {record_line(steps[number], state.plan_steps)}"
        done = *decision_lines(state, [alert.key]), *intervention_lines(state, [alert.key])
        for line in done or ("nothing was done about it yet",):
            yield f"  {line}"


async def _read_waiting(journal: Journal) -> AsyncIterator[str]:
    """Yield each attempt that waits, with its questions; one may wait without any."""
    open_ones = (await question_states(journal, Alert, Change)).under_way
    waiting = [each.id for each in open_ones if needs_person(each)]
    for id in sorted(waiting):
        attempt = await journal.attempt(id)
        task = await journal.task(attempt.task)
        state = (await task_state(journal, task)).attempts[id]
        if not needs_person(state):
            continue  # a question whose alerts are gone
        asked = questions(state)
        fields = {
            "type": "waiting",
            "run": task.run,
            "task": task.name,
            "attempt": id,
            "number": attempt.number,
            "waits_for": attempt_waits_for(state) or need_words(state) or None,
            "asks": [_question_line(id, asked[id]) for id in sorted(asked)],
        }
        yield _json_text(fields)


def _question_line(number: int, question: OpenQuestion) -> JsonLine:
    """Return one question; its `id` is what `approve` and `reject` take."""
    if isinstance(question, InterventionState):
        text = intervention_text(question.intervention, number).text
    else:
        text = request_text(question)
    return {"id": number, "what": question_name(question), "text": text}


# -- the form of an answer ---------------------------------------------------------------------


def block(name: str, lines: Sequence[str], *, newest: bool = False) -> str:
    """Return as many lines as fit as a block of data: the first, or, with `newest`, the last."""
    kept, room = list[str](), _MAX_CHARS
    for line in lines[::-1] if newest else lines:
        short = cut(line, _MAX_LINE)
        room -= len(short) + 1
        if room < 0 or len(kept) == _MAX_LINES:
            break
        kept.append(short)
    gone = len(lines) - len(kept)
    left = [f"({gone} {'earlier' if newest else 'more'} left out)"] * (gone > 0)
    body = [*left, *kept[::-1]] if newest else [*kept, *left]
    return DataBlocks.with_new_code().frame(name, "\n".join(body) or "(nothing)", note=EVIDENCE)


def _json_text(fields: Mapping[str, object]) -> str:
    return json.dumps(_shorten_value(fields), ensure_ascii=False)


def _shorten_value(value: object) -> object:
    """Return the value with texts and lists cut to a limited length."""
    match value:
        case str():
            return cut(value, MAX_TEXT)
        case Mapping():
            fields = cast("Mapping[str, object]", value)
            return {name: _shorten_value(each) for name, each in fields.items()}
        case tuple() | list():
            items = cast("Sequence[object]", value)
            return [_shorten_value(each) for each in items[:_MAX_ITEMS]]
        case _:
            return value
