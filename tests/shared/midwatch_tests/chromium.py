"""A page in headless Chromium, driven by its DevTools protocol."""

import asyncio
import base64
import json
import os
import re
import shutil
import signal
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, ClientWebSocketResponse

PROGRAM = "chromium-headless-shell"
_OPTIONS = (
    "--no-sandbox",  # which root has none of
    "--disable-dev-shm-usage",
    "--disable-3d-apis",  # so that the terminal's rows are text of the page
    "--disable-background-networking",
    "--remote-debugging-port=0",
    "--window-size=1200,800",
)
_KEYS = {"Enter": ("Enter", 13, "\r"), "Escape": ("Escape", 27, "")}
_ROWS = (
    "[...document.querySelectorAll('.xterm-rows > div')].map(row => row.textContent).join('\\n')"
)
_LEFT = "Inspected target navigated or closed"


class Page:
    """What somebody before the browser sees and does."""

    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self._socket = socket
        self._ids = count(1)
        self._session: dict[str, str] = {}

    async def open(self, address: str) -> None:
        """Go to an address."""
        if not self._session:
            targets = (await self._call("Target.getTargets"))["targetInfos"]
            target = next(each["targetId"] for each in targets if each["type"] == "page")
            attached = await self._call("Target.attachToTarget", targetId=target, flatten=True)
            self._session = {"sessionId": attached["sessionId"]}
        await self._call("Page.navigate", url=address)

    async def text(self) -> str:
        """The rows of the terminal."""
        return str(await self.evaluate(_ROWS) or "")

    async def evaluate(self, script: str) -> Any:
        """The value of an expression in the page; `None` where the page is left meanwhile."""
        answer = await self._ask("Runtime.evaluate", expression=script, returnByValue=True)
        if _LEFT in str(answer.get("error")):
            return None
        assert "error" not in answer, answer
        return answer["result"]["result"].get("value")

    async def until(self, shown: Callable[[str], bool]) -> str:
        """Wait until the rows are as wanted, five minutes at most; the rows."""
        seen = ""
        try:
            async with asyncio.timeout(300):
                while not shown(seen := await self.text()):  # noqa: ASYNC110 — no event
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"the page shows\n{seen}") from None
        return seen

    async def press(self, *keys: str) -> None:
        """Press keys, one after the other: letters, or `Enter` and `Escape`."""
        for key in keys:
            code, number, text = _KEYS.get(key) or ("", ord(key.upper()), key)
            about = {"key": key, "code": code, "windowsVirtualKeyCode": number, "text": text}
            kind = "keyDown" if text else "rawKeyDown"
            await self._call("Input.dispatchKeyEvent", type=kind, **about)
            await self._call("Input.dispatchKeyEvent", type="keyUp", **about)

    async def picture(self) -> bytes:
        """What is seen, as a PNG."""
        answer = await self._call("Page.captureScreenshot", format="png")
        return base64.b64decode(answer["data"])

    async def _call(self, method: str, **params: Any) -> dict[str, Any]:
        answer = await self._ask(method, **params)
        assert "error" not in answer, answer
        return answer["result"]

    async def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        id = next(self._ids)
        await self._socket.send_json({"id": id, "method": method, "params": params} | self._session)
        async with asyncio.timeout(300):
            while (answer := json.loads(await self._socket.receive_str())).get("id") != id:
                pass
        return answer


@asynccontextmanager
async def chromium(folder: Path) -> AsyncGenerator[Page]:
    """A browser with a profile of its own; without the program skipped, but not in CI."""
    program = shutil.which(PROGRAM)
    if program is None and not os.environ.get("CI"):
        pytest.skip(f"there is no {PROGRAM}")
    browser = await asyncio.create_subprocess_exec(
        program or PROGRAM,
        *_OPTIONS,
        f"--user-data-dir={folder}",
        "about:blank",
        stdout=DEVNULL,
        stderr=PIPE,
        start_new_session=True,
    )
    try:
        assert browser.stderr is not None
        async with asyncio.timeout(300):
            said = (await browser.stderr.readuntil(b"/devtools/browser/")).decode()
            said += (await browser.stderr.readline()).decode()
        (address,) = re.findall(r"ws://\S+", said)
        async with ClientSession() as session, session.ws_connect(address, max_msg_size=0) as link:
            yield Page(link)
    finally:
        os.killpg(browser.pid, signal.SIGKILL)  # the processes of its pages as well
        await browser.communicate()
