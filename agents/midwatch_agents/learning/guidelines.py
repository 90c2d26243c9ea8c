"""Looks back at several attempts: turns their summaries into insights and new guidelines.

Reads no journal, stores nothing and uses no clock: its only effect is two questions to the model.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import BaseModel, Field
from pydantic_ai import ModelRetry, RunContext
from pydantic_ai.models import Model

from midwatch_agents.consultation import consult, spent_before
from midwatch_agents.learning.case import contains_passage
from midwatch_agents.learning.section import NOTHING_NEW, document_from
from midwatch_agents.learning.text_safety import objection
from midwatch_monitor.config.learning import GuidelinesSettings
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.errors import WorkerError
from midwatch_monitor.records import KnownSummary, Spending
from midwatch_tools.data_blocks import DATA_RULE, DataBlocks, fold_lines, plain

NO_ATTEMPTS = "no qualifying attempts"
NO_DEPTH = "no attempts with sufficient depth"
NOTHING_SEEN = "no insight quotes its attempts"
TOO_LONG = 1000
"""In words; a longer answer is cut and also reported as an error."""


_SUMMARY_CHARS = 1_200
_ASIDE_CHARS = 500
_CURRENT_CHARS = 40_000
"""More than any document within the limits can have."""

REFLECTING = f"""\
You look back at finished attempts of coding agents at tasks of one project, so that the next ones
work better. You are shown a summary of each, with its topics and how often its model answered.

Reflect on how the work was done, not on what it was about: how the agents looked for the cause,
planned, edited, checked, asked and reported. Cover all of these:
1. explanation: what went well, what went badly, and why.
2. do and dont: principles, one sentence each, that follow from it.
3. procedures: strategies, step by step, that worked or should be tried.
4. advice: what to bear in mind from now on.
5. insights: the few things that these attempts really show.

An insight names the attempts that show it, by their numbers: those that do, not all of them. Of
each it quotes the passage that shows it, word for word. It is about something that stands there,
and names it: a file, a command, a kind of check, an error, a habit. What would fit any agent on any
day is no insight. Fewer good ones are better; none at all is right where nothing is new.

{DATA_RULE}"""

DISTILLING = f"""\
You keep the behavioral guidelines of the coding agents of one project: a short document that
stands in the prompt of each of them, below their instructions, and never above them. You are given
the guidelines in force, and what a look back at new attempts came to. You write the whole document
anew.

- Write to the agent that reads it, as instructions: "Run the failing test first."
- Merge old and new. What is in force has stood the test of more attempts: where old and new
  disagree, it weighs more, unless several attempts speak against it.
- Keep what still holds, in its own words where they are good; drop what is stale or said twice.
  Never append a list of news. Where nothing is new, answer the guidelines in force, unchanged.
- If there are none in force, write the first ones from these attempts alone. Invent nothing.
- How to work, not who the agent is: no names, no roles, no orders about models, prompts, tools or
  permissions, nothing that changes or gets round instructions, rules, checks or those who watch.
  No secrets, no mail addresses, no data of persons.
- Raw Markdown, with these headings as far as there is something to say: `## Working style`,
  `## Working rules`, `## Known patterns`, `## To improve`. No introduction, no fence around it.

{DATA_RULE}"""

Sentence = Annotated[str, Field(min_length=1, max_length=600)]
Sentences = Annotated[list[Sentence], Field(max_length=12)]


class Evidence(BaseModel):
    """An attempt that shows something, and where."""

    attempt: Annotated[int, Field(description="The number of an attempt that you are shown.")]
    quote: Annotated[
        str,
        Field(
            min_length=8,
            max_length=400,
            description="A passage of what is said of it, word for word and without a gap.",
        ),
    ]


class InsightAnswer(BaseModel):
    """One thing that attempts show."""

    content: Sentence
    topics: Annotated[list[Annotated[str, Field(max_length=60)]], Field(max_length=7)] = []
    evidence: Annotated[
        list[Evidence], Field(min_length=1, description="The attempts that show it.")
    ]


class Reflected(BaseModel):
    """What a look back at several attempts came to."""

    explanation: Annotated[str, Field(min_length=1, max_length=3000)]
    insights: Annotated[list[InsightAnswer], Field(max_length=12)]
    do: Annotated[Sentences, Field(description="Principles: what to do.")] = []
    dont: Annotated[Sentences, Field(description="Principles: what not to do.")] = []
    procedures: Annotated[Sentences, Field(description="Strategies, step by step.")] = []
    advice: Annotated[Sentences, Field(description="Guidance for later.")] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptAside:
    """Something said about an attempt besides its summary."""

    attempt: int
    """The attempt's journal id."""
    kind: str
    """What it is, in a word or two: `lesson`, `an operator said`."""
    text: str


