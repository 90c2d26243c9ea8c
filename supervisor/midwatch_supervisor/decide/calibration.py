"""How accurate each model's stated confidence was, read from the journal as it grows."""

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
    AttemptTransition,
    Ending,
    Entry,
    Feedback,
    Origin,
    Step,
)

log = logging.getLogger(__name__)

RECENT = 200
"""Number of a model's newest attempts that count.

More would hardly change its curve, a provider may change the model behind a name, and reading stays
fast however long the journal is.
"""


class Calibrator:
    """Tracks how the attempts of all runs ended, and what confidence they had stated.

    The first call reads the journal; later calls read only what is new.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._lock = asyncio.Lock()
        self._reset_state()

    def _reset_state(self) -> None:
        self._after = 0
        self._endings: dict[int, Ending | None] = {}
        """Endings of finished attempts, by attempt id."""
        self._verdicts: dict[int, bool] = {}
        """Whether people accepted an attempt's result, by attempt id; the newest verdict."""
        self._changed: set[int] = set()
        """Ids of attempts whose samples must be updated."""
        self._samples: dict[str, dict[int, Sample]] = defaultdict(dict)
        """Samples by model and attempt id."""

    async def samples(self) -> tuple[Sample, ...]:
        """Return the newest finished attempts of each model, at most `RECENT`, ordered by id.

        Leaves out attempts that have no model, never reported, or were canceled without a person's
        verdict. Raises JournalError.
        """
        async with self._lock:
            await self._catch_up()
            found = [each for samples in self._samples.values() for each in samples.values()]
            return tuple(sorted(found, key=lambda sample: sample.attempt))

    async def calibration(self, model: str) -> Calibration | None:
        """Return the calibration of a model; `None` after too few attempts, or if reading fails."""
        samples = await self._samples_of(model)
        return None if samples is None else calibrate(samples)

    async def separation(self, model: str) -> Separation | None:
        """Return how well a model's confidence separates success from failure; `None` as above."""
        samples = await self._samples_of(model)
        return None if samples is None else separation(samples)

    async def _samples_of(self, model: str) -> tuple[Sample, ...] | None:
        """Return the samples of a model; `None` if reading fails, which callers can do without."""
        try:
            async with self._lock:
                await self._catch_up()
                return tuple(self._samples.get(model, {}).values())
        except Exception as error:
            log.warning("the confidence of %s cannot be calibrated: %s", model, error)
            return None

    async def _catch_up(self) -> None:
        try:
            kinds = (AttemptTransition, Feedback)
            async for entry in self._journal.all_entries(self._after, kinds=kinds):
                self._fold_entry(entry)
                self._after = entry.id
            # Newest first, because attempts older than the `RECENT` newest need not be read.
            for id in sorted(self._changed, reverse=True):
                await self._update_sample(id)
                self._changed.discard(id)
        except JournalError:
            # An attempt may have been erased meanwhile; reading from the start skips it.
            self._reset_state()
            raise

    def _fold_entry(self, entry: Entry) -> None:
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

    async def _update_sample(self, id: int) -> None:
        if id not in self._endings:
            return  # it has a verdict but is not over
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
                task=(await self._journal.task(attempt.task)).name,
                model=attempt.model,
                confidences=said,
                succeeded=succeeded,
            )
            if len(samples) > RECENT:
                del samples[min(samples)]

    async def _stated_confidences(self, attempt: int) -> tuple[int, ...]:
        said: list[int] = []
        async for entry in self._journal.all_entries(attempt=attempt, kinds=(Step,)):
            if isinstance(entry.record, Step) and entry.record.checkpoint is not None:
                said.append(entry.record.checkpoint.confidence)
        return tuple(said)
