"""Every type of a field, written and read again; and what type checkers know.

`assert_type` is checked by mypy, which runs over the tests.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, assert_type
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hashrange_patterns import Table
from hashrange_patterns.entities import AsyncEntities, Entities, Entity, Key, Unreadable, create
from hashrange_patterns.entities.attributes import Expires, codec_of, same
from hashrange_patterns.entities.model import schema_of
from hashrange_patterns.entities.templates import Template
from patterns.entity_classes import (
    INVERTED,
    Address,
    Color,
    Everything,
    Level,
    Odd,
    Photo,
    Profile,
    Score,
    Tree,
    User,
)

AT = datetime(2026, 11, 22, 10, 0, 0, 1, UTC)
TABLE = Table("table")


def checked_types(store: Entities, photo: Photo) -> None:
    """Never called: mypy reads it."""
    assert_type(Photo.key("alice", AT), Key[Photo])
    assert_type(store.get(Photo.key("alice", AT)), Photo | None)
    assert_type(store.get_all([User.key("alice")]), dict[Key[User], User])
    assert_type(store.query(Photo, "alice", index=INVERTED, limit=3), list[Photo])
    assert_type(store.collect(Profile, "alice"), Profile | None)
    assert_type(store.modify(User.key("alice"), lambda user: user.interests.add("x")), User)
    assert_type(photo.likes, int)
    store.transact(create(photo), {"Put": {}})
    Photo.key("alice", "2026")  # type: ignore[arg-type]
    Photo.key("alice")  # type: ignore[call-arg]
    Photo("alice")  # type: ignore[call-arg]
    Photo("alice", AT, likes="many")  # type: ignore[arg-type]
    store.modify(User.key("alice"), lambda user: user.nickname)  # type: ignore[attr-defined]
    store.update("alice")  # type: ignore[arg-type]
    store.query(Profile, "alice")  # type: ignore[type-var]


async def checked_asynchronous_types(store: AsyncEntities) -> None:
    """Never called, either."""
    assert_type(await store.get(Photo.key("alice", AT)), Photo | None)
    assert_type(await store.collect(Profile, "alice"), Profile | None)


numbers = st.decimals(allow_nan=False, allow_infinity=False, places=5, min_value=-(10**30), max_value=10**30)
integers = st.integers(-(10**38) + 1, 10**38 - 1)
# (not of zones with summer times: Python finds no two moments equal of which one is within a change of hours)
offsets = st.builds(lambda minutes: timezone(timedelta(minutes=minutes)), st.integers(-1439, 1439))
moments = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=offsets)
trees = st.recursive(
    st.builds(Tree, st.text()),
    lambda inner: st.builds(
        Tree,
        st.text(),
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(min_size=1), numbers, max_size=3),
    ),
    max_leaves=5,
)
addresses = st.builds(
    Address, street=st.text(), number=st.integers(), since=st.none() | st.dates(), tags=st.sets(st.text())
).filter(lambda address: abs(address.number) < 10**38)
plain_values = st.recursive(
    st.none() | st.booleans() | st.text() | st.binary() | integers,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1), inner, max_size=3),
    max_leaves=5,
)
floats = st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda value: value == 0 or 1e-130 <= abs(value) <= 9e125
)
everything = st.builds(
    Everything,
    identifier=st.uuids(),
    serial=st.integers(0, 10**10 - 1),
    text=st.text(),
    number=integers,
    exact=numbers,
    fast=floats,
    data=st.binary(),
    flag=st.booleans(),
    moment=moments,
    day=st.dates(),
    hour=st.times(),
    color=st.sampled_from(Color),
    level=st.sampled_from(Level),
    odd=st.sampled_from(Odd),
    choice=st.sampled_from(["a", "b"]),
    score=st.integers(0, 9).map(Score),
    maybe=st.none() | integers,
    maybe_not=st.none() | st.text(),
    words=st.sets(st.text()),
    numbers=st.frozensets(integers),
    exacts=st.sets(numbers),
    blobs=st.sets(st.binary()),
    colors=st.sets(st.sampled_from(Color)),
    identifiers=st.none() | st.sets(st.uuids()),
    items=st.lists(st.none() | st.text()),
    pair=st.tuples(integers, st.text()),
    many=st.lists(st.dates()).map(tuple),
    tree=trees,
    trees=st.dictionaries(st.text(min_size=1), trees, max_size=2),
    address=st.none() | addresses,
    anything=plain_values,
    whatever=plain_values,
    expires_at=st.none() | moments.map(lambda moment: moment.replace(microsecond=0)),
)


SLOW = [HealthCheck.too_slow]  # (an example has a value of every type, and the machine is shared)


@settings(suppress_health_check=SLOW)
@given(everything)
def test_every_value_is_read_as_it_was_written(entity: Everything) -> None:
    schema = schema_of(Everything)
    item = schema.encode(TABLE, entity)
    assert schema.decode(TABLE, item) == entity
    assert schema.changes(TABLE, entity, item) == ({}, [])


def test_every_value_comes_back_from_a_table(client: Any, table: Table) -> None:
    """As above, through a client, and with all that a table does to items."""
    store = Entities(client, table)
    written: list[Everything] = []

    @settings(max_examples=25, suppress_health_check=SLOW)
    @given(everything)
    def trip(entity: Everything) -> None:
        store.put_all([entity])
        key = Everything.key(entity.identifier, entity.serial)
        assert store.get(key) == entity
        written.append(entity)
        read = store.get(key)
        assert read is not None
        assert not store.update(read)

    trip()
    assert written


@given(moments, moments)
def test_keys_sort_as_moments_do(one: datetime, other: datetime) -> None:
    template = Template("{at}")
    first, second = template.fill({"at": one}), template.fill({"at": other})
    assert first is not None
    assert second is not None
    assert (first < second) == (one < other)


@given(st.sampled_from(["#", "::", "#PHOTO#", "aba"]), st.data())
def test_a_key_says_what_it_was_filled_with(separator: str, data: st.DataObject) -> None:
    """Two values that are taken make another key than any other two."""
    template = Template("A#{one}" + separator + "{two}")
    parts = st.lists(st.sampled_from([*separator, separator, "a", "z"]), min_size=1, max_size=4).map("".join)
    keys: dict[str | None, tuple[str, str]] = {}
    for values in data.draw(st.lists(st.tuples(parts, parts), min_size=2, max_size=8)):
        try:
            text = template.fill({"one": values[0], "two": values[1]})
        except ValueError as error:
            assert "one is" in str(error)
            assert (values[0] + separator).index(separator) < len(values[0])
            continue
        assert keys.setdefault(text, values) == values


class Word(Entity[str, str, str], pk="WORDS#{book}", sk="{word}#{place}"):
    book: str
    word: str
    place: str


WORDS = ["a", "ab", "abc", "abd", "b", "é", "\U00010000"]


def test_a_range_ends_with_the_values_that_bound_it(client: Any, table: Table) -> None:
    store = Entities(client, table)
    words = [Word("book", word, place) for word in WORDS for place in ("1", "2\U0010ffff")]
    store.put_all(words)
    for low, high in itertools.product([None, *WORDS], repeat=2):
        expected = [word for word in words if (low or "") <= word.word <= (high or "\U0010ffff")]
        assert store.query(Word, "book", low=low, high=high) == expected, (low, high)
    for low, high in itertools.product([None, "1", "2\U0010ffff"], repeat=2):
        expected = [word for word in words[2:4] if (low or "") <= word.place <= (high or "\U0010ffff")]
        expected = [word for word in expected if high is None or word.place <= high]
        assert store.query(Word, "book", "ab", low=low, high=high) == expected, (low, high)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (int, True),
        (int, "1"),
        (int, 10**38 + 1),
        (str, 1),
        (float, float("nan")),
        (float, 1e126),
        (float, 1e-131),
        (Decimal, Decimal("1." + "1" * 38)),
        (date, AT),
        (datetime, datetime(2026, 1, 1)),
        (set[str], ["a"]),
        (list[int], (1,)),
        (tuple[int, str], (1,)),
        (tuple[int, ...], [1]),
        (tuple[str, ...], "ab"),
        (dict[str, int], {1: 1}),
        (dict[str, int], {"": 1}),
        (Color, "red"),
        (Tree, {"name": "x"}),
        (Address, {"street": "x", "number": 1}),
        (object, object()),
    ],
)
def test_what_would_not_come_back_is_refused(kind: Any, value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        codec_of(kind).encode(value)


@pytest.mark.parametrize("kind", [complex, int | str, set[list[int]], dict[int, str], set[str | None]])
def test_types_without_a_form_are_refused(kind: Any) -> None:
    with pytest.raises(TypeError):
        codec_of(kind)


def test_an_unreadable_attribute_is_named() -> None:
    schema = schema_of(Photo)
    item = schema.encode(TABLE, Photo("alice", AT))
    with pytest.raises(Unreadable, match=r"Photo\.likes holds"):
        schema.decode(TABLE, item | {"likes": {"S": "many"}})
    with pytest.raises(Unreadable, match=r"Photo\.username is missing"):
        schema.decode(TABLE, {name: value for name, value in item.items() if name != "username"})


def test_moments_of_other_programs_are_read() -> None:
    codec = codec_of(datetime)
    assert codec.decode({"S": "2019-04-14T21:52:36"}) == datetime(2019, 4, 14, 21, 52, 36, tzinfo=UTC)
    zone = timezone(timedelta(hours=2))
    assert codec.decode({"S": "2019-04-14T21:52:36+02:00"}) == datetime(2019, 4, 14, 21, 52, 36, tzinfo=zone)
    assert codec_of(Expires).encode(AT) == {"N": "1795341600"}


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ({"N": "1"}, {"N": "1.0"}, True),
        ({"NS": ["1", "2"]}, {"NS": ["2.0", "1"]}, True),
        ({"SS": ["a", "b"]}, {"SS": ["b", "a"]}, True),
        ({"L": [{"N": "1"}]}, {"L": [{"N": "1.00"}]}, True),
        ({"M": {"a": {"N": "1"}}}, {"M": {"a": {"N": "2"}}}, False),
        ({"S": "1"}, {"N": "1"}, False),
        ({"L": []}, {"L": [{"NULL": True}]}, False),
    ],
)
def test_values_are_compared_as_dynamodb_does(one: Any, other: Any, equal: bool) -> None:
    assert same(one, other) == equal


def a_class(**arguments: Any) -> Callable[[], object]:
    def make() -> object:
        class Made(Entity[str], **arguments):  # type: ignore[call-arg]
            name: str = ""
            serial: int = 0

        return schema_of(Made)

    return make


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (a_class(), "'pk' and 'sk'"),
        (a_class(pk="A#{name}", sk=""), "a key is empty"),
        (lambda: schema_of(Entity), "not a class of items"),
        (a_class(pk="A#{who}", sk="A"), "names who, which is not a field"),
        (a_class(pk="A#{name}", sk="{serial}"), "10 would sort before 9"),
        (a_class(pk="A#{name}{serial:05}", sk="A"), "put a text between"),
        (a_class(pk="A#{name!r}", sk="A"), "nothing but a width"),
        (a_class(pk="A#{name:>5}", sk="A"), "nothing but a width"),
        (a_class(pk="A#{0}", sk="A"), "names no field"),
        (a_class(pk="A#{name}", sk="A", unique="B#{name}"), r"unique takes templates"),
    ],
)
def test_wrong_classes_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make()


class Misdeclared(Entity[int], pk="A#{name}", sk="A"):
    name: str


class Clashing(Entity[str], pk="A#{name}", sk="A", indexed={"city": "CITY#{city}"}):
    name: str
    city: str


@dataclass
class Nothing:
    pass


def test_wrong_uses_are_refused(client: Any, table: Table) -> None:
    store = Entities(client, table)
    with pytest.raises(TypeError, match="brackets"):
        schema_of(Misdeclared)
    with pytest.raises(ValueError, match=r"Clashing\.city has the name"):
        store.create(Clashing("a", "b"))
    with pytest.raises(ValueError, match="contains the '#'"):
        Photo.key("alice#bob", AT)
    with pytest.raises(ValueError, match="is empty"):
        User.key("")
    with pytest.raises(TypeError, match="takes username, taken_at: 2 values, not 1"):
        Photo.key("alice")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'7' is a str"):
        Everything.key(UUID(int=1), "7")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="does not fit"):
        Everything.key(UUID(int=1), 10**10)
    with pytest.raises(TypeError, match="Photo takes username, taken_at, at least the first 1"):
        store.query(Photo)
    with pytest.raises(TypeError, match="no field left"):
        store.query(Photo, "alice", AT, low=AT)
    with pytest.raises(ValueError, match="no attribute 'SKY'"):
        store.query(Photo, "alice", index=type(INVERTED)("x", "SKY"))
    with pytest.raises(TypeError, match="has no fields"):
        store.collect(Nothing, "alice")
    with pytest.raises(ValueError, match="neither read nor created"):
        store.update(Photo("alice", AT))
