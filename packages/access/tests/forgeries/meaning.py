"""What of a request a signature covers, read independently of `hashrange_access.signatures`.

Two requests with one meaning are one request to their signer: a server may take both. `reasons`
says by which liberties a changed request has the meaning of the genuine one. The reading is naive: bytes,
loops and no regular expressions.

Source: IAM User Guide, "Create a signed AWS API request".
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from forgeries.genuine import Sent

_SPACE = b" \t\r\n\v\f"


@dataclass(frozen=True, slots=True)
class Meaning:
    """All that a signature covers, and the signature itself."""

    in_query: bool
    method: bytes
    path: bytes
    query: tuple[tuple[bytes, bytes], ...]
    headers: tuple[tuple[bytes, bytes], ...]
    authorization: tuple[tuple[bytes, bytes], ...]
    date: bytes
    token: bytes
    body: bytes


def meaning(sent: Sent) -> Meaning | None:
    """The meaning of a request; None if it cannot be read."""
    path, _, text = sent.target.partition(b"?")
    query = sorted(_pair(part) for part in text.split(b"&") if part)
    in_query = any(name == b"X-Amz-Algorithm" for name, _ in query)
    if in_query:
        parameters = [(name.removeprefix(b"X-Amz-"), value) for name, value in query]
        authorization = [(name, value) for name, value in parameters if name in (b"Signature", b"Credential")]
        names = dict(parameters).get(b"SignedHeaders", b"")
        date = dict(parameters).get(b"Date", b"")
        token = dict(parameters).get(b"Security-Token", sent.headers.get(b"x-amz-security-token", b""))
    else:
        header = sent.headers.get(b"authorization", b"").strip(_SPACE)
        scheme, _, rest = header.partition(b" ")
        parts = [part for part in rest.replace(b",", b" ").split() if part]
        pairs = [tuple(part.split(b"=", 1)) for part in parts]
        if any(len(pair) != 2 for pair in pairs):
            return None
        authorization = [(b"", scheme), *((pair[0], pair[1]) for pair in pairs)]
        names = dict(authorization).get(b"SignedHeaders", b"")
        date = sent.headers.get(b"x-amz-date", sent.headers.get(b"date", b""))
        token = sent.headers.get(b"x-amz-security-token", b"")
    listed = names.split(b";")
    if any(name not in sent.headers for name in listed):
        return None
    return Meaning(
        in_query,
        sent.method,
        unquote_to_bytes(path),
        tuple(query),
        tuple((name, b" ".join(sent.headers[name].split())) for name in listed),
        tuple(sorted(authorization)),
        date,
        token,
        sent.body,
    )


def reasons(genuine: Sent, changed: Sent) -> list[str]:
    """Why a changed request has the meaning of a genuine one; [] if it has another meaning."""
    before, after = meaning(genuine), meaning(changed)
    if before is None or before != after:
        return []
    made: list[str] = []
    names = {name for name, _ in before.headers}
    unsigned = {*genuine.headers, *changed.headers} - names
    if any(genuine.headers.get(name) != changed.headers.get(name) for name in unsigned - {b"authorization"}):
        made.append("a header that is not signed")
    if any(genuine.headers.get(name) != changed.headers.get(name) for name in names):
        made.append("white space in a header")
    if genuine.headers.get(b"authorization") != changed.headers.get(b"authorization"):
        made.append("the spelling of the Authorization header")
    if genuine.target != changed.target:
        queries = [sent.target.partition(b"?")[2] for sent in (genuine, changed)]
        parts = [sorted(filter(None, query.split(b"&"))) for query in queries]
        made.append("the order of the query" if parts[0] == parts[1] else "the spelling of the query")
    return made or ["another genuine request"]


def _pair(part: bytes) -> tuple[bytes, bytes]:
    name, _, value = part.replace(b"+", b" ").partition(b"=")
    return unquote_to_bytes(name), unquote_to_bytes(value)
