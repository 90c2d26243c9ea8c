"""The password for the broker. It goes nowhere but to the broker."""

from collections.abc import Mapping

from midwatch_monitor.config.fleet import BrokerSettings
from midwatch_monitor.errors import LinkError, LinkFault


def password_of(settings: BrokerSettings, environ: Mapping[str, str]) -> str | None:
    """What stands in its file, else in its variable; `None` where there is none.

    Raises LinkError for a file that cannot be read, without anything that stands in it.
    """
    file = settings.password_file
    if file is None:
        return environ.get(settings.password_env) or None
    try:
        return file.read_text("utf-8").strip("\r\n") or None
    except OSError as error:
        raise LinkError(LinkFault.AWAY, f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise LinkError(LinkFault.AWAY, f"{file} is no text in UTF-8") from None
