"""Shows a stream record to people: a line about the item, and a line for each attribute that changed.

    12:03:04 MODIFY id="1"
      + note: "paid by card"
      - coupon: "SUMMER"
      ~ state: "new" → "paid"
      ~ address.city: "Bern" → "Basel"

Maps, and lists of equal length, are compared member by member; long values are cut off. Knows no terminal: a
line consists of parts with roles, and the code that prints it chooses a colour for each role.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final, Literal

import orjson

from hashrange_triggers.events import Record, created_at, keys_of

Role = Literal["", "time", "event", "key", "added", "removed"]
Part = tuple[Role, str]
Line = list[Part]
Value = dict[str, Any]

_VALUE_CHARS_MAX: Final = 72


def lines_of(record: Record) -> Iterator[Line]:
    """The lines that show a record."""
    change = record["dynamodb"]
    keys = keys_of(record)
    moment = datetime.fromtimestamp(created_at(record), UTC).astimezone()
    head: Line = [("time", f"{moment:%H:%M:%S} "), ("event", record["eventName"])]
    head += [("key", f" {name}={show(value)}") for name, value in keys.items()]
    if record.get("userIdentity", {}).get("principalId") == "dynamodb.amazonaws.com":
        head.append(("time", " (expired)"))
    yield head
    old, new = change.get("OldImage"), change.get("NewImage")
    if record["eventName"] == "MODIFY" and (old is None or new is None):
        # With a single image the changes are unknown, so the item itself is shown.
        for name, value in (new or old or {}).items():
            if name not in keys:
                yield [("", f"    {name}: {show(value)}")]
        return
    yield from _differences("", _without(old, keys), _without(new, keys))


def _without(image: dict[str, Value] | None, keys: dict[str, Value]) -> dict[str, Value]:
    return {name: value for name, value in (image or {}).items() if name not in keys}


def _differences(path: str, old: dict[str, Value], new: dict[str, Value]) -> Iterator[Line]:
    for name in {**old, **new}:
        place = f"{path}.{name}" if path else name
        yield from _difference(place, old.get(name), new.get(name))


def _difference(path: str, old: Value | None, new: Value | None) -> Iterator[Line]:
    if old == new:
        return
    if old is None or new is None:
        role: Role = "added" if old is None else "removed"
        sign = "+" if old is None else "-"
        yield [(role, f"  {sign} {path}: {show(new or old or {})}")]
    elif "M" in old and "M" in new:
        yield from _differences(path, old["M"], new["M"])
    elif "L" in old and "L" in new and len(old["L"]) == len(new["L"]):
        for place, (before, after) in enumerate(zip(old["L"], new["L"], strict=True)):
            yield from _difference(f"{path}[{place}]", before, after)
    else:
        yield [("", f"  ~ {path}: "), ("removed", show(old)), ("", " → "), ("added", show(new))]


def show(value: Value) -> str:
    """A value in short, on one line."""
    text = _text(value)
    return text if len(text) <= _VALUE_CHARS_MAX else text[: _VALUE_CHARS_MAX - 1] + "…"


def _text(value: Value) -> str:
    for kind, content in value.items():
        if kind == "N":
            return str(content)
        if kind == "NULL":
            return "null"
        if kind == "B":
            return f"binary {content}"
        if kind == "NS":
            return "{" + ", ".join(content) + "}"
        if kind in ("SS", "BS"):
            return "{" + ", ".join(orjson.dumps(member).decode() for member in content) + "}"
        if kind == "L":
            return "[" + ", ".join(map(_text, content)) + "]"
        if kind == "M":
            return "{" + ", ".join(f"{name}: {_text(member)}" for name, member in content.items()) + "}"
        return orjson.dumps(content).decode()
    return ""
