"""`midwatch feedback`: verdicts on the results of attempts, given by people or implied."""

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from cyclopts import App, Parameter

from midwatch_monitor.command_hint import command
from midwatch_monitor.config.learning import FeedbackSettings
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.errors import MidwatchError, UsageError
from midwatch_monitor.journal import Journal
from midwatch_monitor.journal.core.clock import journal_clock, now
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.records import (
    AttemptTransition,
    Chore,
    Entry,
    Feedback,
    Origin,
)
from midwatch_monitor.records.verdict import verdict_of
from midwatch_supervisor.cli.inspect.show import TaskOrAttempt
from midwatch_supervisor.cli.journals import (
    DryRunOption,
    FromOption,
    JournalOption,
    OnlyRunOption,
    RunOption,
    journal_to_read,
    journal_to_write,
)
from midwatch_supervisor.cli.learn.options import write_note
from midwatch_supervisor.cli.operate.tell import operator_in
from midwatch_supervisor.cli.output import write_either, write_json, write_line
from midwatch_supervisor.cli.settings import ConfigOption, JsonOption, settings_in_force
from midwatch_supervisor.present.json_lines import moment
from midwatch_supervisor.present.known_text import verdict_fields, verdict_line
from midwatch_supervisor.present.lookup import (
    NamedAttempt,
    chosen_runs,
    find,
    named_attempts,
    task_state,
)
from midwatch_supervisor.present.waiting import is_only_watched

app = App(name="feedback")

_AGAIN = "the next `run` or `learn` tries again"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verdict:
    place: NamedAttempt
    at: datetime
    verdict: Feedback
    id: int | None = None
    """Id of the journal's entry that states or implies it; `None` if it is not stored."""


@app.default
async def feedback(
    attempt: TaskOrAttempt,
    verdict: Annotated[
        Literal["accept", "reject"], Parameter(name="VERDICT", help="Your verdict on the result.")
    ],
    /,
    *,
    run: RunOption = None,
    comment: Annotated[str, Parameter(help="The reason, from which a lesson is drawn.")] = "",
    author: FromOption = None,
    dry_run: DryRunOption = False,
    config: ConfigOption = None,
    journal: JournalOption = None,
    json: JsonOption = False,
) -> None:
    """Accept or reject the result of an attempt; a lesson is drawn from a rejection."""
    settings = settings_in_force(config)
    accepted = verdict == "accept"
    async with await journal_to_write(journal, dry_run=dry_run) as opened:
        place = await _find_ended(opened, attempt, run)
        id, lesson, reason = None, None, ""
        if not dry_run:
            # The verdict is stored before a model is asked anything.
            async with operator_in(opened, author) as operator:
                id = await operator.judge(place.attempt, accepted=accepted, comment=comment)
            if not json:
                write_line(f"{verdict}ed {place.name} ({id})")
            reason = "an accepted result teaches nothing by itself"
            if not accepted:
                lesson, reason = await _find_lesson(opened, place.attempt.id, settings)
    if json:
        fields = {"type": "feedback", "attempt": place.attempt.id, "accepted": accepted}
        came = {"origin": Origin.EXPLICIT, "verdict": id, "lesson": lesson, "reason": reason}
        write_json({**fields, **came, "dry_run": dry_run})
    elif dry_run:
        more = "" if accepted else ", and draw a lesson from it"
        write_line(f"would {verdict} {place.name}{more}")
    elif not accepted:
        write_line(f"lesson {lesson} was drawn from it" if lesson else f"no lesson: {reason}")


@app.command(name="list")
async def list_verdicts(
    id: Annotated[
        str | None, Parameter(name="ID", help="Only for this task or attempt, given by any id.")
    ] = None,
    /,
    *,
    run: OnlyRunOption = None,
    project: Annotated[
        str | None, Parameter(name="--project", help="Only for this project, by its exact name.")
    ] = None,
    journal: JournalOption = None,
    json: JsonOption = False,
) -> None:
    """Print all verdicts, oldest first: given by people, implied and automatic."""
    async with await journal_to_read(journal) as opened:
        given = None
        async for given in _verdicts_on(opened, id, run, project):
            write_either(_verdict_fields(given), _verdict_line(given), json=json)
        if given is None:
            write_note(f"no verdict yet in {opened.name}", json=json)


