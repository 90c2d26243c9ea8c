"""`midwatch metrics` says in figures what the journal says."""

import asyncio
import json
import sys
from datetime import datetime
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from midwatch_monitor.journal import Journal
from midwatch_monitor.records import Action, Attempt, Budget, Meter, Severity
from midwatch_supervisor.present.text_line import visible
from midwatch_tests.command import midwatch, write
from midwatch_tests.factories import (
    alert,
    change,
    delivery,
    intervention,
    outcome,
    step,
    transition,
)

Capture = pytest.CaptureFixture[str]
Figures = dict[tuple[str, ...], float]
STRANGE = 'a"b\\c\nd'


def figures(text: str) -> Figures:
    """Each sample by its name and the values of its labels, as Prometheus' own parser reads it."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def write_work(journal: Journal, attempt: Attempt, at: datetime) -> None:
    """Three steps, an alert, a nudge that helped, and a question that nobody has answered."""
    used = Budget(requests=Meter(used=3), tokens=Meter(used=250), cost_usd=Meter(used=0.5))
    begun = (transition(), step(1), step(2), step(3), change(budget=used))
    nudge = await write(
        *(journal, attempt, at, *begun, alert(STRANGE, severity=Severity.CRITICAL)),
        intervention(Action.NUDGE),
    )
    await write(journal, attempt, at, delivery(nudge), outcome(nudge))
    await write(journal, attempt, at, intervention(Action.NUDGE, needs_approval=True))


@pytest.mark.usefixtures("named_by_the_environment")
async def test_the_figures_are_those_of_status(
    journal: Journal, attempt: Attempt, at: datetime, capsys: Capture
) -> None:
    await write_work(journal, attempt, at)
    assert await midwatch("metrics") == 0
    found = figures(capsys.readouterr().out)
    assert await midwatch("status", "--json") == 0
    told = json.loads(capsys.readouterr().out.splitlines()[0])
    assert found["midwatch_attempts", told["stands"]] == 1
    assert found["midwatch_steps_total",] == told["steps"] == 3
    assert found["midwatch_model_requests_total", "worker"] == told["requests_used"] == 3
    assert found["midwatch_model_tokens_total", "worker"] == 250
    assert found["midwatch_model_cost_dollars_total", "worker"] == 0.5
    assert found["midwatch_alerts_firing", visible(STRANGE), "critical"] == told["alerts"] == 1
    assert found["midwatch_interventions_total", "nudge"] == 2
    assert found["midwatch_intervention_outcomes_total", "nudge", "recovered"] == 1
    assert told["waits_for"].startswith("approval")
    assert found["midwatch_waiting_for_person",] == 1
    assert found["midwatch_waiting_oldest_seconds",] > 0


@pytest.mark.usefixtures("named_by_the_environment")
async def test_they_are_served_to_who_asks(
    journal: Journal, attempt: Attempt, at: datetime
) -> None:
    await write_work(journal, attempt, at)
    program = "import sys; from midwatch_supervisor.cli import main; sys.exit(main())"
    words = (sys.executable, "-u", "-c", program, "metrics", "--serve", "127.0.0.1:0")
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        async with asyncio.timeout(300):
            line = (await process.stdout.readline()).decode()
            url = line.split()[2].rstrip(",")
            text = await asyncio.to_thread(read_figures, url)
            assert figures(text)["midwatch_steps_total",] == 3
            await write(journal, attempt, at, step(4))
            assert figures(await asyncio.to_thread(read_figures, url))["midwatch_steps_total",] == 4
            with pytest.raises(HTTPError, match="404"):
                await asyncio.to_thread(read_figures, url.replace("/metrics", "/"))
    finally:
        process.terminate()
        await process.wait()


def read_figures(url: str) -> str:
    with urlopen(url, timeout=60) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return answer.read().decode()


@pytest.mark.usefixtures("named_by_the_environment", "journal")
async def test_a_place_that_is_none_is_refused_and_no_run_has_figures_too(capsys: Capture) -> None:
    for place in ("here", "127.0.0.1:99999", "127.0.0.1:9/x", "host:"):
        assert await midwatch("metrics", "--serve", place) == 2
        assert "HOST:PORT" in capsys.readouterr().err
    assert await midwatch("metrics", "--serve", "a..b:0") == 2
    assert "cannot listen at a..b:0" in capsys.readouterr().err
    assert await midwatch("metrics") == 0
    assert figures(capsys.readouterr().out)["midwatch_steps_total",] == 0
