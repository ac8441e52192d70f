"""The rules of a primary key, and the address that it gives."""

from __future__ import annotations

import pytest

from hashrange.errors import ValidationException
from hashrange.tables.definitions.table import KeyAttribute, KeySchema
from hashrange.tables.items import keys
from hashrange.values import Item

SIMPLE = KeySchema((KeyAttribute("p", "S"),))
COMPOSITE = KeySchema((KeyAttribute("p", "S"),), (KeyAttribute("k", "B"),))
NUMERIC = KeySchema((KeyAttribute("p", "N"),), (KeyAttribute("k", "N"),))

MISMATCH = "The provided key element does not match the schema"
_INVALID = "One or more parameter values were invalid: "
_EMPTY = (
    "One or more parameter values are not valid. "
    "The AttributeValue for a key attribute cannot contain an empty {} value. Key: {}"
)


def test_a_key_and_its_item_have_one_address() -> None:
    key: Item = {"p": {"S": "a"}, "k": {"B": "AA=="}}
    item: Item = {"v": {"S": "x"}, **key}
    assert keys.address_of_key(COMPOSITE, key) == keys.address_of_item(COMPOSITE, item)
    assert keys.key_of(COMPOSITE, item) == key
    assert keys.address_of_key(SIMPLE, {"p": {"S": "a"}})[1] == b""


@pytest.mark.parametrize(
    ("schema", "key", "message"),
    [
        # [report] all
        (SIMPLE, {}, MISMATCH),
        (SIMPLE, {"q": {"S": "a"}}, MISMATCH),
        (SIMPLE, {"p": {"N": "1"}}, MISMATCH),
        (SIMPLE, {"p": {"S": "a"}, "k": {"B": "AA=="}}, MISMATCH),
        (COMPOSITE, {"p": {"S": "a"}}, MISMATCH),
        (COMPOSITE, {"p": {"S": "a"}, "k": {"S": "x"}}, MISMATCH),
        (COMPOSITE, {"p": {"S": "a"}, "k": {"B": "AA=="}, "v": {"S": "x"}}, MISMATCH),
        (
            SIMPLE,
            {"p": {"S": ""}},
            _EMPTY.format("string", "p"),
        ),
        (
            COMPOSITE,
            {"p": {"S": "a"}, "k": {"B": ""}},
            _EMPTY.format("binary", "k"),
        ),
    ],
)
def test_a_request_key_that_does_not_fit_is_refused(schema: KeySchema, key: Item, message: str) -> None:
    with pytest.raises(ValidationException) as caught:
        keys.address_of_key(schema, key)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("schema", "item", "message"),
    [
        # [report] all
        (SIMPLE, {"v": {"S": "x"}}, _INVALID + "Missing the key p in the item"),
        (COMPOSITE, {"p": {"S": "a"}}, _INVALID + "Missing the key k in the item"),
        (SIMPLE, {"p": {"N": "1"}}, _INVALID + "Type mismatch for key p expected: S actual: N"),
        (
            NUMERIC,
            {"p": {"N": "1"}, "k": {"NULL": True}},
            _INVALID + "Type mismatch for key k expected: N actual: NULL",
        ),
    ],
)
def test_an_item_whose_key_does_not_fit_is_refused(schema: KeySchema, item: Item, message: str) -> None:
    with pytest.raises(ValidationException) as caught:
        keys.address_of_item(schema, item)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("name", "character", "bytes_", "ok"),
    [
        ("p", "x", 2048, True),
        ("p", "x", 2049, False),
        ("p", "é", 2048, True),
        ("p", "é", 2050, False),
        ("k", "x", 1024, True),
        ("k", "x", 1025, False),
        ("k", "𝄞", 1024, True),
        ("k", "𝄞", 1028, False),
    ],
)
def test_keys_are_limited_in_bytes(name: str, character: str, bytes_: int, ok: bool) -> None:
    schema = KeySchema((KeyAttribute("p", "S"),), (KeyAttribute("k", "S"),))
    key: Item = {"p": {"S": "a"}, "k": {"S": "a"}}
    key[name] = {"S": character * (bytes_ // len(character.encode()))}
    if ok:
        keys.address_of_key(schema, key)
        return
    for address in (keys.address_of_key, keys.address_of_item):
        with pytest.raises(ValidationException) as caught:
            address(schema, key)
        # [report]
        assert caught.value.message == _INVALID + (
            "Size of hashkey has exceeded the maximum size limit of2048 bytes"
            if name == "p"
            else "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"
        )
