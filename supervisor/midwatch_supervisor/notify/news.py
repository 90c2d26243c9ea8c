"""What people are told about one run: what is news, when it is due, and the wording. Pure."""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from midwatch_monitor.command_hint import command
from midwatch_monitor.config.notify import NotifySettings, QuietSettings, TargetSettings
from midwatch_monitor.records import (
    Alert,
    AlertKey,
    Change,
    Entry,
    Fault,
    Notified,
    Record,
    Resolution,
    Severity,
    TaskTransition,
)
from midwatch_monitor.state.attempt import AttemptState
from midwatch_monitor.state.attempt_details import Awaited
from midwatch_monitor.state.run import OPEN_QUESTION_KINDS, RunState
from midwatch_monitor.state.task import REFUSED, TaskState, refusal
from midwatch_supervisor.notify.unreachable_targets import fault_part
from midwatch_supervisor.present.numbers import count_noun
from midwatch_supervisor.present.record_text import line
from midwatch_supervisor.present.text_line import NODE, brief
from midwatch_supervisor.present.waiting import answer_commands, attempt_waits_for

KINDS: tuple[type[Record], ...] = (*OPEN_QUESTION_KINDS, Alert, Change, Fault, Notified)
"""The kinds of records that news is made from."""
_PERSONAL = frozenset(
    {Awaited.APPROVAL, Awaited.ANSWER, Awaited.PERMISSION, Awaited.PERSON, Awaited.END}
)
"""What only a person can give. A person who paused an attempt knows that it is paused."""

_MOST = 1000
"""Number of events of a run that are remembered, the newest ones."""


class NewsKind(StrEnum):
    ALERT = "alert"
    WAITING = "waiting"
    """An attempt waits for a person."""
    NODE = "node"
    """A node was lost, or cannot do a task."""
    END = "end"
    """The end of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """One thing to tell people."""

    key: str
    """The same for the same event, whoever reads the journal."""
    kind: NewsKind
    at: datetime
    run: int
    task: int
    attempt: int | None
    name: str
    """The attempt's name as people use it, or the run's."""
    text: str
    bare: str
    """The text in Midwatch's own words, without anything from workers or about files."""
    severity: Severity = Severity.WARNING
    alert: AlertKey | None = None
    """The alert that it is about."""
    commands: tuple[str, ...] = ()
    """Commands with which a person answers; one is enough."""


