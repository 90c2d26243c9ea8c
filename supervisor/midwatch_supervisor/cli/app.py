"""Which commands there are. None is imported before it is called."""

from collections.abc import Sequence
from difflib import get_close_matches
from importlib.metadata import version

from cyclopts import App, Parameter

from midwatch_monitor.errors import UsageError

_COMMANDS = {
    "run": ("run:run", "Run the tasks of a file."),
    "demo": ("demo:demo", "Run the bundled example, offline."),
    "submit": ("submit:submit", "Hand the tasks of a file over to a fleet."),
    "cancel": ("cancel:cancel", "Withdraw tasks of a fleet, or a whole run."),
    "node": ("node:node", "Work for a fleet on this machine."),
    "monitor": ("monitor:monitor", "Watch and supervise what no `midwatch run` looks after."),
    "nodes": ("nodes:nodes", "The nodes of a fleet, and what they have in hand."),
    "resume": ("resume:resume", "Go on with what a crash or a stop interrupted."),
    "watch": ("watch:watch", "Open the console of a run that works elsewhere, or is over."),
    "status": ("status:status", "What the tasks and their attempts are doing."),
    "show": ("show:show", "Everything about one task or attempt."),
    "report": ("report:app", "What came of the tasks, in figures and charts."),
    "lessons": ("lessons:app", "What failures taught: list, show, rate, retire."),
    "guidelines": ("guidelines:app", "How to work in a project: read, approve, roll back."),
    "reflect": ("reflect:reflect", "Learn what is still to be learned, and look back."),
    "calibration": ("calibration:calibration", "What each model's stated confidence was worth."),
    "approve": ("approval:approve", "Let a decision that waits for approval take effect."),
    "reject": ("approval:reject", "Turn down a decision that waits for approval."),
    "tell": ("operator:tell", "Say something to a worker."),
    "grant": ("grant:grant", "Give an attempt more budget."),
    "switch": ("switch:switch", "Let another model go on with an attempt."),
    "feedback": ("feedback:app", "Say whether a result is any good, and list what was said."),
    "facts": ("facts:app", "What workers found out about a workspace: list, show, take back."),
    "merge": ("merge:merge", "Merge a completed task's branch into the one you work on."),
    "export": ("export:export", "Write a recorded attempt as a trace, for replay."),
    "replay": ("replay:replay", "Run today's rules over recorded runs."),
    "tune": ("tune:tune", "What thresholds cost and found over recorded runs, and a proposal."),
    "db": ("db:app", "Look after the journal's database: upgrade, check, copy."),
    "forget": ("forget:forget", "Delete everything about a project."),
    "rules": ("rules:app", "List the rules, and test them against timelines."),
    "config": ("config:app", "Check and show configuration."),
    "init": ("init:init", "Write a commented configuration and an example task file."),
}


def build() -> App:
    """The command line. Calling it answers what the command answers, or raises."""
    app = App(
        name="midwatch",
        help="Keeps watch over AI agents: detects, diagnoses, intervenes, checks that it worked.",
        help_format="plaintext",
        version=lambda: version("midwatch"),
        # A path may begin with a bracket, and is no JSON then.
        default_parameter=Parameter(json_list=False, json_dict=False),
        exit_on_error=False,
        print_error=False,
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    for at, (name, (target, summary)) in enumerate(_COMMANDS.items()):
        path = f"midwatch_supervisor.cli.{target}"
        app.command(path, name=name, help=summary, sort_key=at)
    return app


def refuse_unknown(argv: Sequence[str]) -> None:
    """Raise UsageError if the first word is no command.

    cyclopts would import every command to say so.
    """
    word = argv[0] if argv else "-"
    if not word.startswith("-") and word not in _COMMANDS:
        close = get_close_matches(word, _COMMANDS, n=1)
        hint = f" (did you mean `{close[0]}`?)" if close else ""
        raise UsageError(f"there is no command `{word}`{hint}; `midwatch --help` lists them")
