"""Checks the JSON types of a request by its shape, with DynamoDB's messages.

DynamoDB reads a request as a stream and stops at the first value of a wrong JSON type. So there is only one
error, in the request's order, and it comes before the errors of all other rules. Unknown members are
skipped, and null means absent. The message depends on the place of the value: a structure that is a member of
another structure is an unexpected *field*; inside a list or map it is an unexpected *value*.

Provenance of the wording: [report] for strings, booleans, integers, blobs, lists, maps and structures
(public bug reports quote them); [assumed] for a fraction where an integer or boolean is expected, and for
timestamps. Some messages contain names of Java classes: DynamoDB sends them, and programs may compare them.
Values that are nested too deeply to be read get a SerializationException without a text [assumed].

Which values are allowed is not checked here, but in `constraints`, and in `values` for attribute values.
"""

from __future__ import annotations

import re
from typing import Any, Final

from hashrange.errors import SerializationException
from hashrange.limits import READABLE_LEVELS_MAX
from hashrange.shapes.vocabulary import (
    ATTRIBUTE_VALUE,
    BLOB,
    BOOLEAN,
    TEXT,
    AttributeValue,
    Blob,
    Boolean,
    List,
    Map,
    Number,
    Shape,
    String,
    Structure,
    Timestamp,
)

_MODEL: Final = "com.amazonaws.dynamodb.v20120810."
_STRUCTURE_FOUND: Final = "Start of structure or map found where not expected"
_FIELD: Final = "Unexpected field type"
_ELEMENT: Final = "Unexpected value type in payload"
_NOT_A_BOOLEAN: Final = "Unexpected token received from parser"
_NOT_BASE64: Final = "only base-64-encoded strings are convertible to bytes"
_NESTED_COLLECTION: Final = (
    "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class "
    "java.lang.Class (sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class "
    "are in module java.base of loader 'bootstrap')"
)

ATTRIBUTE_VALUE_MEMBERS: Final[dict[str, Shape]] = {
    "S": TEXT,
    "N": TEXT,
    "B": BLOB,
    "SS": List(TEXT),
    "NS": List(TEXT),
    "BS": List(BLOB),
    "M": Map(TEXT, ATTRIBUTE_VALUE),
    "L": List(ATTRIBUTE_VALUE),
    "NULL": BOOLEAN,
    "BOOL": BOOLEAN,
}

_BASE64: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_OUTSIDE_BASE64: Final = re.compile(r"[^A-Za-z0-9+/]")
# The bits of the last character that are unused with one or two characters of padding; they must be zero.
_UNUSED_BITS: Final = {1: 0b11, 2: 0b1111}


def check_request(shape: Structure, request: Any) -> None:
    """Raise SerializationException if a whole request, or anything in it, has a wrong JSON type."""
    _check_structure(shape, request, element=True, level=1)


def check(shape: Shape, value: Any, *, element: bool = False, level: int = 1) -> None:
    """Raise SerializationException at the first value of a wrong JSON type, in the request's order.

    `element`: the value is in a list or map, not in a structure. `level` is the level of nesting of an
    attribute value.
    """
    if value is None:
        return
    match shape:
        case String():
            if type(value) is not str:
                raise _misfit(value, "java.lang.String", "String")
        case Structure():
            _check_structure(shape, value, element, level)
        case AttributeValue():
            if level > READABLE_LEVELS_MAX:
                raise SerializationException()
            _check_structure(shape, value, element, level + 1)
        case Map():
            _check_collection(value, dict, java_type(shape), element)
            for content in value.values():
                check(shape.value, content, element=True, level=level)
        case List():
            _check_collection(value, list, java_type(shape), element)
            for content in value:
                check(shape.member, content, element=True, level=level)
        case Boolean():
            if type(value) is not bool:
                raise _not_a_boolean(value)
        case Number():
            _check_number(shape, value)
        case Timestamp():
            if type(value) not in (int, float):
                raise _misfit(value, "java.util.Date", "Date")
        case Blob():
            _check_blob(value)


def _check_structure(shape: Structure | AttributeValue, value: Any, element: bool, level: int) -> None:
    if isinstance(shape, Structure):
        name, members = shape.name, shape.members
    else:
        name, members = "AttributeValue", ATTRIBUTE_VALUE_MEMBERS
    if type(value) is list:
        raise _unrecognized("class " + _MODEL + name)
    if type(value) is not dict:
        raise SerializationException(_ELEMENT if element else _FIELD)
    for key, member_value in value.items():
        member = members.get(key)
        if member is not None:
            check(member, member_value, level=level)


def _check_collection(value: Any, expected: type, name: str, element: bool) -> None:
    if type(value) is expected:
        return
    if type(value) is dict:
        raise SerializationException(_STRUCTURE_FOUND)
    if type(value) is list:
        raise _unrecognized(name)
    raise SerializationException(_NESTED_COLLECTION if element else _FIELD)


def _check_number(shape: Number, value: Any) -> None:
    if type(value) is int or (type(value) is float and (shape.kind == "Double" or shape.cuts)):
        return
    raise _misfit(value, "java.lang." + shape.kind, shape.kind)


def _not_a_boolean(value: Any) -> SerializationException:
    if type(value) is str:
        return SerializationException(_NOT_A_BOOLEAN)
    return _misfit(value, "java.lang.Boolean", "Boolean")


def _check_blob(value: Any) -> None:
    if type(value) is dict:
        raise SerializationException(_STRUCTURE_FOUND)
    if type(value) is list:
        raise _unrecognized("class java.nio.ByteBuffer")
    if type(value) is not str:
        raise SerializationException(_NOT_BASE64)
    if len(value) % 4:
        raise SerializationException(
            f"Base64 encoded length is expected a multiple of 4 bytes but found: {len(value)}"
        )
    text = value.rstrip("=")
    pads = len(value) - len(text)
    if pads and (pads > 2 or ((at := _BASE64.find(text[-1])) >= 0 and at & _UNUSED_BITS[pads])):
        raise SerializationException("Invalid last non-pad Base64 character dectected")  # sic
    if outside := _OUTSIDE_BASE64.search(text):
        raise SerializationException(f"Invalid Base64 character: '{outside[0]}'")


def _misfit(value: Any, java_class: str, name: str) -> SerializationException:
    if type(value) is dict:
        return SerializationException(_STRUCTURE_FOUND)
    if type(value) is list:
        return _unrecognized("class " + java_class)
    return SerializationException(f"{_token(value)} cannot be converted to {name}")


def _token(value: Any) -> str:
    if value is True:
        return "TRUE_VALUE"
    if value is False:
        return "FALSE_VALUE"
    if type(value) is int:
        return "NUMBER_VALUE"
    return "DECIMAL_VALUE" if type(value) is float else "STRING_VALUE"


def _unrecognized(name: str) -> SerializationException:
    return SerializationException("Unrecognized collection type " + name)


def java_type(shape: Shape) -> str:
    """The Java type that messages name for a shape, for example ``java.util.List<java.lang.String>``."""
    match shape:
        case Map():
            return f"java.util.Map<java.lang.String, {java_type(shape.value)}>"
        case List():
            return f"java.util.List<{java_type(shape.member)}>"
        case Structure():
            return _MODEL + shape.name
        case AttributeValue():
            return _MODEL + "AttributeValue"
        case Number():
            return "java.lang." + shape.kind
        case Boolean():
            return "java.lang.Boolean"
        case Blob():
            return "java.nio.ByteBuffer"
        case Timestamp():
            return "java.util.Date"
        case String():
            return "java.lang.String"
