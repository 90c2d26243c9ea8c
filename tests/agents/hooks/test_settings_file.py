"""The settings of an agent with our entries put in, and taken out again."""

import json
import shlex

import pytest

from midwatch_agents.hooks.adapters import ADAPTERS
from midwatch_agents.hooks.settings_file import (
    called_programs,
    hooks_switch,
    install_hooks,
    uninstall_hooks,
)
from midwatch_monitor.errors import UsageError

CLAUDE, GEMINI, CODEX = ADAPTERS["claude-code"], ADAPTERS["gemini"], ADAPTERS["codex"]
COMMAND = "/opt/midwatch hook claude-code"
THEIRS = {"matcher": "Bash", "hooks": [{"type": "command", "command": "mine.sh", "new": 1.5}]}
SETTINGS = {
    "z": "é",
    "hooks": {"PreToolUse": [THEIRS], "Made": [], "Stop": [THEIRS, THEIRS]},
    "a": [1, {"b": None}],
}


@pytest.mark.parametrize("agent", ADAPTERS)
def test_every_event_calls_midwatch(agent: str) -> None:
    adapter, command = ADAPTERS[agent], f"midwatch hook {agent}"
    found = json.loads(install_hooks("", adapter, command))["hooks"]
    assert found.keys() == adapter.events.keys()
    assert [group["hooks"][0]["command"] for (group,) in found.values()] == [command] * len(found)


def test_the_entry_is_laid_out_as_the_agent_reads_it() -> None:
    (claude,) = json.loads(install_hooks("", CLAUDE, COMMAND))["hooks"]["Stop"]
    assert claude == {
        "matcher": "*",
        "hooks": [{"type": "command", "command": COMMAND, "timeout": 5}],
    }
    (gemini,) = json.loads(install_hooks("", GEMINI, "midwatch hook gemini"))["hooks"]["AfterTool"]
    assert gemini["hooks"][0]["timeout"] == 5000


@pytest.mark.parametrize("indent", [4, "\t", None])
@pytest.mark.parametrize(("ascii_only", "end"), [(True, ""), (False, "\n"), (False, "\r\n")])
@pytest.mark.parametrize(
    "settings", [SETTINGS, {"model": "x"}, {"hooks": {"PreToolUse": [THEIRS]}}, {}], ids=range(4)
)
def test_uninstalling_gives_back_every_byte(
    settings: object, end: str, *, indent: int | str | None, ascii_only: bool
) -> None:
    text = json.dumps(settings, indent=indent, ensure_ascii=ascii_only) + "\n" * bool(end)
    text = text.replace("\n", end or "\n")
    done = install_hooks(text, CLAUDE, COMMAND)
    assert done.count(COMMAND) == len(CLAUDE.events)
    assert end != "\r\n" or "\n" not in done.replace("\r\n", "")
    assert install_hooks(done, CLAUDE, COMMAND) == done
    assert uninstall_hooks(install_hooks(done, CLAUDE, f"/new{COMMAND}"), CLAUDE) == text
    assert uninstall_hooks(text, CLAUDE) == text


def test_settings_laid_out_otherwise_mean_the_same_afterwards() -> None:
    text = f'{{"a":1,\n      "hooks":{{"Stop":[{json.dumps(THEIRS)}]}} }}'
    back = uninstall_hooks(install_hooks(text, CLAUDE, COMMAND), CLAUDE)
    assert back is not None
    assert json.loads(back) == json.loads(text)


@pytest.mark.parametrize("text", [None, "", "\n", "\r\n", " \n\n"])
def test_settings_that_held_nothing_before_hold_nothing_again(text: str | None) -> None:
    done = install_hooks(text, CODEX, "midwatch hook codex")
    assert install_hooks(done, CODEX, "midwatch hook codex") == done
    assert uninstall_hooks(done, CODEX) == text


