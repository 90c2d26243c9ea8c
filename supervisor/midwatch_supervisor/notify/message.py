"""What a target is told, in words. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from midwatch_monitor.records import Severity
from midwatch_supervisor.notify.news import News, NewsKind
from midwatch_supervisor.present.numbers import count_noun
from midwatch_supervisor.present.text_line import brief

_MOST = 20
"""Things that one message says; a person looks at more in Midwatch itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageItem:
    """One thing of a message, as a webhook has it."""

    key: str
    kind: NewsKind
    severity: Severity
    at: datetime
    run: int
    attempt: int | None
    name: str
    text: str
    commands: tuple[str, ...]
    look: str
    """Where to see more: a link or a command."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The same as text; the commands only where the text does not name one."""
        said = any(each in self.text for each in self.commands)
        return f"{self.name}: {self.text}", *(() if said else self.commands), self.look, ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """What is sent."""

    title: str
    items: tuple[MessageItem, ...] = ()
    more: int = 0
    """How many further things there are."""

    @property
    def body(self) -> str:
        """All of it as plain text."""
        lines = [line for item in self.items for line in item.lines]
        if self.more:
            lines.append(f"and {self.more} more: midwatch status")
        return "\n".join(lines).strip() or self.title


def message(
    news: Sequence[News], *, content: bool, link: str, mask: Callable[[str], str]
) -> Notification:
    """One message about some news, of which there is at least one; `mask` takes secrets out."""
    items = tuple(
        MessageItem(
            key=each.key,
            kind=each.kind,
            severity=each.severity,
            at=each.at,
            run=each.run,
            attempt=each.attempt,
            name=brief(mask(each.name)),
            text=brief(mask(each.text if content else each.bare)),
            commands=each.commands,
            look=_look(each, link),
        )
        for each in news[:_MOST]
    )
    first = items[0]
    more = f" (and {count_noun(len(news) - 1, 'other thing')})" if len(news) > 1 else ""
    title = f"Midwatch: {brief(f'{first.name} {first.text}', 120)}{more}"
    return Notification(title=title, items=items, more=len(news) - len(items))


def _look(news: News, link: str) -> str:
    if link:
        return link.replace("{attempt}", str(news.attempt or ""))
    return "midwatch status" if news.attempt is None else f"midwatch show {news.attempt}"
