"""The options of a command by which a person judges something that was learned."""

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from midwatch_monitor.journal import Journal
from midwatch_supervisor.cli.journals import (
    DryRunOption,
    JournalOption,
    journal_to_read,
    journal_to_write,
)
from midwatch_supervisor.cli.operate.tell import FromOption
from midwatch_supervisor.cli.settings import JsonOption
from midwatch_supervisor.operator.actions import operator_name
from midwatch_supervisor.operator.learning_actions import LearningActions


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """Who judges, why, and whether only to try it."""

    comment: Annotated[str, Parameter(help="Why; `list` or `show` says it.")] = ""
    author: FromOption = None
    dry_run: DryRunOption = False
    journal: JournalOption = None
    json: JsonOption = False

    async def opened(self) -> Journal:
        """The journal; to try something it is only read. Raises JournalError, UsageError."""
        opening = journal_to_read if self.dry_run else journal_to_write
        return await opening(self.journal)

    def shelf(self, journal: Journal) -> LearningActions:
        """Where the person's marks are put."""
        return LearningActions(journal, author=operator_name(self.author))


UNSAID = Remark()
"""No option was given."""
