"""From the summaries of attempts to insights, and to a new text of the guidelines.

Nothing is read or stored here, and no clock is asked: the one effect is the two questions to the
model.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pydantic_ai.models import Model

from midwatch_agents.consultation import consult
from midwatch_agents.learning.document import NOTHING_NEW, drafted
from midwatch_agents.learning.grounding import Ground, ground_of
from midwatch_agents.learning.looking_back import (
    REQUESTS,
    Aside,
    InsightAnswer,
    Reflected,
    by_default,
    distillation_prompt,
    distilling,
    reflecting,
    reflection_prompt,
)
from midwatch_agents.learning.screening import objection
from midwatch_monitor.config.learning import GuidelinesSettings
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.errors import WorkerError
from midwatch_monitor.records import KnownSummary, Spending
from midwatch_tools.data_blocks import DataBlocks

__all__ = [
    "DEFAULT_GUIDELINES",
    "NOTHING_NEW",
    "NOTHING_SEEN",
    "NO_ATTEMPTS",
    "NO_DEPTH",
    "Aside",
    "Insight",
    "ReflectionResult",
    "deep",
    "distillation_prompt",
    "gate",
    "reflect_on_runs",
    "reflection_prompt",
]

DEFAULT_GUIDELINES = GuidelinesSettings()
"""One attempt, three turns, 600 words."""
NO_ATTEMPTS = "no qualifying attempts"
NO_DEPTH = "no attempts with sufficient depth"
NOTHING_SEEN = "no insight that the attempts bear out"
_SECONDS = 60.0
TOO_LONG = 1000
"""Words; an answer beyond them is worth a complaint, though it is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Insight:
    """One thing that attempts showed."""

    content: str
    topics: tuple[str, ...] = ()
    sources: tuple[int, ...]
    """The attempts that show it, by journal id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectionResult:
    """What a look back came to."""

    insights: tuple[Insight, ...] = ()
    guidelines: str | None = None
    """The whole new text in Markdown; `None` keeps what is in force."""
    skipped: bool = False
    """Whether nothing was asked."""
    reason: str = ""
    """Why nothing was asked, or why the text stays as it is; empty where there is a new one."""
    explanation: str = ""
    """What went well and what did not, and why."""
    dropped: int = 0
    """Insights that were not kept: general talk, or not about their attempts."""
    errors: tuple[str, ...] = ()
    """What failed; what came before it is kept."""
    spending: tuple[Spending, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether something was answered, and could not be used."""
        return not self.skipped and bool(self.reason) and self.reason != NOTHING_NEW


async def reflect_on_runs(
    summaries: Sequence[KnownSummary],
    current: str | None,
    model: Model,
    config: GuidelinesSettings | None = None,
    *,
    asides: Sequence[Aside] = (),
    earlier: Sequence[str] = (),
    seconds: float = _SECONDS,
) -> ReflectionResult:
    """Look back at attempts, and write their lessons into the guidelines. Raises nothing.

    The first question asks what the attempts show, the second for the whole document anew. Where
    the first fails nothing is kept, and the second is not asked; where the second fails, what the
    first came to is kept.

    Args:
        summaries: The attempts; those with too few turns are left out.
        current: The text in force; `None` if there is none.
        model: The reflector's.
        config: Fewest attempts and turns, most words.
        asides: What is told of the attempts beside their summaries.
        earlier: Insights of earlier looks that no text in force knows yet.
        seconds: How long each question may take.
    """
    config = config or DEFAULT_GUIDELINES
    if reason := gate(summaries, config):
        return ReflectionResult(skipped=True, reason=reason)
    chosen = deep(summaries, config)
    try:
        asked = await consult(
            reflecting(),
            model,
            reflection_prompt(chosen, asides, blocks=DataBlocks.drawn()),
            deps=frozenset(each.attempt for each in chosen),
            role=Role.REFLECTOR,
            requests=REQUESTS,
            seconds=seconds,
        )
    except WorkerError as error:
        return ReflectionResult(reason="the look back failed", errors=(str(error),))
    insights = _insights(asked.answer, chosen, asides)
    seen = ReflectionResult(
        insights=insights,
        reason=NOTHING_SEEN if asked.answer.insights else NOTHING_NEW,
        explanation=asked.answer.explanation.strip(),
        dropped=len(asked.answer.insights) - len(insights),
        spending=(asked.spending,),
    )
    if not insights:
        return seen
    prompt = distillation_prompt(
        current,
        [*earlier, *(each.content for each in insights)],
        _clean(asked.answer),
        max_words=config.max_words,
        blocks=DataBlocks.drawn(),
    )
    return await _distilled(seen, prompt, current, model, config, seconds)


