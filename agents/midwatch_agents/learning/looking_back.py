"""What the reflector is asked about several attempts, and how it has to answer."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, Field
from pydantic_ai import Agent, ModelRetry, RunContext

from midwatch_agents.consultation import CORRECTIONS
from midwatch_monitor.records import KnownSummary
from midwatch_tools.data_blocks import DATA_RULE, DataBlocks, plain

REQUESTS = CORRECTIONS + 1
"""Model requests that one question may take."""
_SUMMARY_CHARS = 1_200
_ASIDE_CHARS = 500
_CURRENT_CHARS = 40_000
"""More than any document within the limits has."""

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

An insight names the attempts that show it, by their numbers: those that do, not all of them. Only
where each attempt shows the same, name them all and say in `common` where each shows it. It is
about something that stands in their summaries, and names it: a file, a command, a kind of check,
an error, a habit. What would fit any agent on any day is no insight. Fewer good ones are better;
none at all is right where nothing is new.

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


class InsightAnswer(BaseModel):
    """One thing that attempts show."""

    content: Sentence
    topics: Annotated[list[Annotated[str, Field(max_length=60)]], Field(max_length=7)] = []
    attempts: Annotated[
        list[int], Field(min_length=1, description="The numbers of the attempts that show it.")
    ]
    common: Annotated[
        str,
        Field(max_length=600, description="Only if it names all attempts: where each shows it."),
    ] = ""


class Reflected(BaseModel):
    """What a look back at several attempts came to."""

    explanation: Annotated[str, Field(min_length=1, max_length=3000)]
    insights: Annotated[list[InsightAnswer], Field(max_length=12)]
    do: Annotated[Sentences, Field(description="Principles: what to do.")] = []
    dont: Annotated[Sentences, Field(description="Principles: what not to do.")] = []
    procedures: Annotated[Sentences, Field(description="Strategies, step by step.")] = []
    advice: Annotated[Sentences, Field(description="Guidance for later.")] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """What is told of an attempt beside its summary."""

    attempt: int
    """By journal id."""
    kind: str
    """What it is, in a word or two: `lesson`, `an operator said`."""
    text: str


def reflection_prompt(
    summaries: Sequence[KnownSummary], asides: Iterable[Aside] = (), *, blocks: DataBlocks
) -> str:
    """The first question: the attempts, each with its number, task, topics and turns."""
    beside: dict[int, list[str]] = {}
    for aside in asides:
        told = f"  - {plain(aside.kind)}: {plain(aside.text, _ASIDE_CHARS)}"
        beside.setdefault(aside.attempt, []).append(told)
    lines: list[str] = []
    for each in summaries:
        topics = ", ".join(map(plain, each.summary.topics)) or "none"
        about = f"task {plain(each.task_name, 80)}; {each.summary.turns} turns; topics: {topics}"
        lines.append(f"- attempt {each.attempt} ({about})")
        lines.append(f"  {plain(each.summary.text, _SUMMARY_CHARS)}")
        lines += beside.get(each.attempt, [])
    shown = blocks.framed("attempts", "\n".join(lines))
    return f"{blocks.head}\n\n# The attempts\n\n{shown}"


def distillation_prompt(
    current: str | None,
    insights: Sequence[str],
    reflected: Reflected,
    *,
    max_words: int,
    blocks: DataBlocks,
) -> str:
    """The second question: the guidelines in force, and what the first answer came to."""
    target = f"{max_words * 2 // 3} to {max_words} words"
    none = "(There are none yet: write the first ones from what follows.)"
    old = blocks.quoted("guidelines in force", current, _CURRENT_CHARS) if current else none

    def listed(name: str, texts: Iterable[str]) -> str:
        return blocks.framed(name, "\n".join(f"- {plain(text)}" for text in texts) or "(nothing)")

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


def reflecting() -> Agent[frozenset[int], Reflected]:
    """The agent of the first question; its dependency is the attempts that there are."""
    agent = Agent(
        name="reflector",
        output_type=Reflected,
        deps_type=frozenset[int],
        instructions=REFLECTING,
        retries=CORRECTIONS,
    )
    agent.output_validator(_attributed)
    return agent


def distilling() -> Agent[None, str]:
    """The agent of the second question; it answers a text, and can do nothing else."""
    return Agent(name="reflector", instructions=DISTILLING, retries=CORRECTIONS)


def _attributed(ctx: RunContext[frozenset[int]], answer: Reflected) -> Reflected:
    """The answer if each insight says where it comes from; the last one as it is."""
    wrong = misattributed(answer, ctx.deps)
    if wrong and not ctx.last_attempt:
        raise ModelRetry(wrong)
    return answer


def misattributed(answer: Reflected, attempts: frozenset[int]) -> str:
    """What is wrong with the sources of the insights; empty if nothing is."""
    for insight in answer.insights:
        named = set(insight.attempts)
        if unknown := sorted(named - attempts):
            there = ", ".join(map(str, sorted(attempts)))
            return f"There is no attempt {unknown[0]}; there is: {there}."
        if by_default(insight, attempts):
            return (
                "An insight names all attempts without saying why: name those that show it, or "
                "say in `common` where each of them shows it."
            )
    return ""


def by_default(insight: InsightAnswer, attempts: frozenset[int]) -> bool:
    """Whether an insight names every attempt and gives no reason for it."""
    every = len(attempts) > 1 and attempts <= set(insight.attempts)
    return every and not insight.common.strip()
