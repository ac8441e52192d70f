"""What requests cost, and what would make them cheaper.

`?by=` says how the costs are grouped, `?region=` whose prices are shown.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final, Literal

import msgspec
from starlette.responses import Response

from hashrange.clock import show_moment
from hashrange.prices import RATES, Book, Rate, UnknownRegion
from hashrange.prices.money import Money
from hashrange.server.admin.application import json, read_json, subject_of
from hashrange.server.admin.aside import aside
from hashrange_console import looks
from hashrange_console.reach import Refused, View
from hashrange_lab.admin import costs
from hashrange_lab.money.advice import advise
from hashrange_lab.money.counts import Counted
from hashrange_lab.money.statement import Statement
from hashrange_lab.pages.charts import share

GROUPS: Final = {
    "": ("table", "operation"),
    "table": ("table",),
    "operation": ("operation",),
    "caller": ("caller",),
    "index": ("table", "index"),
}
"""How costs can be grouped: the value in the address, and the names."""
TITLES: Final = {
    "": "table and operation",
    "table": "table",
    "operation": "operation",
    "caller": "program",
    "index": "table and index",
}
HEADS: Final = {"table": "Table", "operation": "Operation", "caller": "Program", "index": "Index"}
ROWS_MAX: Final = 100


class Recording(msgspec.Struct, forbid_unknown_fields=True):
    """What a button of the page asks for."""

    record: Literal["begin", "reset", "end"]


async def page(view: View) -> Response:
    """What requests cost."""
    counted = await costs.counted(view.request)
    if counted is None:
        return await looks.page("lab/costs.html", view=view, since="")
    statement, book = statement_of(view, counted)
    by = view.given("by")
    if by not in GROUPS:
        raise Refused(f"Costs cannot be grouped by {by!r}.")
    lines, total = await aside(view.request, lambda _: (statement.lines(GROUPS[by]), statement.total))
    highest = max([line.total.amount for line in lines[:ROWS_MAX]], default=Decimal(0))
    return await looks.page(
        "lab/costs.html",
        view=view,
        statement=statement,
        book=book,
        regions=regions_of(book),
        by=by,
        titles=TITLES,
        heads=[HEADS[name] for name in GROUPS[by]],
        rows=[
            {
                "line": line,
                "reads": share(line.reads.amount, highest),
                "writes": share((line.writes + line.other).amount, highest),
            }
            for line in lines[:ROWS_MAX]
        ],
        left=len(lines) - ROWS_MAX,
        total=total,
        a_month=statement.a_month(total.total),
        monthly=statement.monthly()[:ROWS_MAX],
        missing=missing_rates(statement.missing),
        since=show_moment(counted.since),
    )


async def advice(view: View) -> Response:
    """What would make requests cheaper."""
    counted = await costs.counted(view.request)
    if counted is None:
        return await looks.page("lab/advice.html", view=view, since="")
    statement, book = statement_of(view, counted)
    return await looks.page(
        "lab/advice.html",
        view=view,
        statement=statement,
        book=book,
        pieces=await aside(view.request, lambda _: advise(statement)),
        since=show_moment(counted.since),
    )


async def record(view: View) -> Response:
    """Begin or end to count."""
    sent = await read_json(view.request, Recording)
    change = costs.CostsChange(record=sent.record != "end", reset=sent.record == "reset")
    costs.change(subject_of(view.request), change)
    return json({"href": looks.href("/console/costs", scope=view.scope)})


def statement_of(view: View, counted: Counted) -> tuple[Statement, Book]:
    """The counts with the prices of the region that the address names, or of the server's own. Raises
    `Refused`."""
    book = costs.book_of(subject_of(view.request))
    code = view.given("region") or counted.region
    if not view.given("region") and code not in book.regions:
        # A server may have a region of its own making; its pages then show the prices of the first one.
        code = "us-east-1" if "us-east-1" in book.regions else min(book.regions)
    try:
        return Statement(counted, book.region(code)), book
    except UnknownRegion as error:
        raise Refused(str(error)) from None


def regions_of(book: Book) -> list[tuple[str, str]]:
    """The regions with prices of requests: their codes and names."""
    return [
        (code, region.name)
        for code, region in sorted(book.regions.items())
        if region.standard.of("read_requests") is not None
    ]


def missing_rates(money: Money) -> list[Rate]:
    """The rates without a price that belong to an amount."""
    return [RATES[rate] for rate in sorted(money.missing)]
