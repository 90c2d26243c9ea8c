"""A model's answers and their tool calls, which session readers turn into steps."""

from collections.abc import Set
from dataclasses import dataclass, replace
from datetime import datetime
from posixpath import join

from midwatch_monitor.records import Edit, Step, StepKind
from midwatch_monitor.traces.foreign import NOTHING_RAN, JsonNode, Workplace

_PATHS = ("file_path", "notebook_path", "absolute_path", "path")


@dataclass(slots=True, kw_only=True)
class ModelAnswer:
    """An answer of the model. Its text and cost go to its first call."""

    key: str
    step: Step
    """A message with the text and cost that no call has taken yet."""
    called: bool = False

    def say(self, text: str) -> None:
        """Add a paragraph."""
        said = "\n\n".join(filter(None, (self.step.text, text)))
        self.step = replace(self.step, text=said)

    def call(self, step: Step) -> Step:
        """Return the call, with the answer's text and cost if it is the first one."""
        self.called = True
        own = self._take_step()
        return replace(
            step, request=own.request, text=own.text, tokens=own.tokens, cost_usd=own.cost_usd
        )

    def message(self) -> Step | None:
        """Return the answer's text, once, if it made no call."""
        return self._take_step() if self.step.text and not self.called else None

    def _take_step(self) -> Step:
        taken, self.step = self.step, replace(self.step, text="", tokens=0, cost_usd=0.0)
        return taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """A program's own tools that change files, as far as their arguments show."""

    shell: str
    writing: Set[str]
    whole: str
    """The tool among `writing` that is given the complete file as `content`."""
    folder: str = ""
    """The argument of `shell` that names the command's folder, if there is one."""

    def call(
        self, place: Workplace, tool: str, given: JsonNode, *, at: datetime | None, call: str
    ) -> Step:
        """Return the open call; its `edits` take effect if it succeeds."""
        command = given["command"].text if tool == self.shell else ""
        named = next((given[name].text for name in _PATHS if given[name].text), "")
        edits: tuple[Edit, ...] = ()
        if tool == self.shell:
            if self.folder:
                place.enter(join(place.root, given[self.folder].text))
            edits = place.run(command)
        elif tool in self.writing and named:
            edits = place.write(named, given["content"].text if tool == self.whole else None)
        return Step(
            number=0,
            kind=StepKind.TOOL,
            at=at,
            tool=tool,
            args=command if tool == self.shell else given.canonical,
            path=place.path(named),
            edits=edits,
            call=call,
        )


def finish_call(
    step: Step, *, at: datetime | None, ok: bool | None, exit_code: int | None, output: str
) -> Step:
    """Return a call with its result. A failed call changed nothing, unless a command ran."""
    kept = ok is not False or exit_code not in (None, *NOTHING_RAN)
    return replace(
        step,
        at=at or step.at,
        ok=ok,
        exit_code=exit_code,
        output=output,
        edits=step.edits if kept else (),
    )
