"""What is sent to a collector of OpenTelemetry."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from midwatch_monitor.config.section import Refusal, Section

_ADDRESS = re.compile(r"https?://[^\s/@?#]+(/[^\s@?#]*)?")


def _address(text: str) -> str:
    if text and not _ADDRESS.fullmatch(text):
        raise Refusal("must be an http or https address, without a user, a query or a fragment")
    return text.rstrip("/")


class TelemetrySettings(Section):
    """Spans of attempts and their steps for a collector; nothing is sent without one."""

    endpoint: Annotated[str, AfterValidator(_address)] = ""
    """The collector's address for OTLP over HTTP; spans go to `/v1/traces` there. Empty is off."""
    headers_env: Annotated[str, Field(pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$")] = ""
    """The environment variable with headers for the collector: `name=value,name=value`."""
    content: bool = False
    """Whether arguments, outputs, texts, paths and names of people are sent too."""
