"""Reads an agent's updates during a turn, leniently: agents differ. Pure."""

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from midwatch_monitor.rules.identity import UNREPORTED
from midwatch_monitor.traces.foreign import JsonNode

_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_PRINTED = ("output", "formatted_output", "aggregated_output")
"""Names of all that a command printed; some agents give it under several of them."""
_OUTPUTS = ("stdout", "stderr", "content", "text")
_EXITS = ("exit_code", "exitCode", "exit", "code")
_CLAUDE_CODE = "Bash"
"""Claude Code's shell, which ends as completed only with exit code 0."""
_CLAUDE_EXIT = re.compile(r"Exit code (\d+)\b")
_SHOWING = frozenset({"execute", "read", "search", "fetch"})
"""Kinds of calls that have an output, though some agents do not report it."""
_FOLDER = frozenset({"cwd"})
ENDED = frozenset({"completed", "failed"})
"""The statuses of a call that is over."""


@dataclass(slots=True, kw_only=True)
class AgentCall:
    """A tool call of an agent, as far as it has been reported."""

    id: str
    tool: str = ""
    title: str = ""
    """A description for people; some agents report nothing else about a command."""
    kind: str = ""
    """The protocol's kind: `read`, `edit`, `execute`, …"""
    args: dict[str, object] = field(default_factory=dict[str, object])
    unfilled: bool = False
    """Whether the agent has begun to report arguments, but none yet, or only the folder."""
    path: str = ""
    output: str = ""
    exit_code: int | None = None
    status: str = ""
    streamed: list[str] = field(default_factory=list[str])
    """The pieces of its output, if the agent sends it piece by piece."""
    refused: bool = False
    """Whether the permission that the agent asked for was refused."""

    def tell(self, said: JsonNode) -> None:
        """Take in an update or a permission request; fields it lacks are kept."""
        content, result, meta = said["content"], said["rawOutput"], said["_meta"]
        self.status = said["status"].text or self.status
        self.tool = self.tool or _tool(said)
        self.kind = said["kind"].text or self.kind
        self.title = said["title"].text or self.title
        if args := said["rawInput"]:
            self.args |= args.members or {"input": args.value}
        self.unfilled = ("rawInput" in said or self.unfilled) and self.args.keys() <= _FOLDER
        if self.kind != "execute":  # there it is the folder
            paths = (each["path"].text for each in said["locations"])
            self.path = next(filter(None, paths), self.path)
        places = (result, meta["terminal_exit"])
        codes = (_find_key(each, key).whole for each in places for key in _EXITS)
        self.exit_code = next((each for each in codes if each is not None), self.exit_code)
        if piece := meta["terminal_output_delta"]["data"].text:
            self.streamed.append(piece)
        if self.streamed:
            self.output = "".join(self.streamed) if self.over else ""
        elif content.value is not None or result.value is not None:
            self.output = self._call_output(content, result)
        if self.over and self.exit_code is None and self.tool == _CLAUDE_CODE:
            found = _CLAUDE_EXIT.match(self.output)
            self.exit_code = int(found[1]) if found else None if self.failed else 0

    @property
    def running(self) -> bool:
        """Whether the call has begun and its arguments are complete."""
        return self.status not in {"", "pending"}

    @property
    def over(self) -> bool:
        """Whether it has ended, successfully or not."""
        return self.status in ENDED

    @property
    def failed(self) -> bool:
        """Whether it failed."""
        return self.status == "failed"

    def _call_output(self, content: JsonNode, result: JsonNode) -> str:
        """Return the output: of a command what it printed, if that is known.

        Its content may be a report that also names processes, and so differs each time.
        """
        printed = _printed_text(result) if self.kind == "execute" else None
        if printed is None or not (printed or self.exit_code is not None):
            return text_of(content) or _output(result)
        return printed

    def result(self) -> str:
        """Return its output and exit code as `read_result` reads them."""
        code = "" if self.exit_code is None else f"[exit code: {self.exit_code}]"
        if said := "\n".join(filter(None, (self.output, code))):
            return said
        if self.failed:
            unsaid = "It failed, and the agent does not say why."
            return "It was not permitted." if self.refused else unsaid
        return UNREPORTED if self.kind in _SHOWING else ""

    def arguments(self) -> dict[str, object]:
        """Return its arguments, including the file it is about.

        If the agent reports none, its title stands for them, unless that only names the file.
        """
        told: dict[str, object] = {"path": self.path} if self.path else {}
        if self.unfilled and _NAME.fullmatch(self.title):  # it names the tool, as `Shell` does
            return told | self.args
        if self.kind == "execute" and "command" not in self.args:
            told["command"] = self.title
        elif not self.args and not self._names_only_file and self.title not in {"", self.tool}:
            told["title"] = self.title
        return told | self.args

    @property
    def _names_only_file(self) -> bool:
        return bool(self.path) and (self.path in self.title or self.path.endswith(self.title))

    def words(self) -> str:
        """Return what it does, in words that can follow `asks to`; complete, for whoever decides.

        Line breaks are made visible, so that a comment cannot hide what follows it.
        """
        command = self.arguments().get("command")
        if isinstance(command, list):
            command = shlex.join(map(str, cast("list[object]", command)))
        if self.kind == "execute" and command:
            words = f"run `{command}`"
        elif self.path:
            words = f"{self.kind or self.tool} {self.path}"
        else:
            title = "" if self.title == self.tool else self.title
            told = json.dumps(self.args, ensure_ascii=False) if self.args else ""
            more = " ".join(filter(None, (title, told)))
            words = f"use {self.tool}: {more}" if more else f"use {self.tool}"
        return " \u23ce ".join(words.split("\n"))


