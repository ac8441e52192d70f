"""Demo tables: page views, a photo community, a news feed, events of devices, a shop.

Each is a CreateTable and some hundred items, which are always the same: a choice depends only on what it is
for, by a checksum. Refuses to know how they are written.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final, TypeVar
from zlib import crc32

T = TypeVar("T")
Item = dict[str, dict[str, Any]]

_FIRST_DAY: Final = datetime(2026, 3, 2, tzinfo=UTC)
_LATER: Final = int(datetime(2040, 1, 1, tzinfo=UTC).timestamp())
"""When the first of the items with an expiry expires: late, so that a demo does not vanish."""

_PEOPLE: Final = (
    "ada", "bruno", "clara", "dario", "elif", "femi", "greta", "hana", "ivo", "jun", "kaja", "leo", "mina",
    "nils", "olga", "paulo", "quinn", "rosa", "sami", "tove",
)  # fmt: skip
_PLACES: Final = ("Riga", "Porto", "Osaka", "Tromsø", "Cuzco", "Hobart", "Fez", "Bergen")
_THINGS: Final = ("Harbour", "Ridge", "Dunes", "Old town", "Forest", "Glacier", "Market", "Cape")
_INTERESTS: Final = ("birds", "bread", "maps", "trains")
_TIMES: Final = ("at dawn", "in the rain", "after the storm", "before the snow", "by night", "in May")


@dataclass(frozen=True, slots=True)
class Demo:
    """A demo table: its CreateTable, a function that makes its items, and the attribute at whose time items
    expire, "" for none."""

    title: str
    about: str
    create: dict[str, Any]
    items: Callable[[], list[Item]]
    expires: str = ""

    @property
    def table(self) -> str:
        return str(self.create["TableName"])


def page_views() -> Iterator[Item]:
    """The views of eight pages in each hour of two days."""
    for page in ("tides", "lighthouses", "ferries", "knots", "gulls", "fog", "maps", "storms"):
        for hour in range(48):
            began = _FIRST_DAY + timedelta(hours=hour)
            views = _below(400, page, hour)
            yield {
                "page": _s(f"/articles/{page}"),
                "hour": _s(f"{began:%Y-%m-%dT%H:00Z}"),
                "views": _n(views),
                "readers": _n(views - views // 3),
                "from": {
                    "M": {
                        "search": _n(views // 2),
                        "links": _n(views // 4),
                        "typed": _n(views - views // 2 - views // 4),
                    }
                },
            }


def photos() -> Iterator[Item]:
    """Users, their photos, followers and reactions, in one table: the index turns the keys around."""
    for user in _PEOPLE:
        followers = [other for other in _PEOPLE if other != user and _below(4, user, other) == 0]
        yield {
            "PK": _s(f"USER#{user}"),
            "SK": _s(f"#METADATA#{user}"),
            "type": _s("User"),
            "name": _s(user.title()),
            "email": _s(f"{user}@example.org"),
            "home": _s(_one_of(_PLACES, user)),
            "interests": {"SS": sorted({_one_of(_INTERESTS, user, number) for number in range(2)})},
            "followers": _n(len(followers)),
        }
        for other in followers:
            yield {
                "PK": _s(f"USER#{user}"),
                "SK": _s(f"#FRIEND#{other}"),
                "type": _s("Friendship"),
                "since": _s(_day(_below(60, user, other, "since"))),
            }
        for number in range(5):
            yield from _photo(user, number)


def _photo(user: str, number: int) -> Iterator[Item]:
    taken = _FIRST_DAY + timedelta(days=9 * number, minutes=_below(1_440, user, number))
    photo = f"PHOTO#{user}#{taken:%Y-%m-%dT%H:%M:%SZ}"
    fans = [other for other in _PEOPLE if other != user and _below(12, user, number, other) == 0]
    yield {
        "PK": _s(f"USER#{user}"),
        "SK": _s(photo),
        "type": _s("Photo"),
        "title": _s(f"{_one_of(_THINGS, user, number)} {_one_of(_TIMES, number, user)}"),
        "place": _s(_one_of(_PLACES, user, number, "place")),
        "size": {"M": {"width": _n(4_000), "height": _n(3_000)}},
        "reactions": _n(len(fans)),
    }
    for fan in fans:
        kind = _one_of(("heart", "smile", "wow"), fan, photo)
        yield {"PK": _s(f"REACTION#{fan}#{kind}"), "SK": _s(photo), "type": _s("Reaction"), "kind": _s(kind)}


def news_feed() -> Iterator[Item]:
    """Authors, their posts, and the feeds of those who follow them: each post is written to each feed."""
    authors = _PEOPLE[:8]
    for author in authors:
        readers = [other for other in _PEOPLE if other != author and _below(4, "feed", author, other) == 0]
        yield {
            "PK": _s(f"AUTHOR#{author}"),
            "SK": _s("AUTHOR"),
            "name": _s(author.title()),
            "followers": _n(len(readers)),
            "verified": {"BOOL": len(readers) > 4},
        }
        for reader in readers:
            yield {"PK": _s(f"FOLLOWS#{reader}"), "SK": _s(author)}
        for number in range(8):
            posted = _FIRST_DAY + timedelta(hours=7 * number + _below(7, author, number))
            id_ = f"{posted:%Y%m%dT%H%M}-{crc32(f'{author}{number}'.encode()):08x}"
            content = f"{_one_of(_THINGS, author, number)} {_one_of(_TIMES, author, number)}"
            yield {
                "PK": _s(f"POSTS#{author}"),
                "SK": _s(id_),
                "content": _s(f"{content}, near {_one_of(_PLACES, number, author)}."),
                "posted": _s(f"{posted:%Y-%m-%dT%H:%MZ}"),
            }
            for reader in readers:
                yield {"PK": _s(f"HOME#{reader}"), "SK": _s(id_), "author": _s(author)}


def device_events() -> Iterator[Item]:
    """What ten devices reported, each with a number as its sort key; all items expire one day."""
    for device in range(1, 11):
        for number in range(40):
            at = _FIRST_DAY + timedelta(minutes=17 * number + _below(17, device, number))
            kind = _one_of(("reading", "reading", "reading", "alarm", "restart"), device, number)
            checksum = crc32(f"{device}/{number}".encode()).to_bytes(4)
            item: Item = {
                "device": _s(f"buoy-{device:02}"),
                "at": _n(int(at.timestamp() * 1_000)),
                "type": _s(kind),
                "checksum": {"B": base64.b64encode(checksum).decode()},
                "expires_at": _n(_LATER + 3_600 * number),
            }
            if kind == "reading":
                item["water"] = _n(f"{6 + _below(900, device, number, 'water') / 100:.2f}")
                item["waves"] = {"L": [_n(_below(40, device, number, wave)) for wave in range(4)]}
            else:
                item["note"] = _s(_one_of(("battery low", "no satellite", "lid open"), device, number))
                item["seen_by"] = {"NULL": True} if _below(2, device, number) else _s("harbour office")
            yield item


def shop() -> Iterator[Item]:
    """Customers, orders, order lines and products in one table, by the usual names of its keys."""
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
            "city": _s(_one_of(_PLACES, customer, "city")),
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


def _creation(table: str, keys: str, *indexes: tuple[str, str], stream: bool = False) -> dict[str, Any]:
    """The CreateTable of a table and its indexes. Keys are written `"customer S, placed S"`."""
    texts = (keys, *(text for _, text in indexes))
    types = dict(pair.split() for text in texts for pair in text.split(", "))
    request: dict[str, Any] = {
        "TableName": table,
        "KeySchema": _schema(keys),
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": kind} for name, kind in types.items()
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }
    if indexes:
        request["GlobalSecondaryIndexes"] = [
            {"IndexName": name, "KeySchema": _schema(text), "Projection": {"ProjectionType": "ALL"}}
            for name, text in indexes
        ]
    if stream:
        request["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    return request


def _schema(keys: str) -> list[dict[str, str]]:
    names = [pair.split()[0] for pair in keys.split(", ")]
    return [
        {"AttributeName": name, "KeyType": role} for name, role in zip(names, ("HASH", "RANGE"), strict=False)
    ]


def _kept(items: Callable[[], Iterator[Item]]) -> Callable[[], list[Item]]:
    """The items as a list, which is made once."""
    return cache(lambda: list(items()))


_ALL: Final = (
    Demo(
        "Page views",
        "Counters of a page for each hour: a partition key, a time as the sort key, numbers and a map.",
        _creation("page-views", "page S, hour S"),
        _kept(page_views),
    ),
    Demo(
        "Photos",
        "Users, photos, followers and reactions in one table. The index turns its keys around.",
        _creation("quick-photos", "PK S, SK S", ("inverted", "SK S, PK S")),
        _kept(photos),
    ),
    Demo(
        "News feed",
        "Authors, posts, and the feeds of their readers, each ready to be read with one Query.",
        _creation("news-feed", "PK S, SK S"),
        _kept(news_feed),
    ),
    Demo(
        "Events of devices",
        "A number as the sort key, an index by type, items that expire, and a stream of changes.",
        _creation("device-events", "device S, at N", ("by-type", "type S, at N"), stream=True),
        _kept(device_events),
        "expires_at",
    ),
    Demo(
        "Shop",
        "Customers, orders and products in one table. The index finds orders by state, and who bought what.",
        _creation("shop", "PK S, SK S", ("GSI1", "GSI1PK S, GSI1SK S")),
        _kept(shop),
    ),
)
DEMOS: Final = {demo.table: demo for demo in _ALL}
"""The demos by the names of their tables."""
