"""What Midwatch does, in a network of its own: what was to leave it, and what was received.

A program for a network namespace with nothing but loopback, a folder with `midwatch.yaml` and
`tasks.yaml`, and a home with one session of Claude Code. Its argument says how much is done. At
RECEIVER something takes whatever is sent. It prints JSON, or fails with a reason.
"""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from midwatch_tests.collector import collector, tool_span, tracing
from midwatch_tests.command import MIDWATCH

PORT = 4318
RECEIVER = f"http://127.0.0.1:{PORT}"
FOUND = "Zyzzyva"
"""What the calls of the agent that sends spans return."""
WALLS = ("bwrap", "--unshare-net", "--dev-bind", "/", "/", "--tmpfs", "/run")
"""Without /run nobody is there who would look up a name for others."""


class Extent(StrEnum):
    """How much is done."""

    SESSION = "session"
    """One command: the session is taken in and judged."""
    ALL = "all"
    """A run as well, spans of another agent, and commands that have nothing to send."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What went through the network."""

    left: int
    """Packets for elsewhere: there is no way for them, so each is counted where it is refused."""
    received: tuple[str, ...]
    """What the receiver was sent, as Latin-1."""


async def traffic(folder: Path, extent: Extent) -> Traffic:
    """Do so much in a folder."""
    process = await asyncio.create_subprocess_exec(
        *(*WALLS, sys.executable, "-m", __name__, extent),
        cwd=folder,
        env={**os.environ, "MIDWATCH_STATE": str(folder / "state")},
        stdout=PIPE,
        stderr=PIPE,
    )
    out, errors = await asyncio.wait_for(process.communicate(), 150)
    assert process.returncode == 0, errors.decode()
    told = json.loads(out)
    return Traffic(left=told["left"], received=tuple(told["received"]))


def _lost() -> int:
    """Packets without a route, and those to a server of names on loopback: nobody is there."""
    rows = [line.split() for line in Path("/proc/net/snmp").read_text().splitlines()]
    found = {
        f"{names[0]}{name}": int(value)
        for names, values in zip(rows[::2], rows[1::2], strict=True)
        for name, value in zip(names[1:], values[1:], strict=True)
    }
    six = dict(line.split() for line in Path("/proc/net/snmp6").read_text().splitlines())
    return found["Ip:OutNoRoutes"] + found["Udp:NoPorts"] + int(six["Ip6OutNoRoutes"])


async def _run(*words: str, given: str = "", code: int = 0) -> None:
    """Run a command as a process of its own."""
    await _end_well(*MIDWATCH, *words, given=given, code=code)


async def _run_all(*commands: tuple[str, ...]) -> None:
    """Run commands in turn in one process, as each start takes longer than most of them.

    What they leave to send until the process ends is sent by then.
    """
    program = (
        "import json, sys; from midwatch_supervisor.cli import main\n"
        "sys.exit(any([main(each) for each in json.loads(sys.argv[1])]))"
    )
    await _end_well(sys.executable, "-c", program, json.dumps(commands))


async def _end_well(*command: str, given: str = "", code: int = 0) -> None:
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    out, errors = await process.communicate(given.encode())
    assert process.returncode == code, f"{command}: {out.decode()}{errors.decode()}"


async def _take_spans() -> None:
    process = await asyncio.create_subprocess_exec(
        *(*MIDWATCH, "attach", "otlp", "--headless", "--port", "0"), stdout=PIPE
    )
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode()
    url = line.partition("spans to ")[2].partition(";")[0]
    exporter = OTLPSpanExporter(endpoint=f"{url}/v1/traces", timeout=60)
    with tracing(exporter) as tracer:
        for _ in range(6):
            tool_span(tracer, "look_up", "{}", FOUND)
    while b"repeated_call" not in (said := await process.stdout.readline()):
        assert said, "the spans were not judged"
    process.terminate()
    await process.communicate()


async def _answer_by_mcp() -> None:
    from mcp import Client, StdioServerParameters  # it takes a second, and one extent needs it

    server = StdioServerParameters(command=MIDWATCH[0], args=[*MIDWATCH[1:], "mcp"])
    async with Client(server) as client:
        assert not (await client.call_tool("list_attempts", {})).is_error


async def _do(extent: Extent, session: Path) -> None:
    look = ("attach", "--once")
    if extent is Extent.SESSION:
        await _run(*look)
        return
    event = {"session_id": "s1", "hook_event_name": "Stop", "transcript_path": str(session)}
    await _run("hook", "claude-code", given=json.dumps(event))
    await _run("run", "tasks.yaml", "--headless", code=4)
    await _take_spans()
    install = ("hook", "install", "claude-code", "--yes")
    await _run_all(look, ("replay", str(session)), ("metrics",), install)
    await _answer_by_mcp()


if __name__ == "__main__":
    with collector(PORT) as receiver:
        asyncio.run(_do(Extent(sys.argv[1]), next(Path.home().rglob("*.jsonl"))))
    received = tuple(each.decode("latin-1") for each in receiver.bodies)
    sys.stdout.write(json.dumps(asdict(Traffic(left=_lost(), received=received))))
