"""`midwatch rules`: list the rules, and check them against timelines."""

from collections.abc import Iterator, Sequence
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from midwatch_monitor.errors import ConfigError, UsageError
from midwatch_supervisor.cli.output import write_error, write_json, write_line
from midwatch_supervisor.cli.settings import ConfigOption, JsonOption, settings_in_force
from midwatch_supervisor.present.numbers import count_noun

if TYPE_CHECKING:
    from midwatch_monitor.replay.timeline import Mismatch

app = App(name="rules")

_EVERY_RULE = frozenset({"enabled", "hold", "cooldown", "workers", "tools"})
"""Settings that every rule has; `midwatch config show` prints them."""


@app.command(name="test")
def check(
    *paths: Annotated[
        Path, Parameter(help="Timelines; a folder means all of them below it.", required=True)
    ],
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Run the rules over timelines, and exit with 1 if an expected alert differs."""
    from midwatch_monitor.replay.timeline import check_timeline

    rules = settings_in_force(config).rules
    codes = [0]  # the exit code when nothing is wrong
    for file in _find_timelines(paths):
        try:
            mismatches = check_timeline(file, rules)
        except ConfigError as error:
            codes.append(2)
            _print_error(file, error, json=json)
        else:
            codes.append(1 if mismatches else 0)
            _print_result(file, mismatches, json=json)
    if not json:
        write_line(f"{count_noun(len(codes) - 1, 'timeline')}, {sum(map(bool, codes))} failed")
    return max(codes)


@app.command(name="list")
def list_rules(*, config: ConfigOption = None, json: JsonOption = False) -> None:
    """Print every rule: what it detects, its evidence, and its thresholds in force."""
    from midwatch_monitor.rules import EVIDENCE, rule_settings

    for name, settings in rule_settings(settings_in_force(config).rules).items():
        sees = " ".join(cleandoc(settings.__doc__ or "").partition("\n\n")[0].split())
        evidence = EVIDENCE[name].value
        thresholds = settings.model_dump(mode="json", exclude=set(_EVERY_RULE))
        if json:
            fields = {"type": "rule", "rule": name, "enabled": settings.enabled}
            write_json({**fields, "evidence": evidence, "sees": sees, "thresholds": thresholds})
        else:
            told = ", ".join(f"{key} {_value_text(value)}" for key, value in thresholds.items())
            stands = (told or "on") if settings.enabled else "off"
            write_line(f"{name} ({evidence}): {stands}", f"    {sees}")


def _find_timelines(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        found = sorted(file for end in ("yaml", "yml") for file in path.rglob(f"*.{end}"))
        if not found:
            raise UsageError(f"there is no timeline below {path}")
        yield from found


def _print_result(file: Path, mismatches: "Sequence[Mismatch]", *, json: bool) -> None:
    if json:
        wrong = [
            {"entry": each.entry, "expected": list(each.expected), "found": list(each.found)}
            for each in mismatches
        ]
        write_json({"type": "timeline", "file": str(file), "ok": not wrong, "mismatches": wrong})
        return
    if not mismatches:
        write_line(f"{file}: ok")
    for each in mismatches:
        expected, found = _list_text(each.expected), _list_text(each.found)
        write_line(f"{file}: entry {each.entry}: expected {expected}; found {found}")


def _print_error(file: Path, error: ConfigError, *, json: bool) -> None:
    if json:
        told = {"problem": str(error), "problems": list(error.lines)}
        write_json({"type": "timeline", "file": str(file), "ok": False, **told})
    else:
        write_error(*error.lines)


def _list_text(told: Sequence[str]) -> str:
    return ", ".join(told) or "nothing"


def _value_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
