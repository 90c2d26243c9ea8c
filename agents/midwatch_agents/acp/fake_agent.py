"""An agent without a model, which follows a script and speaks ACP. A program, not a module.

Like the scripted model, it is for demonstrations and tests. `docs/agents.md` describes its scripts.
"""

import asyncio
import json
import os
import re
import sys
from argparse import ArgumentParser, ArgumentTypeError
from contextlib import suppress
from pathlib import Path
from typing import Any

_SESSION = "fake-1"


class FakeAgent:
    """One process with one session."""

    def __init__(self, file: Path) -> None:
        self._script: dict[str, Any] = json.loads(file.read_text())
        self._memory = file.with_suffix(".memory")
        self._heard = file.with_suffix(".answers")
        """The answers it received, for tests to read."""
        self._done = 0
        self._told: list[str] = []
        self._calls = 0
        self._answer = asyncio.Future[dict[str, Any]]()
        """The answer to the last permission request."""
        self._turn: asyncio.Task[None] | None = None
        self._waiting: list[int] = []
        self._folder = Path.cwd()
        self._tools: Any = None
        """The process that connects it to Midwatch's tools."""

    async def serve(self) -> None:
        """Answer requests until the input closes."""
        for line in self._script.get("noise", ()):
            _write(line)
        reader = asyncio.StreamReader(limit=2**24)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            message: dict[str, Any] = json.loads(line)
            if "method" in message:
                await self._handle_request(
                    message["method"], message.get("params") or {}, message.get("id")
                )
            else:
                if not self._answer.done():
                    self._answer.set_result(message["result"])
                with self._heard.open("a") as file:
                    file.write(f"{json.dumps(message)}\n")
        if self._script.get("deaf"):
            await asyncio.Event().wait()

    async def _handle_request(self, method: str, params: dict[str, Any], id: int | None) -> None:
        match method:
            case "initialize":
                able = {"loadSession": bool(self._script.get("loads"))}
                self._send(id=id, result={"protocolVersion": 1, "agentCapabilities": able})
            case "session/new" | "session/load":
                await self._start_session(params)
                self._send(id=id, result={"sessionId": _SESSION})
            case "session/prompt" if id is not None:
                self._told.append(params["prompt"][0]["text"])
                self._waiting.append(id)
                if self._turn is None:
                    self._turn = asyncio.create_task(self._run_turn())
                elif not self._script.get("joins"):
                    self._turn.cancel()
            case "_session/steering" if self._script.get("steers"):
                self._told.append(params["prompt"][0]["text"])
                self._send(id=id, result={"outcome": "injected"})
            case "session/cancel":
                if self._turn is not None:
                    self._turn.cancel()
            case _:
                self._send(id=id, error={"code": -32601, "message": f"no method {method}"})

    async def _start_session(self, params: dict[str, Any]) -> None:
        self._folder = Path(params["cwd"])
        if "sessionId" in params and self._memory.exists():  # earlier acts are not repeated
            self._done = int(self._memory.read_text())
        server = params["mcpServers"][0]
        self._tools = await asyncio.create_subprocess_exec(
            server["command"], *server["args"], stdin=-1, stdout=-1
        )
        await self._call_tool_server("initialize", protocolVersion="2025-06-18")
        await self._call_tool_server("tools/list")

    async def _call_tool_server(self, method: str, **params: Any) -> dict[str, Any]:
        asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self._tools.stdin.write(json.dumps(asked).encode() + b"\n")
        return json.loads(await self._tools.stdout.readline())["result"]

    async def _run_turn(self) -> None:
        reason = ""
        try:
            while self._done < len(self._script["acts"]) and not reason:
                act = self._script["acts"][self._done]
                self._done += 1
                self._memory.write_text(str(self._done))
                reason = await self._do_act(act)
        except asyncio.CancelledError:
            reason = "cancelled"
        self._turn = None
        for id in self._waiting:
            ended = {"stopReason": reason or "end_turn", "usage": {"inputTokens": 10}}
            self._send(id=id, result=ended)
        self._waiting.clear()

    async def _do_act(self, act: dict[str, Any]) -> str:
        """Do one act; return why the turn ends, if it does."""
        match act:
            case {"say": text}:
                self._update("agent_message_chunk", content={"type": "text", "text": text})
            case {"run": command}:
                await self._run(command)
            case {"write": path, "text": text}:
                self._report_begin("write", "edit", {"filePath": path, "content": text})
                (self._folder / path).write_text(text)
                self._report_end("Wrote file successfully.", {})
            case {"tool": name, "args": args}:
                self._report_begin(f"midwatch_{name}", "other", args)
                found = await self._call_tool_server("tools/call", name=name, arguments=args)
                self._report_end(found["content"][0]["text"], {})
            case {"ask": title}:
                if not await self._ask_permission(title):
                    return "end_turn"
                for each in act.get("acts", ()):
                    await self._do_act(each)
            case {"end": reason}:
                return reason
            case {"until": wanted, "acts": acts}:
                await self._repeat(wanted, acts)
            case _:
                await self._do_other_act(act)
        return ""

    async def _do_other_act(self, act: dict[str, Any]) -> None:
        """Do an act that is not work."""
        match act:
            case {"cost": amount}:
                self._update("usage_update", cost={"amount": amount, "currency": "USD"})
            case {"wait": seconds}:
                await asyncio.sleep(seconds)
            case {"hang": _}:
                await self._run("sleep infinity")
            case {"die": code}:
                sys.stderr.write("it is all too much\n")
                os._exit(code)
            case _:
                sys.stderr.write(f"there is no such act: {json.dumps(act)}\n")
                os._exit(2)

    async def _run(self, command: str) -> None:
        self._report_begin("bash", "execute", {"command": command})
        process = await asyncio.create_subprocess_shell(
            command, cwd=self._folder, stdin=-3, stdout=-1, stderr=-2
        )
        output, _ = await process.communicate()
        self._report_end(output.decode(errors="replace"), {"exit": process.returncode})

    async def _repeat(self, wanted: str, acts: list[dict[str, Any]]) -> None:
        for _ in range(200):
            if any(re.search(wanted, each) for each in self._told):
                return
            for each in acts:
                await self._do_act(each)

    async def _ask_permission(self, title: str) -> bool:
        self._calls += 1
        self._answer = asyncio.Future[dict[str, Any]]()
        kinds = ("allow_once", "reject_once")
        options = [{"optionId": f"{kind}_1", "kind": kind} for kind in kinds]
        call = {"toolCallId": f"call-{self._calls}", "title": title, "kind": "execute"}
        params = {"sessionId": _SESSION, "toolCall": call, "options": options}
        self._send(id=self._calls, method="session/request_permission", params=params)
        found = await self._answer
        allowed = found["outcome"].get("optionId") == "allow_once_1"
        status = "completed" if allowed else "failed"
        self._update("tool_call_update", toolCallId=call["toolCallId"], status=status)
        return allowed

    def _report_begin(self, title: str, kind: str, args: dict[str, Any]) -> None:
        self._calls += 1
        told = {"toolCallId": f"call-{self._calls}", "title": title, "kind": kind}
        self._update("tool_call", **told, status="pending", rawInput={})
        self._update("tool_call_update", **told, status="in_progress", rawInput=args)

    def _report_end(self, output: str, metadata: dict[str, Any]) -> None:
        told = {"output": output, "metadata": metadata}
        call = f"call-{self._calls}"
        self._update("tool_call_update", toolCallId=call, status="completed", rawOutput=told)

    def _update(self, of: str, **told: Any) -> None:
        params = {"sessionId": _SESSION, "update": {"sessionUpdate": of, **told}}
        self._send(method="session/update", params=params)

    def _send(self, **message: Any) -> None:
        told = {key: each for key, each in message.items() if each is not None}
        _write(json.dumps({"jsonrpc": "2.0", **told}))


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _script(name: str) -> Path:
    """Return the file of a script; raise ArgumentTypeError if it is not one."""
    file = Path(name)
    try:
        script = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise ArgumentTypeError(f"{name} cannot be read as JSON: {error}") from error
    if not isinstance(script, dict) or not isinstance(script.get("acts"), list):  # pyright: ignore[reportUnknownMemberType]
        raise ArgumentTypeError(f"{name} must be an object with a list of `acts`")
    return file


async def _serve(file: Path) -> None:
    await FakeAgent(file).serve()


if __name__ == "__main__":
    parser = ArgumentParser(
        prog="python -m midwatch_agents.acp.fake_agent",
        description="An agent that speaks ACP on its standard streams, and has no model.",
    )
    parser.add_argument("script", metavar="SCRIPT.json", type=_script, help="what it does")
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(parser.parse_args().script))
