"""A git repository of a test."""

from pathlib import Path

from midwatch_tools.git import git


async def commit_all(folder: Path, message: str) -> None:
    """Commit every file of a repository that no worker has written to."""
    await git(folder, "add", "--all")
    await git(folder, "commit", "--quiet", "--message", message)
