"""Settings from files and the environment, and what is said of wrong ones."""

import logging
from operator import attrgetter
from pathlib import Path

import pytest

from midwatch_monitor.config.section import Length
from midwatch_monitor.config.settings import Mode, Settings
from midwatch_monitor.config.source import load_settings
from midwatch_monitor.errors import ConfigError
from midwatch_monitor.records import Action


def write(folder: Path, text: str, name: str = "a.yaml") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def load_text(folder: Path, text: str) -> Settings:
    return load_settings([write(folder, text)], environ={})


def config_errors(*files: Path, environ: dict[str, str] | None = None) -> list[str]:
    """Everything that is said of wrong settings, without the folder."""
    with pytest.raises(ConfigError) as caught:
        load_settings(files, environ=environ or {})
    return [line.replace(f"{files[0].parent}/", "") for line in caught.value.lines if files] or [
        *caught.value.lines
    ]


@pytest.mark.parametrize(
    "text", ["# nothing\n", "rules:\n  low_confidence:\n    # below: 1\nrun:\n"]
)
def test_nothing_said_is_the_built_in_default(tmp_path: Path, text: str) -> None:
    assert load_text(tmp_path, text) == load_settings([], environ={}) == Settings()


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("mode: off", "mode", Mode.OFF),
        (
            "run: {sandbox_read: [/data/models/, ~/.cache/x]}",
            "run.sandbox_read",
            ("/data/models", "~/.cache/x"),
        ),
        (
            "rules: {low_confidence: {hold: 30s}}",
            "rules.low_confidence.hold",
            Length(seconds=30.0, text="30s"),
        ),
        (
            "policy: {rules: {repeated_edits: [nudge]}}",
            "policy.rules",
            {**Settings().policy.rules, "repeated_edits": (Action.NUDGE,)},
        ),
        ("policy: {ladder: [stop]}", "policy.ladder", (Action.STOP,)),
        (
            "rules: {cycle: {warn_after: 1, workers: {x: {critical_after: 1}}}}",
            "rules.cycle.warn_after",
            1,
        ),
    ],
    ids=[
        *("off is a word", "absolute paths and those below the home", "a length in time"),
        *("an order for one rule keeps the others", "a list is replaced as a whole"),
        "a threshold below the usual one of a lesser severity",
    ],
)
def test_what_is_said_is_taken(tmp_path: Path, text: str, key: str, value: object) -> None:
    assert attrgetter(key)(load_text(tmp_path, text)) == value


@pytest.mark.parametrize("path", ["/", "//", "~", "~/", "~//", "data", "~ada/x", "/a/../..", ""])
def test_what_may_be_read_is_not_the_whole_disk_or_home(path: str, tmp_path: Path) -> None:
    (said,) = config_errors(write(tmp_path, f"run: {{sandbox_read: ['{path}']}}\n"))
    assert "name the folders that are needed" in said


def test_later_files_win_and_leave_the_rest(tmp_path: Path) -> None:
    first = write(tmp_path, "rules: {low_confidence: {below: 20, cooldown: 1}}\n")
    second = write(tmp_path, "rules: {low_confidence: {below: 25}}\n", "b.yaml")
    rule = load_settings([first, second], environ={}).rules.low_confidence
    assert (rule.below, rule.cooldown) == (25, Length(steps=1, text="1"))


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("error_streak: {warn_after: 9}", "error_streak.warn_after: must be at most the `window`"),
        ("error_streak: {window: 3}", "error_streak.window: must be at least 6, or no thresh"),
        ("cycle: {warn_after: 6}", "cycle.warn_after: must be at most `critical_after`, 5; is 6"),
        ("cycle: {tools: {x: {warn_after: 6}}}", "cycle.tools.x.warn_after: must be at most `crit"),
        ("cycle: {workers: {x: {notice_after: 4}}}", "cycle.workers.x.notice_after: must be"),
    ],
)
def test_a_threshold_that_cannot_be_met_is_refused(rules: str, said: str, tmp_path: Path) -> None:
    (line,) = config_errors(write(tmp_path, f"rules:\n  {rules}\n"))
    assert line.startswith(f"a.yaml:2: rules.{said}")


