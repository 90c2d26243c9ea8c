"""The range of years that times are accepted from."""

from datetime import datetime


def plausible(moment: datetime) -> bool:
    """Return whether a time is in the years 1970 to 8999. Pure.

    Close to the limits of `datetime`, adding hours or a zone's offset overflows.
    """
    return 1970 <= moment.year < 9000
