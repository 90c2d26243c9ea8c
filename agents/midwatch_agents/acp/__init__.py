"""Agents of other makers as workers, by the Agent Client Protocol (https://agentclientprotocol.com)."""