@pytest.mark.parametrize("port", [0, 99999])
@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("fleet: {broker: {url: 'mqtt://h:PORT'}}", "fleet.broker.url"),
        ("telemetry: {endpoint: 'http://h:PORT/x'}", "telemetry.endpoint"),
        (
            "notify: {targets: {a: {webhook: 'http://h:PORT', secret_env: K}}}",
            "notify.targets.a.webhook",
        ),
    ],
)
def test_an_address_needs_a_possible_port(text: str, key: str, port: int, tmp_path: Path) -> None:
    file = write(tmp_path, text.replace("PORT", str(port)))
    assert config_errors(file) == [f"a.yaml:1: {key}: must have a port from 1 to 65535, or none"]


def test_the_environment_wins_over_files(tmp_path: Path) -> None:
    file = write(tmp_path, "mode: off\nrules: {low_confidence: {below: 20}}\n")
    settings = load_settings(
        [file],
        environ={
            "MIDWATCH_MODE": "advise",
            "MIDWATCH_RULES__LOW_CONFIDENCE__BELOW": "25",
            "MIDWATCH_RULES__LOW_CONFIDENCE__HOLD": "5m",
            "MIDWATCH_RUN__NETWORK": "true",
            "MIDWATCH_POLICY__NEEDS_APPROVAL": '["stop"]',
        },
    )
    rule = settings.rules.low_confidence
    assert (settings.mode, rule.below, rule.hold.seconds) == (Mode.ADVISE, 25, 300.0)
    assert (settings.run.network, settings.policy.needs_approval) == (True, (Action.STOP,))


def test_other_variables_are_no_settings() -> None:
    others = {"MIDWATCH_CONFIG": "x.yaml", "MIDWATCH_JOURNAL": "/j", "MIDWATCHMAN__X": "1"}
    assert load_settings([], environ=others) == Settings()


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("MIDWATCH_RULEZ__X", "1", "unknown key (did you mean `rules`?)"),
        (
            "MIDWATCH_RULES__LOW_CONFIDENC__BELOW",
            "1",
            "unknown key (did you mean `low_confidence`?)",
        ),
        ("MIDWATCH_RULES__LOW_CONFIDENCE__BELO", "1", "unknown key (did you mean `below`?)"),
        ("MIDWATCH_RULES__LOW_CONFIDENCE__BELOW", "101", "must be from 0 to 100; is '101'"),
        ("MIDWATCH_POLICY__LADDER", "stop", "must be a list; is 'stop'"),
    ],
)
def test_a_wrong_variable_is_named(name: str, value: str, problem: str) -> None:
    assert config_errors(environ={name: value}) == [f"environment: {name}: {problem}"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "notify: {link: 'http://x/{attempt}/{task}'}",
            "a.yaml:1: notify.link: only {attempt} is filled in, not {task}",
        ),
        (
            "fleet:\n  beat_seconds: 10\n  lost_after_seconds: 29",
            "a.yaml:3: fleet.lost_after_seconds: must be at least 3 times beat_seconds: 30 or more",
        ),
        (
            "rules:\n  low_confidence:\n    workers:\n      bob: {workers: {}}",
            "a.yaml:4: rules.low_confidence.workers.bob: has no `workers` of its own",
        ),
        ("rulez: {}", "a.yaml:1: rulez: unknown key (did you mean `rules`?)"),
        (
            "policy: {ladder: [pause]}",
            "a.yaml:1: policy.ladder[0]: must be one of observe, nudge, replan, grant_budget, "
            "switch_model, restart, split, ask_operator, stop; is 'pause'",
        ),
        (
            "policy: {table: [{rule: cycle, actions: [nudge, resume]}]}",
            "a.yaml:1: policy.table[0].actions[1]: must be one of observe, nudge, replan, "
            "grant_budget, switch_model, restart, split, ask_operator, stop; is 'resume'",
        ),
        (
            "policy: {needs_approval: [ask_operator]}",
            "a.yaml:1: policy.needs_approval[0]: must be one of nudge, replan, grant_budget, "
            "switch_model, restart, split, stop; is 'ask_operator'",
        ),
        (
            "mode: of",
            "a.yaml:1: mode: must be one of off, advise, act; is 'of' (did you mean `off`?)",
        ),
        ("run:\n  network: 3", "a.yaml:2: run.network: must be true or false; is 3"),
        ("run:\n  concurrency: 0", "a.yaml:2: run.concurrency: must be from 1 to 1000; is 0"),
        ("run:\n  concurrency: x", "a.yaml:2: run.concurrency: must be a whole number; is 'x'"),
        ("run:\n  concurrency: 1.5", "a.yaml:2: run.concurrency: must be a whole number; is 1.5"),
        ("run:\n  concurrency: true", "a.yaml:2: run.concurrency: must be a number; is true"),
        ("run: 3", "a.yaml:1: run: must be a mapping: `key: value`; is 3"),
        (
            "run:\n  check_seconds: 0",
            "a.yaml:2: run.check_seconds: must be above 0 and at most 86400; is 0",
        ),
        ("run:\n  check_seconds: .inf", "a.yaml:2: run.check_seconds: must be a finite number"),
        ("policy:\n  ladder: stop", "a.yaml:2: policy.ladder: must be a list; is 'stop'"),
        (
            "policy:\n  rules:\n    repeated_edit: [stop]",
            "a.yaml:3: policy.rules.repeated_edit: there is no such rule "
            "(did you mean `repeated_edits`?)",
        ),
        *(
            (
                f"rules:\n  low_confidence:\n    hold: {length}",
                "a.yaml:3: rules.low_confidence.hold: "
                f"write a number of steps (3) or a duration (30s, 5m, 1h); is '{length}'",
            )
            for length in ("soon", "²")
        ),
    ],
)
def test_what_is_wrong_is_said_where_it_stands(tmp_path: Path, text: str, problem: str) -> None:
    assert config_errors(write(tmp_path, text)) == [problem]


