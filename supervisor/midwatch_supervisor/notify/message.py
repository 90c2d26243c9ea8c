"""What a target is told, in words. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from midwatch_supervisor.notify.news import News
from midwatch_supervisor.present.numbers import counted
from midwatch_supervisor.present.text_line import brief

_MOST = 20
"""Things that one message says; a person looks at more in Midwatch itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing of a message."""

    news: News
    name: str
    text: str
    look: str
    """Where to see more: a link or a command."""

    @property
    def commands(self) -> tuple[str, ...]:
        """Those by which it is answered, as far as the text does not name them."""
        said = any(each in self.text for each in self.news.commands)
        return () if said else self.news.commands


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What is sent."""

    title: str
    items: tuple[Item, ...] = ()
    more: int = 0
    """How many further things there are."""

    @property
    def body(self) -> str:
        """All of it as plain text."""
        lines: list[str] = []
        for item in self.items:
            lines += [f"{item.name}: {item.text}", *item.commands, item.look, ""]
        if self.more:
            lines.append(f"and {self.more} more: midwatch status")
        return "\n".join(lines).strip() or self.title


def message(
    news: Sequence[News], *, content: bool, link: str, mask: Callable[[str], str]
) -> Message:
    """One message about some news, of which there is at least one; `mask` takes secrets out."""
    items = tuple(
        Item(
            news=each,
            name=brief(mask(each.name)),
            text=brief(mask(each.text if content else each.bare)),
            look=_look(each, link),
        )
        for each in news[:_MOST]
    )
    first = items[0]
    more = f" (and {counted(len(news) - 1, 'other thing')})" if len(news) > 1 else ""
    title = f"Midwatch: {brief(f'{first.name} {first.text}', 120)}{more}"
    return Message(title=title, items=items, more=len(news) - len(items))


def _look(news: News, link: str) -> str:
    if link:
        return link.replace("{attempt}", str(news.attempt or ""))
    return "midwatch status" if news.attempt is None else f"midwatch show {news.attempt}"
