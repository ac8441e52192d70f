"""The places that a search leads to by their names: the pages of the console, and the tables."""

from __future__ import annotations

from typing import Final, NamedTuple

from starlette.responses import Response

from hashrange.server.admin.application import json, subject_of
from hashrange_console import looks
from hashrange_console.pages import sections
from hashrange_console.reach import View

TABLES_MAX: Final = 200
"""The most tables that a search looks into."""
_MORE: Final = {"New table": "/console/new-table", "PartiQL": "/console/ask?tab=partiql"}


class Place(NamedTuple):
    """A page or a table: its name, its address, and what it is."""

    title: str
    href: str
    what: str


async def offered(view: View) -> Response:
    """The places, as the search of each page offers them."""
    answer = json([place._asdict() for place in (*_tables(view), *pages())])
    answer.headers.update({**looks.HEADERS, "Cache-Control": "no-store"})
    return answer


def pages() -> list[Place]:
    """The pages that are about no one table."""
    found = dict(_MORE)
    for section in sections().values():
        found[section.title] = section.address
        found |= {tab.title: tab.address for tab in section.tabs}
    return [Place(title, href, "page") for title, href in found.items()]


def _tables(view: View) -> list[Place]:
    tables = subject_of(view.request).database.overview("", TABLES_MAX)
    named = [table["name"].rpartition("/") for table in tables]
    return [
        Place(name, looks.href(f"/console/t/{name}", scope=scope), f"table {scope}".strip())
        for scope, _, name in named
        if view.scope in ("", scope)
    ]
