"""The range of years in which times are accepted."""

from datetime import datetime


def plausible(moment: datetime) -> bool:
    """Return whether a time is in the years 1970 to 8999. Pure.

    Adding hours or a zone's offset to times close to the limits of `datetime` overflows.
    """
    return 1970 <= moment.year < 9000
