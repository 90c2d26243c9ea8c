"""A proposal as YAML that says why."""

from dataclasses import replace

import pytest
import yaml

from midwatch_monitor.config.rules import Cycle, LowConfidence, Rules
from midwatch_monitor.metrics.statistics import Interval, Share
from midwatch_monitor.replay.tune.figures import AlarmFigures
from midwatch_monitor.replay.tune.proposal import (
    changes,
    figures_text,
    lift_text,
    proposal_text,
    share_text,
    verdict_text,
)
from midwatch_monitor.replay.tune.run import Target
from midwatch_monitor.replay.tune.study import Aim, Choice, Row, Scores, Study, Verdict

FIGURES = AlarmFigures(
    resolved=Share(hits=1, of=50),
    found=Share(hits=10, of=20),
    unresolved=Share(hits=20, of=50),
    lift=0.25,
    lift_interval=Interval(low=0.1, high=0.4),
    lift_unresolved=0.1,
    delay=0.5,
)
TOLD = (
    "1/50 (2.0 %, 0.4 to 10.5) of the resolved runs alarmed, 10/20 out of budget in time, "
    "lift +0.25 (+0.10 to +0.40)"
)


def study(*choices: Choice, better: bool | None = True) -> Study:
    row = Row(
        rule="cycle", key="warn_after", threshold=2, present=False, chosen=True, figures=FIGURES
    )
    held_out = None if better is None else FIGURES
    return Study(
        target=Target.SPENT,
        aim=Aim(allowed=0.03, folds=5, seed=1),
        runs=100,
        rows=(row, replace(row, threshold=3, present=True, chosen=False)),
        choices=choices,
        before=Rules(
            cycle=Cycle(notice_after=2, warn_after=3, critical_after=5),
            low_confidence=LowConfidence(below=30),
        ),
        after=Rules(),
        scores=Scores(
            present=FIGURES,
            proposal=FIGURES,
            held_out=held_out,
            agreement=FIGURES,
            better=better,
        ),
    )


MORE = Choice(rule="cycle", level=2, verdict=Verdict.CHOSEN)
SAME = Choice(rule="cycle", level=3, verdict=Verdict.TOO_FEW)
NEVER = Choice(rule="cycle", level=None, verdict=Verdict.TOO_DEAR)
NOTICE = Choice(rule="low_confidence", level=None, verdict=Verdict.BY_CHANCE)


def body(text: str) -> list[str]:
    """What follows the head."""
    _, _, rules = text.partition("\nrules:\n")
    return rules.splitlines()


def test_every_changed_value_says_why() -> None:
    assert body(proposal_text(study(MORE))) == [
        "  cycle:",
        f"    # From here on: {TOLD}.",
        "    warn_after: 2",
        "    # Not measured by itself: keeps its distance from the warning.",
        "    critical_after: 4",
        "    # A notice would come no sooner than the alarm.",
        "    notice_after: 0",
    ]


def test_a_rule_that_is_no_alarm_any_more_says_what_it_did() -> None:
    lines = body(proposal_text(study(NEVER, NOTICE)))
    assert lines[:4] == [
        "  cycle:",
        "    # No alarm: what it adds costs too many false alarms.",
        f"    # As it was: {TOLD}.",
        "    warn_after: 0",
    ]
    assert lines[-2:] == ["    # Never an alarm in these runs.", "    severity: notice"]


@pytest.mark.parametrize("choices", [(MORE,), (NEVER, NOTICE), (SAME,)])
def test_what_is_written_is_what_changes(choices: tuple[Choice, ...]) -> None:
    proposed = study(*choices)
    read = yaml.safe_load(proposal_text(proposed))
    assert (read or {"rules": {}})["rules"] == changes(proposed)


def test_a_proposal_without_changes_says_so() -> None:
    assert changes(study(SAME)) == {}
    assert proposal_text(study(SAME)).endswith("# Nothing to change.\n")


@pytest.mark.parametrize(
    ("proposed", "verdict"),
    [
        (study(MORE), "Better than what is configured, on tasks that it was not chosen on."),
        (
            study(MORE, better=False),
            "Not better than what is configured, on tasks not chosen on: keep what you have.",
        ),
        (
            study(MORE, better=None),
            "There are too few tasks to judge it on others than it was chosen on.",
        ),
        (study(SAME), "Nothing to change: keep what you have."),
    ],
)
def test_the_verdict_rests_on_tasks_that_were_held_out(proposed: Study, verdict: str) -> None:
    assert verdict_text(proposed) == verdict
    assert verdict in proposal_text(proposed)


@pytest.mark.parametrize("interval", [None, Interval(low=-0.1, high=0.4)])
def test_a_proposal_that_may_find_by_chance_is_doubted(interval: Interval | None) -> None:
    proposed = study(MORE)
    unsure = replace(FIGURES, lift_interval=interval)
    doubted = replace(proposed, scores=replace(proposed.scores, held_out=unsure))
    assert verdict_text(doubted).endswith(
        "But there it is not shown to find more than chance does."
    )


def test_figures_are_told_with_their_intervals() -> None:
    assert figures_text(FIGURES, Target.SPENT) == TOLD
    assert share_text(Share(hits=0, of=0)) == "0/0 (0.0 %, 0.0 to 100.0)"
    assert lift_text(-0.5, None) == "-0.50"
