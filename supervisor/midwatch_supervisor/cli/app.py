"""Which commands there are. None is imported before it is called."""

from collections.abc import Sequence
from difflib import get_close_matches
from importlib.metadata import version

from cyclopts import App, Parameter

from midwatch_monitor.errors import UsageError

_COMMANDS = {
    "run": ("run.run:run", "Run the tasks of a file."),
    "demo": ("run.run:demo", "Run the bundled example, offline."),
    "submit": ("fleet.submit:submit", "Hand the tasks of a file over to a fleet."),
    "cancel": ("fleet.cancel:cancel", "Withdraw tasks of a fleet, or a whole run."),
    "node": ("fleet.node:node", "Work for a fleet on this machine."),
    "monitor": ("fleet.monitor:monitor", "Watch and supervise what no `run` looks after."),
    "nodes": ("fleet.nodes:nodes", "The nodes of a fleet, and what they have in hand."),
    "resume": ("run.resume:resume", "Go on with what a crash or a stop interrupted."),
    "watch": ("inspect.watch:watch", "Open the console of a run elsewhere, or over."),
    "status": ("inspect.status:status", "What the tasks and their attempts are doing."),
    "show": ("inspect.show:show", "Everything about one task or attempt."),
    "report": ("inspect.report:app", "What came of the tasks, in figures and charts."),
    "lessons": ("learn.lessons:app", "What failures taught: list, show, rate, retire."),
    "guidelines": ("learn.guidelines:app", "How to work in a project: read, approve, roll back."),
    "learn": ("learn.learn:learn", "Draw lessons that are still due, and look back."),
    "calibration": (
        "inspect.calibration:calibration",
        "What stated confidence was worth, by model.",
    ),
    "approve": ("operate.approval:approve", "Let a decision that waits for approval take effect."),
    "reject": ("operate.approval:reject", "Turn down a decision that waits for approval."),
    "tell": ("operate.tell:tell", "Say something to a worker."),
    "grant": ("operate.tell:grant", "Give an attempt more budget."),
    "switch": ("operate.tell:switch", "Let another model go on with an attempt."),
    "feedback": ("learn.feedback:app", "Say whether a result is any good, and list what was said."),
    "facts": ("learn.facts:app", "What workers found out: list, show, take back."),
    "diff": ("inspect.diff:diff", "What a task has changed."),
    "merge": ("operate.merge:merge", "Merge a completed task's branch into the one you work on."),
    "clean": ("operate.clean:clean", "Remove the workspaces of tasks that were merged."),
    "export": ("inspect.export:export", "Write a recorded attempt as a trace, for replay."),
    "replay": ("inspect.replay:replay", "Run today's rules over recorded runs."),
    "tune": ("inspect.tune:tune", "What thresholds cost and found over recorded runs."),
    "db": ("admin.db:app", "Look after the journal's database: upgrade, check, copy."),
    "forget": ("learn.forget:forget", "Delete everything about a project."),
    "rules": ("inspect.rules:app", "List the rules, and test them against timelines."),
    "config": ("admin.config:app", "Check and show configuration."),
    "init": ("run.init:init", "Write a commented configuration and an example task file."),
}

_FORMER = {"reflect": "learn.learn:reflect"}
"""Names of the version before: they still work, warn, and are not listed."""


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
    for name, target in _FORMER.items():
        app.command(f"midwatch_supervisor.cli.{target}", name=name, show=False)
    return app


def refuse_unknown(argv: Sequence[str]) -> None:
    """Raise UsageError if the first word is no command.

    cyclopts would import every command to say so.
    """
    word = argv[0] if argv else "-"
    if not word.startswith("-") and word not in {**_COMMANDS, **_FORMER}:
        close = get_close_matches(word, _COMMANDS, n=1)
        hint = f" (did you mean `{close[0]}`?)" if close else ""
        raise UsageError(f"there is no command `{word}`{hint}; `midwatch --help` lists them")
