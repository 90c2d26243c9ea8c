"""Numbers as people write them: counts, money, durations, shares, budgets. Pure."""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from midwatch_monitor.records import Budget, Grant, Meter

if TYPE_CHECKING:
    from midwatch_monitor.metrics.statistics import Share

_AMOUNT = re.compile(r"\s*\$?\s*(\d+(?:\.\d+)?)\s*([km](?![a-z]))?\s*(?:us )?([a-z]*?)s?")
MOST_GRANTED = 1_000_000_000
"""The largest grant of any resource."""
_SCALES = {None: 1, "k": 1_000, "m": 1_000_000}
_RESOURCES = {
    "": "requests",
    "request": "requests",
    "token": "tokens",
    "dollar": "cost_usd",
    "usd": "cost_usd",
    "min": "minutes",
    "minute": "minutes",
}


def count_noun(count: int, noun: str) -> str:
    """Return a count with its noun: `1 lesson`, `2,000 lessons`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def list_names(names: Sequence[str], most: int) -> str:
    """Return names, and the number beyond `most`: `fix, test and 3 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def checks_text(passed: int, total: int) -> str:
    """Return how many checks pass: `1 of 1 check passes`, `2 of 3 checks pass`."""
    return f"{passed} of {total} {'check passes' if total == 1 else 'checks pass'}"


def number(value: int) -> str:
    """Return a whole number with its thousands separated: `12,034`."""
    return f"{value:,}"


def amount(value: float) -> str:
    """Return a number rounded for people: `7.5`, `9,120`, `12 k`, `1.0 M`."""
    for least, size, unit in ((999.5e6, 1e9, "G"), (999.5e3, 1e6, "M"), (1e4, 1e3, "k")):
        if value >= least:
            scaled = value / size
            return f"{scaled:.0f} {unit}" if scaled >= 10 else f"{scaled:.1f} {unit}"
    return f"{value:,.0f}" if value >= 100 or value % 1 == 0 else f"{value:.1f}"


def dollars(value: float) -> str:
    """Return US dollars without the sign, in cents; below one cent, in fractions of it."""
    return f"{value:,.2f}" if value >= 0.01 or not value else f"{value:.4f}"


def paid(value: float) -> str:
    """Return what was paid: `$0.12`; empty for 0, which is also recorded if no price is known."""
    return f"${dollars(value)}" if value else ""


def duration(seconds: float) -> str:
    """Return a duration in its two largest units: `41 s`, `12 min 5 s`, `3 h 20 min`, `2 d 1 h`."""
    whole = round(seconds)
    for size, name, below, part in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min")):
        if whole >= size:
            return f"{whole // size} {name} {whole % size // below} {part}"
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"


def percent(rate: float) -> str:
    """Return a rate from 0 to 1 in whole percent: `38 %`."""
    return f"{100 * rate:.0f} %"


def share(rate: float | None) -> str:
    """Return a rate from 0 to 1 in percent with one decimal; `-` if unknown."""
    return "-" if rate is None else f"{100 * rate:.1f} %"


def hits(found: "Share") -> str:
    """Return a share as counts: `3 of 8`."""
    return f"{found.hits} of {found.of}"


def rate(found: "Share") -> str:
    """Return a share in percent with its 95 % interval: `38 % (14 to 69)`; `-` of none."""
    if not found.of:
        return "-"
    spread = found.interval
    return f"{percent(found.rate)} ({100 * spread.low:.0f} to {100 * spread.high:.0f})"


def steps_text(steps: Iterable[int]) -> str:
    """Return step numbers: `step 3`, `steps 3, 5`; empty for none."""
    numbers = [str(step) for step in steps]
    return f"step{'s' * (len(numbers) > 1)} {', '.join(numbers)}" if numbers else ""


def plan_text(planned: tuple[int, int] | None) -> str:
    """Return a plan's position: `2/5`; `-` without a plan."""
    return "-" if planned is None else f"{planned[0]}/{planned[1]}"


def budget_text(budget: Budget) -> str:
    """Return the used resources: `12 of 60 requests, 1.0 M tokens, $0.12, 3 of 30 min`."""
    parts = (
        _used_words(budget.requests, "request"),
        _used_words(budget.tokens, "token"),
        _paid_words(budget),
        f"{_used_words(budget.minutes)} min",
    )
    return ", ".join(filter(None, parts))


def _paid_words(budget: Budget) -> str:
    cost = budget.cost_usd
    if cost.limit is None:
        return paid(cost.used)
    if budget.requests.used and not cost.used:
        return f"cost unknown (limit ${dollars(cost.limit)})"
    return f"${dollars(cost.used)} of ${dollars(cost.limit)}"


def _used_words(meter: Meter, noun: str = "") -> str:
    last = meter.used if meter.limit is None else meter.limit
    limit = "" if meter.limit is None else f" of {amount(meter.limit)}"
    return f"{amount(meter.used)}{limit}" + (noun and f" {noun}{'s' * (last != 1)}")


def usage_text(*, requests: int, tokens: int, cost_usd: float) -> str:
    """Return the use of a model: `3 requests, 1.0 M tokens, $0.12`; `nothing` for none."""
    parts = (
        count_noun(requests, "request") if requests else "",
        f"{amount(tokens)} token{'s' * (tokens != 1)}" if tokens else "",
        paid(cost_usd),
    )
    return ", ".join(filter(None, parts)) or "nothing"


def grant_text(grant: Grant) -> str:
    """Return a grant exactly as `parse_grant` reads it; empty for nothing."""
    parts = (
        f"{grant.requests} request{'s' * (grant.requests != 1)}" if grant.requests else "",
        f"{_exact_count(grant.tokens)} token{'s' * (grant.tokens != 1)}" if grant.tokens else "",
        f"${_cents_text(grant.cost_usd)}" if grant.cost_usd else "",
        f"{round(grant.minutes, 4):g} min" if grant.minutes else "",
    )
    return ", ".join(filter(None, parts))


def _exact_count(count: int) -> str:
    if count >= 1_000_000 and not count % 100_000:
        return f"{count / 1_000_000:g} M"
    return f"{count // 1_000} k" if count >= 10_000 and not count % 1_000 else str(count)


def _cents_text(value: float) -> str:
    return f"{value:.2f}" if round(value, 2) == round(value, 4) else f"{value:.4f}"


def grant_problem(grant: Grant) -> str:
    """Return why nobody may grant this much; empty if one may."""
    amounts = (grant.requests, grant.tokens, grant.cost_usd, grant.minutes)
    if any(each < 0 for each in amounts):
        return "a grant can only add: no amount may be below 0"
    if not all(each <= MOST_GRANTED for each in amounts):  # which no NaN is either
        return f"each amount must be a number, at most {MOST_GRANTED:,}"
    return ""


def parse_grant(text: str) -> Grant | None:
    """Parse a grant such as `20 requests, $0.50, 1.5 M tokens`; `None` if it is not one.

    A number without a word counts requests; `k` and `M` are for tokens. Repeated resources are
    added up.
    """
    amounts = dict.fromkeys(_RESOURCES.values(), 0.0)
    for part in (each.strip().lower() for each in text.split(",")):
        found = _AMOUNT.fullmatch(part)
        resource = _RESOURCES.get("dollar" if part.startswith("$") else found[3]) if found else None
        if found is None or resource is None or (found[2] and resource != "tokens"):
            return None
        amounts[resource] += round(float(found[1]) * _SCALES[found[2]], 4)
    requests, tokens = amounts["requests"], amounts["tokens"]
    if not (any(amounts.values()) and requests.is_integer() and tokens.is_integer()):
        return None
    grant = Grant(
        requests=int(requests),
        tokens=int(tokens),
        cost_usd=amounts["cost_usd"],
        minutes=amounts["minutes"],
    )
    return None if grant_problem(grant) else grant


def kilobytes(size: int) -> str:
    """Return bytes in whole kilobytes, at least one: `12 kB`."""
    return f"{max(1, round(size / 1000)):,} kB"


def megabytes(size: int) -> str:
    """Return bytes in whole megabytes: `12 MB`."""
    return f"{size / 1_000_000:,.0f} MB"