def test_thresholds_for_a_worker_are_checked_as_those_of_the_rule(tmp_path: Path) -> None:
    text = (
        "rules:\n  low_confidence:\n    workers:\n      bob:\n        below: 300\n        belo: 1\n"
    )
    assert config_errors(write(tmp_path, text)) == [
        "a.yaml:5: rules.low_confidence.workers.bob.below: must be from 0 to 100; is 300",
        "a.yaml:6: rules.low_confidence.workers.bob.belo: unknown key (did you mean `below`?)",
    ]


def test_all_problems_are_said_in_the_order_of_files_and_lines(tmp_path: Path) -> None:
    first = write(tmp_path, "run: {concurrency: 0}\nmode: of\nmode: act\n")
    second = write(tmp_path, "a: [\n", "b.yaml")
    with pytest.raises(ConfigError, match=r"\(and 4 more\)$"):
        load_settings([first, second], environ={"MIDWATCH_RULEZ__X": "1"})
    said = config_errors(first, second, environ={"MIDWATCH_RULEZ__X": "1"})
    assert [line.split(" ")[0] for line in said] == [
        "a.yaml:1:",
        "a.yaml:2:",
        "a.yaml:3:",
        "b.yaml:2:",
        "environment:",
    ]


@pytest.mark.parametrize(
    ("url", "said"),
    [("mqtt:/x", "; is 'mqtt:/x'"), ("hub:1883", "; is 'hub:1883'"), ("mqtt://ann:s3cr3t@hub", "")],
)
def test_a_wrong_broker_is_answered_without_its_password(
    tmp_path: Path, url: str, said: str
) -> None:
    assert config_errors(write(tmp_path, f"fleet: {{broker: {{url: '{url}'}}}}\n")) == [
        "a.yaml:1: fleet.broker.url: must be mqtt://HOST:PORT, or mqtts://HOST:PORT for TLS, and "
        f"nothing else; the account is `username` and `password_file`{said}"
    ]


# -- keys of earlier versions ------------------------------------------------------------------


def test_an_unused_key_is_left_out_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "midwatch.yaml"
    file.write_text("learning:\n  guidelines:\n    auto: true\n    min_runs: 2\n")
    with caplog.at_level(logging.WARNING):
        settings = load_settings([file], environ={})
    assert settings.learning.guidelines.min_runs == 2
    assert caplog.messages == [
        f"{file}:3: `learning.guidelines.auto` is no longer used: "
        "a person approves each new version"
    ]


def test_settings_that_an_earlier_version_stored_are_read() -> None:
    guidelines = '{"trial_minutes": 60, "regressions": 5}'
    stored = f'{{"learning": {{"guidelines": {guidelines}, "facts": {{"alike": 0.8}}}}}}'
    assert Settings.model_validate_json(stored) == Settings()


def test_the_names_of_failure_classes_with_words_are_taken_for_classes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("learning:\n  lessons:\n    failure_classes:\n      late: [too late]\n")
    assert load_settings([file], environ={}).learning.lessons.classes == ("late",)
    (said,) = [record.getMessage() for record in caplog.records]
    assert "`learning.lessons.failure_classes` is no longer used" in said
    assert "`learning.lessons.classes`" in said
