"""Answers as HTTP/1.1 bytes.

Most answers are successful. So the first part of their head is rebuilt once a second (`Frames.tick`), and an
answer adds only its id, checksum and length. Other answers are made header by header.

The checksum is fastcrc's, which takes a thirtieth of the time of zlib's where the processor multiplies
without carries, as those of the last ten years do.
"""

from __future__ import annotations

from email.utils import formatdate
from http import HTTPStatus

from fastcrc.crc32 import iso_hdlc as crc32

from hashrange.protocol import JSON_TYPE, Response, request_id, response_headers

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Frames:
    """Makes the bytes of answers. `tick` sets the time of their Date header."""

    __slots__ = ("_common", "_second", "_success")

    def __init__(self, now: float) -> None:
        self._second = -1
        self.tick(now)

    def tick(self, now: float) -> None:
        """Set the time that answers carry, in seconds since the epoch."""
        second = int(now)
        if second == self._second:
            return
        self._second = second
        self._common = b"Server: Server\r\nDate: %b\r\n" % formatdate(second, usegmt=True).encode()
        self._success = (
            b"HTTP/1.1 200 OK\r\n"
            + self._common
            + b"Content-Type: "
            + JSON_TYPE
            + b"\r\nConnection: keep-alive\r\nx-amzn-RequestId: "
        )

    def success(self, body: bytes) -> bytes:
        """A 200 that keeps the connection open."""
        return self.success_head(body) + body

    def success_head(self, body: bytes) -> bytes:
        """The part of such an answer that comes before its body."""
        return b"%b%b%b" % (self._success, request_id(), _last_lines(crc32(body), len(body)))

    def success_in_pieces(self, pieces: list[bytes]) -> bytes:
        """The same, of a large body in pieces."""
        checksum = length = 0
        for piece in pieces:
            checksum = crc32(piece, checksum)
            length += len(piece)
        return b"".join([self._success, request_id(), _last_lines(checksum, length), *pieces])

    def response(self, response: Response, *, close: bool, head_only: bool = False) -> bytes:
        """The bytes of any answer. `head_only` is for HEAD: the headers of the answer without its body."""
        lines = [
            f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}\r\n".encode(),
            self._common,
        ]
        for name, value in response_headers(response):
            lines += (name, b": ", value, b"\r\n")
        lines.append(b"Connection: close\r\n" if close else b"Connection: keep-alive\r\n")
        lines.append(b"Content-Length: %d\r\n\r\n" % len(response.body))
        if not head_only:
            lines.append(response.body)
        return b"".join(lines)

    def refusal(self, status: int) -> bytes:
        """The answer to bytes that are not proper HTTP, or to too many of them; the connection ends with
        it."""
        return b"HTTP/1.1 %d %b\r\n%bConnection: close\r\nContent-Length: 0\r\n\r\n" % (
            status,
            HTTPStatus(status).phrase.encode(),
            self._common,
        )


def _last_lines(checksum: int, length: int) -> bytes:
    return f"\r\nx-amz-crc32: {checksum}\r\nContent-Length: {length}\r\n\r\n".encode()
