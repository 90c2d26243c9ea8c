"""What is taken for a secret, and masked wherever it is recorded."""

from typing import Annotated

from pydantic import AfterValidator, Field

from midwatch_monitor.config.refusal import Refusal
from midwatch_monitor.config.rules import Section
from midwatch_monitor.secrets.linear import fault
from midwatch_monitor.secrets.shapes import BUILT_IN


def _compiled(pattern: str) -> str:
    if reason := fault(pattern):
        raise Refusal(f"is no pattern that RE2 knows: {reason}")
    return pattern


Kind = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,79}$")]
SecretPattern = Annotated[str, Field(max_length=1000), AfterValidator(_compiled)]


class SecretsSettings(Section):
    """Secrets in what workers do and say: masked before it is judged and recorded."""

    patterns: dict[Kind, SecretPattern] = Field(default_factory=lambda: dict(BUILT_IN))
    """What secrets look like, by their kind: what a file names is added; empty is off."""
