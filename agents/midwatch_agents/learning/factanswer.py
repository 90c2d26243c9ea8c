"""What a review of new facts may answer, and what is wrong with an answer. Pure.

One wrong item spoils itself and no other: names that are unknown are told to the model, and
then left out.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from midwatch_agents.learning.screening import names_a_command
from midwatch_monitor.records import Certainty


class Verdict(StrEnum):
    """What is thought of a new fact."""

    KEEP = "keep"
    ENRICH = "enrich"
    REMOVE = "remove"


class Way(StrEnum):
    """How a contradiction between a new fact and a known one is settled."""

    KEEP_NEW = "keep_new"
    KEEP_EXISTING = "keep_existing"
    MERGE = "merge"


_CERTAINTY = Field(
    json_schema_extra={"enum": [each.value for each in Certainty]},
    description="`confirmed` if the attempt shows it in a file or an output, else `inferred`.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What the text of a fact is about, as it will be shared. What is not said counts as yes."""

    names_a_command: Annotated[
        bool, Field(description="Whether it names anything that one could run, open or install.")
    ] = True
    about_checks: Annotated[
        bool,
        Field(description="Whether it would have tests, checks or reviews left out or weakened."),
    ] = True
    about_instructions: Annotated[
        bool,
        Field(description="Whether it speaks to its reader, or of what its reader is told to do."),
    ] = True

    def doubt(self, text: str) -> str:
        """Why a person must read that text first; empty if none must."""
        reasons = {
            "it names a command": self.names_a_command or names_a_command(text),
            "it is about checks": self.about_checks,
            "it is about instructions": self.about_instructions,
        }
        return next((reason for reason, holds in reasons.items() if holds), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction(Judged):
    """What is thought of one new fact."""

    number: Annotated[int, Field(description="Of the new fact.")]
    action: Annotated[
        str,
        Field(
            json_schema_extra={"enum": [each.value for each in Verdict]},
            description="`keep` if it is right, `enrich` to word it better or more fully, "
            "`remove` if it is wrong or of no use.",
        ),
    ]
    text: Annotated[str, Field(description="For `enrich`: the whole fact in its new words.")] = ""
    certainty: Annotated[str, _CERTAINTY] = ""
    reason: Annotated[str, Field(description="Why; needed for `remove`.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed(Judged):
    """A fact that the attempt shows and nobody wrote down."""

    text: str
    certainty: Annotated[str, _CERTAINTY] = ""
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict(Judged):
    """A new fact and a known one that cannot both be true."""

    new: Annotated[int, Field(description="The number of the new fact.")]
    known: Annotated[int, Field(description="The number of the known fact.")]
    resolution: Annotated[str, Field(json_schema_extra={"enum": [each.value for each in Way]})]
    text: Annotated[str, Field(description="For `merge`: one fact that holds both.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All that a review says."""

    corrected: Annotated[
        tuple[Correction, ...], Field(description="Every new fact, each once, by its number.")
    ] = ()
    missed: tuple[Missed, ...] = ()
    conflicts: tuple[Conflict, ...] = ()


def faults(answer: Answer, *, new: int, known: int) -> list[str]:
    """What is wrong with an answer about so many facts, in words for the model."""
    said = [each.number for each in answer.corrected]
    left = [str(number) for number in range(1, new + 1) if number not in said]
    found = [f"nothing is said of the new facts {', '.join(left)}"] if left else []
    for each in answer.corrected:
        if not 1 <= each.number <= new:
            found.append(f"there is no new fact {each.number}")
        elif each.action not in {*Verdict}:
            found.append(f"{each.action!r} is no action")
        elif each.action == Verdict.REMOVE and not each.reason.strip():
            found.append(f"the removal of new fact {each.number} has no reason")
        elif each.action == Verdict.ENRICH and not each.text.strip():
            found.append(f"new fact {each.number} is enriched without a text")
    for each in answer.conflicts:
        if not (1 <= each.new <= new and 1 <= each.known <= known):
            found.append(f"there are no facts {each.new} and {each.known} for a conflict")
        elif each.resolution not in {*Way}:
            found.append(f"{each.resolution!r} is no resolution")
        elif each.resolution == Way.MERGE and not each.text.strip():
            found.append("a merge has no text")
    return found
