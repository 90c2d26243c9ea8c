"""What is said of the sandbox before a run begins."""

import pytest

from midwatch_agents.sandbox import SandboxKind
from midwatch_monitor.config.tasks import WorkerSpec
from midwatch_stage.command import assignment
from midwatch_supervisor.cli.run.start_warnings import sandbox_words
from midwatch_supervisor.present.assignment import Assignment

CLAUDE = WorkerSpec(kind="claude-code")
OWN, FOREIGN = assignment(), assignment(spec=CLAUDE)
MAY = assignment(others={"claude": CLAUDE})


@pytest.mark.parametrize(
    ("wanted", "told"),
    [([OWN], False), ([OWN, FOREIGN], True), ([MAY], True), (None, True)],
)
def test_what_the_sandbox_allows_a_third_party_agent_is_said_if_there_may_be_one(
    wanted: list[Assignment] | None, *, told: bool
) -> None:
    said = sandbox_words(SandboxKind.BUBBLEWRAP, wanted)
    assert "no network unless `run.network`" in said
    assert ("third-party agents also have the network and their own state" in said) is told
