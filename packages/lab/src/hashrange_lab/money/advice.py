"""What would make requests cheaper, each piece with the figures that it follows from.

The figures are those of a meter (`money.counts`). A piece of advice says what it would have `saved` of what
was counted; where that cannot be known it is None. Refuses to guess: what was counted too rarely gives no
advice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from hashrange.limits import WRITE_UNIT_BYTES
from hashrange.prices.money import Money, priced
from hashrange.tables.items.capacity import write_units
from hashrange_lab.money.counts import OTHERS, Pattern, Usage
from hashrange_lab.money.statement import Statement

ADVICE_MAX: Final = 50
REQUESTS_MIN: Final = 10
"""What was asked less often than this gives no advice."""
WASTE_TIMES: Final = 4
_WRITES: Final = frozenset(("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"))
_SCANS: Final = frozenset(("Scan",))
_TRANSACTIONS: Final = frozenset(("TransactWriteItems", "TransactGetItems", "ExecuteTransaction"))
_NEAR: Final = 0.15
"""An average item that is this part of a unit above whole units is worth shortening."""
_COMPARED: Final = re.compile(r"^\(*\s*(\w[\w.\[\]-]*)\s*=\s*:\w+")


@dataclass(frozen=True, slots=True)
class Advice:
    """A piece of advice: its kind, the table and the index that it is about, what it says, and the measured
    basis. `saved` is what it would have saved of the requests that were counted."""

    kind: str
    table: str
    index: str
    text: str
    basis: str
    saved: Money | None = None


def advise(statement: Statement) -> list[Advice]:
    """The advice on what was counted: what saves most first."""
    found = [
        *_waste(statement),
        *_consistent(statement),
        *_unread_indexes(statement),
        *_retries(statement),
        *_single_transactions(statement),
        *_item_sizes(statement),
    ]
    return sorted(found, key=_by_saving)[:ADVICE_MAX]


def _by_saving(advice: Advice) -> tuple[Decimal, str, str, str]:
    saved = Decimal(0) if advice.saved is None else advice.saved.amount
    return (-saved, advice.table, advice.kind, advice.text)


def _waste(statement: Statement) -> Iterator[Advice]:
    """Queries and Scans that read many more items than they return."""
    for pattern in _patterns(statement):
        read, returned = pattern.read_items, pattern.returned_items
        if pattern.requests < REQUESTS_MIN or read < WASTE_TIMES * max(returned, pattern.requests):
            continue
        rates = statement.rates_of(pattern.table)
        unused = Decimal(pattern.read_units) * (1 - Decimal(returned) / read)
        saved = priced(rates, "read_requests", unused)
        times = f"{read / returned:,.0f} times what it returns" if returned else "and returns nothing"
        kind = "scan" if pattern.operation in _SCANS else "waste"
        reads = "reads" if returned else f"reads {read:,} items"
        text = f"{_named(pattern)} {reads} {times}."
        yield Advice(
            kind,
            pattern.table,
            pattern.index,
            text + _index_instead(statement, pattern, saved),
            f"{pattern.requests:,} requests read {read:,} items and returned {returned:,}; "
            f"they cost {_units(pattern.read_units)} read units, {priced_text(statement, pattern)}.",
            saved,
        )


def filtered_attribute(text: str) -> str:
    """The attribute that the filter of a pattern first compares by `=`; "" if there is none."""
    for part in text.split("; "):
        if part.startswith("filter "):
            match = _COMPARED.match(part.removeprefix("filter "))
            return match[1] if match is not None else ""
    return ""


def _index_instead(statement: Statement, pattern: Pattern, saved: Money) -> str:
    """What a global index on the filtered attribute would cost at most, if that is less than it saves."""
    attribute = filtered_attribute(pattern.text)
    if not attribute:
        return " A key condition in place of the filter would read only what is returned."
    rates = statement.rates_of(pattern.table)
    written = sum([row.write_units for row in statement.places.get((pattern.table, ""), ())])
    cost = priced(rates, "write_requests", written)
    key = f"on {attribute}" if pattern.operation in _SCANS else f"with the sort key {attribute}"
    if cost.missing or saved.missing:
        return f" A global index {key} would read only what is returned."
    worth = "would have paid" if cost.amount < saved.amount else "would not have paid"
    return (
        f" A global index {key} {worth}: it would have cost at most {cost}, which is each write of "
        f"the table once more, and saved about {saved}."
    )


def _consistent(statement: Statement) -> Iterator[Advice]:
    """Strongly consistent reads, which cost double."""
    by_table: dict[str, list[Pattern]] = {}
    for pattern in _patterns(statement):
        by_table.setdefault(pattern.table, []).append(pattern)
    for table, patterns in by_table.items():
        units = sum(pattern.read_units for pattern in patterns)
        strong = sum(pattern.consistent for pattern in patterns)
        requests = sum(pattern.consistent_requests for pattern in patterns)
        if requests < REQUESTS_MIN or not strong:
            continue
        saved = priced(statement.rates_of(table), "read_requests", strong / 2)
        yield Advice(
            "consistent reads",
            table,
            "",
            f"Strongly consistent reads cost double: {strong / units:.0%} of the read units of "
            f"{table} are theirs, and half of these could be saved where a read may lag behind.",
            f"{requests:,} requests with ConsistentRead cost {_units(strong)} of {_units(units)} read units.",
            saved,
        )


def _unread_indexes(statement: Statement) -> Iterator[Advice]:
    """Global indexes that writes pay for and nobody reads."""
    for stored in statement.counted.stored:
        for index in stored.indexes:
            own = statement.places.get((stored.table, index), [])
            written, read = sum(row.write_units for row in own), sum(row.read_units for row in own)
            if written < REQUESTS_MIN or read:
                continue
            yield Advice(
                "unread index",
                stored.table,
                index,
                f"The index {index} of {stored.table} was written and never read.",
                f"It cost {_units(written)} write units, and no Query or Scan has read it.",
                priced(statement.rates_of(stored.table), "write_requests", written),
            )


def _retries(statement: Statement) -> Iterator[Advice]:
    """Requests that SDKs repeated although the first attempt was charged."""
    by_table: dict[str, list[Usage]] = {}
    for (table, _), rows in statement.places.items():
        by_table.setdefault(table, []).extend(rows)
    for table, own in by_table.items():
        retried = sum(row.retried for row in own)
        total = sum(row.read_units + row.write_units for row in own)
        if retried < REQUESTS_MIN:
            continue
        yield Advice(
            "retries",
            table,
            "",
            f"Repeated attempts consume {retried / total:.0%} of the units of {table}: look for timeouts "
            "that are too short, and for conditions that fail after a lost answer.",
            f"{_units(retried)} of {_units(total)} units are those of second and later attempts.",
        )


def _single_transactions(statement: Statement) -> Iterator[Advice]:
    """Transactions of one member, which cost double what the request alone costs."""
    for pattern in _patterns(statement):
        if pattern.operation not in _TRANSACTIONS or pattern.members != pattern.requests:
            continue
        if pattern.requests < REQUESTS_MIN:
            continue
        rates = statement.rates_of(pattern.table)
        saved = priced(rates, "write_requests", pattern.write_units / 2)
        saved += priced(rates, "read_requests", pattern.read_units / 2)
        yield Advice(
            "transactions",
            pattern.table,
            "",
            f"{pattern.operation} on {pattern.table} has a single member, and costs double: a write with a "
            "condition, or a strongly consistent read, does the same.",
            f"{pattern.requests:,} transactions with {pattern.members:,} members cost "
            f"{_units(pattern.write_units)} write and {_units(pattern.read_units)} read units.",
            saved,
        )


def _item_sizes(statement: Statement) -> Iterator[Advice]:
    """Tables whose average item is a little larger than some whole units."""
    for stored in statement.counted.stored:
        if stored.items < REQUESTS_MIN:
            continue
        own = statement.places.get((stored.table, ""), ())
        written = sum([row.write_units for row in own if row.operation in _WRITES])
        average = stored.item_bytes / stored.items
        units, over = write_units(int(average)), average % WRITE_UNIT_BYTES
        if units < 2 or not 0 < over <= _NEAR * WRITE_UNIT_BYTES or written < REQUESTS_MIN:
            continue
        yield Advice(
            "item size",
            stored.table,
            "",
            f"Items of {stored.table} average {average / 1024:.1f} KB: {_next(over)} bytes less would save "
            f"{_share(units)} of the write units of an average item.",
            f"{stored.items:,} items have {stored.item_bytes:,} bytes, {average:,.0f} each, which is "
            f"{units} write units; {units - 1} hold {(units - 1) * WRITE_UNIT_BYTES:,}. Writes cost "
            f"{_units(written)} units.",
            priced(statement.rates_of(stored.table), "write_requests", written / units),
        )


def _patterns(statement: Statement) -> list[Pattern]:
    """The patterns of tables; not what found no room, whose table is not known."""
    return [pattern for pattern in statement.counted.patterns if pattern.table != OTHERS]


def _next(over: float) -> str:
    return f"{int(over) + 1:,}"


def _share(units: int) -> str:
    names = {2: "half", 3: "a third", 4: "a quarter", 5: "a fifth", 6: "a sixth", 10: "a tenth"}
    return names.get(units, f"{1 / units:.0%}")


def _named(pattern: Pattern) -> str:
    """An access pattern in words: this Query on orders/by-status (filter status = :s)."""
    place = f"{pattern.table}/{pattern.index}" if pattern.index else pattern.table
    text = f" ({pattern.text})" if pattern.text else ""
    return f"{pattern.operation} on {place}{text}"


def priced_text(statement: Statement, pattern: Pattern) -> str:
    """What an access pattern cost, for people."""
    rates = statement.rates_of(pattern.table)
    cost = priced(rates, "read_requests", pattern.read_units)
    return str(cost + priced(rates, "write_requests", pattern.write_units))


def _units(units: float) -> str:
    return f"{units:,.1f}".removesuffix(".0")