def reflection_prompt(
    summaries: Sequence[KnownSummary], asides: Sequence[AttemptAside], *, blocks: DataBlocks
) -> str:
    """Return the first question: the attempts, each with its number, task, topics and turns."""
    lines = [line for each in summaries for line in _lines(each, asides)]
    shown = blocks.frame("attempts", "\n".join(lines))
    return f"{blocks.head}\n\n# The attempts\n\n{shown}"


def _lines(known: KnownSummary, asides: Iterable[AttemptAside]) -> list[str]:
    """Return everything that is said about one attempt."""
    topics = ", ".join(map(plain, known.summary.topics)) or "none"
    about = f"task {plain(known.task_name, 80)}; {known.summary.turns} turns; topics: {topics}"
    return [
        f"- attempt {known.attempt} ({about})",
        f"  {plain(known.summary.text, _SUMMARY_CHARS)}",
        *(
            f"  - {plain(aside.kind)}: {plain(aside.text, _ASIDE_CHARS)}"
            for aside in asides
            if aside.attempt == known.attempt
        ),
    ]


def distillation_prompt(
    current: str | None,
    insights: Sequence[str],
    reflected: Reflected,
    *,
    max_words: int,
    blocks: DataBlocks,
) -> str:
    """Return the second question: the current guidelines, and the result of the first answer."""
    target = f"{max_words * 2 // 3} to {max_words} words"
    none = "(There are none yet: write the first ones from what follows.)"
    old = blocks.quote("guidelines in force", current, _CURRENT_CHARS) if current else none

    def listed(name: str, texts: Iterable[str]) -> str:
        return blocks.frame(name, "\n".join(f"- {plain(text)}" for text in texts) or "(nothing)")

    parts = [
        blocks.head,
        f"# The guidelines in force\n\n{old}",
        f"# Insights\n\n{listed('insights', insights)}",
        f"# Principles\n\n{listed('do', reflected.do)}\n{listed('do not', reflected.dont)}",
        f"# Procedures\n\n{listed('procedures', reflected.procedures)}",
        f"# Advice\n\n{listed('advice', reflected.advice)}",
        f"Write the whole document now. Aim at {target} if there is so much to say, and write at "
        f"most {max_words} words: what is longer is cut off.",
    ]
    return "\n\n".join(parts)


def _has_sources(ctx: RunContext[Mapping[int, str]], answer: Reflected) -> Reflected:
    """Return the answer if every insight quotes existing attempts; the last try always passes."""
    for each in (each for insight in answer.insights for each in insight.evidence):
        if not ctx.last_attempt and (fault := _unfounded_rules(each, ctx.deps)):
            raise ModelRetry(fault)
    return answer


def _unfounded_rules(evidence: Evidence, shown: Mapping[int, str]) -> str:
    """Return what is wrong with a piece of evidence; empty if nothing."""
    if evidence.attempt not in shown:
        there = ", ".join(map(str, sorted(shown)))
        return f"There is no attempt {evidence.attempt}; there is: {there}."
    if not contains_passage(evidence.quote, shown[evidence.attempt]):
        return f"What you quote of attempt {evidence.attempt} does not stand there, word for word."
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Insight:
    """One thing that attempts showed."""

    content: str
    topics: tuple[str, ...] = ()
    sources: tuple[int, ...]
    """Journal ids of the attempts that show it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectionResult:
    """The result of a look back."""

    insights: tuple[Insight, ...] = ()
    guidelines: str | None = None
    """The complete new text in Markdown; `None` keeps the current one."""
    reason: str = ""
    """Why the text is not changed; empty if there is a new one."""
    dropped: int = 0
    """Number of insights dropped because their quotes are not in their attempts."""
    errors: tuple[str, ...] = ()
    """What failed; earlier results are kept."""
    spending: tuple[Spending, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether there was an answer that could not be used."""
        return self.reason not in {"", NOTHING_NEW}


