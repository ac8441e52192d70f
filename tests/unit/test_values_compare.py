"""Equality and order of attribute values."""

from __future__ import annotations

from base64 import b64encode
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashrange.values import equal, numbers, order

_texts = st.text(st.characters(codec="utf-8"), max_size=3)


@st.composite
def _numbers(draw: st.DrawFn) -> str:
    digits, exponent = draw(st.integers(-(10**38) + 1, 10**38 - 1)), draw(st.integers(-130, 80))
    return numbers.normalise(f"{digits}e{exponent}")


def _sign(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


@given(_texts, _texts)
def test_strings_order_by_utf8(left: str, right: str) -> None:
    assert order({"S": left}, {"S": right}) == _sign(left.encode(), right.encode())


@given(st.binary(max_size=3), st.binary(max_size=3))
def test_binary_orders_by_unsigned_bytes(left: bytes, right: bytes) -> None:
    one, other = ({"B": b64encode(data).decode()} for data in (left, right))
    assert order(one, other) == _sign(left, right)


@given(_numbers(), _numbers())
def test_numbers_order_by_all_their_digits(left: str, right: str) -> None:
    assert order({"N": left}, {"N": right}) == _sign(Decimal(left), Decimal(right))
    assert equal({"N": left}, {"N": right}) == (Decimal(left) == Decimal(right))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"S": "1"}, {"N": "1"}),
        ({"BOOL": True}, {"BOOL": False}),
        ({"L": []}, {"L": []}),
        ({"SS": ["a"]}, {"SS": ["a"]}),
        ({"NULL": True}, {"NULL": True}),
    ],
)
def test_other_types_have_no_order(left: dict[str, Any], right: dict[str, Any]) -> None:
    assert order(left, right) is None


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ({"SS": ["a", "b"]}, {"SS": ["b", "a"]}, True),
        ({"SS": ["a", "b"]}, {"SS": ["a"]}, False),
        ({"NS": ["1", "2"]}, {"NS": ["2", "1"]}, True),
        ({"L": [{"SS": ["a", "b"]}]}, {"L": [{"SS": ["b", "a"]}]}, True),
        ({"L": [{"S": "a"}, {"S": "b"}]}, {"L": [{"S": "b"}, {"S": "a"}]}, False),
        ({"M": {"x": {"NS": ["1", "2"]}}}, {"M": {"x": {"NS": ["2", "1"]}}}, True),
        ({"M": {"x": {"S": "a"}}}, {"M": {"y": {"S": "a"}}}, False),
        ({"S": "1"}, {"N": "1"}, False),
        ({"SS": ["1"]}, {"NS": ["1"]}, False),
        ({"BOOL": True}, {"BOOL": False}, False),
        ({"NULL": True}, {"NULL": True}, True),
    ],
)
def test_equality(left: dict[str, Any], right: dict[str, Any], same: bool) -> None:
    assert equal(left, right) is same
    assert equal(right, left) is same
