"""Targets that cannot be used are said in clear words, before anything begins."""

from pathlib import Path

import pytest

from midwatch_monitor.config.notify import NotifySettings
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.source import load_settings
from midwatch_monitor.errors import ConfigError, UsageError
from midwatch_supervisor.notify.notifier import senders_of

pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated")  # Apprise imports it
WAYS = "must have exactly one of url, url_env, url_file, webhook"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("targets: {a: {from: critical}}", f"notify.targets.a: {WAYS}"),
        (
            'targets: {a: {url: "ntfys://b/c", webhook: "https://d"}}',
            f"notify.targets.a: {WAYS}; there are url and webhook",
        ),
        (
            'targets: {a: {webhook: "https://d"}}',
            "notify.targets.a: `webhook` and `secret_env` need each other: the message is signed",
        ),
        (
            "targets: {a: {webhook: ftp, secret_env: S}}",
            "notify.targets.a.webhook: must begin with https:// or http://",
        ),
        ("quiet: {from: 22, to: '07:00'}", 'notify.quiet.from: must be a time of the day: "22:00"'),
        ("quiet: {from: '22:00', to: '22:00'}", "notify.quiet.to: must end at another time"),
    ],
)
def test_a_wrong_setting_is_named_with_what_would_be_right(
    tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "midwatch.yaml"
    file.write_text(f"notify:\n  {text}\n")
    with pytest.raises(ConfigError) as found:
        load_settings([file], environ={})
    assert said in str(found.value)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ({"url_env": "NTFY_URL"}, "the environment variable NTFY_URL is not set"),
        (
            {"webhook": "https://a.test", "secret_env": "HOOK"},
            "the environment variable HOOK is not set",
        ),
        ({"url_file": "/nowhere/url"}, "/nowhere/url cannot be read: No such file or directory"),
        ({"url": "nfty://host/word"}, "no service matches this URL (nfty://)"),
        ({"url": "word"}, "no service matches this URL, a part of it is wrong, or"),
    ],
)
def test_a_way_that_does_not_lead_anywhere_is_an_error_without_the_secret(
    target: dict[str, object], said: str
) -> None:
    settings = NotifySettings.model_validate({"targets": {"a": target}})
    with pytest.raises(UsageError) as found:
        senders_of(settings, {})
    assert str(found.value).startswith(f"notify.targets.a: {said}")
    assert "word" not in str(found.value)


def test_a_run_keeps_no_url_and_the_shown_configuration_hides_it() -> None:
    target = {"url": "ntfys://host/topic-1"}
    settings = Settings.model_validate({"notify": {"targets": {"a": target}}})
    assert "topic" not in settings.for_run()
    assert "topic" not in str(settings.model_dump(mode="json"))