def gate(summaries: Sequence[KnownSummary], config: GuidelinesSettings) -> str:
    """Why there is nothing to look back at; empty if there is something."""
    if not summaries:
        return NO_ATTEMPTS
    count = len(deep(summaries, config))
    if not count:
        return NO_DEPTH
    if count < config.min_runs:
        return f"{count} of the {config.min_runs} attempts that a look back needs"
    return ""


def deep(summaries: Iterable[KnownSummary], config: GuidelinesSettings) -> tuple[KnownSummary, ...]:
    """The attempts whose models answered often enough for something to be learned."""
    return tuple(each for each in summaries if each.summary.turns >= config.min_turns)


async def _distilled(
    seen: ReflectionResult,
    prompt: str,
    current: str | None,
    model: Model,
    config: GuidelinesSettings,
    seconds: float,
) -> ReflectionResult:
    """The same result with the answer to the second question, or with what is wrong with it."""
    try:
        asked = await consult(
            distilling(),
            model,
            prompt,
            deps=None,
            role=Role.REFLECTOR,
            requests=REQUESTS,
            seconds=seconds,
        )
    except WorkerError as error:
        return replace(seen, reason="the guidelines could not be written", errors=(str(error),))
    draft = drafted(asked.answer, current, max_words=config.max_words)
    return replace(
        seen,
        guidelines=draft.text,
        reason=draft.reason,
        errors=(f"the answer had {draft.words} words",) if draft.words > TOO_LONG else (),
        spending=(*seen.spending, asked.spending),
    )


def _insights(
    answer: Reflected, summaries: Sequence[KnownSummary], asides: Iterable[Aside]
) -> tuple[Insight, ...]:
    """The insights that really are about the attempts that they name."""
    told = _told(summaries, asides)
    found = (_insight(each, told) for each in answer.insights)
    return tuple(each for each in found if each is not None)


def _insight(answer: InsightAnswer, told: dict[int, str]) -> Insight | None:
    named = sorted(set(answer.attempts) & told.keys())
    content = " ".join(answer.content.split())
    topics = tuple(dict.fromkeys(" ".join(each.split()).casefold() for each in answer.topics))
    if by_default(answer, frozenset(told)):
        named = [each for each in named if ground_of(content, [told[each]]) is Ground.FIRM]
    if not named or ground_of(content, [told[each] for each in named]) is not Ground.FIRM:
        return None
    if objection("\n".join((content, *topics)), personal=True):
        return None
    return Insight(content=content, topics=tuple(filter(None, topics)), sources=tuple(named))


def _told(summaries: Sequence[KnownSummary], asides: Iterable[Aside]) -> dict[int, str]:
    """All that is told of each attempt."""
    told = {
        each.attempt: "\n".join((each.task_name, each.summary.text, *each.summary.topics))
        for each in summaries
    }
    for aside in asides:
        if aside.attempt in told:
            told[aside.attempt] += f"\n{aside.text}"
    return told


def _clean(answer: Reflected) -> Reflected:
    """The answer without what must not stand in a prompt."""

    def kept(texts: Iterable[str]) -> list[str]:
        return [each for each in texts if not objection(each, personal=True)]

    changed = {
        "do": kept(answer.do),
        "dont": kept(answer.dont),
        "procedures": kept(answer.procedures),
        "advice": kept(answer.advice),
    }
    return answer.model_copy(update=changed)
