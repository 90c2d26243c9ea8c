"""The reflector: what an ended attempt teaches, written by a model or in a fixed form.

A model is asked off-line, and what it says is stored only where it is about this attempt: an
answer that would fit any other, or that rests on steps nobody saw, is handed back twice and then
dropped. Neither prompts nor answers are logged.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic_ai import Agent, ModelRetry, RunContext, capture_run_messages
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model

from midwatch_agents.consultation import CORRECTIONS, consult
from midwatch_agents.learning.case import Case, rendered
from midwatch_agents.learning.classes import named_class
from midwatch_agents.learning.drafts import LessonDraft, LookBackDraft, usable_facts
from midwatch_agents.learning.fixed import (
    MAX_FILES,
    MAX_STEPS,
    MAX_TAGS,
    MOST_TOPICS,
    fixed_lesson,
    fixed_summary,
    tags_of,
    unique,
)
from midwatch_agents.learning.likeness import ALIKE, likeness
from midwatch_agents.learning.particulars import cited_steps, named_files
from midwatch_agents.learning.questions import FACTS, INSTRUCTIONS, SUMMARY, lesson_question
from midwatch_agents.learning.screening import BY_A_MODEL, objection
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.errors import WorkerError
from midwatch_monitor.records import Fact, Lesson, Origin, Spending, Summary
from midwatch_tools.data_blocks import DataBlocks
from midwatch_tools.session import cost

__all__ = [
    "LookBackResult",
    "WrittenLesson",
    "fixed_lesson",
    "fixed_summary",
    "look_back",
    "write_lesson",
]

DraftT = TypeVar("DraftT", LessonDraft, LookBackDraft)

NOTHING = "nothing specific is known: no comment, no analysis, no alarm and no failed check"
KNOWN = "a lesson that says the same is known already"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenLesson:
    """A lesson, or why there is none."""

    lesson: Lesson | None = None
    refused: str = ""
    """Never quotes the lesson."""
    spending: Spending | None = None
    """What the model took, a refused answer too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookBackResult:
    """The summary of an attempt, and the facts that it shows."""

    summary: Summary
    facts: tuple[Fact, ...] = ()
    spending: Spending | None = None


