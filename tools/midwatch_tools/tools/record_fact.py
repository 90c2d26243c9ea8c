"""The tool `record_fact`: what a worker found out, for those who work here later."""

from collections.abc import Callable
from typing import Any

from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.tools import RunContext

from midwatch_monitor.records import (
    Fact,
    FactMaker,
    FactState,
    KnownFact,
)
from midwatch_tools.tool_calls import Acts
from midwatch_tools.tools.arguments import CertaintyArgument, Paths, Tags, Value
from midwatch_tools.tools.facts import Facts, as_json, lacks, look_up
from midwatch_tools.tools.toolset import WorkerTool


class RecordFact(WorkerTool):
    """Holds `record_fact`."""

    def __init__(self, facts: Callable[[], Facts], present: Callable[[], Acts]) -> None:
        super().__init__(present)
        self._facts = facts

    async def record_fact(
        self,
        ctx: RunContext[Any],
        text: str,
        certainty: CertaintyArgument,
        files: Paths = (),
        tags: Tags = (),
        value: Value = "",
    ) -> str:
        """Tell who works here later what you found out, in one sentence with its file or version.

        `confirmed` if you saw it in a file or an output. `value`: the same as data.
        """
        acts, facts = self._present(), self._facts()
        limits = acts.session.settings.learning.facts
        pending = limits.review and facts.reviewed
        fact = Fact(
            text=" ".join(text.split()),
            certainty=certainty,
            files=tuple(dict.fromkeys(file.removeprefix("./") for file in files)),
            tags=tuple(dict.fromkeys(tags)),
            value=as_json(value),
            state=FactState.PENDING if pending else FactState.WAITING,
            maker=FactMaker.WORKER,
        )
        if fault := lacks(fact):
            raise ModelRetry(f"{fault}.")
        recorder = acts.session.recorder
        said = await look_up(facts.count(), recorder)
        if said is not None and said >= limits.max_per_attempt:
            raise ModelRetry(f"{said} facts of one attempt are enough: go on with the work.")
        known = await look_up(facts.twin(fact), recorder)
        return await _store_fact(ctx, acts, facts, fact, known)


async def _store_fact(
    ctx: RunContext[Any], acts: Acts, facts: Facts, fact: Fact, known: KnownFact | None
) -> str:
    """Store a fact, or that this attempt said a known one too; the answer."""
    recorder, output = acts.session.recorder, f"{fact.certainty}: {fact.text}"
    if known is None:
        acts.report(ctx, output, fact)
        return "Recorded; it is shared once it has been looked at."
    acts.report(ctx, output)

    async def write(fact: Fact) -> int:
        (entry,) = await recorder.record(fact)
        return entry.id

    await facts.absorb(fact, known, write=write, at=recorder.clock())
    return f"Known already: fact {known.id}."
