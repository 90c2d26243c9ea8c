"""The years in which anything can have happened."""

from datetime import datetime


def plausible(moment: datetime) -> bool:
    """Whether a time can be reckoned with: it is of the years 1970 to 8999. Pure.

    To add hours, or the offset of a zone, to the first or last times that there are overflows.
    """
    return 1970 <= moment.year < 9000