@dataclass(slots=True)
class _ReflectionContext(Generic[DraftT]):
    """The case in hand, and what became of the answers so far."""

    case: Case
    last: DraftT | None = None
    """The newest answer that had the right form."""
    fault: str = ""
    """What was wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said(Generic[DraftT]):
    """An answer; without one, why it was of no use."""

    draft: DraftT | None
    fault: str = ""
    spending: Spending


async def write_lesson(
    model: Model | None, case: Case, *, settings: Settings | None = None
) -> WrittenLesson:
    """Draw the lesson of a rejected attempt; raises WorkerError where the model cannot be asked.

    The model is the reflector's own and may be a larger one than the worker's. Without one the
    lesson takes its fixed form. An answer that is of no use after two corrections stores nothing.
    """
    settings = settings or Settings()
    classes = settings.learning.lessons.failure_classes
    if model is None:
        lesson = fixed_lesson(case, classes)
        return _write_lesson(lesson, case) if lesson is not None else WrittenLesson(refused=NOTHING)
    prompt = _prompt([lesson_question(classes)], case, settings)
    said = await _ask(
        _lesson_agent(), model, prompt, _ReflectionContext[LessonDraft](case), settings
    )
    if said.draft is None:
        return WrittenLesson(refused=said.fault, spending=said.spending)
    draft = said.draft
    text = " ".join([draft.text, *draft.insights])
    lesson = Lesson(
        text=" ".join(draft.text.split()),
        failure_class=named_class(draft.failure_class, classes),
        insights=tuple(" ".join(each.split()) for each in draft.insights),
        tags=unique((*draft.tags, *tags_of(case)), MAX_TAGS),
        kind=case.kind,
        files=_files(draft.files, text, case),
        steps=tuple(sorted({*draft.steps} | cited_steps(text)))[:MAX_STEPS],
        model=model.model_name,
        verdict=case.verdict_id,
        origin=case.verdict.origin if case.verdict is not None else Origin.AUTOMATIC,
        sources=case.sources,
        waits=BY_A_MODEL,
    )
    return _write_lesson(lesson, case, said.spending)


async def look_back(
    model: Model | None, case: Case, *, settings: Settings | None = None
) -> LookBackResult:
    """Sum up an ended attempt, and take facts out of it; raises WorkerError as `write_lesson` does.

    One question for both. Without a model, and where its answer is of no use, the summary takes
    its fixed form. The number of turns is the case's, whatever a model says.
    """
    settings = settings or Settings()
    if model is None:
        return LookBackResult(summary=fixed_summary(case))
    facts = settings.learning.facts
    wanted = facts.enabled and facts.extract
    about = _ReflectionContext[LookBackDraft](case)
    question = _prompt([SUMMARY, *([FACTS] if wanted else [])], case, settings)
    said = await _ask(_summary_agent(), model, question, about, settings)
    summary = fixed_summary(case)
    if said.draft is not None:
        summary = Summary(
            text=" ".join(said.draft.summary.split()),
            topics=unique(said.draft.topics, MOST_TOPICS),
            turns=case.turns,
            model=model.model_name,
        )
    # Facts stand by themselves: a summary that is of no use does not cost them.
    draft = said.draft or about.last
    found = usable_facts(draft.facts, case) if wanted and draft is not None else ()
    return LookBackResult(summary=summary, facts=found, spending=said.spending)


def checked(ctx: RunContext[_ReflectionContext[DraftT]], draft: DraftT) -> DraftT:
    """The answer if it is one about this case; else ModelRetry with what is wrong with it."""
    about = ctx.deps
    about.last, about.fault = draft, draft.fault(about.case)
    if about.fault:
        raise ModelRetry(about.fault)
    return draft


async def _ask(
    agent: Agent[_ReflectionContext[DraftT], DraftT],
    model: Model,
    prompt: str,
    about: _ReflectionContext[DraftT],
    settings: Settings,
) -> _Said[DraftT]:
    """Ask once; what is of no use is an answer too, and only a model that fails is an error."""
    with capture_run_messages() as messages:
        try:
            told = await consult(
                agent,
                model,
                prompt,
                deps=about,
                role=Role.REFLECTOR,
                seconds=settings.learning.timeout_seconds,
            )
        except WorkerError as error:
            if not isinstance(error.__cause__, UnexpectedModelBehavior):
                raise
            why = about.fault or "it is not in the form that was asked for"
            fault = f"no usable answer after {CORRECTIONS} corrections: {why}"
            return _Said(draft=None, fault=fault, spending=_spending_of(model, messages))
    return _Said(draft=told.answer, spending=told.spending)


def _spending_of(model: Model, messages: list[ModelMessage]) -> Spending:
    answers = [each for each in messages if isinstance(each, ModelResponse)]
    return Spending(
        role=Role.REFLECTOR,
        model=model.model_name,
        requests=len(answers),
        tokens=sum(each.usage.total_tokens for each in answers),
        cost_usd=sum(map(cost, answers)),
    )


def _write_lesson(lesson: Lesson, case: Case, spending: Spending | None = None) -> WrittenLesson:
    """The lesson, unless it may not stand in a prompt or is known already."""
    fault = objection("\n".join([lesson.text, *lesson.insights, *lesson.tags]))
    if not fault and any(likeness(lesson.text, each) >= ALIKE for each in case.known):
        fault = KNOWN
    return WrittenLesson(lesson=None if fault else lesson, refused=fault, spending=spending)


def _prompt(asked: list[str], case: Case, settings: Settings) -> str:
    blocks = DataBlocks.drawn()
    shown = rendered(case, settings.supervisor.max_evidence_chars, blocks)
    return "\n\n".join([blocks.head, *asked, shown])


def _files(named: list[str], text: str, case: Case) -> tuple[str, ...]:
    """Files of the case that the lesson is about: those that it lists, and those in its text."""
    listed = [path for path in case.files if path in named]
    return tuple(dict.fromkeys([*listed, *named_files(text, case)]))[:MAX_FILES]


def _lesson_agent() -> Agent[_ReflectionContext[LessonDraft], LessonDraft]:
    agent = Agent(
        name="reflector",
        output_type=LessonDraft,
        deps_type=_ReflectionContext[LessonDraft],
        instructions=INSTRUCTIONS,
        retries=CORRECTIONS,
    )
    agent.output_validator(checked)
    return agent


def _summary_agent() -> Agent[_ReflectionContext[LookBackDraft], LookBackDraft]:
    agent = Agent(
        name="reflector",
        output_type=LookBackDraft,
        deps_type=_ReflectionContext[LookBackDraft],
        instructions=INSTRUCTIONS,
        retries=CORRECTIONS,
    )
    agent.output_validator(checked)
    return agent
