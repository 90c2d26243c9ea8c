"""What commands for what was learned say one after the other, and what they change.

It stands in `transcript.txt` beside this file; `MIDWATCH_UPDATE=1` writes it anew.
"""

import os
import re
import shlex
from pathlib import Path

import pytest

from midwatch_monitor import records as r
from midwatch_tests import factories as make
from midwatch_tests.command import Cli, midwatch
from midwatch_tests.harness import PastAttempts

TEXT = Path(__file__).with_name("transcript.txt")
HERE_AND_NOW = {r"\S+journal\.db": "JOURNAL", r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\S+Z)?": "TIME"}
COMMANDS = """
facts list
facts list --all
facts list --unreviewed
status
facts approve
facts approve {held} {waits}
facts approve {waits}
status --json
facts retire {redis} --dry-run
facts retire {redis} --dry-run --json
facts retire {redis} --from ann --comment 'no longer'
facts list
facts show {redis}
facts restore {redis} --json
facts restore {redis}
facts show {redis} --json
facts show 999
facts retire 999
guidelines show
guidelines show 1 --json
guidelines show {first} --json
guidelines show 99
guidelines approve 1 --dry-run
guidelines approve 1 --from Ada --comment Good.
guidelines approve 1
guidelines show
guidelines diff
guidelines reject 2 --dry-run
guidelines reject 2 --comment 'Too vague.' --json
guidelines retire 3 --dry-run
guidelines retire 3 --json
guidelines approve --from Ada
guidelines list
guidelines retire --dry-run
guidelines rollback --comment 'It made things worse.'
guidelines show --json
guidelines diff
guidelines approve
guidelines retire
guidelines retire
guidelines rollback
guidelines list
lessons list
lessons approve
lessons give {unread} fix
lessons approve {unread} --from ada
lessons show {unread}
lessons rate {lesson} 2
lessons rate {lesson} 5 --from ada
lessons rate {lesson} 6
lessons rate {lesson} 1 --dry-run
lessons retire {lesson} --dry-run
lessons retire {lesson} --comment 'it moved' --json
lessons list
lessons list --all
lessons give {lesson} fix
lessons add Wait.
lessons restore {lesson}
lessons restore {lesson}
lessons list --project nowhere
lessons list --class other
lessons show 99
lessons show {lesson}
lessons add 'Look first.' --dry-run
lessons add 'Look first.' --tag python --json
lessons add '  Look first.'
lessons add ' '
lessons add x --class nonsense
lessons add x --task nothing
lessons add x --comment y
lessons add x --run 1
lessons give 99 fix
lessons give {lesson} fix --dry-run
lessons give {lesson} fi --from ada --json
lessons give {lesson} over
feedback fix accept
feedback done perhaps
feedback done reject --dry-run
feedback do accept --from ada
feedback done reject --comment 'The total in totals.py is rounded too early.' --json
feedback list
feedback list done --json
feedback list done#1
feedback list --run 1
feedback list --run 7
feedback list --project q
feedback scan
feedback scan --json
forget nowhere --yes
forget shop --dry-run
forget shop --dry-run --json
forget shop
lessons list
forget shop --yes --json
lessons list
forget shop --yes
"""


async def make_learned_records(past: PastAttempts) -> dict[str, int]:
    """Something of each kind, and tasks of which two are over; the ids."""
    over = await past.attempt(task="over")
    await past.say(over, make.ended(), make.task_transition(r.Lifecycle.COMPLETED))
    await past.end(await past.attempt(task="done"), r.Ending.DONE)
    shop = await past.attempt()
    ids = {
        "redis": await past.say(shop, make.fact("Redis is needed", state=r.FactState.REVIEWED)),
        "slow": await past.say(shop, make.fact("The linter is slow")),
        "waits": await past.say(shop, make.fact(state=r.FactState.WAITING)),
        "held": await past.say(shop, make.fact("Ruff is run by make", state=r.FactState.WAITING)),
    }
    why = r.FactMark(fact=ids["held"], act=r.FactAct.HELD, reason="it names a command")
    await past.say(shop, why)
    for number, text in enumerate(
        ("- Ask.\n\n```\n  exact \t\n```", "- Look.", "- Run.", "- Go."), 1
    ):
        version = await past.say(shop, r.Guidelines(version=number, text=text, model="m"))
        ids.setdefault("first", version)
    edited = make.feedback(
        accepted=False, comment="a.py", origin=r.Origin.IMPLIED, sign=r.VerdictBasis.EDITED
    )
    lesson = r.Lesson(text="Wait.", failure_class="loop", verdict=await past.say(shop, edited))
    ids["lesson"] = await past.say(shop, lesson)
    ids["unread"] = await past.say(shop, r.Lesson(text="Make.", waits="a model wrote it"))
    return ids


@pytest.mark.usefixtures("named_by_the_environment")
async def test_each_command_says_and_does_what_the_golden_file_tells(
    past: PastAttempts, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("LOGNAME", "eve")
    ids = await make_learned_records(past)
    found = ""
    for command in COMMANDS.strip().format(**ids).splitlines():
        code = await midwatch(*shlex.split(command))
        said = "".join(capsys.readouterr())
        for part, name in HERE_AND_NOW.items():
            said = re.sub(part, name, said)
        found += f"$ midwatch {command}\n{said}{f'(exit code {code})' if code else ''}\n"
    if os.environ.get("MIDWATCH_UPDATE"):
        TEXT.write_text(found, encoding="utf-8")
    assert found == TEXT.read_text(encoding="utf-8")


@pytest.mark.usefixtures("named_by_the_environment")
async def test_of_several_projects_one_is_named_also_by_status_where_facts_wait(
    past: PastAttempts, cli: Cli
) -> None:
    assert await cli.ask("facts", "list") == []
    assert (await cli.said("facts", "list")).startswith("there are no facts to list in ")
    await past.say(await past.attempt(), make.fact())
    waits = make.fact(state=r.FactState.WAITING)
    other = await past.say(await past.attempt("a shed"), waits)
    assert "name the project with --project" in await cli.refused("facts", "list")
    (line,) = await cli.ask("facts", "list", "--project", "a s")
    assert (line["id"], line["project"]) == (other, "a shed")
    told = "facts waiting for you: 1 (`midwatch facts list --project 'a shed'`)"
    assert told in await cli.said("status")
