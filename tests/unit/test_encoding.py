"""Key bytes: the vectors of the module's docstring, and packed order = value order."""

from __future__ import annotations

from base64 import b64encode
from decimal import Decimal
from hashlib import md5
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hashrange import encoding
from hashrange.limits import PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX
from hashrange.storage.api import ADDRESS_BYTES_MAX, PARTITION_BYTES_MAX
from hashrange.values import numbers, order

texts = st.text(st.characters(codec="utf-8"), max_size=4) | st.sampled_from(
    ["", "\x00", "\x00\x00", "a", "a\x00", "a\x01", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"]
)
data = st.binary(max_size=4) | st.lists(st.sampled_from([0, 1, 254, 255]), max_size=5).map(bytes)


@st.composite
def normal_numbers(draw: st.DrawFn) -> str:
    digits = draw(st.integers(1, 10 ** draw(st.integers(1, 38)) - 1))
    exponent = draw(st.integers(-130, 125) | st.integers(-3, 3))
    sign = draw(st.sampled_from(["", "-"]))
    text = str(digits)
    return numbers.normalise(f"{sign}{text[0]}.{text[1:] or 0}e{exponent}")


def binary(content: bytes) -> dict[str, Any]:
    return {"B": b64encode(content).decode()}


values_of_one_type = st.one_of(
    st.tuples(*[st.builds(lambda s: {"S": s}, texts)] * 2),
    st.tuples(*[st.builds(binary, data)] * 2),
    st.tuples(*[st.builds(lambda n: {"N": n}, normal_numbers() | st.just("0"))] * 2),
)


def sign(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


@pytest.mark.parametrize(
    ("value", "packed"),
    [
        ({"S": "ab"}, "6162"),
        ({"B": "AP8="}, "00ff"),
        ({"N": "1"}, "c0820b00"),
        ({"N": "0"}, "80"),
        ({"N": "10"}, "c0830b00"),
        ({"N": "12"}, "c0830d00"),
        ({"N": "-1"}, "407df4ff"),
    ],
)
def test_vectors_of_sorts(value: dict[str, Any], packed: str) -> None:
    assert encoding.pack_sort(value).hex() == packed


@pytest.mark.parametrize(
    ("value", "packed"),
    [
        ({"S": "ab"}, "61620001"),
        ({"S": "a\x00"}, "6100ff0001"),
        ({"B": "AP8="}, "00ffff0001"),
        ({"N": "1"}, "c0820b00"),
    ],
)
def test_vectors_of_components(value: dict[str, Any], packed: str) -> None:
    assert encoding.pack_component(value).hex() == packed


@given(normal_numbers(), normal_numbers())
@example("1", "-1")
@example("0", "-" + "9" * 38)
@example("9" * 38, "9" * 37 + "8")
@example("1.1", "1.01")
def test_packed_numbers_order_by_value(left: str, right: str) -> None:
    packed = encoding.pack_number(left)
    assert sign(packed, encoding.pack_number(right)) == sign(Decimal(left), Decimal(right))


@given(values_of_one_type)
def test_packed_order_is_value_order(pair: tuple[dict[str, Any], dict[str, Any]]) -> None:
    left, right = pair
    expected = order(left, right)
    assert sign(encoding.pack_sort(left), encoding.pack_sort(right)) == expected
    # Components keep the order whatever follows them.
    one, other = encoding.pack_component(left), encoding.pack_component(right)
    for tail, other_tail in ((b"", b""), (b"\x00", b"\xff"), (b"\xff\xff", b"\x00")):
        if expected:
            assert sign(one + tail, other + other_tail) == expected
    # No component is a prefix of another one, so what follows can never be taken for a part of it.
    if expected:
        assert not one.startswith(other)
        assert not other.startswith(one)


@given(st.lists(values_of_one_type, min_size=1, max_size=3), data, data)
def test_index_sorts_order_by_component_then_by_tie(
    pairs: list[tuple[dict[str, Any], dict[str, Any]]], sort: bytes, other_sort: bytes
) -> None:
    left, right = [one for one, _ in pairs], [other for _, other in pairs]
    partition = bytes(encoding.PARTITION_BYTES)
    one = encoding.pack_index_sort(left, partition, sort)
    other = encoding.pack_index_sort(right, partition, other_sort)
    expected = next((found for pair in pairs if (found := order(*pair))), None)
    assert sign(one, other) == (expected if expected is not None else sign(sort, other_sort))


def test_index_sorts_of_long_equal_keys_differ() -> None:
    value: dict[str, Any] = {"S": "k" * 1024}
    sorts = {encoding.pack_index_sort([value], b"p" * 24, b"s" * 100 + bytes([last])) for last in range(50)}
    assert len(sorts) == 50


@pytest.mark.parametrize("byte", [b"\x00", b"k", b"\xff"])
def test_no_address_is_longer_than_engines_take(byte: bytes) -> None:
    assert PARTITION_BYTES_MAX >= encoding.PARTITION_BYTES
    longest = binary(byte * SORT_KEY_BYTES_MAX)
    sort = encoding.pack_index_sort([longest], b"p" * encoding.PARTITION_BYTES, byte * SORT_KEY_BYTES_MAX)
    assert encoding.PARTITION_BYTES + len(sort) <= ADDRESS_BYTES_MAX
    several = [binary(byte * (SORT_KEY_BYTES_MAX // 4))] * 4
    sort = encoding.pack_index_sort(several, b"p" * encoding.PARTITION_BYTES, byte * SORT_KEY_BYTES_MAX)
    assert encoding.PARTITION_BYTES + len(sort) <= ADDRESS_BYTES_MAX


@given(data)
def test_partitions_are_digests_of_the_key(key: bytes) -> None:
    partition = encoding.partition_of([binary(key)])
    assert len(partition) == encoding.PARTITION_BYTES
    assert partition[:8] == md5(b"Outliers" + key).digest()[:8]


@pytest.mark.parametrize(
    ("value", "segment"),
    [
        ({"S": "3635"}, 0),
        ({"S": "228"}, 0),
        ({"S": "1668"}, 1),
        ({"S": "3435"}, 4),
        ({"N": "251"}, 1),
        ({"N": "2388"}, 4095),
    ],
)
def test_partitions_lie_in_the_segments_that_were_recorded(value: dict[str, Any], segment: int) -> None:
    """[report] dynalite's recordings of the live service, of scans in 4,096 segments."""
    assert int.from_bytes(encoding.partition_of_one(value)[:8]) * 4096 >> 64 == segment


@pytest.mark.parametrize(
    ("text", "packed"),
    [
        ("0", "80"),
        ("1", "c102"),
        ("10", "c10b"),
        ("100", "c202"),
        ("251", "c20334"),
        ("1.5", "c10233"),
        ("0.01", "c002"),
        ("-1", "3e6466"),
        ("-251", "3d633266"),
        ("1" + "0" * 125, "ff0b"),
        ("0." + "0" * 129 + "1", "8002"),
    ],
)
def test_numbers_are_hashed_by_the_bytes_of_oracles_number(text: str, packed: str) -> None:
    digest = md5(b"Outliers" + bytes.fromhex(packed)).digest()
    assert encoding.partition_of_one({"N": text})[:8] == digest[:8]


@given(normal_numbers(), normal_numbers())
def test_bytes_of_oracles_number_order_as_the_numbers(one: str, other: str) -> None:
    """What the two ways of packing a number have in common: bytes taken wrongly would show."""
    assert sign(encoding.oracle_number(one), encoding.oracle_number(other)) == sign(
        encoding.pack_number(one), encoding.pack_number(other)
    )


def test_partitions_of_several_components_are_unambiguous() -> None:
    keys = [("a", "bc"), ("ab", "c"), ("abc", ""), ("a\x00", "bc"), ("a", "\x00bc")]
    partitions = {encoding.partition_of([{"S": one}, {"S": other}]) for one, other in keys}
    assert len(partitions) == len(keys)
    assert encoding.partition_of([binary(b"x" * PARTITION_KEY_BYTES_MAX)])


@given(data, data)
def test_successor_is_the_end_of_a_prefix(prefix: bytes, other: bytes) -> None:
    end = encoding.successor(prefix)
    assert (prefix <= other and (end is None or other < end)) == (
        other.startswith(prefix) or (end is None and other >= prefix)
    )
    assert end is None or not end.startswith(prefix)


@given(data, data)
def test_escaping_keeps_the_order_of_prefixes(left: bytes, right: bytes) -> None:
    assert sign(encoding.escape(left), encoding.escape(right)) == sign(left, right)
    assert encoding.escape(right).startswith(encoding.escape(left)) == right.startswith(left)
