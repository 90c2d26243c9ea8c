"""What an agent says of its work while a turn goes on, read leniently: agents differ. Pure."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from midwatch_agents.acp.json_shape import items, members

_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_OUTPUTS = (
    "output",
    "formatted_output",
    "aggregated_output",
    "stdout",
    "stderr",
    "content",
    "text",
)
_EXITS = ("exit_code", "exitCode", "exit", "code")
_ENDED = frozenset({"completed", "failed"})


class _Message(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Update(_Message):
    """One `session/update`, or the tool call of a request for permission; all of it may lack."""

    kind_of_update: str = Field(default="", validation_alias="sessionUpdate")
    call: str = Field(default="", validation_alias="toolCallId")
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    args: object = Field(default=None, validation_alias="rawInput")
    result: object = Field(default=None, validation_alias="rawOutput")
    content: object = None
    locations: object = None
    cost: object = None
    meta: object = Field(default=None, validation_alias="_meta")


def read_update(value: object) -> Update:
    """An update; what cannot be read says nothing."""
    try:
        return Update.model_validate(value)
    except ValidationError:
        return Update()


@dataclass(slots=True, kw_only=True)
class AgentCall:
    """A tool call of an agent, as far as it has told of it."""

    id: str
    tool: str = ""
    title: str = ""
    """What it does, for people; of some agents all that they tell of a command."""
    kind: str = ""
    """Of the protocol's: `read`, `edit`, `execute`, …"""
    args: dict[str, object] = field(default_factory=dict[str, object])
    path: str = ""
    output: str = ""
    exit_code: int | None = None
    status: str = ""

    def tell(self, update: Update) -> None:
        """Take in what is new of it; what an update leaves out stays as it was."""
        self.status = update.status or self.status
        self.tool = self.tool or _tool(update)
        self.kind = update.kind or self.kind
        self.title = update.title or self.title
        if update.args:
            self.args |= members(update.args) or {"input": update.args}
        if self.kind != "execute":  # there it is the folder
            self.path = next(_paths(update.locations), self.path)
        if update.content is not None or update.result is not None:
            self.output = text_of(update.content) or _output(update.result)
        if (code := _exit_code(update.result)) is not None:
            self.exit_code = code

    @property
    def running(self) -> bool:
        """Whether it has begun, with all that is told of its arguments."""
        return self.status not in {"", "pending"}

    @property
    def over(self) -> bool:
        """Whether it has ended, well or not."""
        return self.status in _ENDED

    @property
    def failed(self) -> bool:
        """Whether it could not do what it was to do."""
        return self.status == "failed"

    def arguments(self) -> dict[str, object]:
        """Its arguments; the file that it is about is among them."""
        told = {"path": self.path} if self.path else {}
        if self.kind == "execute" and "command" not in self.args:
            told["command"] = self.title
        return told | self.args


def _tool(update: Update) -> str:
    """The tool's name where the agent says it, else of what kind it is."""
    named = _deep(update.meta, "toolName")
    if isinstance(named, str) and named:
        return named
    title = (update.title or "").strip()
    if _NAME.fullmatch(title):
        return title
    kind = update.kind or ""
    return title if kind == "other" else kind or title or "tool"


def _deep(value: object, key: str) -> object:
    """What stands under a key, or under it in one of the members."""
    known = members(value)
    if key in known:
        return known[key]
    found = (members(each).get(key) for each in known.values())
    return next((each for each in found if each is not None), None)


def _paths(locations: object) -> Iterator[str]:
    found = (members(each).get("path") for each in items(locations))
    return (path for path in found if isinstance(path, str))


def text_of(content: object) -> str:
    """The text of a content block, or of a list of them."""
    if isinstance(content, str):
        return content
    if listed := items(content):
        return "\n".join(filter(None, map(text_of, listed)))
    known = members(content)
    text = known.get("text")
    return text if isinstance(text, str) else text_of(known.get("content", ""))


def _output(result: object) -> str:
    if result is None or isinstance(result, str):
        return result or ""
    known = members(result)
    texts = [text for key in _OUTPUTS if isinstance(text := known.get(key), str) and text]
    return "\n".join(texts) or json.dumps(result, ensure_ascii=False, default=str)


def _exit_code(result: object) -> int | None:
    found = (_deep(result, key) for key in _EXITS)
    return next((each for each in found if isinstance(each, int)), None)


def is_ours(tool: str, ours: Sequence[str]) -> bool:
    """Whether an agent speaks of one of the tools that Midwatch gave it, whatever it calls that."""
    words = re.sub(r"[^a-z0-9]+", "_", tool.lower()).strip("_")
    return any(words == each or (each in words and "midwatch" in words) for each in ours)


class Option(_Message):
    """One answer to a request for permission."""

    id: str = Field(default="", validation_alias="optionId")
    kind: str = ""


def chosen(options: object, *, allow: bool) -> str | None:
    """The answer to take: once rather than for ever, and the first of a kind. `None` for none.

    By its kind and never by its id, which every agent names as it likes.
    """
    known: list[Option] = []
    for each in items(options):
        try:
            known.append(Option.model_validate(each))
        except ValidationError:
            continue
    wanted = ("allow_once", "allow_always") if allow else ("reject_once", "reject_always")
    return next((each.id for kind in wanted for each in known if each.kind == kind), None)


def cost_of(update: Update) -> float | None:
    """US dollars that the session has cost so far, if the update says so."""
    cost = members(update.cost)
    amount, currency = cost.get("amount"), cost.get("currency")
    return float(amount) if isinstance(amount, int | float) and currency in {None, "USD"} else None


def tokens_of(answer: object) -> tuple[int, int]:
    """Input and output tokens of a turn, as far as the answer to its prompt says; else 0."""
    usage = members(members(answer).get("usage"))
    found = [usage.get(key) for key in ("inputTokens", "outputTokens")]
    known = [each if isinstance(each, int) and each > 0 else 0 for each in found]
    return known[0], known[1]
