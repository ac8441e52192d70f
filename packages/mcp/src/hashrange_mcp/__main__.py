"""`python -m hashrange_mcp`: the command without the others."""

from __future__ import annotations

from hashrange_mcp.command import command

command(prog_name="python -m hashrange_mcp")
