"""A store that speaks S3's protocol over HTTP, keeps its objects in memory, and misbehaves on demand.

Its mood is

    well   everything works
    away   connections are cut
    bad    each request may be answered late, by half, or with an error before or after it was carried out; be
           carried out twice, or long after its connection was cut, behind requests that came after it

A request is carried out as a whole or not at all, as by S3.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from threading import Event, Lock, Thread, Timer
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET: Final = "bucket"
FAULTS: Final = (
    *("none",) * 6,
    *(
        "late answer",
        "half an answer",
        "error before",
        "error after",
        "cut before",
        "cut after",
        "twice",
        "later",
    ),
)
LATER_SECONDS: Final = 1.5
LATE_SECONDS: Final = 0.4
_XML: Final = '<?xml version="1.0" encoding="UTF-8"?>'


@dataclass
class Answer:
    """A status, headers and a body."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


class Store:
    """The objects of the bucket, by their keys; and the parts of uploads, by their ids. Thread-safe."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.mood = "well"
        self.faults: dict[str, int] = {}
        self.ends = Event()
        self._lock = Lock()
        self._objects: dict[str, bytes] = {}
        self._uploads: dict[str, dict[int, bytes]] = {}

    def fault(self) -> str:
        """What happens to the next request."""
        with self._lock:
            what = {"well": "none", "away": "cut before"}.get(self.mood) or self.random.choice(FAULTS)
            self.faults[what] = self.faults.get(what, 0) + (what != "none")
        return what

    def carry_out(self, method: str, key: str, query: dict[str, str], headers: Any, body: bytes) -> Answer:
        with self._lock:
            if method == "GET":
                return self._get(key, headers) if key else self._list(query)
            if method == "PUT" and "uploadId" in query:
                parts = self._uploads.get(query["uploadId"])
                if parts is None:
                    return _error(404, "NoSuchUpload")
                parts[int(query["partNumber"])] = body
                return Answer(200, headers={"ETag": _etag(body)})
            if method == "PUT":
                return self._put(key, headers, body)
            if method == "POST":
                return self._upload(key, query)
            if "uploadId" in query:
                self._uploads.pop(query["uploadId"], None)
            else:
                self._objects.pop(key, None)
            return Answer(204)

    def _put(self, key: str, headers: Any, body: bytes) -> Answer:
        found = self._objects.get(key)
        wanted = headers.get("If-Match")
        if headers.get("If-None-Match") == "*" and found is not None:
            return _error(412, "PreconditionFailed")
        if wanted is not None and (found is None or _etag(found) != wanted):
            return _error(412, "PreconditionFailed") if found is not None else _error(404, "NoSuchKey")
        self._objects[key] = body
        return Answer(200, headers={"ETag": _etag(body)})

    def _upload(self, key: str, query: dict[str, str]) -> Answer:
        if "uploads" in query:
            name = f"{len(self._uploads)}-{self.random.random()}"
            self._uploads[name] = {}
            return _xml("InitiateMultipartUploadResult", f"<UploadId>{name}</UploadId>")
        parts = self._uploads.pop(query["uploadId"], None)
        if parts is None:
            return _error(404, "NoSuchUpload")
        self._objects[key] = b"".join(parts[number] for number in sorted(parts))
        return _xml("CompleteMultipartUploadResult", f"<ETag>{_etag(self._objects[key])}</ETag>")

    def _get(self, key: str, headers: Any) -> Answer:
        found = self._objects.get(key)
        if found is None:
            return _error(404, "NoSuchKey")
        if headers.get("If-Match", _etag(found)) != _etag(found):
            return _error(412, "PreconditionFailed")
        start = int(headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0])
        return Answer(206 if "Range" in headers else 200, found[start:], {"ETag": _etag(found)})

    def _list(self, query: dict[str, str]) -> Answer:
        prefix, after = query.get("prefix", ""), query.get("start-after", "")
        contents = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(content)}</Size><ETag>{_etag(content)}</ETag>"
            "</Contents>"
            for key, content in sorted(self._objects.items())
            if key.startswith(prefix) and key > after
        )
        return _xml("ListBucketResult", f"<IsTruncated>false</IsTruncated>{contents}")


def _etag(content: bytes) -> str:
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


def _xml(name: str, content: str) -> Answer:
    return Answer(200, f"{_XML}<{name}>{content}</{name}>".encode(), {"Content-Type": "application/xml"})


def _error(status: int, code: str) -> Answer:
    body = f"{_XML}<Error><Code>{code}</Code><Message>{code}</Message></Error>"
    return Answer(status, body.encode(), {"Content-Type": "application/xml"})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer is sent as a whole, without waiting for the first part's receipt
    disable_nagle_algorithm = True
    store: Store

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (its name there)
        """Say nothing."""

    def handle_expect_100(self) -> bool:
        answer = super().handle_expect_100()
        self.wfile.flush()
        return answer

    def _handle(self) -> None:
        split = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(split.query, keep_blank_values=True).items()}
        key = unquote(split.path.removeprefix(f"/{BUCKET}").removeprefix("/"))
        length = int(self.headers.get("Content-Length", "0"))
        body = self.rfile.read(length)
        if len(body) < length:  # the client was killed
            self.close_connection = True
            return
        store, method, headers = self.store, self.command, self.headers

        def carry_out() -> Answer:
            return store.carry_out(method, key, query, headers, body)

        answer = self._misbehave(store.fault(), carry_out)
        if answer is None:
            self.close_connection = True
            return
        self._send(answer, len(answer.body))

    def _misbehave(self, what: str, carry_out: Callable[[], Answer]) -> Answer | None:
        """The answer to a request; None: the connection is cut."""
        store = self.store
        match what:
            case "cut before":
                return None
            case "error before":
                return _error(store.random.choice((500, 503)), "InternalError")
            case "later":
                timer = Timer(store.random.uniform(0, LATER_SECONDS), carry_out)
                timer.daemon = True
                timer.start()
                return None
            case "twice":
                carry_out()
        answer = carry_out()
        match what:
            case "cut after":
                return None
            case "error after":
                return _error(store.random.choice((500, 503)), "InternalError")
            case "late answer":
                store.ends.wait(store.random.uniform(0, LATE_SECONDS))
            case "half an answer":
                if answer.body:
                    half = answer.body[: len(answer.body) // 2]
                    self._send(Answer(answer.status, half, answer.headers), len(answer.body))
                return None
        return answer

    def _send(self, answer: Answer, length: int) -> None:
        with suppress(OSError):
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if answer.status != 204:
                self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(answer.body)
            self.wfile.flush()

    do_GET = do_PUT = do_POST = do_DELETE = _handle  # noqa: N815 (their names there)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients are killed."""


@contextmanager
def serving(random: Random) -> Iterator[tuple[str, Store]]:
    """The endpoint of a store, and the store."""
    store = Store(random)
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"store": store}))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", store
    finally:
        store.ends.set()
        server.shutdown()
        thread.join()
        server.server_close()
