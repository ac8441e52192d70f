"""What SQL for a look adds to Hashrange."""

from __future__ import annotations

from typing import Final

from hashrange.rings import Command, Ring

RING: Final = Ring(
    name="sql",
    about="SQL for a look, by DuckDB",
    commands={
        "sql": Command("Run a SELECT of SQL over tables of any endpoint.", "hashrange_sql.command:command"),
    },
    pages="hashrange_sql.pages:PAGES",
    paths=("/console/sql",),
)
