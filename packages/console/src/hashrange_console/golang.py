"""Requests as code in Go, for the AWS SDK for Go v2.

Go needs the type of every part of a request. The shapes of requests say them: a text is a *string, a word of
an enum a constant, a structure has the name that the API gives it. Strings and bytes are written so that a
compiler makes the same ones of them again.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from hashrange.shapes import OPERATIONS
from hashrange.shapes.streams import OPERATIONS as STREAM_OPERATIONS
from hashrange.shapes.vocabulary import (
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

_WORDS: Final = frozenset(("TableClass", "TableClassOverride", "BillingModeOverride"))
"""Members that the SDK has as enums, although our shapes take any text and check it later."""
_POINTERS: Final = {"Integer": "Int32", "Long": "Int64", "Double": "Float64"}
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_VALUE: Final = "types.AttributeValue"
_ROW_CHARACTERS_MAX: Final = 60


def go(operation: str, request: dict[str, Any], endpoint: str, account: str = "", region: str = "") -> str:
    """A program in Go that makes a request. `account` is its access key, `region` its region; "": those of
    the environment."""
    service = "dynamodbstreams" if operation in STREAM_OPERATIONS else "dynamodb"
    sent = _structure(OPERATIONS[operation], request, f"&{service}.{operation}Input", 1)
    used = _STRING.sub("", sent)
    packages = ["aws", "config", *(["credentials"] if account else []), f"service/{service}"]
    packages += [f"service/{service}/types"] if "types." in used else []
    standard = ["context", "fmt", "log", *(["time"] if "time." in used else [])]
    imports = [*standard, "", *(f"github.com/aws/aws-sdk-go-v2/{name}" for name in packages)]
    return (
        "package main\n\nimport (\n"
        + "".join(f'\t"{name}"\n' if name else "\n" for name in imports)
        + ")\n\nfunc main() {\n"
        "\tctx := context.Background()\n"
        f"\tcfg, err := config.LoadDefaultConfig(ctx{_options(account, region)})\n"
        "\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n"
        f"\tclient := {service}.NewFromConfig(cfg, func(o *{service}.Options) {{\n"
        f"\t\to.BaseEndpoint = aws.String({_text(endpoint)})\n\t}})\n"
        f"\tanswer, err := client.{operation}(ctx, {sent})\n"
        "\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n"
        '\tfmt.Printf("%+v\\n", answer)\n}\n'
    )


def _options(account: str, region: str) -> str:
    """The options of a configuration. The server checks no secret key, so any will do."""
    options = f", config.WithRegion({_text(region)})" if region else ""
    if account:
        made = f'credentials.NewStaticCredentialsProvider({_text(account)}, "any", "")'
        options += f",\n\t\tconfig.WithCredentialsProvider({made})"
    return options


def _structure(shape: Structure, value: Mapping[str, Any], opening: str, indent: int) -> str:
    rows = [
        f"{name}: {_written(member, value[name], indent + 1, name)}"
        for name, member in shape.members.items()
        if value.get(name) is not None
    ]
    return _block(opening, rows, indent)


def _written(shape: Shape, value: Any, indent: int, name: str = "") -> str:
    """A part of a request. `name` is that of the member that holds it."""
    match shape:
        case String(words=words):
            return _text(value) if words or name in _WORDS else f"aws.String({_text(value)})"
        case Number(kind=kind):
            return f"aws.{_POINTERS[kind]}({value})"
        case Boolean():
            return f"aws.Bool({_word(value)})"
        case Timestamp():
            seconds = int(value)
            return f"aws.Time(time.Unix({seconds}, {round((value - seconds) * 1e9)}))"
        case Blob():
            return _bytes(value)
        case AttributeValue():
            return _attribute(value, indent)
        case Structure(name=type_name):
            return _structure(shape, value, f"&types.{type_name}", indent)
        case List(member=member):
            rows = [_element(member, content, indent + 1) for content in value]
            return _block(f"[]{_type(member)}", rows, indent)
        case Map(value=member):
            pairs = value.items()
            rows = [f"{_text(key)}: {_element(member, content, indent + 1)}" for key, content in pairs]
            return _block(f"map[string]{_type(member)}", rows, indent)


def _element(shape: Shape, value: Any, indent: int) -> str:
    """A member of a list or a map, whose type stands before the list."""
    match shape:
        case String():
            return _text(value)
        case Structure():
            return _structure(shape, value, "", indent)
        case _:
            return _written(shape, value, indent)


def _type(shape: Shape) -> str:
    """The type of the members of a list or a map."""
    match shape:
        case String():
            return "string"
        case Structure(name=type_name):
            return f"types.{type_name}"
        case List(member=member):
            return f"[]{_type(member)}"
        case Map(value=member):
            return f"map[string]{_type(member)}"
        case _:
            return _VALUE


def _attribute(value: dict[str, Any], indent: int) -> str:
    """An attribute value, in DynamoDB's JSON."""
    kind, inner = next(iter(value.items()))
    match kind:
        case "BOOL" | "NULL":
            text = _word(inner)
        case "B":
            text = _bytes(inner)
        case "SS" | "NS":
            text = _block("[]string", [_text(content) for content in inner], indent)
        case "BS":
            text = _block("[][]byte", [_bytes(content) for content in inner], indent)
        case "L":
            text = _block(f"[]{_VALUE}", [_attribute(content, indent + 1) for content in inner], indent)
        case "M":
            pairs = inner.items()
            rows = [f"{_text(name)}: {_attribute(content, indent + 1)}" for name, content in pairs]
            text = _block(f"map[string]{_VALUE}", rows, indent)
        case _:
            text = _text(inner)
    return f"&{_VALUE}Member{kind}{{Value: {text}}}"


def _block(opening: str, rows: list[str], indent: int) -> str:
    short = ", ".join(rows)
    if "\n" not in short and len(short) <= _ROW_CHARACTERS_MAX:
        return f"{opening}{{{short}}}"
    tabs = "\t" * (indent + 1)
    return f"{opening}{{\n" + "".join(f"{tabs}{row},\n" for row in rows) + "\t" * indent + "}"


def _word(value: bool) -> str:
    return "true" if value else "false"


def _text(text: str) -> str:
    """A string. Go refuses a byte order mark inside a program, all else may stand as in JSON."""
    return orjson.dumps(text).decode().replace("\ufeff", "\\ufeff")


def _bytes(text: str) -> str:
    """Bytes, from their base64."""
    return '[]byte("' + "".join(f"\\x{byte:02x}" for byte in base64.b64decode(text)) + '")'
