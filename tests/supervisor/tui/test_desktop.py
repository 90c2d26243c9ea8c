"""The desktop is notified by a program, with the text as one argument."""

from pathlib import Path

from midwatch_supervisor.tui.bell import notify_desktop


async def test_the_program_gets_the_text_as_its_last_argument(tmp_path: Path) -> None:
    heard, program = tmp_path / "heard", tmp_path / "notify"
    program.write_text(f'#!/bin/sh\nfor each; do echo "$each"; done > "{heard}"\n')
    program.chmod(0o755)
    await notify_desktop(str(program), "fix#1 waits; $(rm -r /nothing) <b>")
    assert heard.read_text().splitlines() == [
        "--app-name=Midwatch",
        "--",
        "Midwatch",
        "fix#1 waits; $(rm -r /nothing) &lt;b&gt;",
    ]


async def test_a_program_that_is_gone_is_no_trouble(tmp_path: Path) -> None:
    await notify_desktop(str(tmp_path / "nothing"), "fix#1 waits")
