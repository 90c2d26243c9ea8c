"""The ways by which a message leaves: a service that Apprise knows, or a signed webhook."""

import hashlib
import hmac
import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Protocol

from midwatch_monitor.config.notify import NotifySettings, TargetSettings
from midwatch_monitor.errors import MissingExtraError, NotifyError, UsageError
from midwatch_supervisor.notify.message import Notification
from midwatch_supervisor.present.json_lines import moment
from midwatch_supervisor.present.text_line import brief

if TYPE_CHECKING:
    from apprise import Apprise

_SECONDS = 10
"""How long a receiver may take."""


class Sender(Protocol):
    """One way to a person."""

    async def send(self, message: Notification) -> None:
        """Send it. Raises NotifyError where it was not taken."""
        ...


def senders_of(settings: NotifySettings, environ: Mapping[str, str]) -> dict[str, Sender]:
    """The way to each target, by its name; no connection is made yet.

    Raises UsageError for a missing variable or file and for a URL that no service knows, and
    MissingExtraError where Apprise is needed and not installed.
    """
    return {name: _sender(name, each, environ) for name, each in settings.targets.items()}


def _sender(name: str, target: TargetSettings, environ: Mapping[str, str]) -> Sender:
    where = f"notify.targets.{name}"
    variable = target.secret_env or target.url_env
    secret = environ.get(variable, "")
    if variable and not secret:
        raise UsageError(f"{where}: the environment variable {variable} is not set")
    if target.webhook:
        return _Webhook(url=target.webhook, secret=secret)
    url = secret or target.url.get_secret_value()
    if target.url_file is not None:
        try:
            url = target.url_file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError):
            raise UsageError(f"{where}: {target.url_file} cannot be read as text") from None
    return _Service(_apprise(where, url))


def _apprise(where: str, url: str) -> "Apprise":
    try:
        from apprise import Apprise, AppriseAsset
    except ModuleNotFoundError:
        raise MissingExtraError(f"{where}: a service by its URL", "notify") from None
    # What it logs is said in our words, and the console is where logs would be written.
    logs = logging.getLogger("apprise")
    logs.propagate = False
    logs.addHandler(logging.NullHandler())
    service = Apprise(asset=AppriseAsset(app_id="Midwatch"))
    if not service.add(url):  # pyright: ignore[reportUnknownMemberType]
        # Only the scheme: the rest may be a secret.
        scheme, mark, _ = url.partition("://")
        said = f" ({brief(scheme, 20)}://)" if mark else ""
        raise UsageError(
            f"{where}: no service is known by this URL{said}, a part of it is wrong, or a package "
            "that the service needs is not installed"
        )
    return service


@dataclass(frozen=True, slots=True)
class _Service:
    apprise: "Apprise"

    async def send(self, message: Notification) -> None:
        result = await self.apprise.async_notify(
            body=message.body,
            title=message.title,
            body_format="text",  # else a mail has it as HTML: one line, with others' elements
            timeout=_SECONDS,
            log_level=logging.WARNING,
        )
        if not result:
            said = next((str(each.message) for each in result.logs()), "no reason was given")
            raise NotifyError(f"the service did not take it: {brief(said, 200)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Webhook:
    url: str
    secret: str

    async def send(self, message: Notification) -> None:
        from httpx2 import AsyncClient, HTTPError, InvalidURL

        body = _json(message)
        signed = hmac.new(self.secret.encode(), body, hashlib.sha256).hexdigest()
        headers = {"Content-Type": "application/json", "Midwatch-Signature": f"sha256={signed}"}
        try:
            async with AsyncClient(timeout=_SECONDS) as client:
                answer = await client.post(self.url, content=body, headers=headers)
        except (HTTPError, InvalidURL) as error:
            # Without its text, which may hold the URL.
            raise NotifyError(f"the webhook cannot be reached: {type(error).__name__}") from None
        if not answer.is_success:
            raise NotifyError(f"the webhook answered HTTP {answer.status_code}")


def _json(message: Notification) -> bytes:
    told = {**asdict(message), "body": message.body}
    return json.dumps(told, ensure_ascii=False, default=moment).encode("utf-8", "replace")
