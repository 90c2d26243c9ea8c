"""`midwatch notify`: whether those who are called can be reached."""

import asyncio
import os
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from midwatch_monitor.errors import NotifyError, UsageError
from midwatch_supervisor.cli.output import write_error, write_json, write_line
from midwatch_supervisor.cli.settings import ConfigOption, JsonOption, settings_in_force

if TYPE_CHECKING:
    from midwatch_supervisor.notify.notifier import Sender

app = App(name="notify")


@app.command(name="test")
async def send_test(
    target: Annotated[str | None, Parameter(help="Only this one. Default: all.")] = None,
    *,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Send a test message to each target, and say what came of it; exit code 1 if one failed."""
    from midwatch_supervisor.notify.notifier import senders_of

    settings = settings_in_force(config).notify
    if target is not None and target not in settings.targets:
        there = ", ".join(settings.targets) or "none"
        raise UsageError(f"there is no target {target}; there is: {there}")
    if not settings.targets:
        raise UsageError("nobody is called: `notify.targets` in the configuration is empty")
    chosen = {name: each for name, each in settings.targets.items() if target in (None, name)}
    senders = senders_of(settings.model_copy(update={"targets": chosen}), os.environ)
    failures = await asyncio.gather(*map(_try, senders.values()))
    for name, failure in zip(senders, failures, strict=True):
        if json:
            write_json({"type": "notify", "target": name, "ok": not failure, "error": failure})
        elif failure:
            write_error(f"{name}: {failure}")
        else:
            write_line(f"{name}: sent")
    return 1 if any(failures) else 0


async def _try(sender: "Sender") -> str:
    """Why a test message was not taken; empty if it was."""
    from midwatch_supervisor.notify.news import Notification

    try:
        await sender.send(Notification(title="Midwatch: this is a test"))
    except NotifyError as error:
        return str(error)
    return ""
