"""The attempt that `kill_driver.py` has killed: a worker that writes down all that it does.

Its model logs each request that it answers, its tools log each time that they run; both logs
survive a killed process, as their lines are appended by the kernel.
"""

import os
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from midwatch_agents.scripted import Call, Phase, Script, Turn, play
from midwatch_monitor.bus import LocalBus
from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Intervention

JOURNAL = Path("journal.db")
REQUESTS = Path("requests.log")
ACTS = Path("acts.log")
WORKSPACE = Path("home", "work", "r1", "fix-1")


def _reflect(progress: int, decision: str) -> Call:
    args = f'{{"progress_percent": {progress}, "confidence": 80, "decision": "{decision}"}}'
    return Call(tool="reflect", args=args)


def _write(text: str) -> Call:
    return Call(tool="write_file", args=f'{{"path": "out.txt", "text": "{text}"}}')


_DONE = (
    '{"goal": "out.txt", "files": ["out.txt"], "structural": [], "functional": [],'
    ' "confidence": 90}'
)

SCRIPT = Script(
    phases=(
        Phase(
            turns=(
                Turn(say="I begin.", calls=(_write("one"),)),
                Turn(calls=(_reflect(20, "continue"),)),
                Turn(calls=(_write("two"),)),
                Turn(say="I need help.", calls=(_reflect(30, "escalate"), Call(tool="listen"))),
                Turn(calls=(_write("nobody spoke"),)),
            )
        ),
        Phase(
            turns=(
                Turn(calls=(_write("three"),)),
                Turn(calls=(Call(tool="complete_step", args=_DONE),)),
                Turn(say="Done."),
            )
        ),
    )
)


class LoggingModel(WrapperModel):
    """A model that writes down which requests it has answered."""

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        response = await super().request(messages, model_settings, model_request_parameters)
        answered = sum(isinstance(message, ModelResponse) for message in messages)
        append(REQUESTS, f"request {answered + 1}")
        return response


def append(log: Path, line: str) -> None:
    """Add a line that no crash takes back."""
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)


def write_file(path: str, text: str) -> str:
    """Write a file."""
    append(ACTS, text)
    (WORKSPACE / path).write_text(text)
    return f"wrote {text}"


async def listen() -> str:
    """Wait until somebody has decided to say something; to wait twice does no harm."""
    nothing = LocalBus().subscribe()
    async with await Journal.open_to_read(JOURNAL) as journal:
        while not await journal.entries(kinds=(Intervention,)):
            await nothing.wait(0.01)
    return "heard"


worker = Agent(LoggingModel(play(SCRIPT)), tools=[write_file, listen])