class RunNews:
    """The news of one run, and which of it was sent. Takes the run's entries in order.

    Tasks and attempts must be added to `state` before their first entry.
    """

    def __init__(self, run: int) -> None:
        self.run = run
        self.state = RunState()
        self.last: Entry | None = None
        """The newest entry taken in."""
        self.told: defaultdict[str, dict[str, datetime]] = defaultdict(dict)
        """When each piece of news was sent, by target and key."""
        self.failed: set[str] = set()
        """Parts of Midwatch that failed and have not worked since: see `fault_part`."""
        self._happened: deque[News] = deque(maxlen=_MOST)
        self._moved: Entry | None = None
        """When each of its tasks last changed state."""
        self._refused: defaultdict[int, set[str]] = defaultdict(set)
        """Why nodes could not do each task, since it was last begun or begun again."""

    @property
    def over(self) -> bool:
        """Whether all its tasks have ended."""
        return all(task.over for task in self.state.tasks.values())

    def fold(self, entry: Entry) -> None:
        """Take in the next entry."""
        self.last = entry
        self.state.fold(entry)
        task = self.state.tasks[entry.task]
        attempt = task.attempts.get(entry.attempt or 0)
        match entry.record:
            case Notified() as sent:
                self.told[sent.target] |= dict.fromkeys(sent.keys, entry.at)
                self.failed.discard(fault_part(sent.target))
            case Fault() as fault if fault.part == NODE:
                self._add_news(entry, NewsKind.NODE, line(fault).text)
            case Fault() as fault:
                self.failed.add(fault.part)
            case Alert() as alert:
                self._drop_outdated(entry.attempt, alert)
                if alert.firing and (attempt is None or alert.key not in attempt.silenced):
                    key = AlertKey(rule=alert.key.rule)
                    bare = line(replace(alert, key=key, summary="", evidence=())).text
                    told = (line(alert).text, bare, alert.severity)
                    self._add_news(entry, NewsKind.ALERT, *told, alert=alert.key)
            case TaskTransition() as moved:
                self._moved = entry
                self._note_refusal(entry, moved)
            case _:
                pass

    def news(self) -> Iterator[News]:
        """Return past events, oldest first, then the current state."""
        yield from self._happened
        for task in self.state.tasks.values():
            for attempt in task.attempts.values():
                since = attempt.needed_since
                if since and attempt.awaited[0] in _PERSONAL and not attempt.goes_on:
                    yield self._waiting_news(task, attempt, since)
        if self._moved is not None and self.over:
            yield self._end_news(self._moved)

    def _drop_outdated(self, attempt: int | None, alert: Alert) -> None:
        """Drop news of the same alert if it fires as severely now, or has stopped firing.

        An alert that fired until its attempt ended stays news.
        """
        over = not alert.firing and alert.resolution is not Resolution.ENDED
        outdated = [
            each
            for each in self._happened
            if (each.attempt, each.alert) == (attempt, alert.key)
            and (over or (alert.firing and each.severity.rank <= alert.severity.rank))
        ]
        for each in outdated:
            self._happened.remove(each)

    def _note_refusal(self, entry: Entry, moved: TaskTransition) -> None:
        """Make news of a node that cannot do a task, once for each reason."""
        if moved.lifecycle.over:
            self._refused.pop(entry.task, None)
        elif (said := refusal(moved)) and said not in self._refused[entry.task]:
            self._refused[entry.task].add(said)
            bare = said.partition(REFUSED)[0] + REFUSED.removesuffix(": ")
            self._add_news(entry, NewsKind.NODE, said, bare)

    def _add_news(
        self,
        entry: Entry,
        kind: NewsKind,
        text: str,
        bare: str = "",
        severity: Severity = Severity.WARNING,
        *,
        alert: AlertKey | None = None,
    ) -> None:
        task = self.state.tasks[entry.task]
        attempt = task.attempts.get(entry.attempt or 0)
        self._happened.append(
            News(
                key=f"{kind}:{entry.id}",
                kind=kind,
                at=entry.at,
                run=self.run,
                task=entry.task,
                attempt=entry.attempt,
                name=_task_name(task, attempt),
                text=text,
                bare=bare or text,
                severity=severity,
                alert=alert,
            )
        )

    def _waiting_news(self, task: TaskState, attempt: AttemptState, since: datetime) -> News:
        awaited, about = attempt.awaited
        which = about.id if about else attempt.interventions.permission or since.isoformat()
        return News(
            key=f"{NewsKind.WAITING}:{attempt.id}:{awaited}:{which}",
            kind=NewsKind.WAITING,
            at=since,
            run=self.run,
            task=attempt.task,
            attempt=attempt.id,
            name=_task_name(task, attempt),
            text=f"waits for {attempt_waits_for(attempt)}",
            bare=f"waits for {attempt_waits_for(attempt, content=False)}",
            # It may be read when a newer run has a task of that name.
            commands=answer_commands(task, f" --run {self.run}"),
        )

    def _end_news(self, moved: Entry) -> News:
        states = Counter(task.status.value for task in self.state.tasks.values())
        text = f"over: {', '.join(f'{count} {state}' for state, count in states.items())}"
        return News(
            key=f"{NewsKind.END}:{moved.id}",
            kind=NewsKind.END,
            at=moved.at,
            run=self.run,
            task=moved.task,
            attempt=None,
            name=f"run {self.run}",
            text=text,
            bare=text,
        )


def _task_name(task: TaskState, attempt: AttemptState | None) -> str:
    return f"{task.task.name}#{attempt.attempt.number}" if attempt else task.task.name


