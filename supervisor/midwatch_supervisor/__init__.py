"""Who acts, and what a person sees: supervisor agent, policy, runner, command line."""
