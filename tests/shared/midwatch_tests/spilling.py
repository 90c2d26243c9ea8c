"""A worker that spills every secret that it can reach, in all that it says and does."""

import json
import os

from pydantic_ai import ModelRetry

from midwatch_agents.scripted import Call, Phase, Script, Turn
from midwatch_monitor.config.tasks import Role
from midwatch_tests.made_up import NAMED, SECRETS, key_block

TEXTS = [*SECRETS.values(), *(around.format(secret) for around, secret in NAMED.values())]
SAID = SECRETS["openai key"]
VARIABLE = "PROJECT_TOKEN"


def environment() -> str:
    """Show the environment, the secrets of this project, and a key."""
    lines = [*TEXTS, key_block("RSA PRIVATE KEY"), f"{VARIABLE}={os.environ[VARIABLE]}"]
    return "\n".join(lines)


def fail_with(secret: str) -> str:
    """Fail at something, so that it can be tried again."""
    raise ModelRetry(f"401: refused {secret}")


def crash(secret: str) -> str:
    """Fail for good."""
    raise ValueError(f"401: refused {secret}")


def _call(tool: str, **args: object) -> Call:
    return Call(tool=tool, args=json.dumps(args))


_REPORT = {
    "progress_percent": 50,
    "confidence": 80,
    "decision": "continue",
    "notes": f"the key is {SAID}",
    "blockers": [f"Authorization: Bearer {SAID}"],
}


def script_for(role: Role, key: str) -> Script:
    """The worker's script."""
    if key == "crash":
        crashes = Turn(calls=(_call("crash", secret="\n".join(TEXTS)),))
        return Script(phases=(Phase(turns=(crashes,)),))
    turns = (
        Turn(say=f"I use {SAID}.", calls=(_call("environment"),)),
        Turn(calls=(_call("fail_with", secret="\n".join(TEXTS)),)),
        Turn(calls=(_call("reflect", **_REPORT),)),
        Turn(calls=(_call("put", path=".env", text="\n".join(TEXTS)),)),
        Turn(say=f"Done with {SAID}."),
    )
    return Script(phases=(Phase(turns=turns),))


async def put(path: str, text: str) -> str:
    """Write a file."""
    return f"wrote {len(text)} characters into {path}"
