"""Judges answers: a proper answer belongs to a request that was sent, and its length fits the request."""

from __future__ import annotations

import zlib

import orjson

# An error may quote the request, but not many times.
ERROR_BYTES_MAX = 64 * 1024
_UNKNOWN_OPERATION = b"<UnknownOperationException/>\n"
# The request is valid HTTP, but no call of the API: other code answers it.
_FOR_HEADERS = (b"healthy: ", _UNKNOWN_OPERATION)


def is_refusal(status: int, head: bytes, body: bytes) -> bool:
    """Whether the answer refuses the HTTP itself (501: a transfer coding that it does not know). The server
    closes the connection then."""
    return (400 <= status < 500 or status == 501) and not body and b"\r\nConnection: close\r\n" in head


_WITHOUT_ANSWER = ("TagResource", "UntagResource")
# The service itself answers so to ListGlobalTables if its RegionName names no region, and to what it cannot
# decode.
_INTERNAL = (
    b'{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"Internal server error"}'
)


def find_fault(
    kind: str, sent: bytes, status: int, head: bytes, body: bytes, operation: str = ""
) -> str | None:
    """What is wrong with an answer; None if nothing is. `kind`, `sent` and `operation` are the mutation's."""
    may_fail = operation == "ListGlobalTables" or b"\r\ncontent-encoding:" in sent.lower()
    if status == 500 and body == _INTERNAL and may_fail:
        return None
    if not (status == 200 or 400 <= status < 500 or is_refusal(status, head, body)):
        return f"status {status}"
    if is_refusal(status, head, body):
        return None if kind in ("headers", "framing") else f"status {status} and the end of the connection"
    if kind in ("headers", "framing") and (not body or body.startswith(_FOR_HEADERS)):
        return None
    checksum = b"\r\nx-amz-crc32: %d\r\n" % zlib.crc32(body)
    if checksum not in head:
        return "a wrong checksum"
    if status == 200 and not body and operation in _WITHOUT_ANSWER:
        return None
    try:
        answer = orjson.loads(body)
    except ValueError:
        return "no JSON"
    if not isinstance(answer, dict):
        return "no JSON object"
    return None if status == 200 else _find_error_fault(answer, len(sent), len(body))


def _find_error_fault(answer: dict[str, object], sent_bytes: int, body_bytes: int) -> str | None:
    name = answer.get("__type")
    if not isinstance(name, str) or "#" not in name:
        return "an error without its name"
    message = answer.get("message", answer.get("Message", ""))
    if not isinstance(message, str):
        return "an error whose message is not a string"
    # The items that a failed condition returns are not part of the message.
    if (
        "Item" not in answer
        and "CancellationReasons" not in answer
        and body_bytes > 2 * sent_bytes + ERROR_BYTES_MAX
    ):
        return f"an error of {body_bytes} bytes for a request of {sent_bytes}"
    return None


def outcome_of(status: int, body: bytes) -> str:
    """An answer in a word or two, for the summary."""
    if status == 200:
        return "200"
    start = body.find(b"#")
    name = body[start + 1 : body.find(b'"', start)].decode("latin-1") if start >= 0 else ""
    return f"{status} {name}".strip()