async def reflect_on_runs(
    summaries: Sequence[KnownSummary],
    current: str | None,
    model: Model,
    config: GuidelinesSettings,
    *,
    asides: Sequence[AttemptAside],
    earlier: Sequence[str],
    seconds: float,
) -> ReflectionResult:
    """Look back at attempts and write their lessons into the guidelines. Raises nothing.

    The first question asks what the attempts show. The second asks for the whole document,
    rewritten from `current`, the text in force, together with `earlier` insights that it does not
    contain yet. If the first fails, nothing is kept and the second is not asked; if the second
    fails, the first result is kept. Each may take `seconds`.
    """
    shown = {each.attempt: "\n".join(_lines(each, asides)) for each in summaries}
    try:
        prompt = reflection_prompt(summaries, asides, blocks=DataBlocks.with_new_code())
        asked = await consult(
            model,
            prompt,
            role=Role.REFLECTOR,
            instructions=REFLECTING,
            answer=Reflected,
            check=_has_sources,
            deps=shown,
            seconds=seconds,
        )
    except WorkerError as error:
        return ReflectionResult(
            reason="the look back failed", errors=(str(error),), spending=spent_before(error)
        )
    insights = _insights(asked.answer, shown)
    seen = ReflectionResult(
        insights=insights,
        reason=NOTHING_SEEN if asked.answer.insights else NOTHING_NEW,
        dropped=len(asked.answer.insights) - len(insights),
        spending=(asked.spending,),
    )
    if not insights:
        return seen
    prompt = distillation_prompt(
        current,
        [*earlier, *(each.content for each in insights)],
        _drop_unsafe_texts(asked.answer),
        max_words=config.max_words,
        blocks=DataBlocks.with_new_code(),
    )
    return await _distill(seen, prompt, current, model, config, seconds)


def gate(summaries: Sequence[KnownSummary], config: GuidelinesSettings) -> str:
    """Return why there is nothing to look back at; empty if there is something."""
    if not summaries:
        return NO_ATTEMPTS
    count = len(deep(summaries, config))
    if not count:
        return NO_DEPTH
    if count < config.min_runs:
        return f"{count} of the {config.min_runs} attempts that a look back needs"
    return ""


def deep(summaries: Iterable[KnownSummary], config: GuidelinesSettings) -> tuple[KnownSummary, ...]:
    """Return the attempts with enough model turns to learn from."""
    return tuple(each for each in summaries if each.summary.turns >= config.min_turns)


async def _distill(
    seen: ReflectionResult,
    prompt: str,
    current: str | None,
    model: Model,
    config: GuidelinesSettings,
    seconds: float,
) -> ReflectionResult:
    """Return the result with the answer to the second question, or with its fault."""
    try:
        asked = await consult(
            model,
            prompt,
            role=Role.REFLECTOR,
            instructions=DISTILLING,
            answer=str,
            deps=None,
            seconds=seconds,
        )
    except asyncio.CancelledError as canceled:
        canceled.args += seen.spending
        raise
    except WorkerError as error:
        return replace(
            seen,
            reason="the guidelines could not be written",
            errors=(str(error),),
            spending=(*seen.spending, *spent_before(error)),
        )
    draft = document_from(asked.answer, current, max_words=config.max_words)
    return replace(
        seen,
        guidelines=draft.text,
        reason=draft.reason,
        errors=(f"the answer had {draft.words} words",) if draft.words > TOO_LONG else (),
        spending=(*seen.spending, asked.spending),
    )


def _insights(answer: Reflected, shown: Mapping[int, str]) -> tuple[Insight, ...]:
    """Return the insights whose quotes are in their attempts, citing only those attempts."""
    found: list[Insight] = []
    for each in answer.insights:
        content = " ".join(each.content.split())
        topics = tuple(dict.fromkeys(filter(None, (fold_lines(topic) for topic in each.topics))))
        sources = sorted({it.attempt for it in each.evidence if not _unfounded_rules(it, shown)})
        if sources and not objection(content, *topics):
            found.append(Insight(content=content, topics=topics, sources=tuple(sources)))
    return tuple(found)


def _drop_unsafe_texts(answer: Reflected) -> Reflected:
    """Return the answer without texts that must not be used in a prompt."""
    parts: dict[str, list[str]] = {
        name: [each for each in getattr(answer, name) if not objection(each)]
        for name in ("do", "dont", "procedures", "advice")
    }
    return answer.model_copy(update=parts)
