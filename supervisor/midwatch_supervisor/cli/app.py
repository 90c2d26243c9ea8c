"""The table of commands, and running one: from its arguments to its exit code.

No command is imported before it is called.
"""

import gc
import re
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from difflib import get_close_matches
from inspect import iscoroutine
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from cyclopts import App, CycloptsError, Group, Parameter, Token, UnusedCliTokensError, convert

from midwatch_monitor.command_hint import naming_journal
from midwatch_monitor.errors import (
    ConfigError,
    JournalAccessError,
    MidwatchError,
    SandboxError,
    TraceError,
    UsageError,
)
from midwatch_supervisor.cli.fleet.log import make_stderr_plain
from midwatch_supervisor.cli.interrupts import INTERRUPTS
from midwatch_supervisor.cli.output import (
    NOT_WRITTEN,
    drop_output,
    open_closed_streams,
    write_error,
    write_line,
)

NOT_READ = 128 + signal.SIGPIPE
"""Exit code when the reader of the output is gone, as shells report it for other programs."""
_MAY_BE_EMPTY = {"--comment", "--message"}
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")

GROUPS = {
    "Run": {
        "run": ("run.run:run", 'Run a task file, or a goal: `run "fix the tests"`.'),
        "demo": ("run.run:demo", "Run the bundled example, offline."),
        "resume": ("run.run:resume", "Continue a run after a crash or a stop."),
    },
    "Look": {
        "status": ("inspect.status:status", "What the tasks and their attempts are doing."),
        "show": ("inspect.show:show", "Everything about one task or attempt."),
        "watch": ("inspect.watch:watch", "Open the console on a run of another process."),
        "attach": ("inspect.attach:attach", "Watch coding agents that you start yourself."),
        "mcp": ("inspect.mcp:mcp", "Serve Midwatch to other programs over MCP."),
        "report": ("inspect.report:app", "Figures and charts about the tasks of all runs."),
        "metrics": ("inspect.report:metrics", "Figures of all runs, for Prometheus."),
        "diff": ("operate.workspaces:diff", "What a task has changed."),
        "export": ("inspect.export:export", "Write a recorded attempt as a trace."),
        "replay": ("inspect.replay:replay", "Run the current rules over recorded runs."),
    },
    "Decide": {
        "approve": ("operate.approval:approve", "Approve what is waiting for a person."),
        "reject": ("operate.approval:reject", "Reject what is waiting for a person."),
        "tell": ("operate.tell:tell", "Send a worker a message; pause, stop or restart it."),
        "grant": ("operate.tell:grant", "Give an attempt more budget."),
        "switch": ("operate.tell:switch", "Let another model continue an attempt."),
        "merge": ("operate.workspaces:merge", "Merge a completed task's branch into yours."),
        "clean": ("operate.workspaces:clean", "Remove the workspaces of merged tasks."),
    },
    "Learn": {
        "feedback": ("learn.feedback:app", "Accept or reject results; list verdicts."),
        "lessons": ("learn.lessons:app", "Lessons from failures: list, show, rate, retire."),
        "guidelines": ("learn.guidelines:app", "A project's working principles: read, approve."),
        "facts": ("learn.facts:app", "Facts that workers found out: list, show, retire."),
        "learn": ("learn.learn:learn", "Draw lessons from ended attempts; propose guidelines."),
        "calibration": (
            "inspect.report:calibration",
            "How reliable stated confidence is, by model.",
        ),
        "forget": ("learn.forget:forget", "Delete everything about a project."),
    },
    "Fleet": {
        "submit": ("fleet.submit:submit", "Submit the tasks of a file to a fleet."),
        "cancel": ("fleet.cancel:cancel", "Cancel tasks of a fleet, or a whole run."),
        "node": ("fleet.node:node", "Work for a fleet on this machine."),
        "nodes": ("fleet.nodes:nodes", "The nodes of a fleet, and what they are working on."),
        "monitor": (
            "fleet.monitor:monitor",
            "Watch fleets and embedded agents, as a service.",
        ),
    },
    "Set up": {
        "init": ("run.init:init", "Write a configuration and a task file."),
        "doctor": (
            "admin.doctor:doctor",
            "Check what works on this machine, and how to fix the rest.",
        ),
        "config": ("admin.config:app", "Check and show configuration."),
        "rules": ("inspect.rules:app", "List the rules, and test them against timelines."),
        "tune": ("inspect.tune:tune", "Find better thresholds from recorded runs."),
        "hook": (
            "admin.hook:app",
            "Install hooks in agents that you start yourself.",
        ),
        "notify": ("admin.notify:app", "Test the targets of notifications."),
        "db": ("admin.db:app", "Upgrade, check or copy the journal's database."),
    },
}
"""The commands in groups, in the help's order: name, module and what it does."""

COMMANDS = {name: each for group in GROUPS.values() for name, each in group.items()}
_OLD_NAMES = {"reflect": "learn"}
"""Former names of commands, still accepted with a warning until version 0.2."""


