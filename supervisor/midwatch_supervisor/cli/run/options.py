"""Options shared by `run`, `demo` and `resume`, and how they show a run."""

import sys
from enum import Enum, auto
from typing import Annotated

from cyclopts import Parameter

HeadlessOption = Annotated[
    bool, Parameter(name="--headless", help="Print progress instead of the console.")
]
QuietOption = Annotated[
    bool, Parameter(name=("--quiet", "-q"), help="Print only the result, at the end.")
]
AdviseOption = Annotated[
    bool,
    Parameter(
        help="Advise mode: deliver no decision until a person approves it, here or elsewhere."
    ),
]

ProviderWaitOption = Annotated[
    bool,
    Parameter(
        name="--wait-for-provider",
        help="Wait if a model's server does not answer yet, instead of ending at once.",
    ),
]
CheckOption = Annotated[
    list[str] | None,
    Parameter(
        name="--check",
        help="With a goal: a command that exits with 0 once the goal is reached; may "
        "be repeated. Default: the project's tests, if they are found.",
    ),
]
ModelOption = Annotated[
    str | None,
    Parameter(
        name="--model",
        help="With a goal: the model of worker and supervisor, such as ollama:qwen3. "
        "Default: a model of the provider whose key is set, else of a running Ollama.",
    ),
]


class Output(Enum):
    """How a run is shown while it is running."""

    CONSOLE = auto()
    PROGRESS = auto()
    QUIET = auto()
    """Only its end is shown."""
    JSON = auto()


def output(*, headless: bool, quiet: bool, json: bool) -> Output:
    """Choose how a run is shown: at a terminal in the console, unless options say otherwise."""
    if json:
        return Output.JSON
    if quiet:
        return Output.QUIET
    return Output.CONSOLE if on_terminal() and not headless else Output.PROGRESS


def on_terminal() -> bool:
    """Whether both stdin and stdout of this process are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()
