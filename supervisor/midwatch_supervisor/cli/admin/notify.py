"""`midwatch notify`: check whether notifications reach their targets."""

import asyncio
import os
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from midwatch_monitor.errors import NotifyError, UsageError
from midwatch_supervisor.cli.output import write_error, write_json, write_line
from midwatch_supervisor.cli.settings import ConfigOption, JsonOption, settings_in_force

if TYPE_CHECKING:
    from midwatch_monitor.config.notify import NotifySettings

app = App(name="notify")


@app.command(name="test")
async def send_test(
    target: Annotated[str | None, Parameter(help="Only this target. Default: all.")] = None,
    *,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Send a test message to each target, and print the results.

    The exit code is 1 if one failed, 2 if the configuration of one is wrong.
    """
    settings = settings_in_force(config).notify
    if target is not None and target not in settings.targets:
        there = ", ".join(settings.targets) or "none"
        raise UsageError(f"there is no target {target}; known: {there}")
    if not settings.targets:
        raise UsageError("there is no target: `notify.targets` in the configuration is empty")
    chosen = [name for name in settings.targets if target in (None, name)]
    tried = await asyncio.gather(*(_send_test(settings, name) for name in chosen))
    for name, (_, failure) in zip(chosen, tried, strict=True):
        if json:
            write_json({"type": "notify", "target": name, "ok": not failure, "error": failure})
        elif failure:
            write_error(f"{name}: {failure}")
        else:
            write_line(f"{name}: sent")
    return max(code for code, _ in tried)


async def _send_test(settings: "NotifySettings", name: str) -> tuple[int, str]:
    """Send one target a test message; return the exit code, and why it failed, if it did."""
    from midwatch_supervisor.notify.news import Notification
    from midwatch_supervisor.notify.notifier import senders_of

    only = settings.model_copy(update={"targets": {name: settings.targets[name]}})
    try:
        await senders_of(only, os.environ)[name].send(
            Notification(title="Midwatch: this is a test")
        )
    except UsageError as error:
        return 2, str(error).removeprefix(f"notify.targets.{name}: ")
    except NotifyError as error:
        return 1, str(error)
    return 0, ""
