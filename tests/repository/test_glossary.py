"""The glossary has the words that are on the screen."""

from pathlib import Path

from midwatch_monitor.records import Health, Lifecycle

GLOSSARY = Path(__file__).parents[2] / "docs/glossary.md"


def test_every_state_of_an_attempt_is_explained() -> None:
    lines = GLOSSARY.read_text("utf-8").splitlines()
    told = {line.split("**")[1]: line for line in lines if line.startswith("| **")}
    assert [each for each in Lifecycle if f"`{each}`" not in told["lifecycle"]] == []
    assert [each for each in Health if f"`{each}`" not in told["health"]] == []
