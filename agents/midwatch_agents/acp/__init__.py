"""Third-party agents as workers, by the Agent Client Protocol (https://agentclientprotocol.com)."""
