"""Calls of an MCP server's tools, as tests read their answers."""

from mcp import Client
from mcp_types import TextContent


class Caller:
    """Calls tools, and reads what they say."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def tools(self) -> list[str]:
        return [each.name for each in (await self.client.list_tools()).tools]

    async def say(self, tool: str, **args: object) -> str:
        """What a call is answered."""
        text, failed = await self._called(tool, args)
        assert not failed, text
        return text

    async def refusal(self, tool: str, **args: object) -> str:
        """Why a call fails."""
        text, failed = await self._called(tool, args)
        assert failed, text
        return text

    async def _called(self, tool: str, args: dict[str, object]) -> tuple[str, bool]:
        result = await self.client.call_tool(tool, args)
        (content,) = result.content
        assert isinstance(content, TextContent)
        return content.text, bool(result.is_error)
