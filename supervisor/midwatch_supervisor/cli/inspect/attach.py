"""`midwatch attach`: watch agents that a person starts, through their session files and hooks."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from errno import EACCES
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from midwatch_monitor.errors import MissingExtraError, UsageError
from midwatch_monitor.traces import FORMATS, find_traces, recognise
from midwatch_monitor.traces.session_reader import KEPT
from midwatch_supervisor.cli.journals import (
    FromOption,
    JournalOption,
    journal_of_work,
    journal_place,
)
from midwatch_supervisor.cli.output import write_error, write_line
from midwatch_supervisor.cli.run.options import HeadlessOption, Output, output
from midwatch_supervisor.cli.settings import AnyPort, ConfigOption, JsonOption, settings_in_force

if TYPE_CHECKING:
    from midwatch_monitor.bus import FleetBus
    from midwatch_monitor.config.settings import Settings
    from midwatch_supervisor.cli.run.conduct import Reporter
    from midwatch_supervisor.fleet.monitors.fleet_monitor import FleetMonitor
    from midwatch_supervisor.notify.notifier import Sender
    from midwatch_supervisor.sessions.session_journal import SessionJournal
    from midwatch_supervisor.sessions.session_watch import SessionSources, SessionWatch
    from midwatch_supervisor.sessions.span_watch import SpanWatch

OTLP = "otlp"
_LOOK_SECONDS = 0.5
"""Seconds between two looks into the journal for something to print."""


def attach(
    *what: Annotated[
        str,
        Parameter(
            name="WHAT",
            help=f"An agent ({', '.join(KEPT)}), a session file, a folder of such files, or "
            f"`{OTLP}` for agents that send OpenTelemetry spans. Default: all of these agents.",
        ),
    ],
    since: Annotated[
        float, Parameter(help="Include sessions that changed within this many hours.")
    ] = 1.0,
    port: Annotated[
        AnyPort,
        Parameter(
            help=f"Local port on which `{OTLP}` receives spans over HTTP; 0 for any free one."
        ),
    ] = 4318,
    once: Annotated[
        bool, Parameter(help="Record and judge the existing sessions, then exit.")
    ] = False,
    headless: HeadlessOption = False,
    config: ConfigOption = None,
    journal: JournalOption = None,
    author: FromOption = None,
    json: JsonOption = False,
) -> int:
    """Watch coding agents that you start yourself, live, until interrupted.

    Their session files are only read. If their hooks call Midwatch (`midwatch hook install`), you
    can also guide and stop them.
    """
    from midwatch_supervisor.cli.fleet.log import log_to_stderr
    from midwatch_supervisor.cli.interrupts import run_to_end
    from midwatch_supervisor.telemetry.exporting import headers_of

    settings = settings_in_force(config)
    headers_of(settings.telemetry, os.environ)  # mistakes there are reported first
    if OTLP in what and once:
        raise UsageError(f"`{OTLP}` receives spans until interrupted: leave out --once")
    sources = _session_sources([each for each in what if each != OTLP], hours=since)
    if set(what) == {OTLP}:
        sources = replace(sources, agents=())
    spans = port if OTLP in what else None
    shown = output(headless=headless or once, quiet=False, json=json)
    work = _follow_sessions(
        settings, journal_place(journal), sources, spans, shown, author, once=once
    )
    if shown is Output.CONSOLE:
        from midwatch_supervisor.tui.keys import check_console

        check_console(settings.console)
        return run_to_end(work, grace_seconds=settings.run.grace_seconds, notice="")
    with log_to_stderr():
        return run_to_end(work, grace_seconds=settings.run.grace_seconds)


def _session_sources(what: Sequence[str], *, hours: float) -> "SessionSources":
    from midwatch_monitor.journal.core.clock import now
    from midwatch_supervisor.sessions.session_watch import SessionSources

    if not 0 <= hours <= 24 * 365:
        raise UsageError("--since takes a number of hours, from 0 to a year")
    unknown = [each for each in what if each not in KEPT and not _is_place(each)]
    if unknown:
        raise UsageError(
            f"{unknown[0] or '``'} is neither a known agent ({', '.join(KEPT)}) nor a file or "
            "folder"
        )
    return SessionSources(
        agents=tuple(KEPT[each] for each in (what or KEPT) if each in KEPT),
        paths=tuple(Path(each).absolute() for each in what if each not in KEPT),
        since=now() - timedelta(hours=hours),
    )


def _is_place(name: str) -> bool:
    return bool(name) and (Path(name).is_file() or Path(name).is_dir())


async def _follow_sessions(
    settings: "Settings",
    location: str,
    sources: "SessionSources",
    spans: int | None,
    shown: Output,
    author: str | None,
    *,
    once: bool,
) -> int:
    from midwatch_monitor.journal.core.clock import journal_clock, now
    from midwatch_supervisor.cli.inspect.watch import show_journal
    from midwatch_supervisor.cli.interrupts import run_until_first
    from midwatch_supervisor.cli.operate.tell import bus_of
    from midwatch_supervisor.cli.run.conduct import Reporter
    from midwatch_supervisor.notify.notifier import senders_of
    from midwatch_supervisor.operator.actions import OperatorActions, operator_name
    from midwatch_supervisor.sessions.session_journal import SessionJournal

    senders = senders_of(settings.notify, os.environ)
    async with AsyncExitStack() as stack:
        journal = await stack.enter_async_context(await journal_of_work(location, settings))
        bus = await stack.enter_async_context(bus_of(settings.fleet))
        clock = await stack.enter_async_context(journal_clock(journal, now))
        sessions = SessionJournal(journal=journal, settings=settings, bus=bus, clock=clock)
        reporter = Reporter(journal, (), shown, clock=clock, told=await journal.last_id())
        watch = await _start_watch(stack, sessions, sources)
        monitor = _build_monitor(sessions, bus, location, senders)
        if once:
            for _ in range(2):  # a second look sees the questions to a person
                while await watch.look():
                    pass
                await monitor.once()
            await reporter.catch_up()
            return _say_none_found(watch, sources)
        at, spanned = ("", []) if spans is None else await _take_spans(stack, sessions, spans)
        about = _about_lines(sources, at, journal.name)
        if shown is Output.CONSOLE:
            operator = OperatorActions(journal, author=operator_name(author), bus=bus, clock=clock)
            nothing = _empty_text(sources, at)
            showing = show_journal(
                journal, None, operator, settings, bus, about=about, nothing=nothing
            )
        else:
            showing = _print_news(reporter, bus, about if shown is Output.PROGRESS else ())
        # A watch ends only with an error, and sees nothing afterwards.
        works = (each.run() for each in (watch, monitor, *spanned))
        await run_until_first(*works, showing)
    return 0


async def _start_watch(
    stack: AsyncExitStack, sessions: "SessionJournal", sources: "SessionSources"
) -> "SessionWatch":
    """Return the watch over the sessions, whose hooks are answered until the stack ends.

    Raises UsageError if the hooks cannot be answered.
    """
    from midwatch_agents.hooks.inbox import socket_path, state_folder
    from midwatch_supervisor.sessions.session_watch import SessionWatch, listen_for_hooks

    watch = SessionWatch(sessions, sources, environ=os.environ, home=Path.home())
    stack.callback(watch.close)
    if not (sources.agents or sources.paths):  # another process may answer the hooks
        return watch
    folder = state_folder(os.environ, Path.home())
    try:
        at = socket_path(folder)
        if at is None:
            raise PermissionError(EACCES, "it is not your folder")
        await stack.enter_async_context(listen_for_hooks(at, watch))
        await watch.empty_inbox()
    except OSError as error:
        raise UsageError(
            f"cannot listen for hooks in {folder} ({error.strerror or error}): "
            "set MIDWATCH_STATE to a writable folder of yours"
        ) from error
    return watch


async def _take_spans(
    stack: AsyncExitStack, sessions: "SessionJournal", port: int
) -> "tuple[str, list[SpanWatch]]":
    """Receive spans until the stack ends; return the address, and the watch that is to be run.

    Raises UsageError if it cannot listen there, and MissingExtraError.
    """
    if find_spec("aiohttp") is None or find_spec("opentelemetry.proto") is None:
        raise MissingExtraError(f"`attach {OTLP}`", "otel")
    from aiohttp import web

    from midwatch_supervisor.sessions.span_watch import SpanWatch
    from midwatch_supervisor.telemetry.http_listener import serve

    watch = SpanWatch(sessions)
    stack.callback(watch.close)
    route = web.post("/v1/traces", watch.answer)
    taken = await stack.enter_async_context(serve("127.0.0.1", port, route))
    return f"http://127.0.0.1:{taken}", [watch]


def _build_monitor(
    sessions: "SessionJournal", bus: "FleetBus", location: str, senders: "Mapping[str, Sender]"
) -> "FleetMonitor":
    """Return the monitor that judges and answers what is recorded here."""
    from midwatch_supervisor.fleet.monitors.fleet_monitor import FleetMonitor
    from midwatch_supervisor.fleet.process import identity

    return FleetMonitor(
        sessions.journal,
        location=location,
        bus=bus,
        settings=sessions.settings,
        holder=identity(f"{identity(None).name[:70]}-{os.getpid()}").holder,
        clock=sessions.clock,
        tell=lambda told: None,
        senders=senders,
    )


def _about_lines(sources: "SessionSources", spans: str, journal: str) -> list[str]:
    """Describe what is watched."""
    files = sources.agents or sources.paths
    hooked = [each.agent for each in sources.agents if _is_hooked(each.agent)]
    install = "; `midwatch hook install AGENT` lets you guide and stop its next sessions"
    guided = install if files else ""
    about = f"Watching sessions of {_watched_text(sources, spans)}; journal {journal}"
    if hooked:
        guided = f"Those of {', '.join(hooked)} can be guided and stopped through their hooks"
        rest = len(hooked) < len(sources.agents) or sources.paths or spans
        return [about, f"{guided}; the others are only read" if rest else guided]
    return [about, f"Midwatch only reads them{guided}"]


def _is_hooked(agent: str) -> bool:
    from midwatch_agents.hooks.adapters import ADAPTERS
    from midwatch_agents.hooks.settings_file import called_programs, hooks_switch

    try:
        adapter = ADAPTERS[agent]
        text = adapter.settings_file(os.environ, Path.home()).read_text("utf-8")
        programs = [] if hooks_switch(text, adapter) else called_programs(text, adapter)
    except (KeyError, OSError, UnicodeDecodeError, UsageError):
        return False
    return bool(programs) and all(map(shutil.which, programs))


def _watched_text(sources: "SessionSources", spans: str) -> str:
    what = [each.agent for each in sources.agents] + [str(each) for each in sources.paths]
    what += [f"any agent that sends spans to {spans}"] if spans else []
    return ", ".join(what)


def _empty_text(sources: "SessionSources", spans: str) -> str:
    """Return the console's text before the first session."""
    back = "; `--since 24` shows those of the last day" if _looks_back_less(sources) else ""
    return (
        f"No session of {_watched_text(sources, spans)} yet. Start an agent: its session appears "
        f"here as soon as it does something{back}."
    )


