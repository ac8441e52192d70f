"""What the audit log says of a request.

A request is noted before it runs, because it is freed before its answer: the note keeps what may be a key,
and nothing else. The thread of the log then makes the entry: it knows which attributes are the key, and
writes the hash of their values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import orjson

from hashrange.clock import show_moment
from hashrange.errors import InternalServerError, RequestViolation, ServiceError
from hashrange.operations.context import Caller, Request
from hashrange.operations.targets import name_in, targets_of_any
from hashrange.values import numbers

ALLOWED: Final = "allowed"
DENIED: Final = "denied"
UNSIGNED: Final = "unsigned"
"""The decisions. Unsigned: nobody has verified who asks, and the request was answered."""

_DENIALS: Final = frozenset({
    "AccessDeniedException", "ExpiredTokenException", "IncompleteSignatureException",
    "InvalidSignatureException", "MissingAuthenticationTokenException", "UnrecognizedClientException",
})  # fmt: skip
_KEY_TYPES: Final = frozenset({"S", "N", "B"})
_KEY_CHARS_MAX: Final = 2_800
"""The longest value of a key, as text: 2,048 bytes in base64."""
_ATTRIBUTES_MAX: Final = 100
_PLACES_MAX: Final = 100
_CHARS_MAX: Final = 256

Key = Mapping[str, Any]
KeyNames = Callable[[str, Caller], tuple[str, ...] | None]
"""Returns the names of a table's key attributes, None if there is no such table."""


class TableInRequest(NamedTuple):
    """A table that a request names, an index of it, and the attributes among which the key of an item is.
    `is_item`: they are those of an item that is put, otherwise of the key only."""

    table: str
    index_name: str
    attributes: Key | None
    is_item: bool


class Note(NamedTuple):
    """A request before it runs."""

    caller: Caller
    operation: str
    places: tuple[TableInRequest, ...]
    source: str


class Ended(NamedTuple):
    """A request that has ended. `code` is that of its error, "" for none."""

    note: Note
    moment: float
    code: str
    request_id: str


def note(operation: str, request: Request, caller: Caller, source: str) -> Note:
    """A request that has not been checked: it may have any form."""
    puts = "Item" in request or operation in ("BatchWriteItem", "TransactWriteItems")
    places = tuple(
        TableInRequest(target.table, target.index or "", _scalars(target.attributes), puts)
        for target in targets_of_any(operation, request)[:_PLACES_MAX]
    )
    if not places and isinstance(name := request.get("TableName"), str):
        places = (TableInRequest(name_in(name), "", None, False),)  # it will be refused, for something else
    return Note(caller, operation, places, source)


def _scalars(attributes: Key | None) -> Key | None:
    """Those attributes that can be a part of a key."""
    if attributes is None:
        return None
    kept: dict[str, Any] = {}
    for name, value in attributes.items():
        if isinstance(value, dict) and len(value) == 1:
            ((kind, content),) = value.items()
            if kind in _KEY_TYPES and isinstance(content, str) and len(content) <= _KEY_CHARS_MAX:
                # (a copy, because large requests are emptied once they have been performed)
                kept[name] = {kind: content}
                if len(kept) == _ATTRIBUTES_MAX:
                    break
    return kept


def code_of(error: Exception | None) -> str:
    """The code of a request's error."""
    if error is None:
        return ""
    return error.code if isinstance(error, ServiceError) else InternalServerError.__name__


def fields_of(ended: Ended, key_names: KeyNames) -> dict[str, Any]:
    """The entry of a request."""
    noted = ended.note
    return {
        "time": show_moment(ended.moment),
        "event": "request",
        "request_id": ended.request_id,
        "source": noted.source,
        "who": who(noted.caller),
        "operation": noted.operation[:_CHARS_MAX],
        "on": _shown(noted, key_names),
        "decision": _decision(noted.caller, ended.code),
        "result": ended.code or "ok",
    }


def incomplete_fields_of(entry: Ended | dict[str, Any], error: Exception) -> dict[str, Any]:
    """What is written of an entry that cannot be written as it is, with the `error` that says why."""
    why = type(error).__name__
    if isinstance(entry, dict):
        return {name: entry[name] for name in ("time", "event") if name in entry} | {"incomplete": why}
    return {
        "time": show_moment(entry.moment),
        "event": "request",
        "request_id": entry.request_id,
        "source": entry.note.source,
        "operation": entry.note.operation[:_CHARS_MAX],
        "decision": _decision(entry.note.caller, entry.code),
        "result": entry.code or "ok",
        "incomplete": why,
    }


def who(caller: Caller) -> dict[str, Any]:
    """Who has sent a request. Without a verified signature the key and the account are only what the request
    claims."""
    key = caller.access_key[:_CHARS_MAX]
    if caller.identified is None:
        return {"key": key, "account": caller.account_id, "verified": False}
    principal = caller.identified.identity.principal
    return {"key": key, "account": principal.account, "arn": principal.arn, "verified": True}


def _decision(caller: Caller, code: str) -> str:
    if code in _DENIALS:
        return DENIED
    return UNSIGNED if caller.identified is None else ALLOWED


def _shown(noted: Note, key_names: KeyNames) -> list[dict[str, Any]]:
    """The tables and indexes of a request, with the hashes of the keys that the request names there."""
    shown: dict[tuple[str, str], dict[str, Any]] = {}
    for place in noted.places:
        if not place.table:
            continue
        table, index = place.table[:_CHARS_MAX], place.index_name[:_CHARS_MAX]
        part = shown.get((table, index))
        if part is None:
            part = shown[table, index] = {"table": table, **({"index": index} if index else {}), "keys": []}
        key = place.attributes
        if key and place.is_item:
            # A batch has deletions too, which have only the key; it is the same for both.
            names = key_names(place.table, noted.caller) or ()
            key = {name: key[name] for name in names if name in key}
        if key:
            part["keys"].append(key_hash(key))
    return list(shown.values())


def key_hash(key: Key) -> str:
    """The hash of a key, by which its entries are found: the SHA-256 of its JSON, with sorted names, numbers
    in normal form and no spaces."""
    shown = {name: _normal(value) for name, value in key.items()}
    return hashlib.sha256(orjson.dumps(shown, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _normal(value: Any) -> Any:
    """A value with its number in normal form: 7.0 and 7 are the same key."""
    if not isinstance(value, Mapping) or not isinstance(value.get("N"), str):
        return value
    try:
        return {"N": numbers.normalise(value["N"])}
    except RequestViolation:
        return value