def _tool(said: JsonNode) -> str:
    """Return the tool's name if the agent reports it, else its kind."""
    title, kind, args = said["title"].text.strip(), said["kind"].text, said["rawInput"]
    if named := _find_key(said["_meta"], "toolName").text:
        return named
    command = args["command"]
    is_command = title in {command.text, *(each.text for each in command)}
    # Without arguments, the title stands for them: it is a command or a file.
    if kind == "other" or (_NAME.fullmatch(title) and "rawInput" in said and not is_command):
        return title
    return kind or title or "tool"


def _find_key(said: JsonNode, key: str) -> JsonNode:
    """Return the value of a key, in the object or in one of its members."""
    if key in said:
        return said[key]
    below = (JsonNode(each)[key] for each in said.members.values())
    return next((each for each in below if each.value is not None), JsonNode())


def text_of(content: JsonNode) -> str:
    """Return the text of a content block, or of a list of them."""
    if content.is_object:
        return content["text"].text or text_of(content["content"])
    return content.text or "\n".join(filter(None, map(text_of, content)))


def _printed_text(result: JsonNode) -> str | None:
    """Return all that a command printed; `None` if the result does not say."""
    if not result.is_object:
        return result.text or None
    return next((result[key].text for key in _PRINTED if key in result), None)


def _output(result: JsonNode) -> str:
    if printed := _printed_text(result):
        return printed
    texts = [result[key].text for key in _OUTPUTS if result[key].text]
    rest = result.without(frozenset(_EXITS)).value
    return "\n".join(texts) or (json.dumps(rest, ensure_ascii=False, default=str) if rest else "")


def is_ours(tool: str, ours: Sequence[str]) -> bool:
    """Whether this names one of the tools that Midwatch gave the agent, in any spelling."""
    words = re.sub(r"[^a-z0-9]+", "_", tool.lower()).strip("_")
    return any(words == each or (each in words and "midwatch" in words) for each in ours)


def choose_option(options: JsonNode, *, allow: bool) -> str | None:
    """Return the option to choose: once rather than always, the first of its kind; `None` if none.

    Options are chosen by kind, never by id: agents use any ids they like.
    """
    wanted = ("allow_once", "allow_always") if allow else ("reject_once", "reject_always")
    known = [(each["kind"].text, each["optionId"].text) for each in options]
    return next((id for want in wanted for kind, id in known if kind == want), None)


def cost_of(update: JsonNode) -> float | None:
    """Return the cost of the session so far in US dollars, if the update contains it."""
    cost = update["cost"]
    told = "amount" in cost and cost["currency"].text in {"", "USD"}
    return cost["amount"].amount if told else None


def tokens_of(answer: JsonNode) -> tuple[int, int]:
    """Return a turn's input and output tokens if the answer to its prompt has them, else 0."""
    usage = answer["usage"]
    return usage["inputTokens"].count, usage["outputTokens"].count
