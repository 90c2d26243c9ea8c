"""Settings for notifications: recipients, how they are reached, and when."""

import re
from datetime import time
from pathlib import Path
from typing import Annotated, Self

from pydantic import BeforeValidator, ConfigDict, Field, SecretStr, model_validator

from midwatch_monitor.config.section import Name, Refusal, Section
from midwatch_monitor.records import Severity

_CLOCK = re.compile(r"([01]\d|2[0-3]):[0-5]\d(:00)?")


def _check_clock(value: object) -> object:
    if isinstance(value, time) or (isinstance(value, str) and _CLOCK.fullmatch(value)):
        return value
    raise Refusal('must be a time of the day: "22:00"')


ClockTime = Annotated[time, BeforeValidator(_check_clock)]


class TargetSettings(Section):
    """A recipient. Exactly one of the first four says how it is reached."""

    model_config = ConfigDict(serialize_by_alias=True)

    url: SecretStr = SecretStr("")
    """A URL for Apprise: `ntfys://…`, `mailtos://…`, `slack://…`, `matrixs://…`, `dbus://`."""
    url_env: str = ""
    """The environment variable with such a URL."""
    url_file: Path | None = None
    """A file with only such a URL."""
    webhook: str = ""
    """`https://…`: receives JSON, signed with a secret."""
    secret_env: str = ""
    """The environment variable with this secret."""
    severity: Severity = Field(default=Severity.WARNING, alias="from")
    """Alerts of at least this severity are sent. What waits for a person is always sent."""
    content: bool = False
    """Whether texts written by workers, and texts about files, are sent, too, or only the rule, the
    task and so on.
    """
    ends: bool = False
    """Whether the end of a run is reported."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        """Refuse a target with no way or two ways, and a webhook that cannot be signed."""
        ways = {
            "url": self.url.get_secret_value(),
            "url_env": self.url_env,
            "url_file": self.url_file,
            "webhook": self.webhook,
        }
        named = [name for name, value in ways.items() if value]
        if len(named) != 1:
            said = f"; there are {' and '.join(named)}" if named else ""
            raise Refusal(f"must have exactly one of {', '.join(ways)}{said}")
        if self.webhook and not self.webhook.startswith(("https://", "http://")):
            raise Refusal("must begin with https:// or http://", at=("webhook",))
        if bool(self.webhook) != bool(self.secret_env):
            raise Refusal("`webhook` and `secret_env` need each other: the message is signed")
        return self


class QuietSettings(Section):
    """When nobody is notified, by the local time of the notifying process."""

    model_config = ConfigDict(serialize_by_alias=True)

    begin: ClockTime = Field(alias="from")
    end: ClockTime = Field(alias="to")
    """If it is earlier than the beginning, it is on the next day."""
    least: Severity = Field(default=Severity.CRITICAL, alias="except")
    """Alerts of at least this severity are sent all the same."""

    @model_validator(mode="after")
    def _some_time(self) -> Self:
        """Refuse an empty span, which may be meant as the whole day."""
        if self.begin == self.end:
            raise Refusal("must end at another time than it begins", at=("to",))
        return self


class NotifySettings(Section):
    """Who is notified while nobody is watching."""

    targets: Annotated[dict[Name, TargetSettings], Field(max_length=20)] = Field(
        default_factory=dict[str, TargetSettings]
    )
    """Recipients by name; nothing is sent without any."""
    quiet: QuietSettings | None = None
    """When nobody is notified; what was held back is sent in one message afterwards."""
    group_seconds: Annotated[float, Field(ge=0, le=3600)] = 2.0
    """Events within this time are sent in one message."""
    repeat_minutes: Annotated[float, Field(ge=0, le=10_080)] = 30.0
    """What is still waiting for a person is sent again after this time; 0 for never."""
    link: str = ""
    """Where to look, instead of `midwatch show ATTEMPT`: `{attempt}` becomes the attempt's id."""
