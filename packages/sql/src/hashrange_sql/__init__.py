"""SQL for a look, by DuckDB: `hashrange sql`, and `query` for programs.

ring      what the package adds to Hashrange
command   the command
looking   a look: a database of DuckDB with what one statement needs
planning  what a statement reads: tables, columns, and conditions on keys that become Queries
reading   pages of items, from an endpoint or from the past
shapes    the columns that attributes become, and their types
entities  views of the kinds of items in a table
pages     a page of the console
child     the process in which a statement of the page runs
messages  what the two say to each other

hashrange_sql.query("SELECT status, count(*) AS n FROM orders GROUP BY status", client)
"""

from __future__ import annotations

from typing import Any

__all__ = ["query"]


def query(sql: str, client: Any, *, rate: float | None = None, memory: str = "1GB") -> list[dict[str, Any]]:
    """The rows of a SELECT over the tables of a boto3 client, by the names of their columns.

    `rate` is how many read units a second are spent at most; `memory` is what DuckDB may use, as it writes
    sizes. Nothing is written. Raises `hashrange_sql.looking.Refused` for a statement that cannot run, and the
    errors of boto3.
    """
    from hashrange_sql.looking import opened
    from hashrange_sql.reading import ApiReader, Rate

    settings = {"memory_limit": memory}
    with ApiReader(client).opened() as reader, opened(reader, rate=Rate(rate), settings=settings) as look:
        plan = look.plan(sql)
        look.load(plan)
        names, rows = look.rows(plan)
    return [dict(zip(names, row, strict=True)) for row in rows]
