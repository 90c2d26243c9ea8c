"""What identifies a session, and what it is called. Pure."""

import re
from dataclasses import dataclass, field
from pathlib import PurePath

from midwatch_monitor.records import Run
from midwatch_monitor.records.work import SESSION

_WHOLE = 12
"""Maximum length of a session's id that is shown whole."""
_SHORT = 4
"""Characters from the end of a longer id that are shown; some begin with the time."""
_NO_NAME = re.compile(r"[^\w.-]+")
"""Characters that folder names may contain and task names may not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionName:
    """Identifies a session."""

    agent: str
    id: str
    sub_agent: str = ""
    """The name of a sub-agent's own file, for a sub-agent of the session."""
    folder: str = field(default="", compare=False)
    """Its working folder, as shown to people."""

    @property
    def source(self) -> str:
        """The `source` of its run."""
        return f"{SESSION}{self.agent} {self.id}"

    @classmethod
    def of(cls, run: Run) -> "SessionName":
        """Return the session that a run records."""
        return cls(agent=run.agent, id=run.source.removeprefix(f"{SESSION}{run.agent} "))

    @property
    def task(self) -> str:
        """The name of its task."""
        id = self.id if len(self.id) <= _WHOLE else self.id[-_SHORT:]
        name = _NO_NAME.sub("-", f"{PurePath(self.folder).name or self.agent}-{id}")
        return f"{name}/{self.sub_agent}" if self.sub_agent else name
