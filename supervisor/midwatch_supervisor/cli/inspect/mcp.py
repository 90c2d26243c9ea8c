"""`midwatch mcp`: serve Midwatch's data and tools to programs, over the Model Context Protocol."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from midwatch_monitor.errors import MissingExtraError, UsageError
from midwatch_supervisor.cli.fleet.log import PlainFormatter
from midwatch_supervisor.cli.interrupts import run_to_end
from midwatch_supervisor.cli.journals import JournalOption
from midwatch_supervisor.cli.settings import ConfigOption, settings_in_force

if TYPE_CHECKING:
    from midwatch_supervisor.cli.inspect.web import Page

AUTHOR = "mcp"
"""The default author of actions."""
_HOST = "127.0.0.1"
_GRACE_SECONDS = 0.5


def mcp(
    *,
    write: Annotated[
        bool, Parameter(help="Also offer tools that guide, stop and approve.")
    ] = False,
    worker: Annotated[
        str | None,
        Parameter(
            help="Watch the client itself as a worker with this name, which reports through tools."
        ),
    ] = None,
    http: Annotated[
        str | None,
        Parameter(
            name="--http",
            help=f"HOST:PORT or PORT to serve over HTTP ({_HOST} without a host). Default: the "
            "standard streams of this process.",
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        Parameter(
            help="File with the token of `--http`, readable only by you; created if missing. "
            "Default: $MIDWATCH_WEB_TOKEN, else a new random token."
        ),
    ] = None,
    author: Annotated[
        str | None,
        Parameter(name="--from", help=f"Author of actions with `--write`. Default: {AUTHOR}."),
    ] = None,
    journal: JournalOption = None,
    config: ConfigOption = None,
) -> int:
    """Serve Midwatch over MCP: let a program read, act (`--write`), or be watched (`--worker`)."""
    if worker is not None and (write or http is not None):
        raise UsageError("--worker takes neither --write nor --http: a connection is one worker")
    if worker is not None:
        _check_name(worker)
    if token_file is not None and http is None:
        raise UsageError("--token-file is for --http")
    try:
        import mcp.server  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        raise MissingExtraError("`midwatch mcp`", "mcp") from error
    _log_plainly()
    if worker is not None:
        work = _serve_worker(worker, journal, config)
    else:
        work = _serve(journal, (author or AUTHOR) if write else None, _http_page(http, token_file))
    return run_to_end(work, grace_seconds=_GRACE_SECONDS, notice="")


def _check_name(worker: str) -> None:
    from midwatch_monitor.config.section import LONGEST_NAME

    if not worker.strip():
        raise UsageError("--worker needs a name")
    if len(worker) > LONGEST_NAME:
        raise UsageError(f"--worker takes a name of at most {LONGEST_NAME} characters")


def _log_plainly() -> None:
    """Log warnings in the usual format, before the library chooses another."""
    handler = logging.StreamHandler()
    handler.setFormatter(PlainFormatter("%(levelname)s %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


def _http_page(http: str | None, token_file: Path | None) -> "Page | None":
    """Return the address to serve on over HTTP, and the token to ask for."""
    from midwatch_supervisor.cli.inspect.web import host_and_port, page_at

    if http is None:
        return None
    host, port = host_and_port("--http", http)
    if not port:  # the printed address must be the one in use
        raise UsageError("--http takes HOST:PORT, or PORT alone")
    return page_at(host, port, token_file)


async def _serve(journal: str | None, author: str | None, page: "Page | None") -> int:
    from midwatch_supervisor.cli.mcp_server.supervising import supervising_server
    from midwatch_supervisor.cli.mcp_server.transports import serve_http, serve_stdio

    server = supervising_server(journal, author=author)
    await (serve_stdio(server) if page is None else serve_http(server, page))
    return 0


async def _serve_worker(name: str, journal: str | None, config: Sequence[Path] | None) -> int:
    from midwatch_supervisor.cli.mcp_server.transports import serve_stdio
    from midwatch_supervisor.cli.mcp_server.worker import watch_of, worker_server

    async with worker_server(watch_of(name, journal, settings_in_force(config))) as server:
        await serve_stdio(server)
    return 0
