"""Whether an attempt needs a person: every list and count of what does asks here. Pure."""

from midwatch_monitor.records import Alert, Severity
from midwatch_monitor.state.attempt import AttemptState


def needs_person(attempt: AttemptState, *, adrift: bool = False) -> bool:
    """Whether a person is to answer, to approve, to grant something, or to look at what is stuck.

    What a worker asks for others may answer as well: nobody is called for it. How an attempt fares
    that is `adrift`, whose node is gone, nobody knows.
    """
    asks = bool(attempt.open_requests) and not attempt.interventions.ends_attempt
    return calls_person(attempt, adrift=adrift) or asks


def calls_person(attempt: AttemptState, *, adrift: bool = False) -> bool:
    """Whether nobody but a person can help, so that one is called."""
    return attempt.needed_since is not None or bool(unattended(attempt) and not adrift)


def unattended(attempt: AttemptState) -> tuple[Alert, ...]:
    """The critical alerts that no person has seen, and about which nobody decides or acts."""
    if attempt.escalation is not None or attempt.interventions.on_their_way:
        return ()
    return tuple(each for each in attempt.unseen if each.severity is Severity.CRITICAL)
