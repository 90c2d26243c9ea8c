"""Whether an attempt needs a person; every list and count of such attempts uses this. Pure."""

from midwatch_monitor.records import Alert, Severity
from midwatch_monitor.state.attempt import AttemptState


def needs_person(attempt: AttemptState, *, adrift: bool = False) -> bool:
    """Return whether a person should answer, approve, grant something, or look at a stuck attempt.

    This includes worker requests that others may answer too; nobody is called for those. Pass
    `adrift` if the attempt's node is lost: its health is unknown then, so its alerts do not count.
    """
    asks = bool(attempt.open_requests) and not attempt.interventions.ends_attempt
    return calls_person(attempt, adrift=adrift) or asks


def calls_person(attempt: AttemptState, *, adrift: bool = False) -> bool:
    """Return whether only a person can help, so that one must be called."""
    return attempt.needed_since is not None or bool(unattended(attempt) and not adrift)


def unattended(attempt: AttemptState) -> tuple[Alert, ...]:
    """Return critical alerts that no person has seen and nobody is deciding or acting on."""
    coming = attempt.interventions
    if attempt.escalation is not None or coming.on_their_way or coming.stop is not None:
        return ()
    return tuple(each for each in attempt.unseen if each.severity is Severity.CRITICAL)
