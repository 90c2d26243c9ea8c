"""The benchmark's report: arms side by side, then fault by fault, then what missed its goal."""

from collections.abc import Mapping, Sequence

from facts import Facts
from figures import Sums, fields, missed, sums

HONEST = "Simulated workers prove the machinery, not a model's wit."
REAL = "A real model worked here; its wit and its luck are in these numbers."

_ROWS = (
    ("tasks", "tasks"),
    ("tasks completed", "completed"),
    ("recoverable faults", "recoverable"),
    ("… recovered", "recovered"),
    ("unrecoverable faults", "unrecoverable"),
    ("… handed over in time", "handed_over_in_time"),
    ("healthy runs", "healthy"),
    ("… disturbed", "disturbed"),
    ("… with an alarm", "alarmed"),
    ("… not completed", "spoiled"),
    ("median steps to find", "median_steps_to_find"),
    ("steps", "steps"),
    ("requests", "requests"),
    ("tokens of workers", "tokens"),
    ("tokens of supervision", "supervision_tokens"),
    ("interventions", "interventions"),
    ("diagnoses of known faults", "diagnosis_known"),
    ("… that name the fault", "diagnosis_named"),
)


def as_json(
    arms: Mapping[str, Sequence[Facts]], *, requests: int, seeds: int, worker: str, seconds: float
) -> dict[str, object]:
    """The report as one object."""
    half = requests // 2
    return {
        "worker": worker,
        "seeds": seeds,
        "budget_requests": requests,
        "seconds": round(seconds, 1),
        "arms": {name: fields(sums(facts, half=half)) for name, facts in arms.items()},
        "faults": {
            name: {fault: fields(sums(each, half=half)) for fault, each in _split(facts).items()}
            for name, facts in arms.items()
        },
        "missed": [
            {"task": each.task, "goal": goal, "ending": each.ending, "actions": [*each.actions]}
            for each, goal in _missed(arms, half)
        ],
    }


def as_text(
    arms: Mapping[str, Sequence[Facts]], *, requests: int, worker: str, real: bool
) -> list[str]:
    """The report as lines."""
    half = requests // 2
    return [
        f"Recovery: {worker} as the worker; {requests} model requests a task, over all attempts.",
        REAL if real else HONEST,
        "",
        *_table(arms, half),
        "",
        *_faults(arms, half),
        "",
        *_complaints(arms, half),
    ]


def _table(arms: Mapping[str, Sequence[Facts]], half: int) -> list[str]:
    columns = [fields(sums(facts, half=half)) for facts in arms.values()]
    lines = [_line("", list(arms))]
    for title, field in _ROWS:
        lines.append(_line(title, [_cell(column[field]) for column in columns]))
    return lines


def _faults(arms: Mapping[str, Sequence[Facts]], half: int) -> list[str]:
    split = {name: _split(facts) for name, facts in arms.items()}
    faults = dict.fromkeys(fault for each in split.values() for fault in each)
    lines = [_line("recovered + handed over in time", list(arms))]
    for fault in faults:
        parts = [sums(split[name].get(fault, ()), half=half) for name in arms]
        if any(part.recoverable or part.unrecoverable for part in parts):
            lines.append(_line(fault, [_both(part) for part in parts]))
    return lines


def _both(part: Sums) -> str:
    return f"{part.recovered}/{part.recoverable} + {part.handed_over_in_time}/{part.unrecoverable}"


def _complaints(arms: Mapping[str, Sequence[Facts]], half: int) -> list[str]:
    found = _missed(arms, half)
    if not found:
        return ["Every goal of the full ladder is met."] if "ladder" in arms else []
    return [
        "Goals that the full ladder missed:",
        *(
            f"  {each.task}{each.heed and f' (heeds {each.heed})'}: {goal}; "
            f"{' '.join(each.actions) or 'nothing done'}; {each.requests} requests; "
            f"{each.ending[:160]}"
            for each, goal in found
        ),
    ]


def _missed(arms: Mapping[str, Sequence[Facts]], half: int) -> list[tuple[Facts, str]]:
    verdicts = [(each, missed(each, half=half)) for each in arms.get("ladder", ())]
    return [(each, goal) for each, goal in verdicts if goal]


def _split(facts: Sequence[Facts]) -> dict[str, list[Facts]]:
    """By fault, or by the way in which a healthy worker works."""
    found: dict[str, list[Facts]] = {}
    for each in facts:
        found.setdefault(each.fault, []).append(each)
    return found


def _line(title: str, cells: Sequence[str]) -> str:
    return f"{title:<32}" + "".join(f"{cell:>14}" for cell in cells)


def _cell(value: object) -> str:
    return "-" if value is None else f"{value:g}" if isinstance(value, float) else f"{value}"