_MOST_TOLD = 20
"""Number of things in one message; Midwatch itself shows the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageItem:
    """One item of a message, as sent to a webhook."""

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
        """The item as text; commands are added only if the text names none of them."""
        said = any(each in self.text for each in self.commands)
        return f"{self.name}: {self.text}", *(() if said else self.commands), self.look, ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """A message to send."""

    title: str
    items: tuple[MessageItem, ...] = ()
    more: int = 0
    """Number of items left out."""
    more_look: str = ""
    """The command that shows those."""

    @property
    def body(self) -> str:
        """The whole message as plain text."""
        lines = [line for item in self.items for line in item.lines]
        if self.more:
            lines.append(f"and {self.more} more: {self.more_look}")
        return "\n".join(lines).strip() or self.title


def message(
    news: Sequence[News], *, content: bool, link: str, mask: Callable[[str], str]
) -> Notification:
    """Return one message about at least one piece of news, the most urgent first.

    `mask` removes secrets.
    """
    news = sorted(news, key=_urgency)
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
            look=_show_link(each, link),
        )
        for each in news[:_MOST_TOLD]
    )
    first = items[0]
    more = f" (and {count_noun(len(news) - 1, 'other thing')})" if len(news) > 1 else ""
    title = f"Midwatch: {brief(f'{first.name} {first.text}', 120)}{more}"
    left_out = news[_MOST_TOLD:]
    return Notification(
        title=title,
        items=items,
        more=len(left_out),
        more_look=_status_of({each.run for each in left_out}) if left_out else "",
    )


def _urgency(news: News) -> tuple[int, int]:
    """Order news: what waits for a person, then nodes, then alerts by severity, then the end."""
    return _BY_URGENCY.index(news.kind), -news.severity.rank


_BY_URGENCY = (NewsKind.WAITING, NewsKind.NODE, NewsKind.ALERT, NewsKind.END)


def _show_link(news: News, link: str) -> str:
    if link and (news.attempt is not None or "{attempt}" not in link):
        return link.replace("{attempt}", str(news.attempt))
    return _status_of({news.run}) if news.attempt is None else command(f"show {news.attempt}")


def _status_of(runs: Collection[int]) -> str:
    """Return the command that shows these runs, even if there is a newer one."""
    return command("status --all" if len(runs) > 1 else f"status --run {min(runs)}")


STALE = timedelta(days=1)
"""Older events are not sent: a new target does not want the whole history."""


def due(
    news: Iterable[News],
    told: Mapping[str, datetime],
    *,
    target: TargetSettings,
    settings: NotifySettings,
    now: datetime,
) -> tuple[News, ...]:
    """Return what to tell a target now, in one message; empty if it is not time yet.

    `told` says when the target was told which news, by key; `now` is in local time, which applies
    to the quiet hours.
    """
    open_ones = [
        (each, since)
        for each in news
        if _is_wanted(each, target)
        and (since := _open_since(each, told, settings, now)) is not None
        and not _kept_back(each, settings.quiet, now)
    ]
    first = min((since for _, since in open_ones), default=None)
    if first is None or now - first < timedelta(seconds=settings.group_seconds):
        return ()
    return tuple(each for each, _ in open_ones)


def _is_wanted(news: News, target: TargetSettings) -> bool:
    match news.kind:
        case NewsKind.ALERT:
            return news.severity.rank >= target.severity.rank
        case NewsKind.END:
            return target.ends
        case _:
            return True


def _open_since(
    news: News, told: Mapping[str, datetime], settings: NotifySettings, now: datetime
) -> datetime | None:
    """Return since when news is due; `None` if it is not, or not again."""
    waits = news.kind is NewsKind.WAITING
    if news.key not in told:
        return news.at if waits or now - news.at < STALE else None
    again = told[news.key] + timedelta(minutes=settings.repeat_minutes)
    # A repeated message does not wait to be grouped.
    return news.at if waits and settings.repeat_minutes and again <= now else None


def _kept_back(news: News, quiet: QuietSettings | None, now: datetime) -> bool:
    if quiet is None or not _in_quiet_hours(quiet, now):
        return False
    return news.kind is not NewsKind.ALERT or news.severity.rank < quiet.least.rank


def _in_quiet_hours(quiet: QuietSettings, now: datetime) -> bool:
    clock = now.time()
    if quiet.begin < quiet.end:
        return quiet.begin <= clock < quiet.end
    return clock >= quiet.begin or clock < quiet.end
