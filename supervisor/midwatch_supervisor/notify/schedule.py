"""When which target is told what. Pure."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from midwatch_monitor.config.notify import NotifySettings, QuietSettings, TargetSettings
from midwatch_supervisor.notify.news import News, NewsKind

STALE = timedelta(days=1)
"""What happened so long ago is not told any more: a new target does not want all that ever was."""


def due(
    news: Iterable[News],
    told: Mapping[str, datetime],
    *,
    target: TargetSettings,
    settings: NotifySettings,
    now: datetime,
) -> tuple[News, ...]:
    """What is to be said to a target now, in one message; empty if it is not time yet.

    `told` is when the target was told which news, by key; `now` is in local time, which the quiet
    hours go by.
    """
    open_ones = [
        (each, since)
        for each in news
        if _wanted(each, target)
        and (since := _open_since(each, told, settings, now)) is not None
        and not _kept_back(each, settings.quiet, now)
    ]
    first = min((since for _, since in open_ones), default=None)
    if first is None or now - first < timedelta(seconds=settings.group_seconds):
        return ()
    return tuple(each for each, _ in open_ones)


def _wanted(news: News, target: TargetSettings) -> bool:
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
    """Since when it is to be said; `None` if it is not, or not again."""
    waits = news.kind is NewsKind.WAITING
    if news.key not in told:
        return news.at if waits or now - news.at < STALE else None
    again = told[news.key] + timedelta(minutes=settings.repeat_minutes)
    # What is said again has no company to wait for.
    return news.at if waits and settings.repeat_minutes and again <= now else None


def _kept_back(news: News, quiet: QuietSettings | None, now: datetime) -> bool:
    if quiet is None or not _within(quiet, now):
        return False
    return news.kind is not NewsKind.ALERT or news.severity.rank < quiet.least.rank


def _within(quiet: QuietSettings, now: datetime) -> bool:
    clock = now.time()
    if quiet.begin < quiet.end:
        return quiet.begin <= clock < quiet.end
    return clock >= quiet.begin or clock < quiet.end
