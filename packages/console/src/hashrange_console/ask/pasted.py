"""What a text means that somebody pasted: an item or a key, an ARN, a statement, or words.

An item may be JSON, DynamoDB's JSON, or a literal of Python as boto3 prints them, with Decimal, Binary and
sets. It may stand in a request, in an answer, or in a record of a stream. Numbers keep all their digits.
Refuses to know tables: `finding` looks for the place that fits.
"""

from __future__ import annotations

import ast
import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import msgspec
import orjson

from hashrange.interchange.plain_json import DECODER, NoItem, item_of
from hashrange_console.values import Item

_ARN: Final = re.compile(
    r"arn:aws[a-z-]*:dynamodb:(?P<region>[a-z0-9-]*):(?P<account>[0-9]*):table/(?P<table>[a-zA-Z0-9_.-]+)"
    r"(?:/index/(?P<index>[a-zA-Z0-9_.-]+))?(?:/.*)?"
)
_STATEMENT: Final = re.compile(r"(?:SELECT|INSERT|UPDATE|DELETE|EXISTS)\b(?=[\s(\"*])", re.I)
_AROUND: Final = frozenset(
    ("TableName", "ConsumedCapacity", "ResponseMetadata", "$metadata", "ConsistentRead", "$response")
)
"""Names that stand beside an item or a key in requests and answers."""


@dataclass(frozen=True, slots=True)
class Arn:
    """A table, or one of its indexes, by its ARN."""

    region: str
    account: str
    table: str
    index: str


@dataclass(frozen=True, slots=True)
class Statement:
    """A PartiQL statement."""

    text: str


@dataclass(frozen=True, slots=True)
class Attributes:
    """An item, or a key, or a part of one, in DynamoDB's JSON. `table` is "" unless the text names it."""

    item: Item
    table: str = ""


@dataclass(frozen=True, slots=True)
class Words:
    """Any other text: the name of a table, or a part of it, or the value of a key."""

    text: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A text that begins as an item does, but is none. `problem` says why."""

    problem: str


Meaning = Arn | Statement | Attributes | Words | Unreadable


def meaning_of(text: str) -> Meaning:
    """What a text means."""
    text = text.strip().rstrip(",;").strip()
    if match := _ARN.fullmatch(text):
        return Arn(match["region"], match["account"], match["table"], match["index"] or "")
    if _STATEMENT.match(text):
        return Statement(text)
    if not text.startswith(("{", "[")):
        return Words(text)
    try:
        attributes = _attributes(_document(text))
        orjson.dumps(attributes.item)
        for value in attributes.item.values():
            base64.b64decode(value.get("B", ""), validate=True)
    except binascii.Error:
        return Unreadable("binary values are written in base64")
    except orjson.JSONEncodeError as error:
        return Unreadable(str(error))
    except NoItem as error:
        return Unreadable(str(error))
    return attributes


def _document(text: str) -> Any:
    """The value of a text in JSON, or of a literal of Python. Raises NoItem."""
    try:
        return DECODER.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        not_json = str(error)
    try:
        return _python(ast.parse(text, mode="eval").body, text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, NoItem):
            raise
        raise NoItem(f"this is neither JSON ({not_json}) nor a literal of Python") from None


def _python(node: ast.expr, text: str) -> Any:
    """The value of a literal. Raises NoItem."""
    match node:
        case ast.Constant(value=float()):
            return Decimal(ast.get_source_segment(text, node) or "")
        case ast.Constant(value=str() | bytes() | int() | None):
            return node.value
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant(value=int() | float())):
            number = _python(node.operand, text)
            return -number if isinstance(node.op, ast.USub) else number
        case ast.Dict(keys=keys, values=values) if None not in keys:
            pairs = zip(keys, values, strict=True)
            return {str(_python(key, text)): _python(value, text) for key, value in pairs if key is not None}
        case ast.List(elts=members) | ast.Tuple(elts=members):
            return [_python(member, text) for member in members]
        case ast.Set(elts=members):
            return {_hashable(_python(member, text)) for member in members}
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return _called(name, [_python(argument, text) for argument in arguments])
    raise NoItem(f"{(ast.get_source_segment(text, node) or '')[:60]!r} is not a value of an attribute")


def _called(name: str, arguments: list[Any]) -> Any:
    match name, arguments:
        case "Decimal", [str() | int() | Decimal() as number]:
            try:
                return Decimal(number)
            except InvalidOperation:
                pass
        case "Binary", [bytes() as content]:
            return content
        case ("set" | "frozenset"), [list() | set() as members]:
            return {_hashable(member) for member in members}
    raise NoItem(f"{name}(…) is not a value of an attribute")


def _hashable(member: Any) -> Any:
    if isinstance(member, list | dict | set):
        raise NoItem("the members of a set are texts, or numbers, or bytes")
    return member


def _attributes(document: Any) -> Attributes:
    """The attributes in a document, without what stands around them. Raises NoItem."""
    if isinstance(document, list) and len(document) == 1:
        document = document[0]
    if not isinstance(document, Mapping):
        raise NoItem("paste one item, as an object of its attributes")
    table = document.get("TableName")
    table = table if isinstance(table, str) else ""
    record = document.get("dynamodb")
    if isinstance(record, Mapping) and isinstance(record.get("Keys"), Mapping):
        return Attributes(item_of(record["Keys"]))
    for name in ("Key", "Item", "PutRequest", "DeleteRequest"):
        inner = document.get(name)
        if isinstance(inner, Mapping) and (table or set(document) - {name} <= _AROUND):
            inside = _attributes(inner) if name.endswith("Request") else Attributes(item_of(inner))
            return Attributes(inside.item, table)
    return Attributes(item_of(document))