def build() -> App:
    """Return the command line; calling it returns what the command returns, or raises."""
    app = App(
        name="midwatch",
        help="Keeps watch over AI agents: detects, diagnoses, intervenes, checks that it worked.",
        help_format="plaintext",
        version=_version,
        # A path may begin with a bracket without being JSON; no option has a negative form.
        default_parameter=Parameter(
            converter=_convert_value,
            negative=(),
            json_list=False,
            json_dict=False,
            show_default=_default_text,
        ),
        exit_on_error=False,
        print_error=False,
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    groups = [Group(title, sort_key=at) for at, title in enumerate([*GROUPS, "Options"])]
    for group, commands in zip(groups, GROUPS.values(), strict=False):
        for at, (name, (target, summary)) in enumerate(commands.items()):
            path = f"midwatch_supervisor.cli.{target}"
            app.command(path, name=name, help=summary, sort_key=at, group=group)
    app.command(
        completion_command(app),
        name="--install-completion",
        help="Let the shell complete commands and options.",
        group=groups[-1],
    )
    for flag in ("--help", "--version"):
        app[flag].group = groups[-1]
    return app


def _version() -> str:
    from importlib.metadata import version  # takes as long as many commands do

    return version("midwatch")


def _convert_value(kind: Any, tokens: Sequence[Token]) -> object:
    """Convert a value to its type. Whole numbers are checked first: cyclopts would round.

    Refuses an empty value: an empty path would mean this folder, an empty prefix any name.
    """
    if any(not token.value and token.keyword not in _MAY_BE_EMPTY for token in tokens):
        raise ValueError("an argument is empty: leave it out, or give it a value")
    if kind is int:
        wrong = next((token.value for token in tokens if not _WHOLE.fullmatch(token.value)), None)
        if wrong is not None:
            raise ValueError(f"`{wrong}` is not a whole number of at most 18 digits")
    return cast(object, convert(kind, tokens))


def _default_text(default: object) -> str | None:
    """Return a default as the help shows it, or `None` if there is nothing to show."""
    return None if default is False or default in (None, "", ()) else str(default)


def refuse_unknown(argv: Sequence[str]) -> None:
    """Raise UsageError if the first word is not a command.

    To find that out, cyclopts would import every command.
    """
    word = argv[0] if argv else "-"
    if not word.startswith("-") and word not in {*COMMANDS, "__complete"}:
        close = get_close_matches(word, COMMANDS, n=1)
        hint = f" (did you mean `{close[0]}`?)" if close else ""
        raise UsageError(f"there is no command `{word}`{hint}; `midwatch --help` lists them")


def _with_current_name(words: Sequence[str]) -> list[str]:
    """Return the arguments with the command's current name; a former one is warned of."""
    current = _OLD_NAMES.get(words[0]) if words else None
    if current is None:
        return list(words)
    write_error(f"`midwatch {words[0]}` is now `midwatch {current}`")
    return [current, *words[1:]]


def run_command(argv: Sequence[str] | None) -> int:
    """Run the command in `argv`, or in the process's arguments, and return its exit code.

    Raises KeyboardInterrupt.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["run"]:  # a lone dash would be taken for an option
        words = ["/dev/stdin" if word == "-" else word for word in words]
    open_closed_streams()
    make_stderr_plain()
    try:
        words = _with_current_name(words)
        refuse_unknown(words)
        result = _run_command(words)
        sys.stdout.flush()
    except CycloptsError as error:
        write_error(_usage_text(error))
        return 2
    except ConfigError as error:
        write_error(*error.lines)
        return 2
    except MidwatchError as error:
        write_error(str(error))
        asked = isinstance(error, UsageError | TraceError | JournalAccessError | SandboxError)
        return 2 if asked else 1
    except (BrokenPipeError, SystemExit):  # the help printer turns a closed pipe into SystemExit
        drop_output()  # the reader is gone, so no message is needed
        return NOT_READ
    except OSError as error:
        if "--install-completion" in words and error.filename is not None:
            write_error(f"{error.filename} cannot be written: {error.strerror}")
            return 2
        if error.errno not in NOT_WRITTEN:
            raise
        drop_output()
        write_error(f"the output cannot be written: {error.strerror}")
        return 1
    return result if isinstance(result, int) else 0


def _usage_text(error: CycloptsError) -> str:
    if isinstance(error, UnusedCliTokensError):
        many = " ".join(error.unused_tokens or ())
        return f"too many arguments: {many}; --help shows what the command takes"
    return str(error)


def _run_command(words: Sequence[str]) -> object:
    command, bound, _ = build().parse_args(words)
    if not gc.isenabled():  # `main` started this process
        gc.freeze()  # what is imported stays, so no collection needs to scan it
        gc.enable()
    options = bound.arguments.get("options")
    with naming_journal(bound.arguments.get("journal") or getattr(options, "journal", None)):
        answer = command(*bound.args, **bound.kwargs)
        if iscoroutine(answer):
            return INTERRUPTS.run(cast("Coroutine[Any, Any, object]", answer))
    return answer


Shell = Literal["zsh", "bash", "fish", "powershell"]


def completion_command(app: App) -> Callable[..., None]:
    """Return the command that installs the completion of an app's commands."""

    def install(
        *,
        shell: Annotated[Shell | None, Parameter(help="Default: the shell you are in.")] = None,
        output: Annotated[
            Path | None,
            Parameter(
                name=("--output", "-o"),
                help="Only write the script, to this file; the shell's start-up file is left "
                "alone.",
            ),
        ] = None,
    ) -> None:
        from cyclopts.completion.install import add_to_rc_file

        shell = shell or _shell_in_use()
        path = app.install_completion(shell=shell, output=output, add_to_startup=False)
        added = output is None and shell != "fish" and add_to_rc_file(path, app.name[0], shell)
        change = "its start-up file now loads it" if added else "no start-up file was changed"
        write_line(f"wrote {path}, for {shell}; {change}")
        if output is None:
            needs = ", if your .zshrc calls compinit" if shell == "zsh" else ""
            write_line(f"It works in each {shell} that you start from now on{needs}")

    return install


def _shell_in_use() -> Shell:
    """Return the shell that calls this program. Raises UsageError if it is unknown."""
    from cyclopts.completion.detect import ShellDetectionError, detect_shell

    try:
        return detect_shell()
    except ShellDetectionError as error:
        raise UsageError("cannot tell which shell this is: name it with --shell") from error
