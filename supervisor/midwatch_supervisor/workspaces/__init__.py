"""Workspaces of attempts: worktrees, their changes, merges and snapshots."""
