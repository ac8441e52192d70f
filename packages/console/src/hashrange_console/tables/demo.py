"""The demo table: a shop, with customers, orders, order lines and products.

The items are always the same: a choice depends only on what it is for, by a checksum. Refuses to know how
they are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final, TypeVar
from zlib import crc32

T = TypeVar("T")
Item = dict[str, dict[str, Any]]

TABLE: Final = "shop"
CREATE: Final[dict[str, Any]] = {
    "TableName": TABLE,
    "KeySchema": [
        {"AttributeName": "PK", "KeyType": "HASH"},
        {"AttributeName": "SK", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": name, "AttributeType": "S"} for name in ("PK", "SK", "GSI1PK", "GSI1SK")
    ],
    "BillingMode": "PAY_PER_REQUEST",
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "GSI1",
            "KeySchema": [
                {"AttributeName": "GSI1PK", "KeyType": "HASH"},
                {"AttributeName": "GSI1SK", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
}

_FIRST_DAY: Final = datetime(2026, 3, 2, tzinfo=UTC)
_PEOPLE: Final = (
    "ada", "bruno", "clara", "dario", "elif", "femi", "greta", "hana", "ivo", "jun", "kaja", "leo", "mina",
    "nils", "olga", "paulo", "quinn", "rosa", "sami", "tove",
)  # fmt: skip
_CITIES: Final = ("Riga", "Porto", "Osaka", "Tromsø", "Cuzco", "Hobart", "Fez", "Bergen")


@cache
def items() -> list[Item]:
    """The items, which are made once."""
    return list(_shop())


def _shop() -> Iterator[Item]:
    products = [(f"P{n:03}", f"{material} {other}") for n, (material, other) in enumerate(_wares(), 1)]
    for sku, name in products:
        yield {
            "PK": _s(f"PRODUCT#{sku}"),
            "SK": _s("PRODUCT"),
            "type": _s("product"),
            "name": _s(name),
            "price": _n(_amount(_cents(sku))),
            "stock": _n(_below(200, sku, "stock")),
            "GSI1PK": _s("PRODUCTS"),
            "GSI1SK": _s(name),
        }
    for customer in _PEOPLE:
        yield {
            "PK": _s(f"CUSTOMER#{customer}"),
            "SK": _s("CUSTOMER"),
            "type": _s("customer"),
            "name": _s(customer.title()),
            "city": _s(_one_of(_CITIES, customer, "city")),
            "addresses": {"M": {"home": _s(f"{1 + _below(90, customer)} Quay Street")}},
        }
        for number in range(1, 4):
            yield from _order(customer, number, products)


def _order(customer: str, number: int, products: Sequence[tuple[str, str]]) -> Iterator[Item]:
    day = _day(_below(60, customer, number))
    order = f"ORDER#{day}#{crc32(f'{customer}{number}'.encode()) % 10_000:04}"
    state = _one_of(("placed", "paid", "sent", "sent", "sent", "returned"), customer, number)
    first = _below(len(products), customer, number)
    lines = [products[(first + 5 * line) % len(products)] for line in range(1 + _below(3, number, customer))]
    counts = {sku: 1 + _below(3, customer, number, sku) for sku, _ in lines}
    cents = sum(counts[sku] * _cents(sku) for sku, _ in lines)
    yield {
        "PK": _s(f"CUSTOMER#{customer}"),
        "SK": _s(order),
        "type": _s("order"),
        "state": _s(state),
        "total": _n(_amount(cents)),
        "lines": _n(len(lines)),
        "GSI1PK": _s(f"STATE#{state}"),
        "GSI1SK": _s(day),
    }
    for sku, name in lines:
        yield {
            "PK": _s(order),
            "SK": _s(f"LINE#{sku}"),
            "type": _s("order line"),
            "name": _s(name),
            "price": _n(_amount(_cents(sku))),
            "count": _n(counts[sku]),
            "GSI1PK": _s(f"PRODUCT#{sku}"),
            "GSI1SK": _s(order),
        }


def _wares() -> Iterator[tuple[str, str]]:
    for material in ("Oak", "Linen", "Copper", "Wool"):
        for other in ("bowl", "lamp", "basket", "blanket", "clock"):
            yield material, other


def _cents(sku: str) -> int:
    return 500 + _below(9_000, sku, "price")


def _amount(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02}"


def _below(end: int, *what: object) -> int:
    """A number from 0 to `end - 1`, always the same for the same things."""
    return crc32("/".join(map(str, what)).encode()) % end


def _one_of(choices: Sequence[T], *what: object) -> T:
    return choices[_below(len(choices), *what)]


def _day(number: int) -> str:
    return f"{_FIRST_DAY + timedelta(days=number):%Y-%m-%d}"


def _s(text: str) -> dict[str, Any]:
    return {"S": text}


def _n(number: int | str) -> dict[str, Any]:
    return {"N": str(number)}
