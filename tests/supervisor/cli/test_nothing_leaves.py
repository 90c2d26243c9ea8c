"""Nothing is sent anywhere unless it is configured, and then only there."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from midwatch_agents.scripted import Call, Phase, Script, Turn
from midwatch_monitor.config.tasks import Role
from midwatch_tests.foreign import FILES, asked, at, loop
from midwatch_tests.harness import SHARED
from midwatch_tests.matrix import matrix
from midwatch_tests.own_network import FOUND, RECEIVER, Extent, traffic
from midwatch_tests.sessions import DIALECTS, write

pytestmark = pytest.mark.long

SAID = "Xylophone"
"""Stands in what the worker says, reads and writes."""
TASKS = f"""
    models: {{worker: "scripted:test_nothing_leaves@0", supervisor: none}}
    tasks:
      - {{id: loop, goal: {SAID}., acceptance: ["false"], max_attempts: 1, budget: {{requests: 8}}}}
"""


def script_for(role: Role, key: str) -> Script:
    look = Call(tool="run_command", args=json.dumps({"command": f"echo {SAID}; exit 3"}))
    return Script(phases=(Phase(turns=(Turn(say=SAID, calls=(look,)),), repeat=1),))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with tasks, and a home with one session of Claude Code in it."""
    claude = DIALECTS["claude-code"]
    session = tmp_path / "home" / FILES["claude-code"]
    session.parent.mkdir(parents=True)
    # Old sessions are no news for anybody.
    write(session, at(datetime.now(UTC), [*asked(claude), *loop(claude, 6)]))
    (tmp_path / "tasks.yaml").write_text(TASKS)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parent}:{SHARED}")
    monkeypatch.setenv("HOOK", "key-of-the-hook")
    return tmp_path


def configure(folder: Path, to: str) -> None:
    target = f"{{webhook: '{to}/hook', secret_env: HOOK}}"
    sending = (
        f"notify: {{targets: {{t: {target}}}}}\ntelemetry: {{endpoint: '{to}'}}\n" if to else ""
    )
    (folder / "midwatch.yaml").write_text(f"run: {{sandbox: off}}\n{sending}")


@pytest.mark.usefixtures("bubblewrap")
async def test_without_a_word_of_it_in_the_configuration_nothing_is_sent(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", RECEIVER)
    configure(folder, "")
    found = await traffic(folder, Extent.ALL)
    assert (found.left, found.received) == (0, ())


@pytest.mark.usefixtures("bubblewrap")
async def test_what_is_configured_gets_it_without_any_content_and_nobody_else(folder: Path) -> None:
    configure(folder, RECEIVER)
    found = await traffic(folder, Extent.ALL)
    assert found.left == 0
    assert any("repeated_call" in each and "items" in each for each in found.received)
    assert any("invoke_agent" in each for each in found.received)
    assert not [each for each in found.received if SAID in each or FOUND in each]


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize("away", matrix("http://192.0.2.1", "http://collector.test"))
async def test_what_would_leave_is_seen_leaving(folder: Path, away: str) -> None:
    configure(folder, away)
    assert (await traffic(folder, Extent.SESSION)).left > 0
