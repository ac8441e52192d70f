"""What the tools for agents add to Hashrange."""

from __future__ import annotations

from typing import Final

from hashrange.rings import Command, Ring

RING: Final = Ring(
    name="mcp",
    about="tools for agents, by the Model Context Protocol",
    commands={
        "mcp": Command("Give agents tools over a database, by MCP.", "hashrange_mcp.command:command"),
    },
)
