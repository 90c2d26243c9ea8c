"""Figures as people read them."""

from midwatch_monitor.replay.tune.figures import Share


def number(value: int) -> str:
    """A whole number, with its thousands set apart."""
    return f"{value:,}"


def dollars(value: float) -> str:
    """US dollars; cents are enough, unless there is less than one."""
    return f"{value:,.2f}" if value >= 0.01 or not value else f"{value:.4f}"


def lasted(seconds: float) -> str:
    """A length of time in its two largest units."""
    whole = round(seconds)
    for size, name, below, part in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min")):
        if whole >= size:
            return f"{whole // size} {name} {whole % size // below} {part}"
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"


def percent(rate: float) -> str:
    """A rate from 0 to 1, in whole percent."""
    return f"{100 * rate:.0f} %"


def share(rate: float | None) -> str:
    """A share of something else, in percent with one decimal."""
    return "-" if rate is None else f"{100 * rate:.1f} %"


def of(found: Share) -> str:
    """So many of so many."""
    return f"{found.hits} of {found.of}"


def rate(found: Share) -> str:
    """A share in percent with its 95 % interval; of none there is none."""
    if not found.of:
        return "-"
    spread = found.interval
    return f"{percent(found.rate)} ({100 * spread.low:.0f} to {100 * spread.high:.0f})"
