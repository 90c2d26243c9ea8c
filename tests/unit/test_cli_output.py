"""What commands print."""

import pytest

from midwatch_supervisor.cli.output import write_error, write_json, write_line


def test_an_object_is_one_line_with_its_letters(capsys: pytest.CaptureFixture[str]) -> None:
    write_json({"a": "é\nü", "n": None})
    assert capsys.readouterr().out == '{"a": "é\\nü", "n": null}\n'


def test_a_line_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    write_line("a\x1b[2Jb\x9bc\td")
    assert capsys.readouterr().out == "a\\x1b[2Jb\\x9bc\td\n"


def test_markup_in_a_line_does_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    write_error("[red]x[/red] **y**")
    assert capsys.readouterr().err == "[red]x[/red] **y**\n"


def test_a_name_that_is_no_text_can_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    write_line("a\udcff.yaml")
    write_json({"file": "a\udcff.yaml"})
    assert capsys.readouterr().out == 'a\\udcff.yaml\n{"file": "a\\udcff.yaml"}\n'
