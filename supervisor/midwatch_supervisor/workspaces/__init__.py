"""Where attempts work: worktrees, their changes, merges and snapshots."""
