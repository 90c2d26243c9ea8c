"""What the policy table says, made of the alerts' own summaries. Pure."""

from midwatch_monitor.words import Action, Alert

_ADVICE = {
    "explicit_escalation": "Write down what exactly you need and what you have ruled out; try the "
    "smallest next act that would tell more, and report what it showed.",
    "low_confidence": "Name what you are least sure of and check that first, with a command whose "
    "result can prove you wrong.",
    "declining_confidence": "Name what changed since you were more confident, and check that "
    "first, with a command whose result can prove you wrong.",
    "multiple_blockers": "Take the one blocker that the others depend on and work only on that; "
    "say which one it is.",
    "stalled_progress": "Do not repeat what you did since your last progress: say what kept it "
    "from working, then take a smaller act whose result you can check.",
    "missed_checkpoint": "Call `reflect` now with your true progress, confidence and blockers, "
    "then go on.",
}
_ANY_ADVICE = (
    "Stop repeating it: read the last output again and state the cause before the next act."
)


def message(action: Action, alerts: tuple[Alert, ...], tried: tuple[str, ...]) -> str:
    """The text that goes with an action; empty for `observe`, never empty otherwise.

    `tried` is what was done since the last recovery, for a person to read.
    """
    seen = " ".join(_sentence(alert.summary or alert.key.rule) for alert in alerts)
    seen = seen or "The attempt needs attention."
    match action:
        case Action.NUDGE:
            return f"{seen} {advice(alerts)}"
        case Action.REPLAN:
            return (
                f"{seen} The current approach does not get there. Stop, and write a new plan for "
                "what is left: another approach, in steps that can each be checked, before you "
                "change anything else."
            )
        case Action.RESTART:
            return (
                f"The attempt before this one was ended: {seen} Do not repeat its approach. State "
                "the cause of that failure first, then choose another way."
            )
        case Action.ASK_OPERATOR:
            return f"{seen} {_tried(tried)} What should be done?"
        case Action.STOP:
            return f"{seen} {_tried(tried)}"
        case _:
            return ""


def advice(alerts: tuple[Alert, ...]) -> str:
    """What to do about the alerts, one sentence or two for each rule, none twice."""
    lines = [_of(alert) for alert in alerts] or [_ANY_ADVICE]
    return " ".join(dict.fromkeys(lines))


def _of(alert: Alert) -> str:
    if alert.key.rule == "repeated_edits":
        file = f"`{alert.key.subject}`" if alert.key.subject else "the same file"
        return (
            f"Stop editing {file}: read the failing output again and state the cause before the "
            "next change."
        )
    return _ADVICE.get(alert.key.rule, _ANY_ADVICE)


def _tried(tried: tuple[str, ...]) -> str:
    return f"Tried so far: {', '.join(tried)}." if tried else "Nothing was tried so far."


def _sentence(text: str) -> str:
    # The first letter stays as it is: a summary may begin with the name of a file.
    text = " ".join(text.split())
    return text if text.endswith((".", "!", "?")) else f"{text}."
