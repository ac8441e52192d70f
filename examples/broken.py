"""Requests that no program sends on purpose: an example answers each in words, never with a status of 500."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from urllib.parse import quote

TEXTS = ("", "#", "a#b", "\x00", "é" * 3_000, "x" * 500_000, "2026-99-99", "-1", "null")
BODIES = (b"", b"{", b"null", b"[]", b"7", b'"text"', b"\xff", b"{}", b'{"as": []}', b"[[]]", b"[null]")


def refused(url: str, gets: Iterable[str], posts: Mapping[str, Iterable[str]]) -> int:
    """Send broken requests, and return their number: `gets` are paths with `{}` for a text, `posts` are the
    paths of forms with the names of their fields."""
    requests: list[tuple[str, bytes | None]] = []
    for path in gets:
        requests += [(path.format(quote(text[:2_000], safe="")), None) for text in TEXTS]
    for path, fields in posts.items():
        requests += [(path, body) for body in BODIES]
        for field in fields:
            for text in TEXTS:
                form = dict.fromkeys(fields, "ada") | {field: text}
                requests.append((path, json.dumps(form).encode()))
    for path, body in requests:
        status, answer = _answer(url + path, body)
        assert status < 500, (path, body and body[:100], status, answer)
        if status >= 400 and answer.startswith(b"{"):
            assert json.loads(answer)["error"], (path, body)
    return len(requests)


def _answer(url: str, body: bytes | None) -> tuple[int, bytes]:
    headers = {"Content-Type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=30) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()
