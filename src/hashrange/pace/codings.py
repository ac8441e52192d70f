"""Decodes compressed bodies piece by piece, bounded by their decoded bytes.

A few bytes may stand for gigabytes. So a body is decoded `WINDOW_BYTES` at a time, other threads run in
between, and decoding ends at the first piece too many.
"""

from __future__ import annotations

import zlib
from typing import Final

from hashrange.pace import turns
from hashrange.pace.texts import WINDOW_BYTES

# How zlib is told which header and trailer there are. RFC 9110, 8.4.1: "deflate" is zlib's form.
_FORMS: Final = {b"gzip": 16 + zlib.MAX_WBITS, b"deflate": zlib.MAX_WBITS}
_PLAIN: Final = frozenset({b"", b"identity"})
MEMBERS_MAX: Final = 1_000
"""A gzip file may consist of several. Each takes a decoder of 40 KB, whatever its size."""


class TooLargeError(ValueError):
    """The decoded body has more bytes than it may have."""


def decoded(coding: bytes, body: bytes | bytearray, bytes_max: int) -> bytes | bytearray:
    """The content of a body whose Content-Encoding is `coding`.

    Raises TooLargeError, and ValueError if the body is not encoded in this way, is cut off, or has no
    content.
    """
    coding = coding.strip().lower()
    if coding in _PLAIN:
        return body
    form = _FORMS.get(coding)
    if form is None:
        raise ValueError(f"unknown content encoding {coding[:40]!r}")
    content = bytearray()
    try:
        _decode(body, form, content, bytes_max)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not content:
        raise ValueError("the encoded body has no content")
    return content


def _decode(body: bytes | bytearray, form: int, content: bytearray, bytes_max: int) -> None:
    decoder, members = zlib.decompressobj(form), 1
    for begin in range(0, len(body), WINDOW_BYTES):
        left = bytes(body[begin : begin + WINDOW_BYTES])
        while left:
            turns.point()
            if decoder.eof:
                members += 1
                if form == _FORMS[b"deflate"] or members > MEMBERS_MAX:
                    raise ValueError("there is more after the encoded body")
                decoder = zlib.decompressobj(form)
            content += decoder.decompress(left, WINDOW_BYTES)
            if len(content) > bytes_max:
                raise TooLargeError
            left = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
    if not decoder.eof:
        raise ValueError("the encoded body is cut off")
