"""Settings from the environment: `MIDWATCH_MODE`, `MIDWATCH_<SECTION>__<KEY>`…"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from midwatch_monitor.config.document import Keys
from midwatch_monitor.config.problem import Origin
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.errors import Place

_PREFIX = "MIDWATCH_"
ENVIRONMENT = Place(file=Path("environment"))
"""The place of what a variable says."""


def variables(environ: Mapping[str, str]) -> dict[Keys, Origin]:
    """The settings that the environment sets, by their keys.

    A name without `__` sets nothing (`MIDWATCH_CONFIG` is none of them), except `MIDWATCH_MODE`.
    """
    return {
        keys: Origin(place=ENVIRONMENT, key=name)
        for name in environ
        if name.startswith(_PREFIX)
        and (keys := tuple(name.removeprefix(_PREFIX).lower().split("__")))
        and (len(keys) > 1 or keys == ("mode",))
    }


def read_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """What those variables say, nested as in a file. Lists and mappings are written as JSON."""
    names = [origin.key for origin in variables(environ).values()]
    if not names:
        return {}
    # Costs a sixth of a second, and most starts have no such variable.
    from pydantic_settings import BaseSettings, EnvSettingsSource

    class Model(Settings, BaseSettings):
        """The settings as pydantic-settings wants them; never built."""

    class Source(EnvSettingsSource):
        def _load_env_vars(self) -> Mapping[str, str | None]:
            return {name.lower(): environ[name] for name in names}

        def decode_complex_value(self, field_name: str, field: Any, value: Any) -> Any:
            try:
                return super().decode_complex_value(field_name, field, value)
            except ValueError:
                return value  # not JSON: the model says what is expected there

    return Source(Model, env_prefix=_PREFIX, env_nested_delimiter="__")()
