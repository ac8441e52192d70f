"""Requests that are refused, and that a server may yet spend long on: large, deep, wrong all over."""

from __future__ import annotations

from collections.abc import Sequence

from bench.worst.registry import shape
from bench.worst.stage import WRITTEN, Stage

MEGABYTE = 1 << 20
# Below the largest body that is taken, 16 MB.
LARGE_BYTES = 15 * MEGABYTE


def _with_body(stage: Stage, operation: str, body: bytes) -> Sequence[bytes]:
    head = stage.request(operation, {}).partition(b"\r\n\r\n")[0]
    return [head.replace(b"Content-Length: 2", b"Content-Length: %d" % len(body)) + b"\r\n\r\n" + body]


def _repeated(start: bytes, member: bytes, end: bytes, total_bytes: int) -> bytes:
    count = (total_bytes - len(start) - len(end)) // (len(member) + 1)
    return start + b",".join([member] * count) + end


@shape("TransactWriteItems of empty members, 1 MB")
def empty_members(stage: Stage) -> Sequence[bytes]:
    body = _repeated(b'{"TransactItems":[', b"{}", b"]}", MEGABYTE)
    return _with_body(stage, "TransactWriteItems", body)


@shape("TransactWriteItems of empty members, 15 MB")
def empty_members_large(stage: Stage) -> Sequence[bytes]:
    body = _repeated(b'{"TransactItems":[', b"{}", b"]}", LARGE_BYTES)
    return _with_body(stage, "TransactWriteItems", body)


@shape("BatchGetItem of keys of the wrong type, 15 MB")
def wrong_types(stage: Stage) -> Sequence[bytes]:
    body = _repeated(b'{"RequestItems":{"t":{"Keys":[', b'{"pk":{"S":1}}', b"]}}}", LARGE_BYTES)
    return _with_body(stage, "BatchGetItem", body)


@shape("BatchWriteItem of empty requests, 15 MB")
def empty_batch(stage: Stage) -> Sequence[bytes]:
    body = _repeated(b'{"RequestItems":{"t":[', b"{}", b"]}}", LARGE_BYTES)
    return _with_body(stage, "BatchWriteItem", body)


@shape("CreateTable of empty definitions, 15 MB")
def empty_definitions(stage: Stage) -> Sequence[bytes]:
    body = _repeated(b'{"TableName":"worst","AttributeDefinitions":[', b"{}", b"]}", LARGE_BYTES)
    return _with_body(stage, "CreateTable", body)


@shape("BatchExecuteStatement of empty statements, 15 MB")
def empty_statements(stage: Stage) -> Sequence[bytes]:
    return _with_body(
        stage, "BatchExecuteStatement", _repeated(b'{"Statements":[', b"{}", b"]}", LARGE_BYTES)
    )


@shape("PutItem of a list of 15 MB, far too large")
def item_too_large(stage: Stage) -> Sequence[bytes]:
    stage.need(WRITTEN)
    start = b'{"TableName":"%b","Item":{"pk":{"S":"x"},"l":{"L":[' % WRITTEN.encode()
    return _with_body(stage, "PutItem", _repeated(start, b'{"N":"1"}', b"]}}}", LARGE_BYTES))


@shape("PutItem of a list of 15 MB with an unknown type at its end")
def item_wrong_at_end(stage: Stage) -> Sequence[bytes]:
    stage.need(WRITTEN)
    start = b'{"TableName":"%b","Item":{"pk":{"S":"x"},"l":{"L":[' % WRITTEN.encode()
    return _with_body(stage, "PutItem", _repeated(start, b'{"N":"1"}', b',{"X":1}]}}}', LARGE_BYTES))


@shape("PutItem of a number set of 15 MB")
def set_too_large(stage: Stage) -> Sequence[bytes]:
    stage.need(WRITTEN)
    start = b'{"TableName":"%b","Item":{"pk":{"S":"x"},"l":{"NS":[' % WRITTEN.encode()
    numbers = b",".join(b'"%d"' % n for n in range(10**7, 10**7 + 1_300_000))
    return _with_body(stage, "PutItem", start + numbers + b"]}}}")


@shape("an operation with 15 MB of members that it does not know")
def unknown_members(stage: Stage) -> Sequence[bytes]:
    members = b",".join(b'"%d":1' % n for n in range(1_200_000))
    return _with_body(stage, "GetItem", b"{" + members + b"}")


@shape("text of 15 MB that is no JSON")
def not_json(stage: Stage) -> Sequence[bytes]:
    return _with_body(stage, "GetItem", b"[" + b"1," * (LARGE_BYTES // 2))


@shape("text of 15 MB that ends in the middle of a string")
def string_without_end(stage: Stage) -> Sequence[bytes]:
    return _with_body(stage, "GetItem", b'{"TableName":"' + b"x" * LARGE_BYTES)


@shape("text of 15 MB that is one string of escapes")
def string_of_escapes(stage: Stage) -> Sequence[bytes]:
    return _with_body(stage, "GetItem", b'{"TableName":"' + b"\\n" * (LARGE_BYTES // 2) + b'"}')


@shape("JSON 500,000 levels deep, 1 MB")
def deep_json(stage: Stage) -> Sequence[bytes]:
    return _with_body(stage, "GetItem", b'{"TableName":' + b"[" * 500_000 + b"]" * 500_000 + b"}")


@shape("a SELECT of 1 MB")
def statement_too_long(stage: Stage) -> Sequence[bytes]:
    where = " OR ".join(["a = 1"] * (MEGABYTE // 9))
    return [stage.request("ExecuteStatement", {"Statement": f"SELECT * FROM t WHERE {where}"})]


@shape("a filter of 1 MB")
def expression_too_long(stage: Stage) -> Sequence[bytes]:
    return [stage.request("Scan", {"TableName": "worst", "FilterExpression": "(" * MEGABYTE})]
