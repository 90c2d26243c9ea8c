"""The tools of the worker."""

from pydantic_ai import RunContext


async def read_file(ctx: RunContext[object], path: str) -> str:
    """Read a file."""
    try:
        return (await ctx.workspace.read_bytes(path)).decode()
    except OSError as error:
        return f"{path}: {error.strerror}"


async def write_file(ctx: RunContext[object], path: str, text: str) -> str:
    """Write a file."""
    try:
        await ctx.workspace.write_bytes(path, text.encode())
    except OSError as error:
        return f"{path}: {error.strerror}"
    return "Written."
