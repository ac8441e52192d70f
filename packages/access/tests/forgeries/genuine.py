"""Requests that botocore has signed, in the Authorization header or in the query."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any
from urllib.parse import quote

from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from hashrange_access.signatures import Key

KEY = Key("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
SESSION = Key("ASIDEXAMPLE", "another-secret", "a/session+token==", 2_000_000_000.0)
HOST = "dynamodb.us-east-1.amazonaws.com"
TARGET = "DynamoDB_20120810.ListTables"
STAMP = "%Y%m%dT%H%M%SZ"


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as a server has read it. The names of `headers` are in lower case."""

    method: bytes
    target: bytes
    headers: dict[bytes, bytes] = field(default_factory=dict)
    body: bytes = b""

    @property
    def parts(self) -> tuple[bytes, bytes, dict[bytes, bytes], bytes]:
        """The arguments of `Verifier.verify`."""
        return self.method, self.target, self.headers, self.body

    @property
    def signed_at(self) -> float:
        """The time of the signature, in epoch seconds."""
        stamp = self.headers.get(b"x-amz-date") or self.target.partition(b"X-Amz-Date=")[2][:16]
        return datetime.strptime(stamp.decode(), STAMP).replace(tzinfo=UTC).timestamp()


def signed(
    body: bytes = b"{}",
    key: Key = KEY,
    region: str = "us-east-1",
    query: str = "",
    service: str = "dynamodb",
    **headers: str,
) -> Sent:
    """A request that is signed in its header. `query` begins with a question mark, if there is one."""
    sent = {"Host": HOST, "X-Amz-Target": TARGET} | headers
    request = AWSRequest("POST", f"https://{HOST}/{query}", headers=sent, data=body)
    SigV4Auth(Credentials(key.id, key.secret, key.token or None), service, region).add_auth(request)
    return read(request, query, body)


class _WithBody(SigV4QueryAuth):
    """Presigns a request whose body is signed too, as DynamoDB needs it; botocore presigns empty ones."""

    body = b""

    def payload(self, request: Any) -> str:
        return hashlib.sha256(self.body).hexdigest()


def presigned(
    body: bytes, expires: int, key: Key = KEY, region: str = "us-east-1", query: str = "", **headers: str
) -> Sent:
    """A request that is signed in its query."""
    sent = {"Host": HOST, "X-Amz-Target": TARGET} | headers
    request = AWSRequest("POST", f"https://{HOST}/{query}", headers=sent)
    signer = _WithBody(Credentials(key.id, key.secret, key.token or None), "dynamodb", region, expires)
    signer.body = body
    signer.add_auth(request)
    return read(request, "?" + str(request.url).partition("?")[2], body)


def read(request: Any, query: str, body: bytes) -> Sent:
    """The request that botocore would send, as a server reads it."""
    made = {name.lower().encode(): _bytes(value) for name, value in request.headers.items()}
    return Sent(b"POST", b"/" + query.encode(), made, body)


def any_request(random: Random) -> Sent:
    """A genuine request: signed anywhere, by a user or a session, with any headers, query and body."""
    key = random.choice((KEY, SESSION))
    region = random.choice(("us-east-1", "eu-west-3", "local"))
    body = random.choice((b"{}", b'{"Limit":7}', b'{"ExclusiveStartTableName":"a b"}', b'{ "Limit" : 100 }'))
    pairs = [(_text(random), _text(random)) for _ in range(random.choice((0, 0, 1, 3)))]
    query = "&".join(f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in pairs)
    headers = {"Content-Type": "application/x-amz-json-1.0"}
    for name in random.sample(("X-Own-A", "X-Own-B", "X-Amz-Meta"), random.randrange(3)):
        headers[name] = random.choice((" ", "  ", "\t ")).join(_text(random) for _ in range(3)).strip()
    if random.random() < 0.6:
        sent = signed(body, key, region, f"?{query}" if query else "", **headers)
    else:
        sent = presigned(body, random.choice((60, 3600, 604_800)), key, region, f"?{query}", **headers)
    sent.headers.update({b"user-agent": b"any/1.0", b"accept-encoding": b"identity"})  # not signed
    return sent


def _text(random: Random) -> str:
    return "".join(random.choice("abcXYZ019-_.~ +/%&=é€;:") for _ in range(random.randrange(1, 7)))


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("utf-8")