@app.command
async def scan(
    *,
    dry_run: DryRunOption = False,
    config: ConfigOption = None,
    journal: JournalOption = None,
    json: JsonOption = False,
) -> None:
    """Check merged work: what people kept, edited or reverted counts as a verdict."""
    from midwatch_supervisor.learning import implied_feedback as implied

    # A person who calls this wants the result, whatever is configured for runs.
    switched_on: FeedbackSettings = settings_in_force(config).learning.feedback.model_copy(
        update={"implied": True}
    )
    async with await journal_to_write(journal, dry_run=dry_run) as opened:
        at = await opened.now()
        if dry_run:
            found = [
                _Verdict(place=each.place, at=at, verdict=each.feedback)
                for each in await implied.find_implied(opened, settings=switched_on, now=at)
            ]
        else:
            found = await _verdicts_among(
                opened, await implied.scan(opened, settings=switched_on, now=at)
            )
    for given in found:
        text = f"{'would store: ' if dry_run else ''}{_verdict_line(given)}"
        write_either({**_verdict_fields(given), "dry_run": dry_run}, text, json=json)
    if not found:
        write_note("there is nothing new about merged work", json=json)


# -- finding an attempt --------------------------------------------------------------------


async def _find_ended(journal: Journal, id: str, run: int | None) -> NamedAttempt:
    """Return the named attempt or a task's last one. Raises UsageError if it is not over."""
    found = await find(journal, id, run=run)
    tasks = await task_state(journal, found.task)
    state = tasks.attempts[found.attempt.id] if found.attempt else tasks.latest
    if state is None:
        raise UsageError(f"{found.task.name} has no attempt yet")
    place = NamedAttempt(task=found.task, attempt=state.attempt)
    if not state.lifecycle.over:
        tell = f", or send it a message with `{command('tell')}`"
        raise UsageError(
            f"{place.name} is not over ({state.status}): wait until it is"
            + tell * (not is_only_watched(state))
        )
    return place


async def _verdicts_on(
    journal: Journal, id: str | None, run: int | None, project: str | None
) -> AsyncIterator[_Verdict]:
    await chosen_runs(journal, run)
    found = None if id is None else await find(journal, id, run=run)
    task = None if found is None else found.task.id
    only = None if found is None or found.attempt is None else found.attempt.id
    after = 0
    while page := await journal.entries(
        after, run=run, task=task, attempt=only, kinds=(AttemptTransition, Feedback)
    ):
        for given in await _verdicts_among(journal, page):
            if project in (None, given.place.task.project):
                yield given
        after = page[-1].id


# -- the lesson ----------------------------------------------------------------------------


async def _find_lesson(
    journal: Journal, attempt: int, settings: Settings
) -> tuple[int | None, str]:
    """Return the journal id of the lesson drawn from a rejection, or why there is none yet."""
    from midwatch_supervisor.learning.learner import Learner

    try:
        async with journal_clock(journal, now) as clock:
            studied = await Learner(journal, settings=settings, clock=clock).study(attempt=attempt)
    except MidwatchError as error:
        return None, f"{error}; {_AGAIN}"
    if studied.lesson is None and await _still_open(journal, attempt, settings):
        return None, f"{studied.reason or 'it failed'}; {_AGAIN}"
    return studied.lesson, studied.reason


async def _still_open(journal: Journal, attempt: int, settings: Settings) -> bool:
    learning = settings.learning
    if not learning.lessons.enabled:
        return False
    return bool(
        await Learned(journal).chores(tries=learning.tries, attempt=attempt, kinds={Chore.LESSON})
    )


# -- verdicts as they are listed ---------------------------------------------------------------


async def _verdicts_among(journal: Journal, entries: Iterable[Entry]) -> list[_Verdict]:
    """Return the verdicts among a page of entries, in order; the end of an attempt implies one too.

    Entries erased meanwhile are left out. Makes two queries, whatever the number of entries.
    """
    found = [
        (entry, entry.attempt, verdict)
        for entry in entries
        if entry.attempt is not None and (verdict := verdict_of(entry.record)) is not None
    ]
    if not found:
        return []
    places = await named_attempts(journal, {attempt for _, attempt, _ in found})
    return [
        _Verdict(place=places[attempt], at=entry.at, verdict=verdict, id=entry.id)
        for entry, attempt, verdict in found
        if attempt in places
    ]


def _verdict_fields(given: _Verdict) -> Mapping[str, object]:
    return {
        "type": "feedback",
        "at": moment(given.at),
        "id": given.id,
        "run": given.place.task.run,
        "project": given.place.task.project,
        "task": given.place.task.name,
        "attempt": given.place.attempt.id,
        "number": given.place.attempt.number,
        **verdict_fields(given.verdict),
        "diff": given.verdict.diff,
    }


def _verdict_line(given: _Verdict) -> str:
    """Return a verdict as one line for people; of a diff only its length."""
    id = "" if given.id is None else f"{given.id} "
    when = f"{given.at.astimezone():%Y-%m-%d %H:%M}"
    diff = given.verdict.diff
    more = f" (diff of {len(diff)} characters)" if diff else ""
    place = f"run {given.place.task.run}, {given.place.name}"
    return f"{id}{when} {place} {verdict_line(given.verdict)}{more}"
