"""What SQL for a look adds to the console: a page for a SELECT.

    running  runs a statement in a process of its own, with limits

Opening the page runs a statement, unless it only plans it: nothing can be written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, cast

from starlette.responses import Response

from hashrange_console import looks
from hashrange_console.pages import Page, Pages, Section, Tab
from hashrange_console.reach import Refused, View
from hashrange_sql.messages import Form
from hashrange_sql.pages.running import run

PATH: Final = "/console/sql"
FORMATS: Final = {
    "csv": ("CSV", "text/csv; charset=utf-8"),
    "json": ("JSON lines", "application/x-ndjson"),
    "parquet": ("Parquet", "application/vnd.apache.parquet"),
}
"""The formats of downloads: their titles, and the types of their answers."""


async def page(view: View) -> Response:
    """The box for a statement, what it reads and what that costs, and its first rows."""
    statement = view.given("statement")
    about: dict[str, Any] = {"statement": statement, "done": None, "problem": None, "only_plan": False}
    if statement:
        about["only_plan"] = bool(view.given("plan"))
        try:
            about["done"], _ = await run(view, statement, only_plan=about["only_plan"])
        except Refused as error:
            about["problem"] = str(error)
    status = 400 if about["problem"] else 200
    return await looks.page("sql/sql.html", status, view=view, formats=FORMATS, **about)


async def download(view: View) -> Response:
    """A file of all rows."""
    form = view.given("format")
    if form not in FORMATS:
        raise Refused(f"{form!r} is not a format of a download: use {', '.join(FORMATS)}.")
    _, body = await run(view, view.given("statement"), cast(Form, form))
    headers = {
        **looks.HEADERS,
        "Cache-Control": "no-store",
        "Content-Disposition": f'attachment; filename="rows.{form}"',
    }
    return Response(body, 200, headers, FORMATS[form][1])


PAGES: Final = Pages(
    parts=(
        Page(PATH, "A SELECT in DuckDB's SQL, its plan, and its first rows.", page),
        Page(f"{PATH}/export", "A download of the rows of a SELECT.", download),
    ),
    sections=(Section("ask", "Ask", "/console/ask", (Tab("sql", "SQL", PATH),)),),
    folder=Path(__file__).parent,
)
"""The pages, for `rings.Ring.pages`."""
