"""Answers of the reflector's model, and what may be wrong with them. Pure."""

import re
from typing import Annotated

from pydantic import BaseModel, Field

from midwatch_agents.learning.case import Case
from midwatch_agents.learning.likeness import subject
from midwatch_agents.learning.particulars import cited_steps, names, speaks, specific, told_in
from midwatch_agents.learning.screening import objection
from midwatch_monitor.records import Certainty, Fact, FactMaker

LESSON_SENTENCES = (2, 4)
SUMMARY_SENTENCES = (2, 3)
MAX_FACTS = 10
_FACT_WORDS = 4
"""A fact of fewer words says too little."""
_STOP = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\bcf)[.!?\u2026]+[\"')\]`*_]*(?=\s|$)")

Sentence = Annotated[str, Field(min_length=1, max_length=400)]
Word = Annotated[str, Field(min_length=1, max_length=40)]
Path = Annotated[str, Field(min_length=1, max_length=300)]
Number = Annotated[int, Field(ge=1, le=10_000_000)]


class LessonDraft(BaseModel):
    """The lesson of an attempt."""

    text: Annotated[
        str,
        Field(
            min_length=1,
            max_length=1500,
            description="Two to four sentences: what was done, why it failed, what to do instead.",
        ),
    ]
    failure_class: Annotated[str, Field(description="One of the classes that were named.")]
    insights: Annotated[
        list[Sentence],
        Field(min_length=1, max_length=5, description="What to do instead, each a sentence."),
    ]
    steps: Annotated[
        list[Number], Field(max_length=20, description="Numbers of the steps that it rests on.")
    ] = []
    files: Annotated[
        list[Path], Field(max_length=20, description="Files of the attempt that it is about.")
    ] = []
    tags: Annotated[
        list[Word], Field(max_length=8, description="Words that such work is found by.")
    ] = []

    @property
    def whole(self) -> str:
        """All of it that stands in a prompt."""
        return "\n".join([self.text, *self.insights, *self.tags])

    def fault(self, case: Case) -> str:
        """What is wrong with it as a lesson of that case; empty if nothing."""
        if wrong := _length(self.text, LESSON_SENTENCES):
            return wrong
        if not specific(self.text, case):
            return (
                "That would fit any worker on any day. Name a file, a command, a function, a test, "
                "an error or a step that is in this attempt."
            )
        unseen = sorted(({*self.steps} | cited_steps(self.whole)) - case.citable)
        if unseen:
            return f"You were not shown step {', '.join(map(str, unseen))}. Cite what you saw."
        if case.citable and not self.steps:
            return "Cite at least one step that it rests on, by its number."
        return _unfit(self.whole)


class FactDraft(BaseModel):
    """A fact about the workspace."""

    text: Annotated[str, Field(min_length=1, max_length=600, description="One sentence.")]
    certainty: Certainty = Certainty.INFERRED
    step: Annotated[
        int, Field(ge=0, le=10_000_000, description="The step whose output shows it; 0 for none.")
    ] = 0
    files: Annotated[list[Path], Field(max_length=10)] = []
    tags: Annotated[list[Word], Field(max_length=8)] = []


class LookBackDraft(BaseModel):
    """The summary of an attempt, and the facts that it shows."""

    summary: Annotated[
        str, Field(min_length=1, max_length=1000, description="Two or three sentences.")
    ]
    topics: Annotated[list[Word], Field(description="Three to seven words or names.")]
    facts: Annotated[list[FactDraft], Field(max_length=30)] = []

    def fault(self, case: Case) -> str:
        """What is wrong with the summary; empty if nothing. Facts are looked at one by one."""
        if wrong := _length(self.summary, SUMMARY_SENTENCES):
            return wrong
        topics = {each.strip().casefold() for each in self.topics} - {""}
        if not 3 <= len(topics) <= 7:
            return f"{len(topics)} different topics: three to seven are asked for."
        if not specific(self.summary, case):
            return "That would fit any attempt. Say what was special about this one."
        return _unfit("\n".join([self.summary, *self.topics]))


def sentences(text: str) -> int:
    """How many sentences a text has; `app.py`, `e.g.` and `3.5` end none."""
    flat = " ".join(text.split())
    ends = [stop.end() for stop in _STOP.finditer(flat)]
    return len(ends) + (bool(flat) and (not ends or ends[-1] < len(flat)))


def usable_facts(drafts: list[FactDraft], case: Case) -> tuple[Fact, ...]:
    """The facts that the case really speaks of, each judged by itself; at most ten.

    One is confirmed only where it names a step that was seen, and the excerpt of the steps speaks
    of the same things. Files that the case does not name are left out.
    """
    told, seen = told_in(case), case.transcript.casefold()
    facts = [_fact(draft, case, told, seen) for draft in drafts]
    by_text = {each.text.casefold(): each for each in reversed(facts) if each is not None}
    return tuple(reversed(by_text.values()))[:MAX_FACTS]


def _fact(draft: FactDraft, case: Case, told: str, seen: str) -> Fact | None:
    text = " ".join(draft.text.split())
    about = subject(text) | names(text)
    if len(text.split()) < _FACT_WORDS or not speaks(told, about):
        return None
    if objection("\n".join([text, *draft.tags]), personal=True):
        return None
    shown = draft.step in case.citable and speaks(seen, about)
    sure = draft.certainty is Certainty.CONFIRMED and shown
    return Fact(
        text=text,
        certainty=Certainty.CONFIRMED if sure else Certainty.INFERRED,
        files=tuple(dict.fromkeys(file for file in draft.files if file.casefold() in told)),
        tags=tuple(dict.fromkeys(tag.strip().casefold() for tag in draft.tags if tag.strip())),
        maker=FactMaker.EXTRACTION,
        sources=case.sources,
    )


def _length(text: str, bounds: tuple[int, int]) -> str:
    least, most = bounds
    count = sentences(text)
    if least <= count <= most:
        return ""
    said = "1 sentence" if count == 1 else f"{count} sentences"
    return f"It has {said}: {least} to {most} are asked for."


def _unfit(text: str) -> str:
    wrong = objection(text)
    return f"It may not stand in a prompt: {wrong}. Leave that out." if wrong else ""
