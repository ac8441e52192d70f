"""The MCP server: which tools there are, by what the endpoint is and whether it may be written to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

from hashrange import __version__
from hashrange_mcp.connection import Connection, telling
from hashrange_mcp.tools.changes import Changes
from hashrange_mcp.tools.money import Money
from hashrange_mcp.tools.past import Past
from hashrange_mcp.tools.policies import Policies
from hashrange_mcp.tools.reading import Reading
from hashrange_mcp.tools.tables import Tables
from hashrange_mcp.tools.writing import Writing

_INSTRUCTIONS: Final = (
    "Tools over the tables of {server}, {kind}. Begin with list_tables, then describe_table for the "
    "keys and the "
    "entities of a table; prefer get_items and query to scan. Each read says what it may cost, and is "
    "refused if "
    "that is more than max_units. Values are in DynamoDB's JSON: numbers are texts with all of their digits. "
    "Answers are bounded in bytes: `truncated` says what was left out, `next` is sent as `start` to go "
    "on. {writes}"
)
_WRITES: Final = (
    "Some tools write: ask the user before you use write_items, create_tables, undo or PartiQL's writes."
)
_READS: Final = "Nothing can be written: the tools were started without --write."

Tool = Callable[..., str]


def server_of(connection: Connection, *, logs: bool = False) -> MCPServer[Any]:
    """The MCP server over an endpoint. `logs`: it logs requests on stderr, and when it listens."""
    kind = "a Hashrange server, which knows the past and the costs" if connection.plane else "DynamoDB's API"
    server: MCPServer[Any] = MCPServer(
        "hashrange",
        title="Hashrange",
        version=__version__,
        instructions=_INSTRUCTIONS.format(
            server=connection.server, kind=kind, writes=_WRITES if connection.writes else _READS
        ),
        log_level="INFO" if logs else "WARNING",
    )
    for tool in _reading(connection):
        writes = tool.__name__ == "partiql" and connection.writes
        _add(server, tool, connection, ToolAnnotations(read_only_hint=not writes, open_world_hint=False))
    for tool in _writing(connection):
        destroys = tool.__name__ != "create_tables"
        hints = ToolAnnotations(read_only_hint=False, destructive_hint=destroys, open_world_hint=False)
        _add(server, tool, connection, hints)
    return server


def _add(server: MCPServer[Any], tool: Tool, connection: Connection, hints: ToolAnnotations) -> None:
    text = " ".join((tool.__doc__ or "").split())
    server.add_tool(telling(tool, connection), description=text, annotations=hints, structured_output=False)


def _reading(connection: Connection) -> list[Tool]:
    """The tools that only read."""
    tables, reading, policies = Tables(connection), Reading(connection), Policies(connection)
    tools: list[Tool] = [
        tables.list_tables,
        tables.describe_table,
        reading.get_items,
        reading.query,
        reading.scan,
        reading.partiql,
        Changes(connection).recent_changes,
        policies.simulate_policy,
    ]
    if connection.plane is not None:
        money = Money(connection)
        tools += [Past(connection).history, money.costs, money.what_if, policies.suggest_policy]
    return tools


def _writing(connection: Connection) -> list[Tool]:
    """The tools that write, if they are allowed to."""
    if not connection.writes:
        return []
    writing = Writing(connection)
    tools: list[Tool] = [writing.write_items, writing.create_tables]
    return [*tools, Past(connection).undo] if connection.plane is not None else tools
