"""What the journal knows of each model's stated confidence, read as the journal grows."""

import asyncio
import logging
from collections import defaultdict

from midwatch_monitor.errors import JournalError
from midwatch_monitor.journal import Journal
from midwatch_monitor.metrics.calibration import (
    Calibration,
    Sample,
    Separation,
    calibrate,
    separation,
    success,
)
from midwatch_monitor.records import (
    Attempt,
    AttemptTransition,
    Ending,
    Entry,
    Feedback,
    Origin,
    Step,
)

log = logging.getLogger(__name__)

RECENT = 200
"""Attempts of a model that count, the newest: more would hardly move its curve, a provider may
change what stands behind a name, and reading stays short however long the journal is."""


class Calibrator:
    """Follows how attempts ended and what they had said of themselves, over all runs.

    The first question reads the journal, the later ones only what is new.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._lock = asyncio.Lock()
        self._forget()

    def _forget(self) -> None:
        self._after = 0
        self._endings: dict[int, Ending | None] = {}
        """Of the attempts that are over, by id."""
        self._verdicts: dict[int, bool] = {}
        """What people said of an attempt's result, the newest."""
        self._changed: set[int] = set()
        """Attempts that are to be looked at."""
        self._names: dict[int, str] = {}
        """Of tasks, by id."""
        self._samples: dict[str, dict[int, Sample]] = defaultdict(dict)
        """By model and attempt."""
        self._fitted: dict[str, Calibration | None] = {}

    async def samples(self) -> tuple[Sample, ...]:
        """The newest finished attempts of each model, at most `RECENT`, in the order of their ids.

        Left out is what has no model, never reported, or was canceled without a person's verdict.
        Raises JournalError.
        """
        async with self._lock:
            await self._catch_up()
            found = [each for samples in self._samples.values() for each in samples.values()]
            return tuple(sorted(found, key=lambda sample: sample.attempt))

    async def calibration(self, model: str) -> Calibration | None:
        """The calibration of a model; `None` after too few attempts, or if it cannot be had."""
        try:
            async with self._lock:
                await self._catch_up()
                if model not in self._fitted:
                    samples = self._samples.get(model, {})
                    self._fitted[model] = calibrate(tuple(samples.values()))
                return self._fitted[model]
        except Exception as error:  # whoever asks shows or decides something without it
            log.warning("the confidence of %s cannot be calibrated: %s", model, error)
            return None

    async def separation(self, model: str) -> Separation | None:
        """How well a model's confidence parts success from failure; `None` as above."""
        try:
            async with self._lock:
                await self._catch_up()
                return separation(tuple(self._samples.get(model, {}).values()))
        except Exception as error:
            log.warning("what %s says of its confidence cannot be weighed: %s", model, error)
            return None

    async def _catch_up(self) -> None:
        try:
            kinds = (AttemptTransition, Feedback)
            async for entry in self._journal.all_entries(self._after, kinds=kinds):
                self._take(entry)
                self._after = entry.id
            # The newest first: what is older than all that count need not be read.
            for id in sorted(self._changed, reverse=True):
                await self._sample(id)
                self._changed.discard(id)
        except JournalError:
            # An attempt may have been erased meanwhile; a new beginning does not know of it.
            self._forget()
            raise

    def _take(self, entry: Entry) -> None:
        if entry.attempt is None:
            return
        match entry.record:
            case AttemptTransition(lifecycle=lifecycle, ending=ending) if lifecycle.over:
                self._endings[entry.attempt] = ending
                self._changed.add(entry.attempt)
            case Feedback(accepted=accepted, origin=Origin.EXPLICIT):
                self._verdicts[entry.attempt] = accepted
                self._changed.add(entry.attempt)
            case _:
                pass

    async def _sample(self, id: int) -> None:
        if id not in self._endings:
            return  # it has a verdict, but works on
        succeeded = success(self._endings[id], accepted=self._verdicts.get(id))
        if succeeded is None:
            return
        attempt = await self._journal.attempt(id)
        samples = self._samples[attempt.model]
        if not attempt.model or (len(samples) >= RECENT and id < min(samples)):
            return
        known = samples.get(id)
        said = known.confidences if known else await self._stated_confidences(id)
        if said:
            samples[id] = Sample(
                attempt=id,
                task=await self._name(attempt),
                model=attempt.model,
                confidences=said,
                succeeded=succeeded,
            )
            if len(samples) > RECENT:
                del samples[min(samples)]
            self._fitted.pop(attempt.model, None)

    async def _stated_confidences(self, attempt: int) -> tuple[int, ...]:
        said: list[int] = []
        async for entry in self._journal.all_entries(attempt=attempt, kinds=(Step,)):
            if isinstance(entry.record, Step) and entry.record.checkpoint is not None:
                said.append(entry.record.checkpoint.confidence)
        return tuple(said)

    async def _name(self, attempt: Attempt) -> str:
        if attempt.task not in self._names:
            self._names[attempt.task] = (await self._journal.task(attempt.task)).name
        return self._names[attempt.task]
