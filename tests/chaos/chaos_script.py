"""What the workers of the chaos test do: model `scripted:chaos_script`, the task's id says which.

Each of them *marks*: a command appends a line to a log outside of the worktree, with the number of
the mark and the process that ran it. The kernel appends it, so no crash takes it back, and work
that was done twice can be told from a call that was run again after a crash.
"""

import os

from midwatch_agents.scripted import Call, Phase, Script, Turn
from midwatch_monitor.config.tasks import Role

MARKS = "MIDWATCH_CHAOS_MARKS"
"""The folder of the logs."""
KINDS = (
    *("steady", "looping", "steady", "stubborn", "steady"),
    *("looping", "asking", "looping", "steady", "stubborn"),
)
"""Of ten workers in a row."""
ROUNDS = 400
"""Marks of turns that come again and again begin here."""


def script_for(role: Role, key: str) -> Script:
    """The script of the worker of task `KIND-NN`."""
    del role
    kind, _, number = key.partition("-")
    if kind == "steady":
        return Script(phases=(_steady(key, 4 + int(number) % 5),))
    if kind == "asking":
        return Script(phases=(_asking(), _finishing(key, 50)))
    if kind == "looping":
        return Script(phases=(_circling(0), _finishing(key, 50)))
    circles = tuple(_circling(1000 * phase) for phase in range(8))
    return Script(phases=circles, again=(_steady(key, 3),))


def _steady(key: str, rounds: int) -> Phase:
    """Writes a few files, reports after each, and is done; guidance changes nothing."""
    turns: list[Turn] = []
    for number in range(1, rounds + 1):
        turns += [
            Turn(say=f"Part {number}.", calls=(_write(f"{key}.{number}.txt", f"part {number}"),)),
            Turn(calls=(_mark(number), _reflect(80 * number // rounds))),
        ]
    return Phase(turns=(*turns, *_end(key, rounds + 1)))


def _circling(begin: int) -> Phase:
    """Tries the same thing over and over."""
    first = Turn(say="I look.", calls=(_mark(begin + 1), _reflect(10)))
    look = _run("grep -c nothing README.md")
    again = Turn(say="Once more.", calls=(look, _mark(f"{begin + ROUNDS}.{{n}}")))
    return Phase(turns=(first, again))


def _asking() -> Phase:
    """Sees no way, and waits for a person."""
    first = Turn(say="I look.", calls=(_mark(1), _reflect(20)))
    ask = Turn(say="I need a person.", calls=(_reflect(20, "escalate"),))
    wait = Turn(say="I wait.", calls=(_mark(f"{ROUNDS}.{{n}}"),))
    return Phase(turns=(first, ask, wait))


def _finishing(key: str, begin: int) -> Phase:
    # It says at once that it goes on: an answer that comes late would otherwise have no effect.
    calls = (_reflect(60), _write(f"{key}.txt", "part 1"), _mark(begin))
    first = Turn(say="I see.", calls=calls)
    return Phase(turns=(first, *_end(key, begin + 1)))


def _end(key: str, number: int) -> tuple[Turn, ...]:
    return (
        Turn(calls=(_write(f"{key}.done.txt", "done"), _mark(number))),
        Turn(calls=(_reflect(100),)),
        Turn(say="Done."),
    )


def _mark(number: int | str) -> Call:
    log = f"{os.environ[MARKS]}/$(basename $PWD).log"
    # Above the shell are the two processes that keep what a command leaves, and then ours.
    climb = "; ".join(f"read -r _ _ _ above _ < /proc/{of}/stat" for of in ("$PPID", "$above"))
    return _run(f"{climb}; echo {number} $above >> {log}")


def _run(command: str) -> Call:
    return Call(tool="run_command", args=f'{{"command": "{command}"}}')


def _write(path: str, text: str) -> Call:
    return Call(tool="write_file", args=f'{{"path": "{path}", "content": "{text}\\n"}}')


def _reflect(progress: int, decision: str = "continue") -> Call:
    args = f'{{"progress_percent": {progress}, "confidence": 80, "decision": "{decision}"}}'
    return Call(tool="reflect", args=args)
