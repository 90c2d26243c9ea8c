"""What a worker gives account of, and what others spent on it, as it is told to a person. Pure."""

from collections.abc import Iterable

from midwatch_monitor.records import (
    Analysis,
    BudgetRequest,
    Claim,
    ClaimState,
    Completion,
    Intervention,
    PlanCheck,
    Record,
    Ruling,
    Spending,
)
from midwatch_supervisor.present.spelling import (
    analysis_words,
    answer_words,
    completion_words,
    grant_words,
    plan_check_words,
    request_words,
    spending_words,
)
from midwatch_supervisor.present.text_line import Told, Tone, brief

Parts = tuple[tuple[str, str], ...]
"""Paragraphs, each under its name; what is empty is left out."""


def line(record: Record, answer: Intervention | None) -> Told | None:
    """The record as one line; `None` for other kinds. `answer` is what was said to a petition."""
    match record:
        case Analysis() as analysis:
            text = brief(analysis_words(analysis))
            return Told(sign="∵", what="analysis", text=text, tone=Tone.ACCENT)
        case PlanCheck() as check:
            text = brief(plan_check_words(check, answer))
            tone = _asking(answer) if check.ruling is Ruling.PENDING else _RULED[check.ruling]
            return Told(sign="≟", what="plan check", text=text, tone=tone)
        case Completion() as claimed:
            sign, tone = _believed(claimed)
            return Told(
                sign=sign, what="completion", text=brief(completion_words(claimed)), tone=tone
            )
        case BudgetRequest() as asked:
            text = brief(request_words(asked, answer))
            return Told(sign="+", what="asks budget", text=text, tone=_asking(answer))
        case Spending() as spent:
            return Told(sign="$", what="spent", text=brief(spending_words(spent)), tone=Tone.DIM)
        case _:
            return None


_RULED = {Ruling.GRANTED: Tone.DIM, Ruling.REFUSED: Tone.WARN}


def _asking(answer: Intervention | None) -> Tone:
    return Tone.WARN if answer is None or answer.needs_approval else Tone.DIM


def _believed(claimed: Completion) -> tuple[str, Tone]:
    if not claimed.accepted:
        return "✗", Tone.BAD
    return ("⚑", Tone.WARN) if claimed.flag else ("✓", Tone.GOOD)


def parts(record: Record, answer: Intervention | None) -> Parts:
    """All that a record says; nothing for other kinds."""
    match record:
        case Analysis() as analysis:
            return (
                ("analysis", analysis_words(analysis)),
                ("what happened", analysis.what),
                ("root cause", analysis.root),
                ("what changes", analysis.remedy),
            )
        case PlanCheck() as check:
            return _of_check(check, answer)
        case Completion() as claimed:
            return (
                ("completion", completion_words(claimed)),
                ("claims", "\n".join(map(_claim, claimed.claims))),
                ("doubts", "\n".join(claimed.doubts)),
                ("flag", claimed.flag),
            )
        case BudgetRequest() as asked:
            return (
                ("asks for", grant_words(asked.wanted)),
                ("because", asked.reason),
                ("answer", answer_words(answer)),
            )
        case _:
            return ()


def _of_check(check: PlanCheck, answer: Intervention | None) -> Parts:
    pending = check.ruling is Ruling.PENDING
    return (
        (f"plan check before plan step {check.plan_step}", check.assumption),
        ("reality", check.reality),
        ("impact", check.impact),
        ("options", _numbered(check.options)),
        ("choice", check.choice),
        ("plan steps that should remain", _numbered(check.proposed)),
        ("ruling", answer_words(answer) if pending else check.ruling.value),
        ("reason", check.reason),
    )


_STATES = {ClaimState.PASSED: "✓", ClaimState.FAILED: "✗", ClaimState.UNPROVEN: "?"}


def _claim(claim: Claim) -> str:
    reason = f": {claim.reason}" if claim.reason else ""
    return f"{_STATES[claim.state]} {claim.state.value} {claim.what}{reason}"


def _numbered(items: Iterable[str]) -> str:
    return "\n".join(f"{number}. {item}" for number, item in enumerate(items, start=1))
