"""An agent of the tests: the SDK's own client, without an event loop of the test's own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, TextContent, Tool

Json = dict[str, Any]
Target = MCPServer[Any] | StdioServerParameters | str


@dataclass(frozen=True, slots=True)
class Agent:
    """A client that is connected to the tools."""

    portal: BlockingPortal
    client: Client

    def tools(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in self.portal.call(self.client.list_tools).tools}

    def ask(self, tool: str, **arguments: Any) -> Json:
        """The answer of a tool, which must not be an error."""
        text, is_error = self._call(tool, arguments)
        assert not is_error, text
        answer: Json = orjson.loads(text)
        return answer

    def refused(self, tool: str, **arguments: Any) -> str:
        """The text of a tool's error."""
        text, is_error = self._call(tool, arguments)
        assert is_error, text
        return text

    def text(self, tool: str, **arguments: Any) -> str:
        return self._call(tool, arguments)[0]

    def _call(self, tool: str, arguments: Json) -> tuple[str, bool]:
        result = self.portal.call(self.client.call_tool, tool, arguments)
        assert isinstance(result, CallToolResult)
        [content] = result.content
        assert isinstance(content, TextContent)
        return content.text, bool(result.is_error)


@contextmanager
def agent(target: Target, mode: str = "auto") -> Iterator[Agent]:
    """An agent over tools in process, over a command, or at a URL."""
    with start_blocking_portal() as portal:
        client = Client(target, mode=mode)
        with portal.wrap_async_context_manager(client):
            yield Agent(portal, client)


def command(endpoint: str, *options: str) -> StdioServerParameters:
    """The command by which clients start the tools."""
    arguments = ["-m", "hashrange_mcp", "--endpoint-url", endpoint, *options]
    return StdioServerParameters(command=sys.executable, args=arguments)
