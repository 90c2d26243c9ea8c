"""Sessions of Claude Code (`.jsonl`), as it stores them or as `--output-format stream-json` prints.

One step for each tool call, and for each answer without one; an answer may be spread over several
lines. Sub-agents are left out: what they did is the result of the call that started them. A file
whose first message is a sub-agent's (`isSidechain`) is that sub-agent's own session. What people
typed, `isMeta` lines, summaries, snapshots and made-up answers (API errors) are no steps.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from midwatch_monitor.records import Edit, Event, Step, StepKind
from midwatch_monitor.traces.foreign import NOTHING_RAN, Calls, Node, Workplace
from midwatch_monitor.traces.json_stream import Damage, first_lines, lines

_WRITING = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})
_SPEAKERS = frozenset({"user", "assistant"})
_EXIT_CODE = re.compile(r"(?:Error: )?Exit code (\d+)\b")
_USAGE = (
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
)


def recognise(path: Path) -> bool:
    """Whether the head of the file holds a line of type `user` or `assistant` with a message."""
    return any(_speaks(line) for line in first_lines(path))


def read(path: Path) -> Iterator[Event | Damage]:
    """The steps of a session in the order of completion, as they are asked for."""
    run = _Run()
    for item in lines(path):
        if isinstance(item, Damage):
            yield item
        else:
            yield from run.take(item.node)
    yield from run.finish()


@dataclass(slots=True, kw_only=True)
class _Turn:
    """An answer of the model. What it said and cost goes to its first call."""

    key: str
    step: Step
    """A message; what is left of it when no call takes it."""
    called: bool = False


class _Run:
    """One session as it is read."""

    def __init__(self) -> None:
        self._place = Workplace()
        self._calls = Calls()
        self._requests = 0
        self._turn: _Turn | None = None
        self._sidechain: bool | None = None

    def take(self, line: Node) -> Iterator[Step]:
        """The steps that are complete with this line."""
        self._place.enter(line["cwd"].text)
        if not _speaks(line) or not self._own(line):
            return
        if line["type"].text == "assistant":
            yield from self._answer(line)
        else:
            for block in line["message"]["content"]:
                if block["type"].text == "tool_result":
                    yield from self._result(line, block)

    def finish(self) -> Iterator[Step]:
        """What still waits at the end."""
        yield from self._end_turn()
        yield from self._calls.rest()

    def _own(self, line: Node) -> bool:
        sidechain = bool(line["isSidechain"] or line["parent_tool_use_id"])
        if self._sidechain is None:
            self._sidechain = sidechain
        return sidechain == self._sidechain and not line["isMeta"]

    def _answer(self, line: Node) -> Iterator[Step]:
        message = line["message"]
        if line["isApiErrorMessage"] or message["model"].text == "<synthetic>":
            return
        key = message["id"].text or line["uuid"].text
        if self._turn is None or not key or key != self._turn.key:
            yield from self._end_turn()
            self._turn = self._begin(key, line)
        turn, content = self._turn, message["content"]
        said = [content.text, *(block["text"].text for block in content)]
        turn.step = replace(turn.step, text="\n\n".join(filter(None, [turn.step.text, *said])))
        for block in content:
            if block["type"].text == "tool_use" and not self._calls.knows(block["id"].text):
                yield from self._calls.open(block["id"].text, self._call(turn, line, block))

    def _begin(self, key: str, line: Node) -> _Turn:
        self._requests += 1
        usage = line["message"]["usage"]
        step = Step(
            number=0,
            kind=StepKind.MESSAGE,
            at=line["timestamp"].time,
            request=self._requests,
            tokens=sum(usage[kind].count for kind in _USAGE),
            cost_usd=line["costUSD"].amount,
        )
        return _Turn(key=key, step=step)

    def _end_turn(self) -> Iterator[Step]:
        turn, self._turn = self._turn, None
        if turn is not None and not turn.called and turn.step.text:
            yield self._calls.numbered(turn.step)

    def _call(self, turn: _Turn, line: Node, block: Node) -> Step:
        """The call as it waits; what the turn said and cost is taken by its first one."""
        tool, given = block["name"].text, block["input"]
        step = replace(
            turn.step,
            kind=StepKind.TOOL,
            at=line["timestamp"].time,
            tool=tool,
            args=given["command"].text if tool == "Bash" else given.canonical,
            path=self._place.path(_named(given)),
            edits=self._edits(tool, given),
            call=block["id"].text,
        )
        turn.called = True
        turn.step = replace(turn.step, text="", tokens=0, cost_usd=0.0)
        return step

    def _edits(self, tool: str, given: Node) -> tuple[Edit, ...]:
        """What the call changes if it succeeds."""
        if tool == "Bash":
            return self._place.run(given["command"].text)
        named = _named(given)
        if tool not in _WRITING or not named:
            return ()
        return self._place.write(named, given["content"].text if tool == "Write" else None)

    def _result(self, line: Node, block: Node) -> Iterator[Step]:
        step = self._calls.close(block["tool_use_id"].text)
        if step is None:
            return
        output, failed = _output(line, block), bool(block["is_error"])
        code = _exit_code(line, output, failed=failed) if step.tool == "Bash" else None
        # A command that failed may still have written, if it ran at all.
        kept = not failed or code not in (None, *NOTHING_RAN)
        yield self._calls.numbered(
            replace(
                step,
                at=line["timestamp"].time or step.at,
                ok=not failed,
                exit_code=code,
                output=output,
                edits=step.edits if kept else (),
            )
        )


def _exit_code(line: Node, output: str, *, failed: bool) -> int | None:
    """Of a command; `None` where it was refused, stopped, or goes on in the background.

    Also where it succeeded and a bare text is kept of it: hooks of some agents tell no more.
    """
    if not failed:
        kept = line["toolUseResult"]
        return None if kept["backgroundTaskId"] or isinstance(kept.value, str) else 0
    found = _EXIT_CODE.match(output)
    return int(found[1]) if found else None


def _speaks(line: Node) -> bool:
    return line["type"].text in _SPEAKERS and "content" in line["message"]


def _named(given: Node) -> str:
    names = ("file_path", "notebook_path", "path")
    return next((given[name].text for name in names if given[name].text), "")


def _output(line: Node, block: Node) -> str:
    """What came back, as the model saw it; else as it was kept beside."""
    content, kept = block["content"], line["toolUseResult"]
    return content.said or "\n".join(filter(None, [kept["stdout"].text, kept["stderr"].text]))
