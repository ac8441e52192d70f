"""Signs requests by Signature Version 4, for commands that ask the admin plane of a server.

A signature proves who asks without showing the secret, so a command may send it to any address.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from hashrange.server.admin.roles import SERVICE

ALGORITHM: Final = "AWS4-HMAC-SHA256"
TERMINATOR: Final = "aws4_request"

REGION: Final = "us-east-1"


class Key(NamedTuple):
    """An access key, and the token of a session or ""."""

    id: str
    secret: str
    token: str


def signature_headers(method: str, url: str, body: bytes, key: Key, now: float) -> dict[str, str]:
    """The headers that sign a request to the admin plane. `now` is in epoch seconds."""
    parts = urlsplit(url)
    moment = datetime.fromtimestamp(now, UTC)
    stamp, date = moment.strftime("%Y%m%dT%H%M%SZ"), moment.strftime("%Y%m%d")
    headers = {"Host": parts.netloc, "X-Amz-Date": stamp}
    if key.token:
        headers["X-Amz-Security-Token"] = key.token
    names = ";".join(sorted(name.lower() for name in headers))
    canonical = "\n".join((
        method,
        quote(unquote(parts.path) or "/", safe="/-_.~"),
        _query(parts.query),
        *(f"{name.lower()}:{headers[name]}" for name in sorted(headers, key=str.lower)),
        "",
        names,
        hashlib.sha256(body).hexdigest(),
    ))
    scope = f"{date}/{REGION}/{SERVICE}/{TERMINATOR}"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    signing = f"AWS4{key.secret}".encode()
    for part in (date, REGION, SERVICE, TERMINATOR):
        signing = hmac.digest(signing, part.encode(), "sha256")
    signature = hmac.digest(signing, f"{ALGORITHM}\n{stamp}\n{scope}\n{digest}".encode(), "sha256").hex()
    credential = f"Credential={key.id}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**headers, "Authorization": f"{ALGORITHM} {credential}"}


def _query(text: str) -> str:
    pairs = parse_qsl(text, keep_blank_values=True)
    encoded = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in pairs)
    return "&".join([f"{name}={value}" for name, value in encoded])
