"""JSON types against expected types, and the wording of each misfit."""

from typing import Any

import pytest

from hashrange.errors import SerializationException
from hashrange.limits import READABLE_LEVELS_MAX
from hashrange.shapes import check_types, wire_types
from hashrange.shapes.vocabulary import (
    BLOB,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    LONG,
    TEXT,
    TIMESTAMP,
    List,
    Map,
    Shape,
    Structure,
)

MODEL = "com.amazonaws.dynamodb.v20120810."
MAP_FOUND = "Start of structure or map found where not expected"
BASE64 = "only base-64-encoded strings are convertible to bytes"
CAST = (
    "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class "
    "java.lang.Class (sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class "
    "are in module java.base of loader 'bootstrap')"
)


def misfit(shape: Shape, value: Any) -> str | None:
    with pytest.raises(SerializationException) as caught:
        wire_types.check(shape, value)
    return caught.value.message


@pytest.mark.parametrize(
    ("shape", "value", "message"),
    [
        # [report] localstack issue 9412 and others
        (TEXT, 23, "NUMBER_VALUE cannot be converted to String"),
        (TEXT, True, "TRUE_VALUE cannot be converted to String"),
        (TEXT, False, "FALSE_VALUE cannot be converted to String"),
        (TEXT, 3.5, "DECIMAL_VALUE cannot be converted to String"),
        # [report] amplify-js issue 13265
        (TEXT, {}, MAP_FOUND),
        (TEXT, [], "Unrecognized collection type class java.lang.String"),
        (INTEGER, "23", "STRING_VALUE cannot be converted to Integer"),
        (INTEGER, True, "TRUE_VALUE cannot be converted to Integer"),
        (INTEGER, [], "Unrecognized collection type class java.lang.Integer"),
        (INTEGER, {}, MAP_FOUND),
        (LONG, "23", "STRING_VALUE cannot be converted to Long"),
        (DOUBLE, "23", "STRING_VALUE cannot be converted to Double"),
        # [assumed] DynamoDB may round instead
        (LONG, 1.5, "DECIMAL_VALUE cannot be converted to Long"),
        (BOOLEAN, "true", "Unexpected token received from parser"),
        (BOOLEAN, 1, "NUMBER_VALUE cannot be converted to Boolean"),
        (BOOLEAN, [], "Unrecognized collection type class java.lang.Boolean"),
        (BOOLEAN, {}, MAP_FOUND),
        (BLOB, 5, BASE64),
        (BLOB, True, BASE64),
        (BLOB, [], "Unrecognized collection type class java.nio.ByteBuffer"),
        (BLOB, {}, MAP_FOUND),
        (BLOB, "23456", "Base64 encoded length is expected a multiple of 4 bytes but found: 5"),
        (BLOB, "ab!=", "Invalid Base64 character: '!'"),
        (BLOB, "+/+=", "Invalid last non-pad Base64 character dectected"),
        (BLOB, "=+/=", "Invalid last non-pad Base64 character dectected"),
        # [assumed]
        (BLOB, "a===", "Invalid last non-pad Base64 character dectected"),
        # [assumed]
        (TIMESTAMP, "now", "STRING_VALUE cannot be converted to Date"),
    ],
)
def test_scalars(shape: Shape, value: Any, message: str) -> None:
    assert misfit(shape, value) == message


ELEMENT = Structure("Tag", {"Key": TEXT})
HOLDER = Structure(
    "Holder",
    {"One": ELEMENT, "Many": List(ELEMENT), "Named": Map(TEXT, ELEMENT), "Nested": Map(TEXT, List(ELEMENT))},
)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        # [report]
        ({"One": "23"}, "Unexpected field type"),
        ({"One": []}, f"Unrecognized collection type class {MODEL}Tag"),
        ({"Many": "23"}, "Unexpected field type"),
        ({"Many": {}}, MAP_FOUND),
        ({"Many": ["23"]}, "Unexpected value type in payload"),
        ({"Many": [[]]}, f"Unrecognized collection type class {MODEL}Tag"),
        ({"Named": 5}, "Unexpected field type"),
        ({"Named": []}, f"Unrecognized collection type java.util.Map<java.lang.String, {MODEL}Tag>"),
        ({"Named": {"a": True}}, "Unexpected value type in payload"),
        ({"Nested": {"a": 5}}, CAST),
        ({"Nested": {"a": {}}}, MAP_FOUND),
        ({"Many": [{"Key": 5}]}, "NUMBER_VALUE cannot be converted to String"),
    ],
)
def test_containers(request_: dict[str, Any], message: str) -> None:
    assert misfit(HOLDER, request_) == message


@pytest.mark.parametrize(
    ("value", "message"),
    [
        # [report]
        ("a", "Unexpected value type in payload"),
        (5, "Unexpected value type in payload"),
        ([], f"Unrecognized collection type class {MODEL}AttributeValue"),
        ({"S": 5}, "NUMBER_VALUE cannot be converted to String"),
        ({"N": 5}, "NUMBER_VALUE cannot be converted to String"),
        ({"S": {}}, MAP_FOUND),
        ({"B": 5}, BASE64),
        ({"BOOL": "x"}, "Unexpected token received from parser"),
        ({"NULL": "x"}, "Unexpected token received from parser"),
        ({"L": {}}, MAP_FOUND),
        ({"L": "x"}, "Unexpected field type"),
        ({"L": ["x"]}, "Unexpected value type in payload"),
        ({"M": []}, f"Unrecognized collection type java.util.Map<java.lang.String, {MODEL}AttributeValue>"),
        ({"M": {"a": {"L": [{"S": True}]}}}, "TRUE_VALUE cannot be converted to String"),
        ({"SS": "x"}, "Unexpected field type"),
        ({"NS": [5]}, "NUMBER_VALUE cannot be converted to String"),
        ({"BS": ["x"]}, "Base64 encoded length is expected a multiple of 4 bytes but found: 1"),
    ],
)
def test_attribute_values(value: Any, message: str) -> None:
    with pytest.raises(SerializationException) as caught:
        check_types("PutItem", {"TableName": "music", "Item": {"a": value}})
    assert caught.value.message == message


@pytest.mark.parametrize("text", ["", "YQ==", "YWI=", "YWJj", "+/8="])
def test_base64(text: str) -> None:
    wire_types.check(BLOB, text)


def test_first_misfit_in_the_requests_order_wins() -> None:
    with pytest.raises(SerializationException, match="Boolean"):
        check_types("GetItem", {"ConsistentRead": 1, "TableName": 5})
    with pytest.raises(SerializationException, match="String"):
        check_types("GetItem", {"TableName": 5, "ConsistentRead": 1})


def test_null_and_unknown_members_are_skipped() -> None:
    check_types("GetItem", {"TableName": None, "Key": {"a": None, "b": {"S": None, "X": 5}}, "Other": [5]})


def test_values_too_deep_to_be_read_are_no_values() -> None:  # [assumed]
    value: dict[str, Any] = {"S": "x"}
    for level in range(1, 500):
        request = {"TableName": "music", "Item": {"a": value}}
        if level <= READABLE_LEVELS_MAX:
            check_types("PutItem", request)
        else:
            with pytest.raises(SerializationException) as caught:
                check_types("PutItem", request)
            assert caught.value.message is None
        value = {"L": [value]} if level % 2 else {"M": {"m": value}}