def _say_none_found(watch: "SessionWatch", sources: "SessionSources") -> int:
    """Say that `--once` found nothing to record, and return the exit code."""
    # For a file given by name, the watch has said why.
    folders = tuple(each for each in sources.paths if each.is_dir())
    what = _watched_text(replace(sources, paths=folders), "")
    if watch.sessions or not what:
        return 0
    back = "; `--since 24` looks back a day" if _looks_back_less(sources) else ""
    write_error(f"No recent session of {what}{back}")
    for folder in folders:
        trace = next(find_traces(folder), None)
        format = None if trace is None else recognise(trace)
        if format is not None and FORMATS[format].session is None:
            write_error(f"{folder} cannot be followed: `midwatch replay` reads files of {format}")
    return 0


def _looks_back_less(sources: "SessionSources") -> bool:
    """Whether it searches sessions of less than the last day."""
    from midwatch_monitor.journal.core.clock import now

    searches = bool(sources.agents or sources.paths)
    return searches and now() - sources.since < timedelta(days=1)


async def _print_news(reporter: "Reporter", bus: "FleetBus", about: Sequence[str]) -> None:
    """Print `about` and what happens until told to stop; without `about`, JSON only."""
    from midwatch_supervisor.cli.interrupts import run_until_stopped

    def leave() -> None:
        if about:
            write_line("The sessions are no longer watched")

    async def following() -> None:
        write_line(*about)
        sys.stdout.flush()
        async with bus.subscribe() as hints:
            while True:
                await reporter.catch_up()
                sys.stdout.flush()
                await hints.wait(_LOOK_SECONDS)

    await run_until_stopped(following(), leave)