def test_other_hooks_keep_their_place_before_ours() -> None:
    done = json.loads(install_hooks(json.dumps(SETTINGS), CLAUDE, COMMAND))
    assert list(done) == ["z", "hooks", "a"]
    assert done["hooks"]["Stop"][:2] == [THEIRS, THEIRS]
    assert done["hooks"]["Made"] == []


def test_a_path_that_has_moved_is_replaced() -> None:
    old = install_hooks("{}", CLAUDE, "'/old place/bin/midwatch' hook claude-code")
    assert install_hooks(old, CLAUDE, COMMAND) == install_hooks("{}", CLAUDE, COMMAND)


def test_a_group_that_somebody_shares_with_us_keeps_theirs() -> None:
    shared = {"matcher": "*", "hooks": [{"command": "mine.sh"}, {"command": COMMAND}]}
    left = json.loads(uninstall_hooks(json.dumps({"hooks": {"Stop": [shared]}}), CLAUDE) or "")
    assert left == {"hooks": {"Stop": [{"matcher": "*", "hooks": [{"command": "mine.sh"}]}]}}


@pytest.mark.parametrize(
    "command",
    [
        *("midwatch hook claude-code-2", "midwatch hook codex", "notmidwatch.sh hook", ""),
        *("~/audit.sh; midwatch hook claude-code", "echo midwatch hook claude-code"),
        *("my-midwatch hook claude-code", "true;/opt/midwatch hook claude-code"),
        *("midwatch hook claude-code --audit", "midwatch hook claude-code; audit.sh"),
        *("/usr/bin/logger about-to-run-midwatch hook claude-code", "'midwatch hook claude-code"),
        *("/opt/$(audit)/midwatch hook claude-code", "midwatch hook claude-code >> log"),
    ],
)
def test_what_only_looks_like_ours_stays(command: str) -> None:
    text = json.dumps({"hooks": {"Stop": [{"hooks": [{"command": command}]}, "odd"]}})
    assert uninstall_hooks(text, CLAUDE) == text
    assert json.dumps(command) in install_hooks(text, CLAUDE, COMMAND)


@pytest.mark.parametrize(
    "program",
    ["midwatch", "/opt/midwatch", '"/old place/midwatch"', shlex.quote("/it's $HOME/midwatch")],
)
def test_ours_is_a_path_to_midwatch_quoted_or_not(program: str) -> None:
    text = install_hooks("", CLAUDE, f"{program} hook claude-code")
    assert called_programs(text, CLAUDE) == shlex.split(program) * len(CLAUDE.events)
    assert uninstall_hooks(text, CLAUDE) == ""


@pytest.mark.parametrize(
    ("settings", "switch"),
    [
        ({"disableAllHooks": True}, "disableAllHooks"),
        ({"disableAllHooks": False, "hooksConfig": {"enabled": True}}, ""),
        ({"hooksConfig": {"enabled": False}}, "hooksConfig.enabled"),
        ({"hooksConfig": []}, ""),
    ],
)
def test_a_setting_that_turns_all_hooks_off_is_found(settings: object, switch: str) -> None:
    assert hooks_switch(json.dumps(settings), CLAUDE) == switch


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{ // mine\n}", "are not plain JSON"),
        ('{"a": 1,}', "are not plain JSON"),
        ('{"a": 1, "a": 2}', "a key occurs twice"),
        ("[]", "are not a JSON object"),
        ('{"hooks": []}', "in an unknown layout"),
        ('{"hooks": {"Stop": {}}}', "in an unknown layout"),
        ("[" * 100_000, "are not plain JSON"),
    ],
    ids=range(7),
)
def test_settings_that_would_lose_something_are_refused_with_advice(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as refused:
        install_hooks(text, CLAUDE, COMMAND)
    assert "PreToolUse, PostToolUse" in str(refused.value)
    assert f'"command": "{COMMAND}"' in str(refused.value)
    with pytest.raises(
        UsageError, match="remove the hooks that call `midwatch hook claude-code` by hand"
    ):
        uninstall_hooks(text, CLAUDE)
