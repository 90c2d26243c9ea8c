"""The command inside of those that only run another: `sudo`, `timeout 30`, `env A=b` …"""

import re

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_VALUED = {
    "sudo": "ugCDhpRrTtU",
    "timeout": "ks",
    "nice": "n",
    "env": "uCS",
    "stdbuf": "ioe",
    "time": "of",
    "ionice": "cnp",
    "nohup": "",
    "command": "",
    "builtin": "",
    "exec": "a",
    "setsid": "",
}
"""The options of each that take a value."""
_NUMBERS = {"timeout": 1}
"""Arguments of its own that come before the command."""
_RUNNERS = frozenset({"uv", "poetry", "pipenv", "pdm", "hatch", "rye"})
_MAX_WRAPPINGS = 6


def unwrapped(words: list[str]) -> list[str]:
    """The words of the command that is run in the end."""
    for _ in range(_MAX_WRAPPINGS):
        name = words[0].rpartition("/")[2] if words else ""
        if name in _RUNNERS and words[1:2] == ["run"]:
            words = _without_options(words[2:], "")
        elif name in _VALUED:
            words = _without_options(words[1:], _VALUED[name])[_NUMBERS.get(name, 0) :]
        elif words and _ASSIGNMENT.match(words[0]):
            words = words[1:]
        else:
            break
    return words


def _without_options(words: list[str], valued: str) -> list[str]:
    at = 0
    while at < len(words) and words[at].startswith("-"):
        option = words[at]
        at += 1
        if option == "--":
            break
        if not option.startswith("--") and option[-1] in valued:
            at += 1
    return words[at:]
