"""Connections to an endpoint of DynamoDB's API, which send a request and wait for its answer.

Plain HTTP/1.1 on asyncio: a client of an SDK takes several times as long for a request as the server does,
and so would measure itself. Requests are signed by botocore (Signature Version 4), with the credentials that
the AWS CLI would use. Without credentials they carry a signature that only a server accepts that verifies
none.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import httptools
import orjson

from hashrange.clock import SystemClock

SECONDS_MAX: Final = 60.0
_TYPE: Final = "application/x-amz-json-1.0"
_STREAMS: Final = frozenset({"DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"})
_RECEIVED_BYTES: Final = 1 << 16
_INVENTED_KEY: Final = "hashrange"


class Unreachable(Exception):
    """The endpoint cannot be used; the text says why."""


class Answer(NamedTuple):
    """An answer: its status and its body; `error` is the code of an error, "" for none. A request without an
    answer has the status 0 and the error NoAnswer; `is_overdue` if it was waited for until SECONDS_MAX."""

    status: int
    body: bytes
    error: str
    seconds: float
    is_overdue: bool = False

    @property
    def message(self) -> str:
        """The text of an error."""
        try:
            said = orjson.loads(self.body)
        except ValueError:
            return self.body[:200].decode("utf-8", "replace")
        return str(said.get("message") or said.get("Message") or "") if isinstance(said, dict) else ""


NO_ANSWER: Final = "NoAnswer"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go. `signer` is botocore's, None without credentials; `context` is for TLS."""

    url: str
    region: str
    signer: Any = None
    context: ssl.SSLContext | None = None

    @property
    def address(self) -> tuple[str, int]:
        """Its host and its port."""
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or (80 if self.context is None else 443)

    def head(self, operation: str, body: bytes) -> bytes:
        """The bytes of a request before its body."""
        target = "DynamoDBStreams" if operation in _STREAMS else "DynamoDB"
        headers = {"X-Amz-Target": f"{target}_20120810.{operation}", "Content-Type": _TYPE}
        headers |= self._signed(headers, body)
        headers |= {"Host": urlsplit(self.url).netloc, "Content-Length": str(len(body))}
        lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
        return f"POST / HTTP/1.1\r\n{''.join(lines)}\r\n".encode()

    def _signed(self, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        if self.signer is None:
            moment = f"{datetime.fromtimestamp(SystemClock().now(), UTC):%Y%m%dT%H%M%SZ}"
            return {
                "X-Amz-Date": moment,
                "Authorization": f"AWS4-HMAC-SHA256 Credential={_INVENTED_KEY}/{moment[:8]}/{self.region}"
                "/dynamodb/aws4_request, SignedHeaders=host;x-amz-date;x-amz-target, Signature=" + "0" * 64,
            }
        from botocore.awsrequest import AWSRequest

        request = AWSRequest(method="POST", url=f"{self.url}/", data=body, headers=dict(headers))
        self.signer.add_auth(request)
        return dict(request.headers.items())


def endpoint(url: str, region: str | None, profile: str | None, authorities: str | None = None) -> Endpoint:
    """The endpoint at a URL, with the credentials of a profile or the environment, if there are any.
    `authorities`: the file of those that are trusted in place of the machine's.

    Raises `Unreachable` for what is not a URL, for a profile that does not exist, or for no file of
    authorities.
    """
    url = url.rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Unreachable(f"{url!r} is not the URL of an endpoint; give one such as http://127.0.0.1:8000.")
    context = _context(authorities) if parts.scheme == "https" else None
    try:
        from botocore.auth import SigV4Auth
        from botocore.exceptions import BotoCoreError
        from botocore.session import Session
    except ImportError:
        if profile is not None:
            raise Unreachable("--profile needs boto3; install it with: pip install boto3") from None
        return Endpoint(url, region or "us-east-1", context=context)
    try:
        session = Session(profile=profile)
        chosen = region or session.get_config_variable("region") or "us-east-1"
        credentials = session.get_credentials()
    except BotoCoreError as error:
        raise Unreachable(str(error)) from None
    signer = SigV4Auth(credentials, "dynamodb", chosen) if credentials is not None else None
    return Endpoint(url, chosen, signer, context)


def _context(authorities: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=authorities)
    except OSError as error:
        raise Unreachable(f"{authorities} is not a file of certificates") from error


class Connection:
    """A connection to an endpoint, which is made when it is first used, and again when it was closed. It has
    one request under way at a time."""

    def __init__(self, to: Endpoint) -> None:
        self._to = to
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def send(self, operation: str, request: Any) -> Answer:
        """The answer to a request. Never raises for what the endpoint does."""
        body = orjson.dumps(request)
        began = perf_counter()
        try:
            async with asyncio.timeout(SECONDS_MAX):
                status, said = await self._exchange(self._to.head(operation, body) + body)
        except (OSError, asyncio.IncompleteReadError, httptools.HttpParserError, TimeoutError) as error:
            self.close()
            seconds, is_overdue = perf_counter() - began, type(error) is TimeoutError
            why = f"no answer for {seconds:,.0f} s" if is_overdue else str(error) or type(error).__name__
            return Answer(0, orjson.dumps({"message": why}), NO_ANSWER, seconds, is_overdue)
        seconds = perf_counter() - began
        return Answer(status, said, "" if status == 200 else _code(said), seconds)

    async def _exchange(self, sent: bytes) -> tuple[int, bytes]:
        if self._writer is None or self._writer.is_closing():
            host, port = self._to.address
            opened = await asyncio.open_connection(host, port, ssl=self._to.context)
            self._reader, self._writer = opened
        assert self._reader is not None
        self._writer.write(sent)
        incoming = _Incoming()
        parser = incoming.parser
        while not incoming.is_complete:
            piece = await self._reader.read(_RECEIVED_BYTES)
            if not piece:
                raise ConnectionError("the connection was closed before the answer")
            parser.feed_data(piece)
        if not incoming.is_kept:
            self.close()
        return parser.get_status_code(), bytes(incoming.body)

    def close(self) -> None:
        """Close the connection. It may be used again."""
        if self._writer is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                # (`close` would wait for the other side to end TLS, longer than the loop runs)
                self._writer.transport.abort()
            self._writer = None


class _Incoming:
    """Collects an answer, as its parser calls it. `is_kept`: the connection may be used further, which the
    parser knows only until it expects the next answer."""

    def __init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.body = bytearray()
        self.is_complete = False
        self.is_kept = False

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.is_complete = True
        self.is_kept = self.parser.should_keep_alive()


def _code(body: bytes) -> str:
    """The code in the body of an error."""
    try:
        said = orjson.loads(body)
    except ValueError:
        return "UnknownError"
    named = said.get("__type") if isinstance(said, dict) else None
    return str(named).rpartition("#")[2] if named else "UnknownError"
