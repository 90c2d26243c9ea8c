"""The names of tools that run a shell command."""

SHELL_TOOLS = frozenset(
    {
        "bash",
        "container.exec",
        "exec",
        "exec_command",
        "execute_bash",
        "execute_command",
        "local_shell",
        "run_command",
        "run_shell_command",
        "run_terminal_cmd",
        "sh",
        "shell",
        "shell_command",
        "terminal",
    }
)
"""In lower case."""


def is_shell(tool: str) -> bool:
    """Whether a tool runs a shell command: arguments that are plain text are the command."""
    return tool.lower() in SHELL_TOOLS
