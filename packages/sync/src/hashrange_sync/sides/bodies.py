"""The bodies of large requests and answers, written and read by msgspec.

botocore walks through each value of each item, several times. That takes most of the time of a process that
copies many items. Its events let a handler replace both: botocore is shown an empty request and an empty
answer, and signs, sends, repeats and times out as always.

The values are those that botocore gives: DynamoDB's JSON with bytes for B. Times stay numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, TypedDict

import msgspec

from hashrange.cli.remote.clients import Clients

_BODY: Final = "hashrange-sync body"


class Value(TypedDict, total=False):
    """A value of an attribute."""

    S: str
    N: str
    B: bytes
    SS: list[str]
    NS: list[str]
    BS: list[bytes]
    L: list[Value]
    M: dict[str, Value]
    NULL: bool
    BOOL: bool


_Item = dict[str, Value]


class _Keys(TypedDict, total=False):
    Keys: list[_Item]
    ConsistentRead: bool


class _BatchGetItem(TypedDict, total=False):
    Responses: dict[str, list[_Item]]
    UnprocessedKeys: dict[str, _Keys]
    ConsumedCapacity: list[Any]


class _BatchExecuteStatement(TypedDict, total=False):
    Responses: list[dict[str, Any]]
    ConsumedCapacity: list[Any]


class _Scan(TypedDict, total=False):
    Items: list[_Item]
    LastEvaluatedKey: _Item
    ConsumedCapacity: dict[str, Any]


class _Change(TypedDict, total=False):
    Keys: _Item
    OldImage: _Item
    NewImage: _Item
    SequenceNumber: str
    ApproximateCreationDateTime: float


class _Record(TypedDict, total=False):
    dynamodb: _Change
    userIdentity: dict[str, Any] | None


class _GetRecords(TypedDict, total=False):
    Records: list[_Record]
    NextShardIterator: str | None


_encode: Final = msgspec.json.Encoder().encode
_read: Final[Mapping[str, Callable[[bytes], Any]]] = {
    "BatchExecuteStatement": msgspec.json.Decoder(_BatchExecuteStatement).decode,
    "BatchGetItem": msgspec.json.Decoder(_BatchGetItem).decode,
    "GetRecords": msgspec.json.Decoder(_GetRecords).decode,
    "Scan": msgspec.json.Decoder(_Scan).decode,
}
_EMPTY: Final[Mapping[str, Mapping[str, Any]]] = {
    "BatchExecuteStatement": {"Statements": [{"Statement": "-"}]},
    "BatchGetItem": {"RequestItems": {"---": {"Keys": [{}]}}},
    "TransactWriteItems": {"TransactItems": [{}]},
}
"""By operation, a small request that botocore accepts."""


def quicken(clients: Clients) -> Clients:
    """Let the requests of clients, which are used for nothing else, be written and read quickly. Returns the
    clients."""
    for operation in _EMPTY:
        events = clients.dynamodb.meta.events
        events.register(f"provide-client-params.dynamodb.{operation}", _show_empty)
        events.register(f"before-call.dynamodb.{operation}", _write)
    for client in (clients.dynamodb, clients.streams):
        for operation in _read:
            name = client.meta.service_model.service_id.hyphenize()
            client.meta.events.register(f"before-parse.{name}.{operation}", _parse)
    return clients


def _show_empty(
    params: Mapping[str, Any], model: Any, context: dict[str, Any], **_: Any
) -> Mapping[str, Any]:
    context[_BODY] = _encode(params)
    return _EMPTY[model.name]


def _write(params: dict[str, Any], context: Mapping[str, Any], **_: Any) -> None:
    params["body"] = context[_BODY]


def _parse(
    operation_model: Any, response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any
) -> None:
    if response_dict["status_code"] == 200:
        # (what is no such answer is botocore's to explain)
        with suppress(msgspec.MsgspecError):
            customized_response_dict.update(_read[operation_model.name](response_dict["body"]))
            response_dict["body"] = b"{}"
