"""The texts of `hashrange costs`, and the same as JSON, where amounts of money are texts with all digits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from hashrange.clock import show_moment
from hashrange.costs.table import aligned, number
from hashrange.prices import RATES, Book, Region
from hashrange.prices.money import Money
from hashrange_lab.money.advice import Advice, advise
from hashrange_lab.money.plans import Comparison
from hashrange_lab.money.statement import Statement, StatementLine

_LINES_MAX: Final = 40
_HEADS: Final = ("requests", "read units", "write units", "reads", "writes", "cost")


def costs(statement: Statement, book: Book, by: Sequence[str]) -> Iterator[str]:
    """The statement: what was asked, what it cost, what each month costs anyway."""
    counted = statement.counted
    yield (
        f"On demand in {statement.region.code}, {_prices(book)}; counted since {show_moment(counted.since)}, "
        f"{_span(counted.seconds)}."
    )
    yield from missing(statement.missing, statement.region)
    yield ""
    lines, total = statement.lines(by), statement.total
    if not lines:
        yield "No request has consumed anything yet."
    else:
        rows = [[*by, *_HEADS]]
        rows += [_row(line, len(by)) for line in lines[:_LINES_MAX]]
        rows.append(_row(total, len(by), "total"))
        yield from aligned(rows, range(len(by)))
        if len(lines) > _LINES_MAX:
            yield f"and {len(lines) - _LINES_MAX:,} lines more; --json has all of them"
    a_month = statement.a_month(total.total)
    if a_month is not None and lines:
        yield f"At this rate a month would cost {a_month}."
    yield from _monthly(statement)


def _row(line: StatementLine, names: int, title: str = "") -> list[str]:
    head = list(line.names) if not title else [title, *[""] * (names - 1)]
    return [
        *[name.replace("\n", " ") for name in head],
        f"{line.requests:,}",
        number(line.read_units),
        number(line.write_units),
        str(line.reads),
        str(line.writes),
        str(line.total),
    ]


def _monthly(statement: Statement) -> Iterator[str]:
    parts = statement.monthly()
    if parts:
        yield ""
        yield "Each month, regardless of requests:"
        rows = [[part.table, part.what, str(part.cost)] for part in parts[:_LINES_MAX]]
        yield from aligned(rows, {0, 1})


def missing(money: Money, region: Region) -> Iterator[str]:
    """A line that says which prices are not known, and so which parts the sums leave out."""
    if money.missing:
        names = ", ".join(f"{rate} ({RATES[rate].about})" for rate in sorted(money.missing))
        yield f"Left out, because no source has a price in {region.code}: {names}. --prices FILE can name it."


def advice(statement: Statement) -> Iterator[str]:
    """The advice, with the figures that it follows from."""
    pieces = advise(statement)
    if not pieces:
        yield "There is no advice: nothing was asked often enough, or nothing is wasted."
    for piece in pieces:
        saved = f"  [would have saved {piece.saved}]" if piece.saved is not None else ""
        yield f"- {piece.text}{saved}"
        yield f"  {piece.basis}"


def comparison(compared: Comparison, region: Region, book: Book) -> Iterator[str]:
    """The plans of a load, the cheapest first."""
    yield f"A load of {_span(compared.minutes * 60)} in {region.code}, {_prices(book)}."
    yield from missing(sum((plan.cost for plan in compared.plans), Money()), region)
    yield ""
    rows = [["plan", "this load", "a month of it", "throttled units", ""]]
    for plan in compared.plans:
        a_month = str(plan.a_month)
        rows.append([plan.name, str(plan.cost), a_month, number(plan.throttled), plan.about])
    yield from aligned(rows, {0, 4})
    if len(compared.places) > 1:
        yield ""
        yield "The cheapest for each table and index, without reserved capacity:"
        rows = [
            [table + (f"/{index}" if index else ""), plans[0].name, str(plans[0].cost), plans[0].about]
            for (table, index), plans in compared.places.items()
        ]
        yield from aligned(rows[:_LINES_MAX], {0, 1, 3})


def region(prices: Region, book: Book) -> Iterator[str]:
    """All prices of a region, and their sources."""
    yield f"{prices.code}  {prices.name}  ({_prices(book)})"
    for source in prices.sources:
        yield f"  {source}"
    rows = [["", "Standard", "Infrequent Access", ""]]
    for name, rate in RATES.items():
        amounts = [rates.of(name) for rates in (prices.standard, prices.infrequent)]
        if any(amount is not None for amount in amounts):
            shown = ["" if amount is None else f"${amount}" for amount in amounts]
            rows.append([name, *shown, rate.about])
    yield from aligned(rows, {0, 3})
    for term in prices.reservations:
        years = f"{term.years} year{'' if term.years == 1 else 's'}"
        yield (
            f"100 units reserved for {years}: reading ${term.read_upfront} at once and ${term.read_hour} an "
            f"hour, writing ${term.write_upfront} and ${term.write_hour}"
        )


def as_json(statement: Statement, book: Book) -> dict[str, Any]:
    """The statement and the advice, for programs."""
    counted = statement.counted
    return {
        "region": statement.region.code,
        "prices": {"date": book.date, "origin": book.origin or "hashrange"},
        "since": show_moment(counted.since),
        "until": show_moment(counted.until),
        "seconds": counted.seconds,
        "total": _json_line(statement.total, ()),
        "lines": [
            _json_line(line, ("table", "index", "operation", "caller"))
            for line in statement.lines(("table", "index", "operation", "caller"))
        ],
        "monthly": [
            {"table": part.table, "what": part.what, "dollars": _amount(part.cost)}
            for part in statement.monthly()
        ],
        "advice": [_json_advice(piece) for piece in advise(statement)],
        "missing_prices": sorted(statement.missing.missing),
    }


def _json_line(line: StatementLine, names: Sequence[str]) -> dict[str, Any]:
    return {
        **dict(zip(names, line.names, strict=True)),
        "requests": line.requests,
        "read_units": line.read_units,
        "write_units": line.write_units,
        "dollars": _amount(line.total),
    }


def _json_advice(piece: Advice) -> dict[str, Any]:
    return {
        "kind": piece.kind,
        "table": piece.table,
        "index": piece.index,
        "text": piece.text,
        "basis": piece.basis,
        "saved_dollars": None if piece.saved is None else _amount(piece.saved),
    }


def comparison_json(compared: Comparison, prices: Region, book: Book) -> dict[str, Any]:
    """The plans of a load, for programs."""

    def shown(plans: Sequence[Any]) -> list[dict[str, Any]]:
        return [
            {
                "plan": plan.name,
                "dollars": _amount(plan.cost),
                "dollars_a_month": _amount(plan.a_month),
                "throttled_units": plan.throttled,
                "about": plan.about,
            }
            for plan in plans
        ]

    return {
        "region": prices.code,
        "prices": {"date": book.date, "origin": book.origin or "hashrange"},
        "minutes": compared.minutes,
        "plans": shown(compared.plans),
        "tables": [
            {"table": table, "index": index, "plans": shown(plans)}
            for (table, index), plans in compared.places.items()
        ],
    }


def _amount(money: Money) -> str | None:
    """An exact amount; None if a price for a part of it is missing."""
    return None if money.missing else f"{money.amount:f}"


def _prices(book: Book) -> str:
    return f"prices of {book.date}" + (f" from {book.origin}" if book.origin else "")


def _span(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min" if minutes else f"{seconds:.0f} s"
    return f"{minutes / 60:,.1f} h" if minutes < 2_880 else f"{minutes / 1_440:,.1f} days"
